"""A file that does not change is one file on the disk, in however many versions of a prompt."""

import errno
import os
from pathlib import Path

import pytest

from builder.pipeline.build import build
from builder.store import content
from tests.support.catalogues import (
    freshly_built,
    read_tree,
    wait_for_tick,
    write_version,
    write_withdrawn,
)

VERSIONS = 100
LARGE = bytes(range(256)) * 4_000


@pytest.fixture(autouse=True)
def later(monkeypatch) -> None:
    """Each publication comes so long after the one before that its files are not written again."""
    monkeypatch.setattr(content, "CLOCK_GRAIN_NS", 0)


def publish(settings, number: int, data: bytes = LARGE) -> None:
    wait_for_tick(Path(settings.content).parent)
    files = {"large.bin": data, "notes.txt": b"%d" % number}
    write_version(settings.content, "ann", "x", f"1.{number}.0", f"Text {number}.", files)
    build(settings, index=False)


def found(settings, pattern: str) -> list[os.stat_result]:
    folder = Path(settings.out, "api/v1/repos/ann/x/versions")
    return [path.stat() for path in sorted(folder.rglob(pattern)) if path.is_file()]


def inodes(settings, pattern: str = "large.bin.bin") -> int:
    return len({one.st_ino for one in found(settings, pattern)})


def test_a_hundred_publications_keep_an_unchanged_file_once(empty):
    for number in range(VERSIONS):
        publish(empty, number)
    assert (len(found(empty, "large.bin.bin")), inodes(empty)) == (VERSIONS, 1)
    assert inodes(empty, "notes.txt.txt") == VERSIONS
    blocks = {one.st_ino: one.st_blocks for one in found(empty, "*.files/**/*")}
    assert 512 * sum(blocks.values()) < len(LARGE) + (VERSIONS + 1) * 4096
    # An archive has all files of its version in one; only the latest version has a plugin.
    assert inodes(empty, "*.skill.zip") == VERSIONS
    build(empty, index=False)
    assert inodes(empty, "*.plugin.zip") == 1
    assert read_tree(empty.out) == freshly_built(empty)


def test_a_withdrawal_removes_one_name(empty):
    publish(empty, 0)
    publish(empty, 1)
    write_withdrawn(empty.content, "ann/x", "1.0.0")
    build(empty, index=False)
    assert [one.st_nlink for one in found(empty, "large.bin.bin")] == [1]
    publish(empty, 2)
    assert [one.st_nlink for one in found(empty, "large.bin.bin")] == [2, 2]
    assert read_tree(empty.out) == freshly_built(empty)


@pytest.mark.parametrize("damage", ["truncated", "changed", "removed"])
def test_a_damaged_file_is_not_linked_again(empty, damage):
    publish(empty, 0)
    path = Path(empty.out, "api/v1/repos/ann/x/versions/1.0.0.files/large.bin.bin")
    path.unlink()
    if damage != "removed":
        path.write_bytes(LARGE[:-1] if damage == "truncated" else LARGE[::-1])
    publish(empty, 1)
    later = Path(empty.out, "api/v1/repos/ann/x/versions/1.1.0.files/large.bin.bin")
    assert later.read_bytes() == LARGE


@pytest.mark.parametrize(("number", "links_max"), [(errno.EMLINK, 3), (errno.EXDEV, 1)])
def test_where_no_more_links_are_possible_the_file_is_written(
    empty, monkeypatch, number, links_max
):
    link = os.link

    def bounded(source, target):
        if os.stat(source).st_nlink >= links_max:
            raise OSError(number, os.strerror(number))
        link(source, target)

    monkeypatch.setattr(os, "link", bounded)
    for version in range(7):
        publish(empty, version)
    assert inodes(empty) == -(-7 // links_max)
    monkeypatch.undo()
    assert read_tree(empty.out) == freshly_built(empty)


def test_a_changed_file_changes_no_other_version(empty):
    for number, data in enumerate((LARGE, LARGE, LARGE[::-1], LARGE)):
        publish(empty, number, data)
    one, two, three, _ = (one.st_ino for one in found(empty, "large.bin.bin"))
    assert one == two != three
    assert read_tree(empty.out) == freshly_built(empty)


def test_bytes_written_into_a_linked_file_are_corrected_in_all_versions(empty):
    publish(empty, 0)
    publish(empty, 1)
    Path(empty.out, "api/v1/repos/ann/x/versions/1.0.0.files/large.bin.bin").write_bytes(b"x")
    build(empty, index=False, full=True)
    assert inodes(empty) == 1 and found(empty, "large.bin.bin")[1].st_nlink == 2
    assert read_tree(empty.out) == freshly_built(empty)
