"""Folders of files become prompts: which files, under which names, and what is left out."""

import os
import subprocess
from pathlib import Path

from builder.model.records import Variable
from moving.importers.folders import NO_SOURCE, OF_NO_KIND, PLAIN
from moving.importers.items import PassedOver
from tests.moving.importers.bringing import (
    DOTPROMPT,
    MESSAGES,
    PROMPTY,
    SKILL,
    bring,
    latest,
    paths,
    reasons,
    write_all,
)


def test_a_folder(root):
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
        "README.md", "SECURITY.md", ".hidden, env, node_modules, site",
        "2 symbolic links, 1 .csv, 1 .png, 1 hidden, 1 without an ending", "again/more/chef.md",
        "empty.md",
    ]  # fmt: skip
    assert outcome.passed_over[2].reason == NO_SOURCE
    assert outcome.passed_over[4].reason == "the same as again/chef.md"
    assert outcome.warnings == [
        "basic.prompty: The front matter is published, with model.configuration.azure_endpoint.",
        "chef.md: Ignored unknown front-matter keys: 'color'.",
        "topic.prompt: Ignored unknown front-matter keys: 'output'.",
    ]
    assert outcome.beside == 0
    assert paths(root, "imported/pdf-forms") == ["more/a.md", "reference.md"]
    again = bring(root, folder, markdown=True)
    assert not again.created and not again.updated and len(again.unchanged) == 10
    # Without the option, plain Markdown is about the prompts in formats of their own.
    only = bring(root, folder)
    assert len(only.unchanged) == 7 and list(reasons(only)) == ["out.md", "none.prompt.yml"]
    assert PassedOver("chef.md", PLAIN) in only.passed_over


PATTERN = "# IDENTITY and PURPOSE\n\nYou weigh claims. Be fair.\n\n# INPUT\n\nINPUT:\n"


def test_files_whose_names_say_nothing_are_named_after_their_folders(root):
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


def test_an_author_of_a_file_is_no_owner(root):
    folder = write_all(Path(root).parent / "library", {
        "a/SKILL.md": "---\nname: a-b\nauthor: Ann Lee - https://example.org/in/ann\n---\nDo a.",
        "b/SKILL.md": "---\nname: b\nmetadata: {author: Bo <bo@example.org>}\n---\nDo b.",
        "c.prompty": "---\nauthors: [cy@example.org, Di]\n---\nDo c.",
    })  # fmt: skip
    outcome = bring(root, folder, owner="team")
    assert outcome.created == ["team/a-b 1.0.0", "team/b 1.0.0", "team/c 1.0.0"]
    assert not outcome.warnings
    changelogs = [latest(root, f"team/{name}")[0].changelog for name in ("a-b", "b", "c")]
    assert changelogs == [
        "Imported from library/a/SKILL.md by Ann Lee", "Imported from library/b/SKILL.md by Bo",
        "Imported from library/c.prompty by cy",
    ]  # fmt: skip
    assert latest(root, "team/a-b")[0].title == "A b"


def test_hidden_folders_of_coding_assistants(root):
    folder = write_all(Path(root).parent / "work", {
        ".github/prompts/fix.prompt.md": "Fix.", ".github/bug_report.md": "What is wrong?",
        ".claude/skills/plan/SKILL.md": "Plan.", ".vscode/a.prompt.md": "x",
        "src/.b.prompt.md": "x",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == ["imported/plan 1.0.0", "imported/fix 1.0.0"]
    assert outcome.passed_over == [
        PassedOver(".vscode", NO_SOURCE, (".vscode",)),
        PassedOver("1 hidden", OF_NO_KIND, ("src/.b.prompt.md",)),
        PassedOver(".github/bug_report.md", PLAIN),
    ]  # fmt: skip
    outcome = bring(root, write_all(folder / "more", {".github/bug.md": "Wrong?", "a.md": "Do a."}))
    assert outcome.created == ["imported/a 1.0.0"]
    assert outcome.passed_over == [PassedOver(".github/bug.md", PLAIN)]


def test_documents_called_system_and_user(root):
    files = {"docs/system.md": "The system.", "docs/user.md": "Users.", "docs/other.md": "Others."}
    folder = write_all(Path(root).parent / "work", files)
    assert bring(root, folder).created == ["imported/other 1.0.0", "imported/docs 1.0.0"]
    assert bring(root, write_all(folder, {"a.prompt.md": "Do a."})).created == ["imported/a 1.0.0"]


def test_a_skill_that_is_a_link(root):
    folder = write_all(Path(root).parent / "work", {"a/SKILL.md": "Do a.", "b/x.md": "x"})
    (folder / "b/SKILL.md").symlink_to(folder / "a/SKILL.md")
    write_all(folder / "c/skill.md", {"one.prompt.md": "Do one."})
    (folder / "d").mkdir()
    (folder / "d/SKILL.md").symlink_to("/etc/hostname")
    outcome = bring(root, folder)
    assert outcome.created == ["imported/a 1.0.0", "imported/one 1.0.0"]
    assert reasons(outcome) == {"d/SKILL.md": "a link that leads outside the folder"}


def test_a_folder_that_is_a_skill_with_others_below(root):
    folder = write_all(Path(root).parent / "kit", {
        "SKILL.md": "Do all.", "guide.md": "x", "scripts/run.sh": "xy", ".git/config": "x",
        "more/sub/SKILL.md": "Do more.", "more/sub/a.txt": "x", "more/sub/old/SKILL.md": "Old.",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == ["imported/kit 1.0.0", "imported/sub 1.0.0"]
    assert outcome.warnings == ["SKILL.md: Left out .git/: hidden."]
    assert paths(root, "imported/kit") == ["guide.md", "scripts/run.sh"]
    assert paths(root, "imported/sub") == ["a.txt", "old/SKILL.md"]


def test_a_folder_with_more_than_files_and_of_any_depth(root, monkeypatch):
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


def test_file_names_need_not_be_text(root):
    folder = Path(root).parent / "odd\udcff"
    folder.mkdir()
    (folder / "\udcff\udcfe.md").write_text("Hi.")
    assert bring(root, folder).created == ["imported/prompt 1.0.0"]
    assert latest(root, "imported/prompt")[0].changelog == "Imported from odd\ufffd/??.md"
