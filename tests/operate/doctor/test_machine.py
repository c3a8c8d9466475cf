"""A clock that is wrong, a disk that is full, a machine that is small."""

import os
import resource
import time
from types import SimpleNamespace
from typing import Any

import pytest

from operate.doctor import machine
from operate.doctor.findings import Subject
from tests.operate.doctor.conftest import levels, only_problem, only_warning


def test_this_machine_is_fine(subject: Subject) -> None:
    assert levels(machine.clock, subject) == {"ok"}


def test_a_clock_that_has_lost_its_battery(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    found = [one.what for one in machine.clock(subject) if one.level == "problem"]
    assert "The clock says 1970-01-12 13:46 UTC, but hub was installed on 20" in found[0]
    assert "seconds ahead of this machine's clock" in found[1]


@pytest.mark.parametrize(("apart", "word"), [(-90, "ahead of"), (90, "behind")])
def test_a_disk_with_another_clock(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, apart: int, word: str
) -> None:
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + apart)
    monkeypatch.setattr(
        os, "stat", _with(os.stat, machine.__file__, SimpleNamespace(st_mtime=now() - 1000))
    )
    assert f"90 seconds {word} this machine's clock" in only_problem(machine.clock, subject)


def test_few_open_files(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    assert "may open only 1,024 files" in only_warning(machine.open_files, subject)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    assert levels(machine.open_files, subject) == {"ok"}


GB = 2**30


@pytest.mark.parametrize(
    ("free_bytes", "free_inodes", "level", "expected"),
    [
        (50 * 2**20, 10**6, "problem", "has 52 MB of 107.4 GB left."),
        (900 * 2**20, 10**6, "warning", "has 944 MB of 107.4 GB left."),
        (50 * GB, 17, "problem", "can hold only 17 more files"),
        (50 * GB, 10**6, "ok", "has 53.7 GB of 107.4 GB left"),
    ],
)
def test_disks(
    subject: Subject, monkeypatch: pytest.MonkeyPatch,
    free_bytes: int, free_inodes: int, level: str, expected: str,
) -> None:  # fmt: skip
    state = SimpleNamespace(
        f_frsize=4096, f_blocks=100 * GB // 4096, f_bavail=free_bytes // 4096, f_files=10**7,
        f_favail=free_inodes,
    )  # fmt: skip
    monkeypatch.setattr(os, "statvfs", lambda _: state)
    (found,) = machine.disk(subject)  # one disk has all three folders
    assert found.level == level
    assert expected in found.what


def test_little_memory(subject: Subject, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:  500000 kB\nMemAvailable:  102400 kB\n")
    plain_open = open
    monkeypatch.setattr(
        "builtins.open", lambda path, *args, **options: plain_open(
            told if path == "/proc/meminfo" else path, *args, **options)
    )  # fmt: skip
    assert "Only 105 MB of memory are available" in only_warning(machine.memory, subject)


def _with(stat: Any, path: str, answer: Any) -> Any:
    return lambda asked, *args, **options: (
        answer if asked == path else stat(asked, *args, **options)
    )
