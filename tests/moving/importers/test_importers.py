"""What is in tables, lines and files of other projects becomes repos, and nothing goes missing."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.model.names import Version
from builder.model.records import CONTENT_BYTES_MAX, Variable, VersionFile
from builder.store import content
from builder.store.check import check
from moving.importers.folders import NO_SOURCE, PLAIN
from moving.importers.items import Columns, PassedOver
from moving.importers.run import Options, Outcome, import_source
from publisher.write.drafts import make_draft
from publisher.write.publish import publish
from publisher.write.store_protocol import Folder
from tests.builder.text.test_summary import CASES
from tests.conftest import YamlWork
from tests.support.calls import watched


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "content").mkdir()
    return str(tmp_path / "content")


def bring(root: str, source: Path, **options: Any) -> Outcome:
    outcome = import_source(str(source), Folder(root), Options(**options), lambda *_: None)
    if outcome.created or not options.get("dry_run"):
        assert all(fault.is_warning for fault in check(root))
    return outcome


def bring_text(root: str, name: str, text: str | bytes, **options: Any) -> Outcome:
    """Import one file with this text."""
    source = Path(root).parent / name
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    return bring(root, source, **options)


def latest(root: str, repo: str) -> tuple[VersionFile, str]:
    owner, name = repo.split("/")
    return content.read_version(
        root, owner, name, content.list_versions(root, owner, name).versions[-1]
    )


def reasons(outcome: Outcome) -> dict[str, str]:
    return dict(outcome.rejected)


# Tables


def test_a_table(root: str):
    table = 'Act,Prompt,Tags,Contributor\r\nChef,"Cook\r\n{{dish}}.",Food;Fun,"@Ann, bob"\r\n'
    outcome = bring_text(root, "chefs.csv", "\ufeff" + table)
    assert outcome == Outcome(["ann/chef 1.0.0"], [], [], [], [], [])
    record, text = latest(root, "ann/chef")
    assert text == "Cook\r\n{{dish}}."
    assert (record.title, record.tags, record.publisher) == ("Chef", ["food", "fun"], "ann")
    assert record.changelog == "Imported from chefs.csv"
    assert record.variables == [Variable("dish")]


def test_a_second_import_brings_what_has_changed(root: str):
    bring_text(root, "a.csv", "title,prompt\nA,one\nB,two\n")
    again = bring_text(root, "a.csv", "title,prompt\nA,one\nB,two\n")
    assert again == Outcome([], [], ["imported/a 1.0.0", "imported/b 1.0.0"], [], [], [])
    changed = bring_text(root, "a.csv", "title,prompt\nA,one\nB,three\n")
    assert (changed.updated, changed.unchanged) == (["imported/b 1.0.1"], ["imported/a 1.0.0"])
    record, text = latest(root, "imported/b")
    assert (text, record.changelog) == ("three", "Changed in a.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(root: str, delimiter: str):
    table = f"title{delimiter}prompt\nA{delimiter}x y\n"
    assert bring_text(root, "a.csv", table).created == ["imported/a 1.0.0"]


def test_tsv(root: str):
    assert bring_text(root, "a.TSV", 'title\tprompt\nA\t"x, y"\n').created == ["imported/a 1.0.0"]
    assert latest(root, "imported/a")[1] == "x, y"


def test_every_fault_of_a_table_is_told_with_its_row(root: str):
    table = (
        b"title,prompt\n"
        b"A,one\n"
        b"B,\xff\n"
        b"C,\n"
        b",two\n"
        b"A,one\n"
        b"D,a,b\n"
        b"\n"
        b"E,a\0b\n"
        b'F,"a" b\n'
        b"G\n"
        b"H,fine\n"
        b'I,"never closed\n'
    )
    outcome = bring_text(root, "a.csv", table)
    assert outcome.created == ["imported/a 1.0.0", "imported/h 1.0.0"]
    told = reasons(outcome)
    assert "UTF-8" in told["row 3"]
    assert "content: is empty" in told["row 4"]
    assert "'title' is empty" in told["row 5"]
    assert outcome.passed_over == [PassedOver("row 6", "the same as row 2")]
    assert told["row 7"] == "it has 3 cells under 2 columns"
    assert "NUL" in told["row 9"]
    assert "not CSV" in told["row 10"]
    assert "content: is empty" in told["row 11"]
    assert "never closed" in told["row 13"]
    assert len(told) == 8


def test_a_cell_may_be_huge(root: str):
    outcome = bring_text(
        root, "a.csv", f"title,prompt\nA,{'x' * CONTENT_BYTES_MAX}\nB,{'x' * 300_000}\n"
    )
    assert outcome.created == ["imported/a 1.0.0"]
    assert "larger than 262,144 bytes" in reasons(outcome)["row 3"]


def test_same_title_other_text(root: str):
    table = "title,prompt\nChef,one\nchef,two\nChef,\nChef,three\n"
    created = ["imported/chef 1.0.0", "imported/chef-2 1.0.0", "imported/chef-4 1.0.0"]
    assert bring_text(root, "a.csv", table).created == created
    # Mending the row that was rejected renames no other.
    mended = bring_text(root, "a.csv", table.replace("Chef,\n", "Chef,more\n"))
    assert mended.created == ["imported/chef-3 1.0.0"] and len(mended.unchanged) == 3


def test_columns_by_option(root: str):
    table = "q,Text of it,kind,topic,author\nA,hello,TEXT,My Topic,ann\n"
    columns = Columns("Q", "text of it", ("kind", "topic"), "")
    assert bring_text(root, "a.csv", table, columns=columns).created == ["imported/a 1.0.0"]
    assert latest(root, "imported/a")[0].tags == ["text", "my", "topic"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (Columns(), "No column 'title' or 'name' or 'act'. The columns are: one, prompt."),
        (Columns(title="one", prompt="two"), "No column 'two'"),
        (Columns(title="one", tags=("t",)), "--tags-column"),
        (Columns(title="one", contributor="who"), "--contributor-column"),
    ],
)
def test_columns_that_are_not_there(root: str, columns: Columns, told: str):
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.csv", "one,prompt\nA,x\n", columns=columns)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", [b"", "title,prompt\nA,x".encode("utf-16")[:-1], b'"title'])
def test_no_table(root: str, text: bytes):
    with pytest.raises(OperatorError):
        bring_text(root, "a.csv", text)


def test_utf_16_with_a_byte_order_mark(root: str):
    table = "title,prompt\nCafé,Préparez\nB,two\n"
    for number, codec in enumerate(("utf-16-le", "utf-16-be")):
        raw = f"\ufeff{table}".encode(codec)
        assert len(bring_text(root, f"{number}.csv", raw, owner=f"a{number}").created) == 2
    assert latest(root, "a1/cafe")[1] == "Préparez"
    long = table + "".join(f"Title {number},text {number}\n" for number in range(20_000))
    half = f"\ufeff{long}C,".encode("utf-16-le") + b"\x00\xd8\n\x00D"
    outcome = bring_text(root, "half.csv", half, owner="bob", dry_run=True)
    assert len(outcome.created) == 20_002
    assert outcome.rejected and "Save the table as UTF-8" in outcome.rejected[-1].reason
    latin = bring_text(root, "latin.csv", table.encode("latin-1"))
    assert latin.created == ["imported/b 1.0.0"]
    assert reasons(latin) == {"row 2": "it is not UTF-8. Save the table as UTF-8"}


def test_options_for_all(root: str):
    table = 'title,prompt,tags,license\nA,x,own,MIT\nB,"---\nlicense: ISC\n---\nx",,\nC,x,,\n'
    outcome = bring_text(
        root, "a.csv", table, license="CC0-1.0", all_tags=("all",), changelog="Why.", owner="ann"
    )
    assert len(outcome.created) == 3
    records = [latest(root, f"ann/{name}")[0] for name in "abc"]
    assert [record.license for record in records] == ["MIT", "ISC", "CC0-1.0"]
    assert [record.tags for record in records] == [["all", "own"], ["all"], ["all"]]
    assert {record.changelog for record in records} == {"Why."}


def test_dry_run(root: str):
    outcome = bring_text(root, "a.csv", "title,prompt\nA,x\nB,\n", dry_run=True)
    assert outcome.created == ["imported/a 1.0.0"] and len(outcome.rejected) == 1
    assert list(Path(root).iterdir()) == []


def test_titles_are_tidied(root: str):
    bring_text(root, "a.csv", f'title,prompt\n" A\n\u200bB ",x\nC{"c" * 300},x\n')
    assert latest(root, "imported/a-b")[0].title == "A B"
    assert len(latest(root, "imported/" + "c" * 64)[0].title) == 200


def test_a_broken_repo_stops_no_other(root: str):
    bring_text(root, "a.csv", "title,prompt\nA,x\n")
    Path(root, "imported/a/1.0.0.md").write_text("edited")
    source = Path(root).parent / "a.csv"
    source.write_text("title,prompt\nA,y\nB,y\n")
    outcome = import_source(str(source), Folder(root), Options(), lambda *_: None)
    assert outcome.created == ["imported/b 1.0.0"] and "hash differs" in reasons(outcome)["row 2"]


# Lines


def test_lines(root: str):
    rows = [
        {"name": "A", "content": "x", "tags": ["One Two"], "author": "Ann", "license": "MIT",
         "parameters": {"model": "m"}},
        {"title": "B", "text": "y {{v}}", "variables": {"v": 1}, "tags": "p q", "id": 7},
        {"title": "C"}, {"title": 5, "text": "x"}, ["x"],
    ]  # fmt: skip
    lines = "\ufeff" + "\n\n".join(map(json.dumps, rows)) + "\n{\n"
    outcome = bring_text(root, "a.jsonl", lines)
    assert outcome.created == ["ann/a 1.0.0", "imported/b 1.0.0"]
    record = latest(root, "ann/a")[0]
    assert (record.tags, record.license, record.parameters) == (["one-two"], "MIT", {"model": "m"})
    assert latest(root, "imported/b")[0].variables == [Variable("v", type="integer", default=1)]
    told = reasons(outcome)
    assert list(told) == ["line 5", "line 7", "line 9", "line 10"]
    assert "The columns are: title." in told["line 5"]


# JSON


FRONT_END = [
    {"command": "/tidy-up", "title": "Tidy a text", "tags": ["Writing"], "timestamp": 1760000000,
     "content": 'Tidy {{CLIPBOARD}}, {{tone | select:options=["kind","brief"]:default="kind"}}.'},
    {"command": "plan_sql", "name": "", "content": "Plan {{n | number:min=1:default=3}} queries."},
]  # fmt: skip


@pytest.mark.parametrize("wrap", [list, lambda rows: {"version": 2, "of": [1], "prompts": rows}])
def test_a_chat_front_ends_export(root: str, wrap: Any):
    outcome = bring_text(root, "export.json", "\ufeff" + json.dumps(wrap(FRONT_END)))
    assert outcome.created == ["imported/tidy-up 1.0.0"]
    assert reasons(outcome) == {"entry 2": "its 'name' is empty. Give each prompt a title"}
    record, text = latest(root, "imported/tidy-up")
    assert text == "Tidy {{CLIPBOARD}}, {{tone}}."
    assert (record.title, record.tags) == ("Tidy a text", ["writing"])
    assert record.variables == [
        Variable("tone", default="kind", enum=["kind", "brief"]), Variable("CLIPBOARD"),
    ]  # fmt: skip


def test_a_command_is_a_name_and_a_title_where_there_is_none(root: str):
    row = {key: value for key, value in FRONT_END[1].items() if key != "name"}
    bring_text(root, "export.json", json.dumps([row]).encode("utf-16"))
    record, text = latest(root, "imported/plan-sql")
    assert (record.title, text) == ("Plan SQL", "Plan {{n}} queries.")
    assert record.variables == [Variable("n", type="number", default=3)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"), ("[" * 100_000, "is not JSON"), ("[]", "has 0 lists of objects"),
        ('{"a": [{}], "b": [{}]}', "has 2 lists of objects"), ('["x"]', "has 0 lists"),
        ('"x"', "has 0 lists"), ('{"a": [1]}', "has 0 lists"),
    ],
)  # fmt: skip
def test_json_without_a_list_of_prompts(root: str, text: str, told: str):
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.json", text)
    assert told in str(caught.value)


# Files


DOTPROMPT = """---
model: vendor/model-1
config:
  temperature: 0.4
  maxOutputTokens: 100
input:
  schema:
    topic: string, what about
    count?: integer
    kind(enum, of text): [poem, story]
    rest?(array, more of it): string
    (*): any
  default:
    topic: fish
output:
  format: json
---
{{topic}} {{count}} {{kind}} {{rest}}
"""

PROMPTY = """---
name: Basic Prompt
description: Answers.
authors: [Ann, Bob]
tags: [Getting Started]
model:
  api: chat
  configuration:
    name: gpt-x
    api_key: ${env:KEY}
    azure_endpoint: https://team.example
  parameters:
    max_tokens: 10
inputs:
  question:
    type: string
    description: What is asked
  first: Jane
sample:
  question: Why?
---
system:
{{question}} {{first}}
"""

MESSAGES = """name: Summary
description: Sums up.
model: vendor/model-2
modelParameters:
  topP: 0.5
messages:
  - role: system
    content: Be brief.
  - role: user
    content: |
      Sum up {{input}}.
testData:
  - input: x
"""

SKILL = """---
name: pdf-forms
description: Fills in forms.
license: MIT
metadata:
  author: Ann
  version: "1.0"
---
# Forms
"""


def write_all(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def test_a_folder(root: str):
    folder = write_all(Path(root).parent / "library", {
        "README.md": "About.", "LICENSE": "MIT", "SECURITY.md": "x", "logo.png": b"\x89",
        ".hidden/a.md": "x", ".b.md": "x", "table.csv": "title,prompt\nA,x\n",
        "chef.md": "---\ntitle: The Chef\ncolor: red\n---\nCook.",
        "deep/er/Summary.prompt.yml": MESSAGES,
        "deep/one.prompt.yaml": "messages: [{role: user, content: 'Hi '}]",
        "topic.prompt": DOTPROMPT,
        "basic.prompty": PROMPTY,
        "skills/pdf/SKILL.md": SKILL, "skills/pdf/reference.md": "x", "skills/pdf/more/a.md": "x",
        "skills/nameless/SKILL.md": "Do it.",
        "bad.md": b"\xff", "empty.md": "\n", "huge.md": "x" * 300_000, "none.prompt.yml": "a: 1",
        "node_modules/a/prompt.md": "x", "env/pyvenv.cfg": "", "env/lib/prompt.md": "x",
        "site/api/v1/hub.json": "{}", "site/a/SKILL.md": SKILL,
        "again/chef.md": "Cook otherwise.", "again/more/chef.md": "Cook otherwise.",
        "prompts/system.md": "Say it.", "utf-16.md": "Élan.".encode("utf-16"),
    })  # fmt: skip
    (folder / "out.md").symlink_to(Path(root).parent)
    (folder / "in.md").symlink_to(folder / "chef.md")
    (folder / "logo.svg").symlink_to("/etc/hostname")
    outcome = bring(root, folder, markdown=True)
    assert outcome.created == [
        "imported/chef 1.0.0", "imported/basic 1.0.0", "imported/chef-2 1.0.0",
        "imported/summary 1.0.0", "imported/one 1.0.0", "imported/library 1.0.0",
        "imported/nameless 1.0.0", "imported/pdf-forms 1.0.0", "imported/topic 1.0.0",
        "imported/utf-16 1.0.0",
    ]  # fmt: skip
    assert list(reasons(outcome)) == ["out.md", "bad.md", "huge.md", "none.prompt.yml"]
    assert [one.where for one in outcome.passed_over] == [
        "README.md", "SECURITY.md", ".hidden, env, node_modules, site", "again/more/chef.md",
        "empty.md",
    ]  # fmt: skip
    assert outcome.passed_over[2].reason == NO_SOURCE
    assert outcome.passed_over[3].reason == "the same as again/chef.md"
    assert outcome.warnings == [
        "basic.prompty: The front matter is published, with model.configuration.azure_endpoint.",
        "chef.md: Ignored unknown front-matter keys: 'color'.",
        "skills/pdf/SKILL.md: Left out of the skill: 2 files, 2 bytes: reference.md, more/a.md.",
        "topic.prompt: Ignored unknown front-matter keys: 'output'.",
    ]
    assert outcome.beside == 1
    again = bring(root, folder, markdown=True)
    assert not again.created and not again.updated and len(again.unchanged) == 10
    # Without the option, plain Markdown is about the prompts in formats of their own.
    only = bring(root, folder)
    assert len(only.unchanged) == 7 and list(reasons(only)) == ["out.md", "none.prompt.yml"]
    assert PassedOver("chef.md", PLAIN) in only.passed_over


PATTERN = "# IDENTITY and PURPOSE\n\nYou weigh claims. Be fair.\n\n# INPUT\n\nINPUT:\n"


def test_files_whose_names_say_nothing_are_named_after_their_folders(root: str):
    folder = write_all(Path(root).parent / "patterns", {
        "analyze_claims/system.md": PATTERN, "analyze_claims/user.md": " \n",
        "rate_API/system.md": "", "rate_API/user.md": "Rate {{api}}.",
        "weigh/System.md": f"---\nlicense: MIT\n---\n{PATTERN}", "weigh/user.md": "{{claim}}",
        "none/system.md": "", "none/user.md": "",
        "a/prompts/index.prompt.md": "Go.", "b/Main.prompt": "Go on.", "readme.prompt.md": "About.",
        "alone/user.md": "A document.",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == [
        "imported/a 1.0.0", "imported/analyze-claims 1.0.0", "imported/b 1.0.0",
        "imported/rate-api 1.0.0", "imported/patterns 1.0.0", "imported/weigh 1.0.0",
    ]  # fmt: skip
    assert outcome.rejected == []
    assert [one.where for one in outcome.passed_over] == [
        "alone/user.md", "analyze_claims/user.md", "none/system.md", "none/user.md",
        "rate_API/system.md",
    ]  # fmt: skip
    record, text = latest(root, "imported/analyze-claims")
    assert (record.title, record.description) == ("Analyze claims", "You weigh claims.")
    assert text == PATTERN
    record, text = latest(root, "imported/weigh")
    assert (record.title, record.description) == ("Weigh", "You weigh claims.")
    assert text == (
        f'---\nlicense: MIT\n---\n{{{{role "system"}}}}\n{PATTERN}\n'
        '{{role "user"}}\n{{claim}}\n'
    )
    assert (record.license, record.variables) == ("MIT", [Variable("claim")])
    assert latest(root, "imported/rate-api")[0].title == "Rate API"
    assert len(bring(root, folder).unchanged) == 6
    # One file alone is named in the same way.
    assert bring(root, folder / "weigh/System.md", owner="bob").created == ["bob/weigh 1.0.0"]


@pytest.mark.parametrize(("body", "title", "description"), CASES)
def test_titles_and_descriptions_of_files(root: str, body: str, title: str, description: str):
    if not body.strip() or "\0" in body:
        return
    bring_text(root, "lib/weigh-sql.md", body)
    record, _ = latest(root, "imported/weigh-sql")
    heading = "" if title == "IDENTITY and PURPOSE" else title
    assert (record.title, record.description) == (heading or "Weigh SQL", description)


def test_a_title_that_was_written_in_the_hub_stays(root: str):
    bring_text(root, "lib/weigh-sql.md", "Weigh it.")
    publish(Folder(root), "imported", "weigh-sql", make_draft({"content": "Weigh it.",
            "title": "Mine"}), publisher="imported")  # fmt: skip
    assert len(bring_text(root, "lib/weigh-sql.md", "Weigh it.").unchanged) == 1
    assert bring_text(root, "lib/weigh-sql.md", "Weigh all.").updated
    record, _ = latest(root, "imported/weigh-sql")
    assert (record.title, record.description) == ("Mine", "Weigh all.")


def test_an_author_of_a_file_is_no_owner(root: str):
    folder = write_all(Path(root).parent / "library", {
        "a/SKILL.md": "---\nname: a-b\nauthor: Ann Lee - https://example.org/in/ann\n---\nDo a.",
        "b/SKILL.md": "---\nname: b\nmetadata: {author: Bo <bo@example.org>}\n---\nDo b.",
        "c.prompty": "---\nauthors: [cy@example.org, Di]\n---\nDo c.",
    })  # fmt: skip
    outcome = bring(root, folder, owner="team")
    assert outcome.created == ["team/a-b 1.0.0", "team/b 1.0.0", "team/c 1.0.0"]
    assert not outcome.warnings
    changelogs = [latest(root, f"team/{name}")[0].changelog for name in ("a-b", "b", "c")]
    assert changelogs == [f"Imported from library by {one}" for one in ("Ann Lee", "Bo", "cy")]
    assert latest(root, "team/a-b")[0].title == "A b"


ASSISTANT = """---
mode: agent
description: 'Plan ${input:feature:what to build}'
tools: ['codebase', 'search']
model: GPT-x
handoffs: [{label: x}]
---
Plan ${input:feature:what to build} and ${input:kind} in ${workspaceFolder}/src, as in ${selection}.

```sh
echo ${HOME} ${input:kind}
```
"""


def test_files_of_coding_assistants(root: str):
    folder = write_all(Path(root).parent / "kit", {
        "plan.prompt.md": ASSISTANT,
        "plan.agent.md": "---\nname: Planner\ntools: {bash: true}\n---\nPlan.",
        "plan.instructions.md": "---\napplyTo: '**/*.ts'\n---\nUse `${name}` here.",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == [
        "imported/plan 1.0.0", "imported/plan-instructions 1.0.0", "imported/plan-prompt 1.0.0",
    ]  # fmt: skip
    record, text = latest(root, "imported/plan-prompt")
    assert text.endswith(
        "Plan {{feature}} and {{kind}} in {{workspaceFolder}}/src, as in {{selection}}.\n\n"
        "```sh\necho ${HOME} {{kind}}\n```\n"
    )
    assert record.description == "Plan {{feature}}"
    assert record.parameters == {
        "model": "GPT-x", "mode": "agent", "tools": ["codebase", "search"],
    }  # fmt: skip
    assert record.variables == [
        Variable("feature", "what to build"), Variable("kind"), Variable("workspaceFolder"),
        Variable("selection"),
    ]  # fmt: skip
    assert latest(root, "imported/plan-instructions")[0].parameters == {"applyTo": "**/*.ts"}
    assert latest(root, "imported/plan")[0].title == "Planner"
    assert [one for one in outcome.warnings if "unknown" in one] == [
        "plan.agent.md: Ignored unknown front-matter keys: 'tools'.",
        "plan.prompt.md: Ignored unknown front-matter keys: 'handoffs'.",
    ]


def test_hidden_folders_of_coding_assistants(root: str):
    folder = write_all(Path(root).parent / "work", {
        ".github/prompts/fix.prompt.md": "Fix.", ".github/bug_report.md": "What is wrong?",
        ".claude/skills/plan/SKILL.md": "Plan.", ".vscode/a.prompt.md": "x",
        "src/.b.prompt.md": "x",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == ["imported/plan 1.0.0", "imported/fix 1.0.0"]
    assert outcome.passed_over == [
        PassedOver(".vscode", NO_SOURCE), PassedOver(".github/bug_report.md", PLAIN),
    ]  # fmt: skip
    outcome = bring(root, write_all(folder / "more", {".github/bug.md": "Wrong?", "a.md": "Do a."}))
    assert outcome.created == ["imported/a 1.0.0"]
    assert outcome.passed_over == [PassedOver(".github/bug.md", PLAIN)]


def test_documents_called_system_and_user(root: str):
    files = {"docs/system.md": "The system.", "docs/user.md": "Users.", "docs/other.md": "Others."}
    folder = write_all(Path(root).parent / "work", files)
    assert bring(root, folder).created == ["imported/other 1.0.0", "imported/docs 1.0.0"]
    assert bring(root, write_all(folder, {"a.prompt.md": "Do a."})).created == ["imported/a 1.0.0"]


def test_a_skill_that_is_a_link(root: str):
    folder = write_all(Path(root).parent / "work", {"a/SKILL.md": "Do a.", "b/x.md": "x"})
    (folder / "b/SKILL.md").symlink_to(folder / "a/SKILL.md")
    write_all(folder / "c/skill.md", {"one.prompt.md": "Do one."})
    (folder / "d").mkdir()
    (folder / "d/SKILL.md").symlink_to("/etc/hostname")
    outcome = bring(root, folder)
    assert outcome.created == ["imported/a 1.0.0", "imported/one 1.0.0"]
    assert reasons(outcome) == {"d/SKILL.md": "a link that leads outside the folder"}


def test_a_folder_that_is_a_skill_with_others_below(root: str):
    folder = write_all(Path(root).parent / "kit", {
        "SKILL.md": "Do all.", "guide.md": "x", "scripts/run.sh": "xy", ".git/config": "x",
        "more/sub/SKILL.md": "Do more.", "more/sub/a.txt": "x", "more/sub/old/SKILL.md": "Old.",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == ["imported/kit 1.0.0", "imported/sub 1.0.0"]
    assert outcome.warnings == [
        "SKILL.md: Left out of the skill: 2 files, 3 bytes: guide.md, scripts/run.sh.",
        "more/sub/SKILL.md: Left out of the skill: 2 files, 5 bytes: a.txt, old/SKILL.md.",
    ]


def test_a_folder_with_more_than_files_and_of_any_depth(root: str, monkeypatch: pytest.MonkeyPatch):
    folder = Path(root).parent / "library"
    folder.mkdir()
    os.mkfifo(folder / "pipe.md")
    os.mkfifo(folder / "SKILL.md")
    (folder / "last.md").write_text("Last.")
    monkeypatch.chdir(folder)
    for _ in range(1_300):
        os.mkdir("a")
        os.chdir("a")
    Path("deep.md").write_text("Deep.")
    os.chdir(folder)
    outcome = bring(root, folder)
    subprocess.run(["rm", "-r", "a"], check=True)  # too deep for pytest to remove
    assert outcome.created == ["imported/deep 1.0.0", "imported/last 1.0.0"]


def test_markdown(root: str):
    text = "---\r\ntitle: The Chef\r\ntags: Food\r\n---\r\nCook."
    bring_text(root, "lib/chef.md", text)
    record, stored = latest(root, "imported/chef")
    assert (stored, record.title, record.tags) == (text, "The Chef", ["food"])
    assert record.description == "Cook."


def test_dotprompt(root: str):
    bring_text(root, "topic.prompt", DOTPROMPT)
    record, text = latest(root, "imported/topic")
    assert text == DOTPROMPT
    assert record.parameters == {
        "model": "vendor/model-1", "temperature": 0.4, "max_tokens": 100,
    }  # fmt: skip
    assert record.variables == [
        Variable("topic", "what about", default="fish"),
        Variable("count", type="integer", required=False),
        Variable("kind", "of text", enum=["poem", "story"]),
        Variable("rest", "more of it", "array", required=False),
    ]


def test_json_schema(root: str):
    schema = {"type": "object", "required": ["a"], "properties": {
        "a": {"type": "number", "description": "First"}, "b": {"default": 2}}}  # fmt: skip
    front = json.dumps({"input": {"schema": schema}})
    bring_text(root, "x.prompt", f"---\n{front}\n---\n{{{{a}}}} {{{{b}}}}")
    assert latest(root, "imported/x")[0].variables == [
        Variable("a", "First", "number"), Variable("b", required=False, default="2"),
    ]  # fmt: skip


def test_a_secret_of_prompty_is_not_published(root: str):
    with_key = PROMPTY.replace("${env:KEY}", "sk-1234")
    reason = reasons(bring_text(root, "basic.prompty", with_key))["basic.prompty"]
    assert "model.configuration.api_key" in reason and "sk-1234" not in reason


def test_json_schema_of_objects_and_of_wrong_types(root: str):
    inner = {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}
    for name, required, is_required in (("a", ["a"], True), ("b", 5, False), ("c", [], False)):
        schema = {"required": required, "properties": {name: inner}}
        front = json.dumps({"input": {"schema": schema}})
        bring_text(root, f"{name}.prompt", f"---\n{front}\n---\nHi.")
        assert latest(root, f"imported/{name}")[0].variables == [
            Variable(name, type="object", required=is_required)
        ]


def test_prompty(root: str):
    outcome = bring_text(root, "basic.prompty", PROMPTY)
    published = "The front matter is published, with model.configuration.azure_endpoint."
    assert outcome.warnings == [f"basic.prompty: {published}"]
    record, text = latest(root, "imported/basic")
    assert text == PROMPTY.replace("system:", '{{role "system"}}')
    assert (record.title, record.description, record.tags) == (
        "Basic Prompt", "Answers.", ["getting-started"],
    )  # fmt: skip
    # No key of somebody's account.
    assert record.parameters == {"model": "gpt-x", "max_tokens": 10}
    assert record.variables == [
        Variable("question", "What is asked", example="Why?"), Variable("first", example="Jane"),
    ]  # fmt: skip


def test_messages(root: str):
    bring_text(root, "summary.prompt.yml", MESSAGES)
    record, text = latest(root, "imported/summary")
    assert text == ('{{role "system"}}\nBe brief.\n\n{{role "user"}}\nSum up {{input}}.\n')
    assert record.parameters == {"model": "vendor/model-2", "top_p": 0.5}
    assert (record.title, record.description) == ("Summary", "Sums up.")


@pytest.mark.parametrize(
    "block", [f"title: {'x' * 16_384}", f"input: [{'a,' * 2000}]"], ids=["bytes", "tokens"]
)
@pytest.mark.parametrize("name", ["a.md", "a.prompt", "a.prompty", "a/SKILL.md", "a.jsonl"])
def test_front_matter_over_a_limit_is_kept_as_text(root: str, name: str, block: str):
    text = f"---\n{block}\n---\nBody."
    line = json.dumps({"title": "a", "prompt": text})
    outcome = bring_text(root, name, line if name.endswith("l") else text)
    assert outcome.created == ["imported/a 1.0.0"]
    assert [warning.split(": ", 2)[1] for warning in outcome.warnings] == [
        "The front matter is invalid and was kept as text"
    ]
    record, stored = latest(root, "imported/a")
    assert (stored, record.front_matter_bytes, record.description) == (text, 0, "Body.")


def test_messages_of_too_many_tokens(root: str, yaml_work: YamlWork):
    # A text of more than 16 KiB in them is none of their tokens.
    bring_text(root, "long.prompt.yml", MESSAGES.replace("Be brief", "Be brief" * 5_000))
    events = yaml_work.events
    outcome = bring_text(root, "many.prompt.yml", f"{MESSAGES}\nmore: [{'1,' * 100_000}]\n")
    assert reasons(outcome) == {
        "many.prompt.yml": "invalid YAML in line 15, column 99948: it has more than 50,000 values"
    }
    assert yaml_work.events < events + 50_100


# Other owners


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("chef.csv", "title,prompt,owner\nChef,{},Ann\n"),
        ("chef.tsv", "title\tprompt\tcontributor\nChef\t{}\tAnn\n"),
        ("chef.jsonl", '{{"title": "Chef", "prompt": "{}", "author": "Ann"}}\n'),
        ("chef.json", '[{{"title": "Chef", "prompt": "{}", "author": "Ann - https://a.example"}}]'),
    ],
)
def test_other_owners_repos_are_created_and_never_updated(root: str, file: str, text: str):
    assert bring_text(root, file, text.format("Cook.")).created == ["ann/chef 1.0.0"]
    assert bring_text(root, file, text.format("Cook.")).unchanged == ["ann/chef 1.0.0"]
    changed = text.format("Burn.")
    for dry_run in (True, False):
        refused = bring_text(root, file, changed, dry_run=dry_run, allowed_owners=("bob",))
        assert refused == Outcome([], [], [], ["ann/chef"], [], [])
    assert "Cook." in latest(root, "ann/chef")[1]
    allowed = bring_text(root, file, changed, allowed_owners=("bob", "ann"))
    assert allowed.updated == ["ann/chef 1.0.1"] and not allowed.refused
    assert bring_text(root, file, text.format("Boil."), owner="ann").updated == ["ann/chef 1.0.2"]


def test_what_an_owner_publishes_during_an_import_is_not_updated(root: str):
    is_published = []

    def publish_first(call: str, args: tuple) -> None:
        # The import waits for the lock of the repo, which was free when it looked.
        if call == "flock" and not is_published:
            is_published.append(True)
            publish(Folder(root), "ann", "chef", make_draft({"content": "Mine."}), publisher="ann")

    with watched(publish_first):
        outcome = bring_text(root, "a.csv", "title,prompt,owner\nChef,Theirs.,ann\n")
    assert is_published and outcome.refused == ["ann/chef"]
    assert latest(root, "ann/chef")[1] == "Mine."


def test_file_names_need_not_be_text(root: str):
    folder = Path(root).parent / "odd\udcff"
    folder.mkdir()
    (folder / "\udcff\udcfe.md").write_text("Hi.")
    assert bring(root, folder).created == ["imported/prompt 1.0.0"]
    assert latest(root, "imported/prompt")[0].changelog == "Imported from odd\ufffd"


def test_a_column_without_a_name_is_no_contributor(root: str):
    table = ",title,prompt\nann,A,x\n"
    assert bring_text(root, "a.csv", table).created == ["imported/a 1.0.0"]


def test_what_is_no_source(root: str):
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.docx", "x")
    assert ".csv" in str(caught.value)


def test_no_content_folder(root: str):
    Path(root).rmdir()
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.csv", "title,prompt\nA,x\n")
    assert "No content folder" in str(caught.value)


def test_a_full_disk_stops_the_import(root: str, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.link", full)
        with pytest.raises(RequestError) as caught:
            bring_text(root, "a.csv", "title,prompt\nA,x\n")
    assert caught.value.code == "storage_unavailable"
    assert bring_text(root, "a.csv", "title,prompt\nA,x\n").created == ["imported/a 1.0.0"]
    assert content.list_versions(root, "imported", "a").versions == [Version(1, 0, 0)]
