"""Files of coding agents, each by the rules of its tool."""

import re
from pathlib import Path

import pytest

from builder.text.prompts import parse_document
from moving.importers.agents import REPAIRED, read_gemini, repair
from moving.importers.folders import INSTRUCTIONS, OF_NO_KIND, TWO_SOURCES
from moving.importers.items import Rejection
from tests.moving.importers.bringing import bring, latest, write_all

FILES = {
    ".claude/commands/git/fix-issue.md": "---\nargument-hint: [number] [priority]\n"
    "allowed-tools: Read, Grep\n---\nFix issue $1 with priority $2, for $5.00. Run !`git log`.\n",
    ".claude/commands/say.md": "Say $ARGUMENTS. See @docs/style.md.\n",
    ".claude/commands/README.md": "About these.\n",
    ".claude/agents/team/critic.md": "---\nname: critic\ndescription: Use when: a text is done\n"
    "tools: Read\n---\nCriticise what $1 says.\n",
    "plugin/.claude-plugin/plugin.json": "{}",
    "plugin/commands/tidy.md": "Tidy $ARGUMENTS.\n",
    ".cursor/rules/typescript.mdc": "---\ndescription: Types\nglobs: *.ts\nalwaysApply: false\n"
    "---\nUse strict types. Not `${a}`, ${b:c}.\n",
    ".continue/prompts/review.prompt": "name: Review\ndescription: Reviews\n---\nDo {{{x}}}.\n",
    ".gemini/commands/git/log.toml": 'description = "Explains a log"\n'
    'prompt = "Explain {{args}} !{git log {{args}}}."\n',
    ".windsurf/rules/tests.md": "Write tests first.\n",
    ".clinerules/style.md": "Write plainly.\n",
    "AGENTS.md": "Build with make.\n",
    "drawing.canvas": "{}",
    "other.toml": "a = 1\n",
    "notes.md": "A document.\n",
}


def test_a_repository_with_files_of_each_tool(root):
    folder = write_all(Path(root).parent / "repository", FILES)
    outcome = bring(root, folder)
    assert [one.split()[0].partition("/")[2] for one in outcome.created] == [
        "critic", "git-fix-issue", "say", "style", "review", "typescript", "git-log",
        "tests", "tidy",
    ]  # fmt: skip
    assert not outcome.rejected
    assert {one.where for one in outcome.passed_over} == {
        ".claude/commands/README.md", "AGENTS.md", "notes.md", "plugin/.claude-plugin",
        "1 .canvas, 1 .toml",
    }  # fmt: skip
    record, text = latest(root, "imported/git-fix-issue")
    body = parse_document(text).body
    assert body == "Fix issue {{arg_1}} with priority {{arg_2}}, for $5.00. Run !`git log`.\n"
    assert [(one.name, one.description) for one in record.variables] == [
        ("arg_1", "[number] [priority]"), ("arg_2", "[number] [priority]"),
    ]  # fmt: skip
    assert record.parameters == {
        "allowed-tools": "Read, Grep", "argument-hint": "[number] [priority]",
    }  # fmt: skip
    assert latest(root, "imported/say")[1] == "Say {{arguments}}. See @docs/style.md.\n"
    record, text = latest(root, "imported/critic")
    assert record.description == "Use when: a text is done" and "$1" in text
    record, text = latest(root, "imported/review")
    assert (record.title, record.description) == ("Review", "Reviews")
    assert parse_document(text).body == "Do {{x}}.\n"
    record, text = latest(root, "imported/typescript")
    assert text.endswith("Not `${a}`, ${b:c}.\n") and not record.variables
    assert (record.description, record.parameters) == (
        "Types", {"globs": "*.ts", "alwaysApply": False},
    )  # fmt: skip
    record, text = latest(root, "imported/git-log")
    assert (record.description, text) == (
        "Explains a log", "Explain {{args}} !{git log {{args}}}.",
    )  # fmt: skip
    warned = "\n".join(outcome.warnings)
    assert f".cursor/rules/typescript.mdc: {REPAIRED}" in warned
    assert "`!` commands stay text: !`git log`." in warned
    assert "`!` commands stay text: !{git log {{args}}}." in warned
    assert "`@` files stay text: @docs/style.md." in warned
    assert len(bring(root, folder).unchanged) == 9


@pytest.mark.parametrize(
    ("block", "front"),
    [
        ("---\nname: @scope\n---\n", {"name": "@scope"}),
        ("---\ndescription:\xa0Use when: now\n---\n", {"description": "Use when: now"}),
        ('\ufeff---\nname: "a"\n---\n', {"name": "a"}),
        ('+++\nname = "a"\n+++\n', {"name": "a"}),
        ("---\n\nname: a\ntools:\n  - b\n-------\n", {"name": "a", "tools": ["b"]}),
        ("---\ntools:\n\t- Read\nname: x\n---\n", {"tools": ["Read"], "name": "x"}),
        (
            "---\nname: x\nabout: Use when: a\n\n  <b>\n  c: [d\n---\n",
            {"name": "x", "about": "Use when: a\n\n<b>\nc: [d"},
        ),
        ("---\r\nglobs: *.ts\r\nname: x\r\n---\r\n", {"globs": "*.ts", "name": "x"}),
    ],
)
def test_front_matter_that_yaml_refuses(block, front):
    text, _ = repair(f"{block}Text.\n")
    document = parse_document(text)
    assert (document.front, document.body) == (front, "Text.\n")


def test_front_matter_that_nothing_helps_stays():
    text = "---\na: [1\n- b\n---\nText.\n"
    assert repair(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("description = 'x'", "has no prompt"),
        ("prompt = 1", "has no prompt"),
        ("a = " + "[" * 9_999, "invalid TOML: nested too deep"),
        ("a = 1\nb: c", 'invalid TOML in line 2: no "=" after the key; write key = "value"'),
        ("a = b", "invalid TOML in line 1: TOML cannot read this value; put it in quotes"),
        (
            "a = 1\nb = '''c\n\n",
            "invalid TOML in line 2: nothing closes this quote; add the second one",
        ),
        ("a = 1\na = 2\n", "invalid TOML in line 2: a key that the text has already; remove one"),
        ("a = 'b' c", "invalid TOML in line 1: TOML cannot read this line; check its quotes and"),
    ],
)
def test_a_command_of_gemini_that_cannot_be_read(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_gemini(text)


@pytest.mark.parametrize(
    ("front", "message"), [("a = b", "invalid TOML in line 2"), ("a = 2025-01-01", "has a date")]
)
def test_front_matter_of_toml_that_cannot_be_read_is_text(front, message):
    text = f"+++\n{front}\n+++\nText."
    same, warnings = repair(text)
    assert same == text and message in warnings[0]


def test_markdown_in_a_collection_with_dollars_has_code_in_fences(root):
    texts = {
        "agents.instructions.md": "Write ${a}.\n",
        **{
            f"s{n}/SKILL.md": f"Review ${{selection}} for {n}.\n```\n${{x}}\n```\n"
            for n in range(5)
        },
        "t/SKILL.md": "Start `${input:Name|demo}`.\n",
    }
    outcome = bring(root, write_all(Path(root).parent / "collection", texts))
    assert outcome.placeholders.turned == {"vscode": 6}
    assert latest(root, "imported/agents")[1] == "Write ${a}.\n"
    assert latest(root, "imported/s1")[1] == "Review {{selection}} for 1.\n```\n${x}\n```\n"
    assert latest(root, "imported/t")[0].variables[0].default == "demo"


def test_instructions_have_the_name_of_the_folder_that_they_are_about(root):
    folder = write_all(Path(root).parent / "shop", {
        "AGENTS.md": "Build.", "CLAUDE.md": "Test.", ".cursorrules": "Be brief.",
        "api/AGENTS.md": "A.",
        ".github/copilot-instructions.md": "Ask.", ".gitignore": "x",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert {one.reason for one in outcome.passed_over} == {INSTRUCTIONS, OF_NO_KIND}
    assert len(outcome.passed_over) == 6 and not outcome.created
    outcome = bring(root, folder, instructions=True)
    assert [one.split()[0].partition("/")[2] for one in outcome.created] == [
        "shop", "shop-copilot-instructions", "shop-agents", "shop-claude", "api",
    ]  # fmt: skip


NOTION = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("file", "text", "name", "title", "description"),
    [
        (f"Cold mail {NOTION}.md", "# Cold mail\n\nTags: sales\nStatus: In use\n\nWrite a mail.",
         "cold-mail", "Cold mail", "Write a mail."),
        (f"Mails {NOTION}/prompt.md", "Write a mail.", "mails", "Mails", "Write a mail."),
        ("Cold mail.md", "# Cold mail\n\nTone: warm and short.", "cold-mail", "Cold mail",
         "Tone: warm and short."),
        ("Vault.md", "status:: draft\n#mail #cold\n\nWrite a mail.", "vault", "Vault",
         "Write a mail."),
        (f"{NOTION}.md", "Write.", NOTION, NOTION, "Write."),
    ],
)  # fmt: skip
def test_exports_of_note_applications(root, file, text, name, title, description):
    folder = write_all(Path(root).parent / "notes", {file: text})
    outcome = bring(root, folder)
    assert [one.split()[0] for one in outcome.created] == [f"imported/{name}"]
    record, stored = latest(root, f"imported/{name}")
    assert (record.title.lower(), record.description) == (title.lower(), description)
    assert stored == text


def test_a_long_description_is_shortened(root):
    folder = write_all(Path(root).parent / "x", {
        ".claude/agents/a.md": f"---\ndescription: Use: {'word ' * 500}\n---\nDo it."
    })  # fmt: skip
    outcome = bring(root, folder)
    assert len(latest(root, "imported/a")[0].description) == 2_000
    assert ".claude/agents/a.md: Shortened the description to 2,000 characters." in outcome.warnings


def test_two_sources_of_one_prompt_are_rejected(root):
    folder = write_all(Path(root).parent / "x", {"a/SKILL.md": "A.", "a.md": "B.", "b.md": "C."})
    outcome = bring(root, folder, markdown=True)
    assert [one.split()[0] for one in outcome.created] == ["imported/b"]
    assert outcome.rejected == [Rejection("a.md, a/SKILL.md", TWO_SOURCES)]
    assert bring(root, folder, owner="bo").created == ["bo/a 1.0.0"]
