"""Folders that are missing, another user's, open to others, or on disks that take no more."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from operate.doctor import machine
from operate.doctor.examine import OFFLINE, examine
from operate.doctor.findings import Subject
from tests.operate.doctor.conftest import faults, only

GIB = 2**30
NOBODY = 65_534
NO_FLAGS = {"f_flag": 0, "f_frsize": 4096, "f_blocks": 100 * GIB // 4096, "f_bavail": GIB,
            "f_files": 10**7, "f_favail": 10**6}  # fmt: skip


def put_a_file_there(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("")


def open_below(path: Path) -> None:
    (path / "ann").chmod(0o777)
    (path / "link").symlink_to("ann")


@pytest.mark.parametrize(
    ("spoil", "folder", "level", "expected"),
    [
        (shutil.rmtree, "content", "problem", "No content folder"),
        (shutil.rmtree, "state", "warning", "No state folder"),
        (put_a_file_there, "out", "problem", "cannot be read: Not a directory"),
        (lambda path: path.chmod(0o777), "content", "problem", "Run: chmod -R o-w "),
        (open_below, "content", "problem", "may write to {}/ann. Run"),
        (open_below, "out", "problem", "may write to {}/ann. Run"),
    ],
)
def test_what_is_wrong(
    subject: Subject, spoil: Callable[[Path], None], folder: str, level: str, expected: str
) -> None:
    assert faults(machine.folders(subject)) == []
    path = getattr(subject.settings, folder)
    spoil(Path(path))
    assert expected.format(path) in only(machine.folders(subject), level)


def test_a_private_hub_that_others_can_enter(subject: Subject) -> None:
    private = subject._replace(settings=subject.settings._replace(private=True))
    Path(subject.settings.content, "ann").chmod(0o777)
    for folder in subject.settings.folders.values():
        Path(folder).chmod(0o700)
    assert faults(machine.folders(private)) == []  # nobody gets to what is open below
    Path(subject.settings.out).chmod(0o711)
    assert f"Run: chmod 700 {subject.settings.out}" in only(machine.folders(private), "problem")


def test_a_folder_that_may_not_be_written(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:  # the kernel lets root write everything
        monkeypatch.setattr(os, "access", lambda path, mode: path != subject.settings.out)
    else:
        Path(subject.settings.out).chmod(0o555)
    found = only(machine.folders(subject), "problem")
    assert f"may not write {subject.settings.out}" in found


def test_files_of_another_user(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{subject.settings.content}/ann/review/1.0.0.md"
    if os.geteuid() == 0:
        os.chown(text, NOBODY, NOBODY)
    else:
        others = f"#!/bin/sh\ncase $2 in */content) test $4 = -user && echo {text};; esac\n"
        Path(subject.settings.state, "find").write_text(others)
        Path(subject.settings.state, "find").chmod(0o755)
        monkeypatch.setenv("PATH", subject.settings.state, prepend=os.pathsep)
    assert f"not all that is in it: {text}. Stop" in only(machine.folders(subject), "problem")


@pytest.mark.parametrize(
    ("disk", "level", "expected"),
    [
        ({"f_bavail": 50 * 2**20 // 4096}, "problem", "has 0.1 GB of 107.4 GB left."),
        ({"f_bavail": 900 * 2**20 // 4096}, "warning", "has 0.9 GB of 107.4 GB left."),
        ({"f_favail": 17}, "problem", "has inodes for 17 more files"),
    ],
)
def test_full_disks(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, disk: dict, level: str, expected: str
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**NO_FLAGS | disk))
    assert expected in only(machine.disks(subject), level)  # one disk has all three folders


def test_a_disk_that_fails_is_found_and_all_other_checks_run(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each folder alone: dead, or mounted read-only."""
    read_only = SimpleNamespace(**NO_FLAGS | {"f_flag": os.ST_RDONLY})
    for name, path in subject.settings.folders.items():
        with monkeypatch.context() as spoiled:
            spoiled.setattr(os, "statvfs", lambda at, path=path: spoil_of(at, path, read_only))
            found = [one for name, one in examine(subject, offline=True) if name == "folders"]
        assert f"{path} is on a file system that is mounted read-only" in only(found, "problem")
        os.rename(path, f"{path}-kept")
        os.symlink(path, path)  # each use of the folder fails
        found = [(check, one) for check, one in examine(subject, offline=True)]
        os.unlink(path)
        os.rename(f"{path}-kept", path)
        assert {check for check, _ in found} == {check.__name__ for check in OFFLINE}
        texts = [one.what for check, one in found if check == "folders" and one.level == "problem"]
        assert texts == [f"{path} cannot be read: Too many levels of symbolic links."], name
    assert not [one for _, one in examine(subject, offline=True) if one.level == "problem"]


def spoil_of(at: str, path: str, spoiled: SimpleNamespace) -> SimpleNamespace:
    return spoiled if at == path else SimpleNamespace(**NO_FLAGS)
