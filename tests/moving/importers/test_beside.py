"""Folders with a SKILL.md or a PROMPT.md are imported whole, or not at all."""

import os
from pathlib import Path

import pytest

from builder.store import content
from moving.importers.run import Outcome
from publisher.accounts.token import make_token
from tests.moving.importers.bringing import SKILL, bring, latest, paths, reasons, write_all
from tests.support.folder_cases import CASES, told

# Kinds of files that published skills have.
FILES: dict[str, str | bytes] = {
    "LICENSE.txt": "Apache-2.0\n",
    "README.md": "# About\r\n",
    "agents/reviewer.md": "Review.\n",
    "assets/logo.png": b"\x89PNG\r\n\x1a\n\0\xff",
    "assets/templates/viewer.html": "<script>1</script>\n",
    "examples/SKILL.md": "An example.\n",
    "references/ooxml/schemas/ecma.xsd": "<xsd/>\n",
    "scripts/__init__.py": "",
    "scripts/run.sh": "#!/bin/sh\nexec true\n",
    "scripts/table.csv": "title,prompt\nA,x\n",
}


@pytest.fixture
def skill(root: str) -> Path:
    """A skill in a folder of skills."""
    folder = write_all(Path(root).parent / "library/skills/pdf", {"SKILL.md": SKILL, **FILES})
    (folder / "scripts/run.sh").chmod(0o755)
    write_all(folder.parent, {"plain/SKILL.md": "Do it."})
    return folder


def bring_library(root: str, **options: object) -> Outcome:
    return bring(root, Path(root).parent / "library", **options)


def kept(root: str, repo: str) -> dict[str, tuple[bytes, bool]]:
    """The files of the latest version: bytes, and whether they are executable."""
    record, _ = latest(root, repo)
    owner, name = repo.split("/")
    version = content.list_versions(root, owner, name).versions[-1]
    data = content.read_files(root, owner, name, version, record)
    listed = record.files or ()
    return {one.path: (raw, one.executable) for one, raw in zip(listed, data, strict=True)}


def test_a_skill_comes_whole(root: str, skill: Path) -> None:
    outcome = bring_library(root)
    assert outcome.created == ["imported/pdf-forms 1.0.0", "imported/plain 1.0.0"]
    assert (outcome.warnings, outcome.rejected, outcome.beside) == ([], [], 0)
    assert kept(root, "imported/pdf-forms") == {
        path: (text.encode() if isinstance(text, str) else text, path == "scripts/run.sh")
        for path, text in FILES.items()
    }
    assert latest(root, "imported/pdf-forms")[1] == SKILL
    assert paths(root, "imported/plain") == []


@pytest.mark.parametrize("change", ["bytes", "executable", "added", "removed", "all removed"])
def test_a_change_of_a_file_alone_is_a_version(root: str, skill: Path, change: str) -> None:
    bring_library(root)
    assert len(bring_library(root).unchanged) == 2
    expected = kept(root, "imported/pdf-forms")
    match change:
        case "bytes":
            (skill / "scripts/table.csv").write_bytes(b"title,prompt\nB,x\n")
            expected["scripts/table.csv"] = b"title,prompt\nB,x\n", False
        case "executable":
            (skill / "scripts/run.sh").chmod(0o644)
            expected["scripts/run.sh"] = expected["scripts/run.sh"][0], False
        case "added":
            (skill / "empty").write_bytes(b"")
            expected["empty"] = b"", False
        case "removed":
            (skill / "LICENSE.txt").unlink()
            del expected["LICENSE.txt"]
        case "all removed":
            for path in FILES:
                (skill / path).unlink()
            expected = {}
    assert bring_library(root, dry_run=True).updated == ["imported/pdf-forms 1.0.1"]
    assert bring_library(root).updated == ["imported/pdf-forms 1.0.1"]
    assert kept(root, "imported/pdf-forms") == expected
    assert len(bring_library(root).unchanged) == 2


def test_a_folder_with_a_prompt_and_its_examples(root: str) -> None:
    folder = write_all(Path(root).parent / "library", {
        "extract/PROMPT.md": "Extract {{text}}.", "extract/schema.json": "{}\n",
        "extract/examples/one.md": "One.", "other/prompt.md": "A document.", "notes.md": "x",
    })  # fmt: skip
    outcome = bring(root, folder)
    assert outcome.created == ["imported/extract 1.0.0"]
    assert paths(root, "imported/extract") == ["examples/one.md", "schema.json"]
    assert [one.where for one in outcome.passed_over] == ["notes.md", "other/prompt.md"]
    # Without the folder, files stay as they are.
    text = folder / "extract/PROMPT.md"
    text.write_text("Extract all of {{text}}.")
    alone = write_all(folder.parent / "alone", {"extract.md": text.read_text()})
    since = latest(root, "imported/extract")[0].published_at[:10]
    assert bring(root, alone / "extract.md", dry_run=True).elsewhere == [
        f"imported/extract: here since {since} from library/extract/PROMPT.md; this one is "
        "extract.md: would be imported as extract-2"
    ]
    outcome = bring(root, alone / "extract.md", onto_others=True)
    assert outcome.updated == ["imported/extract 1.0.1"]
    assert paths(root, "imported/extract") == ["examples/one.md", "schema.json"]


def test_a_text_alone_comes_without_its_files(root: str, skill: Path) -> None:
    outcome = bring(root, skill / "SKILL.md")
    assert outcome.warnings == [
        f"SKILL.md: Left out the files beside it: import its folder, {skill}, to have them."
    ]
    assert paths(root, "imported/pdf-forms") == []
    assert bring(root, skill.parent / "plain/SKILL.md").warnings == []
    bring_library(root)
    bring(root, skill / "SKILL.md")
    assert paths(root, "imported/pdf-forms") == sorted(FILES)


def test_what_cannot_come_is_named(root: str, skill: Path) -> None:
    write_all(skill, {
        ".git/config": "x", ".env": "KEY=1", "scripts/.venv/bin/a": "x",
        "node_modules/x/SKILL.md": "x", "scripts/__pycache__/run.pyc": "x",
    })  # fmt: skip
    (skill / "link").symlink_to("/etc/passwd")
    (skill / "folder").symlink_to(skill / "assets")
    os.mkfifo(skill / "pipe")
    outcome = bring_library(root)
    assert {*paths(root, "imported/pdf-forms")} == {*FILES}
    assert told(outcome.warnings) == {
        **dict.fromkeys((".env", ".git/", "scripts/.venv/"), "hidden"),
        **dict.fromkeys(("folder", "link"), "a symbolic link"),
        **dict.fromkeys(("node_modules/", "scripts/__pycache__/"), "made by a tool"),
        "pipe": "not a file",
    }
    assert outcome.beside == 1
    assert len(bring_library(root).unchanged) == 2
    (skill / "odd\udcff").write_text("x")
    assert "odd?" in reasons(bring_library(root))["skills/pdf/SKILL.md"]


@pytest.mark.parametrize("case", CASES)
def test_what_an_import_takes_and_leaves_out(root: str, case: str) -> None:
    one = CASES[case]
    one.write(Path(root).parent / "x")
    outcome = bring(root, Path(root).parent / "x")
    assert outcome.created == ["imported/x 1.0.0"]
    assert {*paths(root, "imported/x")} == one.kept
    assert told(outcome.warnings) == one.whole


def test_no_rule_takes_time_without_end(root: str, skill: Path) -> None:
    write_all(skill, {"a" * 190: "x", ".hubignore": "*a" * 90 + "*b\n" + "/*a" * 20})
    assert "a" * 190 in (bring_library(root), paths(root, "imported/pdf-forms"))[1]


def test_ignored_files_stay_out(root: str, skill: Path) -> None:
    rules = (
        "# Ours\n*.csv \n/assets/\nexamples\n!scripts/table.csv\r\nreferences/*.xsd\n?ICENSE.*\n"
    )
    write_all(skill, {".hubignore": rules, "a/b.csv": "x", "a/assets/c.csv/d": "x"})
    outcome = bring_library(root)
    assert paths(root, "imported/pdf-forms") == [
        "README.md", "agents/reviewer.md", "references/ooxml/schemas/ecma.xsd",
        "scripts/__init__.py", "scripts/run.sh", "scripts/table.csv",
    ]  # fmt: skip
    assert outcome.warnings == [
        "skills/pdf/SKILL.md: Left out .hubignore: hidden.",
        *(
            f"skills/pdf/SKILL.md: Left out {one}: .hubignore."
            for one in ["LICENSE.txt", "assets/", "examples/", "a/b.csv", "a/assets/c.csv/"]
        ),
    ]
    (skill / ".hubignore").write_text("a\n[b]\n")
    assert reasons(bring_library(root)) == {
        "skills/pdf": "cannot be read: .hubignore, line 2: only *, ?, / and ! are special"
    }


def test_a_secret_in_a_file_is_refused(root: str, skill: Path) -> None:
    (skill / "scripts/run.sh").write_bytes(b"\xff" + make_token().encode())
    outcome = bring_library(root)
    assert outcome.created == ["imported/plain 1.0.0"]
    (reason,) = reasons(outcome).values()
    assert reason.startswith("The file scripts/run.sh contains an access token of this hub")


def test_a_file_that_cannot_be_read_stops_its_prompt_alone(
    root: str, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: object, *args: object, **options: object) -> int:
        if str(path).endswith("logo.png"):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    outcome = bring_library(root)
    assert outcome.created == ["imported/plain 1.0.0"]
    assert reasons(outcome) == {
        "skills/pdf/SKILL.md": "assets/logo.png cannot be read: Permission denied"
    }


def test_alike_texts_with_other_files_are_two_prompts(root: str, skill: Path) -> None:
    for name in ("again", "other"):
        write_all(skill.parent / name, {"SKILL.md": SKILL, **FILES})
        (skill.parent / name / "scripts/run.sh").chmod(0o755)
    (skill.parent / "other/LICENSE.txt").write_text("Apache-2.1\n")
    outcome = bring_library(root)
    assert outcome.created == [
        "imported/pdf-forms 1.0.0", "imported/pdf-forms-2 1.0.0", "imported/plain 1.0.0",
    ]  # fmt: skip
    assert [one.where for one in outcome.passed_over] == ["skills/pdf/SKILL.md"]
