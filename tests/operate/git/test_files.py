"""The files of versions go to the branch and come back, with their executable bits."""

import os
import shutil
from pathlib import Path

import pytest

from builder.store.check import check
from builder.store.content import check_format
from operate.git.files import Place as FilesPlace
from tests.operate.git.places import PERSON, Place, git
from tests.support.catalogues import read_tree, write_version, write_withdrawn

LINT = FilesPlace("ann", "lint")
FILES = {
    "assets/logo.png": b"\x89PNG\r\n\x1a\n\0\xff",
    "schema.json": b"{}\n",
    "scripts/a/__init__.py": b"",
    "scripts/a/run.sh": b"#!/bin/sh\r\nexec true\n",
    "references/1.0.0.md": b"# Rules\n",
}


@pytest.fixture
def place(place: Place) -> Place:
    write_version(place.content, "ann", "lint", "1.0.0", "Lint {{code}}.\n", FILES)
    place.run()
    return place


def visible(folder: Path) -> dict[str, bytes]:
    return {path: data for path, data in read_tree(folder).items() if path[0] != "."}


def modes(place: Place, version: str) -> dict[str, str]:
    """The modes of the files of a version on the branch, by path."""
    folder = f"{place.prefix}ann/lint/{version}.files/"
    listed = git(place.remote, "ls-tree", "-r", "main", folder).splitlines()
    return {line.split("\t")[1].removeprefix(folder): line.split()[0] for line in listed}


def test_files_go_with_their_version(place: Place) -> None:
    assert place.is_same()
    assert modes(place, "1.0.0") == {
        path: "100755" if path.endswith(".sh") else "100644" for path in FILES
    }
    write_version(place.content, "ann", "lint", "1.1.0", "Lint {{code}}.\n", {"a.sh": b"true\n"})
    assert place.run().commits == 1
    assert place.is_same()
    shown = git(place.remote, "show", "--format=%s", "--name-only", "main").split()
    folder = f"{place.prefix}ann/lint"
    assert shown[2:] == [f"{folder}/1.1.0.{kind}" for kind in ("files/a.sh", "json", "md")]
    assert check_format(str(place.clone())) == 2
    assert place.run().commits == 0
    clone = place.clone() / "ann/lint/1.0.0.files"
    assert {
        path.relative_to(clone).as_posix()
        for path in clone.rglob("*")
        if path.is_file() and os.access(path, os.X_OK)
    } == {"scripts/a/run.sh"}


def test_files_come_back_from_the_branch(place: Place) -> None:
    before = read_tree(place.content)
    for folder in (place.content, Path(place.settings.state)):
        shutil.rmtree(folder)
        folder.mkdir()
    assert place.run().commits == 0
    assert visible(place.content) == before
    assert check_format(str(place.content)) == 2
    clone = place.clone()
    write_version(clone, "ann", "lint", "1.1.0", "More: {{code}}\n", FILES | {"new.txt": b"New"})
    place.merge()  # the tree of the clone has no executable file: the record says which are
    assert set(modes(place, "1.1.0").values()) == {"100644"}
    assert place.run().problems == {}
    assert visible(place.content) == place.files()
    assert [*check(str(place.content))] == []
    assert modes(place, "1.1.0")["scripts/a/run.sh"] == "100755"
    assert place.log("%s")[-1] == "ann/lint: modes of files"


@pytest.mark.parametrize("where", ["here", "there"])
def test_withdrawn_files_go_from_both(place: Place, where: str) -> None:
    write_version(place.content, "ann", "lint", "1.1.0", "Lint {{code}}.\n", FILES)
    place.run()
    root = place.content if where == "here" else place.clone()
    shutil.rmtree(root / "ann/lint/1.0.0.files")
    write_withdrawn(root, "ann/lint", "1.0.0")
    if where == "there":
        place.merge()
    assert place.run().problems == {}
    assert not (place.content / "ann/lint/1.0.0.files").exists()
    assert modes(place, "1.0.0") == {}
    assert modes(place, "1.1.0") != {}
    assert visible(place.content) == place.files()


def test_published_files_come_back(place: Place) -> None:
    before = place.files()
    clone = place.clone() / "ann/lint/1.0.0.files"
    (clone / "schema.json").write_text("Changed\n")
    (clone / "assets/logo.png").unlink()
    (clone / "scripts/a/run.sh").chmod(0o644)
    (clone / "references/1.0.0.md").unlink()
    (clone / "references/1.0.0.md").symlink_to("/etc/passwd")
    place.merge()
    done = place.run()
    folder = "ann/lint/1.0.0.files"
    changed = {f"{folder}/schema.json", f"{folder}/references/1.0.0.md"}
    assert done.conflicts.keys() == changed
    assert visible(place.content) == before == place.files()
    assert modes(place, "1.0.0")["scripts/a/run.sh"] == "100755"
    assert modes(place, "1.0.0")["references/1.0.0.md"] == "100644"
    assert place.run().commits == 0


@pytest.mark.parametrize(
    "fault", ["stray", "changed", "missing", "link", "submodule", "large", "alone"]
)
def test_faulty_files_stay_outside(place: Place, fault: str) -> None:
    before = read_tree(place.content)
    clone = place.clone()
    files = FILES | ({f"{number}.bin": bytes(250_000) for number in range(4)})
    record = write_version(clone, "ann", "lint", "1.1.0", "Lint {{code}}.\n", files)
    folder = record.with_suffix(".files")
    match fault:
        case "stray":
            (folder / "more.txt").write_text("More")
        case "changed":
            (folder / "schema.json").write_text("[]\n")
        case "missing":
            (folder / "schema.json").unlink()
        case "link":
            (folder / "schema.json").unlink()
            (folder / "schema.json").symlink_to("../1.1.0.json")
        case "submodule":
            shutil.rmtree(folder / "scripts")
            (folder / "scripts/a").mkdir(parents=True)
            git(folder / "scripts/a", "init", "--quiet")
            git(folder / "scripts/a", *PERSON, "commit", "--allow-empty", "-qm", "Start")
        case "large":
            (folder / "5.bin").write_bytes(b"1")
        case "alone":
            record.unlink()
            record.with_suffix(".md").unlink()
    place.merge()
    done = place.run()
    assert done.problems.keys() == {LINT}
    assert done.problems[LINT].startswith("not taken in: ann/lint/")
    assert read_tree(place.content) == before


def test_what_others_add_to_a_published_version_goes_again(place: Place) -> None:
    before = place.files()
    clone = place.clone()
    (clone / "ann/lint/1.0.0.files/2.0.0.json").write_text("{}")
    write_version(clone, "ann", "review", "1.2.0", "Theirs.\n", FILES)
    place.merge()
    write_version(place.content, "ann", "review", "1.2.0", "Ours.\n", {"x": b"1"})
    done = place.run()
    assert done.problems == {}
    new = {path.removeprefix("ann/review/"): path for path in place.files().keys() - before.keys()}
    assert new.keys() == {"1.2.0.md", "1.2.0.json", "1.2.0.files/x"}
    assert place.is_same()
    strays = {"ann/lint/1.0.0.files/2.0.0.json"}
    strays |= {f"ann/review/1.2.0.files/{path}" for path in FILES}
    assert strays < done.conflicts.keys()
    (kept,) = {*done.conflicts.values()}
    assert strays < place.files(kept).keys()
    assert place.run().commits == 0


def test_hidden_and_strangely_named_files_are_no_content(place: Place) -> None:
    folder = place.clone() / "ann/lint/1.0.0.files"
    for path in (".DS_Store", "a b.txt", "scripts/.git-keep", "scripts/a\nb"):
        (folder / path).write_text("x")
    place.merge()
    assert place.run() == place.run()
    assert place.run().problems == {}


@pytest.mark.parametrize("damage", ["changed", "missing", "no folder"])
def test_damaged_files_do_not_get_there(place: Place, damage: str) -> None:
    before = place.files()
    folder = place.content / "ann/lint/1.0.0.files"
    match damage:
        case "changed":
            (folder / "schema.json").write_text("[]\n")
        case "missing":
            (folder / "schema.json").unlink()
        case "no folder":
            shutil.rmtree(folder)
    done = place.sync().run({LINT})
    assert done.problems[LINT].partition(":")[2].startswith(" ann/lint/1.0.0.files/")
    assert place.files() == before
