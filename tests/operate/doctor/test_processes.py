"""Who has the locks, told of real ones."""

import fcntl
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from builder.store.locks import BUILD_LOCK, WORKERS_LOCK
from operate.doctor import processes
from operate.doctor.findings import Subject
from tests.operate.doctor.conftest import levels, only_problem, told

HOLD = """
import fcntl, sqlite3, sys
if sys.argv[1].endswith("sqlite3"):
    db = sqlite3.connect(sys.argv[1])
    db.execute("SELECT count(*) FROM owner").fetchall()
else:
    file = open(sys.argv[1], "a")
    fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(path: str, *options: str) -> Iterator[int]:
    """A process that holds a file; gives its id."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.stdin.close()


def test_nobody(subject: Subject) -> None:
    (found,) = processes.holders(subject)
    assert found.what == f"no process uses {subject.settings.state}"


def test_a_build_and_a_service(subject: Subject) -> None:
    state = subject.settings.state
    with holding(f"{state}/{BUILD_LOCK}") as builder, holding(f"{state}/accounts.sqlite3") as user:
        found = [one.what for one in processes.holders(subject)]
        assert levels(processes.holders, subject) == {"ok"}
    assert found[0].startswith(f"process {builder} of ") and found[0].endswith("is building")
    assert found[1].startswith(f"process {user} of ") and "has the accounts open" in found[1]


def test_the_password_of_a_database_is_not_shown(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_COMMAND_CHARS_MAX", 10_000)
    secrets = ["postgresql://hub:hunter2@db/hub", "postgresql://db/hub?password=hunter2&a=b"]
    with holding(f"{subject.settings.state}/{BUILD_LOCK}", *secrets):
        (found,) = processes.holders(subject)
    assert "postgresql://db/hub postgresql://db/hub?password=&a=b" in found.what


def test_workers_of_a_killed_build(subject: Subject) -> None:
    with holding(f"{subject.settings.state}/{WORKERS_LOCK}") as pid:
        assert f"run: kill -9 {pid}" in only_problem(processes.holders, subject)


def test_a_service_of_another_user(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = processes._holder
    monkeypatch.setattr(processes, "_holder", lambda pid: holder(pid)._replace(user=65_534))
    with holding(f"{subject.settings.state}/accounts.sqlite3"):
        assert "which belongs to" in only_problem(processes.holders, subject)


def test_a_service_with_few_files(subject: Subject) -> None:
    with holding(f"{subject.settings.state}/accounts.sqlite3") as pid:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (100, 100))
        (warning,) = told(processes.holders(subject), "warning")
    assert "may open only 100 files" in warning


def test_locks_of_this_process_do_not_count(subject: Subject) -> None:
    with open(f"{subject.settings.state}/{WORKERS_LOCK}") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert levels(processes.holders, subject) == {"ok"}
    assert os.path.exists(file.name)
