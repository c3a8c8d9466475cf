"""Listings of a folder that is being written: each shows what was there at some moment."""

import contextlib
import fcntl
import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.store.content import list_versions
from operate.content_check import check
from publisher.write.moves import read_labels
from tests.support.catalogues import moment, write_label, write_version, write_withdrawn

REPO = "ann/story"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A prompt with three versions, a label, and a version that is withdrawn."""
    for version in ("1.0.0", "1.0.1", "1.0.2", "1.0.3"):
        write_version(tmp_path, "ann", "story", version, f"Tell {version}.\n")
    withdraw(tmp_path, "1.0.3")
    write_label(tmp_path, REPO, 1, "production", "1.0.0")
    return tmp_path


def withdraw(root: Path, version: str, **fields: object) -> None:
    write_withdrawn(root, REPO, version, **fields)
    for kind in ("json", "md"):
        (root / REPO / f"{version}.{kind}").unlink(missing_ok=True)


def publish(root: Path) -> None:
    write_version(root, "ann", "story", "1.0.4", "Tell it again.\n")


def publish_with_a_label(root: Path) -> None:
    write_version(
        root, "ann", "story", "1.0.4", "Tell it again.\n", labels=["beta"], label_number=2,
        published_at=moment(15_000),
    )  # fmt: skip


def publish_and_label(root: Path) -> None:
    publish(root)
    write_label(root, REPO, 2, "production", "1.0.4")


def withdraw_one(root: Path) -> None:
    withdraw(root, "1.0.1")


def withdraw_the_labelled(root: Path) -> None:
    withdraw(root, "1.0.0", labels=["production"], label_number=2)


WRITES = [publish, publish_with_a_label, publish_and_label, withdraw_one, withdraw_the_labelled]
# Results that a listing may show of names that were added and removed while it ran.
SHOWN = {
    "before": lambda name, is_new: not is_new,
    "after": lambda name, is_new: is_new,
    "records": lambda name, is_new: name.endswith(".json"),
    "texts": lambda name, is_new: name.endswith(".md"),
}


def write_in_listing(
    monkeypatch: pytest.MonkeyPatch, folder: Path, write: Callable[[], None],
    is_shown: Callable[[str, bool], bool],
) -> list[str]:  # fmt: skip
    """``write`` once between two entries of the next listing of a folder. The names shown."""
    scandir = os.scandir
    shown: list[str] = []

    def listing(path: str):
        if Path(path) != folder or shown:
            return scandir(path)
        before = {entry.name: entry for entry in scandir(path)}
        write()
        after = {entry.name: entry for entry in scandir(path)}
        found = {
            name: entry for name, entry in {**before, **after}.items()
            if name in before.keys() & after.keys() or is_shown(name, name in after)
        }  # fmt: skip
        shown.extend(found)
        return contextlib.nullcontext(found.values())

    monkeypatch.setattr(os, "scandir", listing)
    return shown


@pytest.mark.parametrize(
    ("write", "folder", "shown"),
    [*itertools.product(WRITES, ["", "labels", "withdrawn"], SHOWN)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
@pytest.mark.parametrize("look", [list_versions, check])
def test_nothing_is_wrong_beside_a_writer(
    root, look, write, folder, shown,
    monkeypatch,
):  # fmt: skip
    seen = write_in_listing(monkeypatch, root / REPO / folder, lambda: write(root), SHOWN[shown])
    if look is check:
        assert [*check(str(root))] == []
    else:
        look(str(root), "ann", "story")  # raises for a fault
    assert seen


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("folder", ["", "labels"])
def test_a_label_names_a_version_that_is_listed(root, folder, shown, monkeypatch):
    write = lambda: publish_and_label(root)  # noqa: E731
    write_in_listing(monkeypatch, root / REPO / folder, write, SHOWN[shown])
    labels = read_labels(str(root), "ann", "story")  # raises for a fault
    assert labels.versions()["production"] in ("1.0.0", "1.0.4")


@pytest.mark.parametrize("folder", ["labels", "withdrawn"])
def test_a_folder_that_appears_after_it_was_looked_for_is_no_fault(root, folder, monkeypatch):
    there, away = root / REPO / folder, root / REPO / f".{folder}"
    there.rename(away)
    scandir = os.scandir

    def look(path: str):
        try:
            return scandir(path)
        except FileNotFoundError:
            away.rename(there)
            raise

    monkeypatch.setattr(os, "scandir", look)
    list_versions(str(root), "ann", "story")  # raises for a fault
    assert there.is_dir()


def test_a_version_whose_record_alone_is_seen_is_listed(root, monkeypatch):
    seen = write_in_listing(monkeypatch, root / REPO, lambda: publish(root), SHOWN["records"])
    versions = list_versions(str(root), "ann", "story").versions
    assert "1.0.4.json" in seen and "1.0.4.md" not in seen
    assert [*map(str, versions)] == ["1.0.0", "1.0.1", "1.0.2", "1.0.4"]


def test_a_version_that_comes_and_goes_within_a_listing_is_withdrawn(root, monkeypatch):
    write_in_listing(monkeypatch, root / REPO, lambda: publish(root), SHOWN["records"])
    gone = root / REPO / "withdrawn"
    seen = write_in_listing(monkeypatch, gone, lambda: withdraw(root, "1.0.4"), SHOWN["before"])
    listing = list_versions(str(root), "ann", "story")
    assert "1.0.4.json" not in seen
    assert [*map(str, listing.versions)] == ["1.0.0", "1.0.1", "1.0.2"]
    assert listing.withdrawn.versions == {"1.0.3", "1.0.4"} and listing.left == ()


def test_a_check_waits_for_a_publication_that_has_only_its_text(root):
    """A text in the locked folder is no stray before its record is linked."""
    new = root / "ann/new"
    new.mkdir()
    descriptor = os.open(new, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (new / "1.0.0.md").write_text("Tell it again.\n")
    record = write_version(root / ".elsewhere", "ann", "new", "1.0.0", "Tell it again.\n")
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend(check(str(root))))
    thread.start()
    try:
        os.link(record, new / record.name)
    finally:
        os.close(descriptor)
        thread.join()
    assert found == []
