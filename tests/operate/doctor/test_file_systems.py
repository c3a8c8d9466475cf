"""File systems that lose data, or cannot do what the hub relies on."""

import errno
import fcntl
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest

from operate.doctor import file_systems
from operate.doctor.findings import Subject
from tests.operate.doctor.conftest import levels, only_problem


def test_a_usual_file_system_can_do_all_and_nothing_is_left(subject: Subject) -> None:
    assert levels(file_systems.abilities, subject) == {"ok"}
    left = [path for path in Path(subject.settings.content).parent.rglob(".doctor-*")]
    assert left == []


def test_state_in_memory(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    kind_of = file_systems.kind_of
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        there = subject.settings._replace(state=folder)
        monkeypatch.setattr(
            file_systems, "kind_of", lambda path: kind_of(path) if path == folder else "ext4"
        )
        told = only_problem(file_systems.kinds, subject._replace(settings=there))
    assert f"{folder} is in memory (tmpfs): a restart of the machine loses the accounts" in told


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overlay", "is in a container's own layer (overlay), so the prompts go with"),
        ("nfs4", "is on a network file system (nfs4)"),
    ],
)
def test_content_where_it_should_not_be(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, kind: str, expected: str
) -> None:
    content = subject.settings.content
    kinds = {content: kind}
    monkeypatch.setattr(file_systems, "kind_of", lambda path: kinds.get(path, "ext4"))
    told = only_problem(file_systems.kinds, subject)
    assert f"{content} {expected}" in told


def test_the_innermost_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 1 8:1 / / rw - ext4 /dev/sda rw\n"
        "2 1 8:2 / /srv rw shared:1 - xfs /dev/sdb rw\n"
        "3 2 0:5 / /srv/my\\040hub rw - nfs4 server:/hub rw\n"
        "4 1 8:3 / /srv/my rw - btrfs /dev/sdc rw\n"
    )
    plain_open = open
    monkeypatch.setattr(
        "builtins.open", lambda path, *args, **options: plain_open(
            mounts if path == "/proc/self/mountinfo" else path, *args, **options)
    )  # fmt: skip
    found = [file_systems.kind_of(path) for path in ("/srv/my hub/var", "/srv/mine", "/home")]
    assert found == ["nfs4", "xfs", "ext4"]


def refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def nothing(*_: Any, **__: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("module", "name", "fault", "expected"),
    [
        (os, "link", refuse, "fails at hard_links: [Errno 1]"),
        (os, "link", nothing, "lets a link replace a file"),
        (os, "fsync", refuse, "fails at"),
        (fcntl, "flock", nothing, "gives one lock (flock) to two at once"),
        (fcntl, "flock", refuse, "fails at locks_of_folders"),
        (os, "utime", nothing, "rounds times to more than a second"),
    ],
)
def test_a_file_system_that_cannot(
    subject: Subject, monkeypatch: pytest.MonkeyPatch,
    module: Any, name: str, fault: Any, expected: str,
) -> None:  # fmt: skip
    """As far as the calls of the system tell: tests cannot mount what they like."""
    monkeypatch.setattr(module, name, fault)
    found = [one for one in file_systems.abilities(subject) if one.level == "problem"]
    assert any(expected in one.what for one in found), found
    assert all("Move the folder to ext4, XFS or btrfs" in one.do for one in found)


def test_names_whose_capitals_do_not_count(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = os.path.exists
    monkeypatch.setattr(
        os.path, "exists", lambda path: exists(str(path).replace("/NAMES", "/names"))
    )
    told = only_problem(file_systems.abilities, subject)
    assert "does not tell capitals from small letters" in told


def test_no_log_for_sqlite(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, SQLite has no log to write: as where memory cannot be shared."""
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda _, **options: connect(":memory:", **options))
    assert "cannot hold SQLite's databases in WAL mode" in only_problem(
        file_systems.abilities, subject
    )


def test_a_disk_that_is_full_for_a_database(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def connect_without_room(path: str, **options: Any) -> sqlite3.Connection:
        db = connect(path, **options)
        db.execute("PRAGMA max_page_count = 1")
        return db

    monkeypatch.setattr(sqlite3, "connect", connect_without_room)
    told = only_problem(file_systems.abilities, subject)
    assert f"Cannot create files in {subject.settings.state}: No space left" in told
    assert "Free disk space" in told
