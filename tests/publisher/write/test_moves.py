"""Reading a repo's changes of labels, and naming what is wrong with them."""

import os
from pathlib import Path

import pytest

from builder.model import names
from builder.model.errors import ContentError
from builder.store import content
from operate.content_check import check
from publisher.write.moves import read_labels
from tests.support.catalogues import (
    edit_record,
    moment,
    write_label,
    write_small_catalogue,
    write_version,
)

REPO = "ann/review"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sound tree with two labels, one of them moved by a publication."""
    write_small_catalogue(tmp_path)
    write_label(tmp_path, REPO, 1, "production", "1.0.0", at=moment(1100))
    edit_record(
        tmp_path / REPO / "1.1.0.json", published_at=moment(1200), labels=["canary"], label_number=2
    )
    write_label(tmp_path, REPO, 4, "production", "1.1.0", note="Passed the review.")
    return tmp_path


def read(root: Path):
    return read_labels(str(root), *REPO.split("/"))


def checked(root: Path) -> list[str]:
    """The faults of the tree: the warnings with a mark."""
    return [("warning " if one.is_warning else "") + one.path for one in check(str(root))]


def faulty(root: Path) -> list[str]:
    with pytest.raises(ContentError) as caught:
        read(root)
    return [fault.path for fault in caught.value.faults]


def test_labels_follow_from_the_files(root):
    labels = read(root)
    assert labels.versions() == {"canary": "1.1.0", "production": "1.1.0"}
    assert [one.previous for one in labels.history["production"]] == ["1.0.0", None]
    assert labels.history["production"][0].note == "Passed the review."
    assert labels.next_number == 5
    assert checked(root) == []


@pytest.mark.parametrize("repo", ["ann/story", "ann/nothing", "nobody/nothing"])
def test_a_repo_without_labels(root, repo):
    assert read_labels(str(root), *repo.split("/")) == ({}, {}, 1)


def test_files_are_listed_in_order_of_number(root):
    write_label(root, REPO, 10, "production", "1.0.0")
    write_label(root, REPO, 9, "production", "1.0.0")
    assert list(content.list_versions(str(root), *REPO.split("/")).events) == [1, 4, 9, 10]


def test_marks_tell_that_a_label_was_moved(root, monkeypatch):
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", -(10**18))  # every file has settled
    where = (str(root), *REPO.split("/"))
    mark, before = content.repo_mark(*where), content.list_versions(*where).events
    assert content.repo_mark(*where) == mark
    write_label(root, REPO, 4, "production", "1.0.0", note="In place, and longer than before.")
    assert content.repo_mark(*where) != mark
    after = content.list_versions(*where).events
    assert after[1] == before[1]
    assert after[4] != before[4]
    mark = content.repo_mark(*where)
    write_label(root, REPO, 5, "production", "1.0.0")
    assert content.repo_mark(*where) != mark
    mark = content.repo_mark(*where)
    os.rename(root / REPO / "labels/5.json", root / REPO / "labels/6.json")
    assert content.repo_mark(*where) != mark


def test_a_young_file_has_no_mark(root, monkeypatch):
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 10**18)  # every file is young
    where = (str(root), *REPO.split("/"))
    assert content.repo_mark(*where) == ""
    assert content.list_versions(*where).events == {1: "", 4: ""}


@pytest.mark.parametrize("data", [b"{", b'{"label":"a"}', b" " * 16_385])
def test_a_file_that_is_no_record_is_named(root, data):
    (root / REPO / "labels/5.json").write_bytes(data)
    assert checked(root) == faulty(root) == [f"{REPO}/labels/5.json"]


def test_a_number_twice_is_named(root):
    write_label(root, REPO, 2, "production", "1.0.0", at=moment(1200))
    assert checked(root) == faulty(root) == [f"{REPO}/labels/2.json"]
    (root / REPO / "labels/2.json").unlink()
    write_version(root, "ann", "review", "1.2.0", "x", labels=["a"], label_number=4)
    assert f"{REPO}/labels/4.json" in faulty(root)


def test_a_publication_with_bad_labels_is_named(root):
    edit_record(root / REPO / "1.1.0.json", labels=["latest"])
    assert checked(root) == faulty(root) == [f"{REPO}/1.1.0.json"]


def test_what_can_be_shown_is_only_warned_of(root):
    write_label(root, REPO, 5, "production", "1.0.0", at=moment(0))
    write_label(root, REPO, 6, "gone", None)
    for number in range(7, 26):
        write_label(root, REPO, number, f"label-{number}", "1.0.0")
    assert checked(root) == [
        f"warning {REPO}/labels/6.json", f"warning {REPO}/labels/25.json",
        f"warning {REPO}/labels/5.json",
    ]  # fmt: skip
    assert len(read(root).current) == names.LABELS_PER_REPO_MAX + 1


@pytest.mark.parametrize("name", ["0.json", "01.json", "x.json", "1000000000.json", "5.txt", "x/"])
def test_what_does_not_belong_there_is_named(root, name):
    path = root / REPO / "labels" / name
    path.mkdir() if name.endswith("/") else path.write_text("{}")
    (root / REPO / "labels/.5.json.tmp").write_text("{")
    assert checked(root) == [f"{REPO}/labels/{name.rstrip('/')}"]
    assert len(read(root).current) == 2


def test_links_and_pipes_are_named(root):
    folder = root / REPO / "labels"
    (folder / "5.json").symlink_to("1.json")
    os.mkfifo(folder / "6.json")
    expected = [f"{REPO}/labels/5.json", f"{REPO}/labels/6.json"]
    assert checked(root) == faulty(root) == expected
    folder.rename(root / ".elsewhere")
    folder.symlink_to(root / ".elsewhere")
    assert checked(root) == faulty(root) == [f"{REPO}/labels"]
    folder.unlink()
    folder.write_text("x")
    assert checked(root) == faulty(root) == [f"{REPO}/labels"]


def test_a_folder_that_cannot_be_read_is_named(root, monkeypatch):
    scandir = os.scandir

    def refuse(path: str):
        if str(path).endswith("/labels"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr("builder.store.plain_files.os.scandir", refuse)
    assert faulty(root) == [f"{REPO}/labels"]


def test_too_many_files_are_reported(root, monkeypatch):
    monkeypatch.setattr(names, "LABEL_EVENTS_PER_REPO_MAX", 2)
    assert len(read(root).current) == 2
    write_label(root, REPO, 5, "production", "1.0.0")
    assert checked(root) == faulty(root) == [f"{REPO}/labels"]


def test_a_folder_called_labels_elsewhere_is_a_repo_or_a_fault(root):
    write_version(root, "ann", "labels", "1.0.0", "A repo of this name.")
    assert checked(root) == []
    (root / "ann/labels/versions").mkdir()
    assert checked(root) == ["ann/labels/versions"]
