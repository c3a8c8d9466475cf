"""Folders that are missing, within each other, another user's, in memory or full."""

import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from operate.doctor import folders
from operate.doctor.findings import Subject
from tests.operate.doctor.conftest import faults, only

NOBODY = 65_534


def test_all_is_well(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "kind_of", lambda path: "ext2/ext3")
    assert faults(folders.folders(subject)) == faults(folders.disks(subject)) == []


def remove(path: Path) -> None:
    shutil.rmtree(path)


def put_a_file_there(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("")


def open_to_all(path: Path) -> None:
    path.chmod(0o777)


@pytest.mark.parametrize(
    ("spoil", "folder", "level", "expected"),
    [
        (remove, "content", "problem", "No content folder"),
        (remove, "state", "warning", "The first build creates it"),
        (put_a_file_there, "out", "problem", "is not a folder. Move it away, or pass another"),
        (open_to_all, "content", "problem", "Run: chmod o-w "),
    ],
)
def test_what_is_wrong(
    subject: Subject, spoil: object, folder: str, level: str, expected: str
) -> None:
    spoil(Path(getattr(subject.settings, folder)))
    assert expected in only(folders.folders(subject), level)


def test_a_state_folder_within_the_content(subject: Subject) -> None:
    inside = subject.settings._replace(state=f"{subject.settings.content}/var")
    Path(inside.state).mkdir()
    found = folders.folders(subject._replace(settings=inside))
    assert "is inside --content" in only(found, "problem")


def test_a_folder_that_may_not_be_written(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:  # the kernel lets root write everything
        monkeypatch.setattr(os, "access", lambda path, mode: path != subject.settings.out)
    else:
        Path(subject.settings.out).chmod(0o555)
    found = only(folders.folders(subject), "problem")
    assert f"may not read and write {subject.settings.out}" in found


def test_a_disk_that_is_mounted_read_only(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = SimpleNamespace(f_flag=os.ST_RDONLY)
    ask = os.statvfs
    monkeypatch.setattr(
        os, "statvfs", lambda path: flags if path == subject.settings.out else ask(path)
    )
    found = only(folders.folders(subject), "problem")
    assert f"{subject.settings.out} is on a file system that is mounted read-only" in found
    assert "chown" not in found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_of_another_user(subject: Subject) -> None:
    for version in ("1.0.0", "1.1.0"):
        os.chown(f"{subject.settings.content}/ann/review/{version}.md", NOBODY, NOBODY)
    assert faults(folders.folders(subject)) == []  # so deep, only names that all have are looked at
    os.chown(f"{subject.settings.content}/ann/review", NOBODY, NOBODY)
    found = only(folders.folders(subject), "problem")
    assert f"but not all that is in it: {subject.settings.content}/ann/review. Stop" in found
    link = f"{subject.settings.content}-link"
    os.symlink(subject.settings.content, link)
    linked = subject._replace(settings=subject.settings._replace(content=link))
    assert f"{link}/ann/review. Stop" in only(folders.folders(linked), "problem")


def test_state_in_memory(subject: Subject) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        assert folders.kind_of(folder) == "tmpfs"
        there = subject._replace(settings=subject.settings._replace(state=folder))
        found = [text for _, text in faults(folders.disks(there)) if folder in text]
    assert "is in memory (tmpfs): a restart of the machine loses the accounts" in found[0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overlayfs", "is in a container's own layer: the prompts go with"),
        ("nfs", "is on a network file system (nfs)"),
    ],
)
def test_content_where_it_should_not_be(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, kind: str, expected: str
) -> None:
    kinds = {subject.settings.content: kind}
    monkeypatch.setattr(folders, "kind_of", lambda path: kinds.get(path, ""))
    assert f"{subject.settings.content} {expected}" in only(folders.disks(subject), "problem")


GB = 2**30


@pytest.mark.parametrize(
    ("free_bytes", "free_inodes", "level", "expected"),
    [
        (50 * 2**20, 10**6, "problem", "has 0.1 GB of 107.4 GB left."),
        (900 * 2**20, 10**6, "warning", "has 0.9 GB of 107.4 GB left."),
        (50 * GB, 17, "problem", "can hold only 17 more files"),
    ],
)
def test_full_disks(
    subject: Subject, monkeypatch: pytest.MonkeyPatch,
    free_bytes: int, free_inodes: int, level: str, expected: str,
) -> None:  # fmt: skip
    state = SimpleNamespace(
        f_frsize=4096, f_blocks=100 * GB // 4096, f_bavail=free_bytes // 4096, f_files=10**7,
        f_favail=free_inodes,
    )  # fmt: skip
    monkeypatch.setattr(os, "statvfs", lambda _: state)
    monkeypatch.setattr(folders, "kind_of", lambda path: "")
    assert expected in only(folders.disks(subject), level)  # one disk has all three folders
