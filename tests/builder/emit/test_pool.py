"""Worker processes that are stopped or killed, and builds that are killed beside theirs."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from builder.emit import pool
from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import build, compare
from builder.pipeline.changes import find_changes
from builder.pipeline.context import Context, Request
from builder.stats.pulls import Pulls
from builder.store import locks
from builder.store.site import Site
from builder.store.state import State
from tests.support.catalogues import build_files, freshly_built, read_tree, write_version
from tests.support.depth import some
from tests.support.servers import wait_until

REPOS = 40
# Longer than any build here takes: one that takes it hangs.
HANGS_SECONDS = 120

METHODS = ("spawn", "fork")  # a service's builds spawn, so this is what is tried first
FAULTS = ("die in an answer", "die alone", "die")
methods = pytest.mark.parametrize("method", METHODS)


@pytest.fixture
def many(empty: Settings) -> Settings:
    """Settings with enough repos for two workers; nothing is built."""
    publish_everywhere(empty, "1.0.0")
    return empty


def publish_everywhere(settings: Settings, version: str) -> None:
    for number in range(REPOS):
        write_version(settings.content, "ann", f"r{number}", version, f"{version} of {number}.\n")


def command(settings: Settings, method: str, fault: str, platform: str = sys.platform) -> list[str]:
    return [
        *(sys.executable, "-m", "tests.support.faulty_workers"),
        *(method, platform, fault), *settings[:5],
    ]  # fmt: skip


def run(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Build to the end, within reason."""
    return subprocess.run(
        command(settings, *arguments),
        capture_output=True, text=True, check=True, timeout=HANGS_SECONDS,
    )  # fmt: skip


def status(pid: int | str) -> str:
    """State of a process in ``/proc``, such as T for a stopped one; Z if it has none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


def stopped_workers(builder: int) -> list[int]:
    """The processes of a builder, once two of them are stopped."""
    children = [
        int(pid)
        for tasks in Path(f"/proc/{builder}/task").iterdir()
        for pid in (tasks / "children").read_text().split()
    ]
    stopped = [pid for pid in children if status(pid) == "T"]
    return stopped if len(stopped) == 2 else []


def kill_while_workers_are_stopped(settings: Settings, *arguments: str) -> list[int]:
    """Begin to build, stop the workers while they write, kill the builder; gives the workers."""
    with subprocess.Popen(
        command(settings, *arguments), stderr=subprocess.PIPE, text=True
    ) as builder:
        try:
            return wait_until(lambda: _stopped(builder), "two workers to be stopped")
        finally:
            builder.kill()


def _stopped(builder: subprocess.Popen[str]) -> list[int]:
    """The workers of a builder, once they are stopped. It has to live until then."""
    assert builder.poll() is None, f"the builder ended:\n{builder.stderr.read()}"
    return stopped_workers(builder.pid)


def let_go_on(workers: list[int]) -> None:
    """Continue processes, and wait until they are gone."""
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: all(status(pid) == "Z" for pid in workers), "the workers to end")


@pytest.mark.parametrize(("platform", "method"), [*some(product((sys.platform, "other"), METHODS))])
def test_workers_of_a_killed_build_write_nothing_later(many, method, platform):
    workers = kill_while_workers_are_stopped(many, method, "stop", platform)
    publish_everywhere(many, "1.1.0")
    run(many, method, "none")
    let_go_on(workers)
    assert compare(many)[:3] == ([], [], [])


def test_the_kernel_kills_stopped_workers_with_their_build(many):
    workers = kill_while_workers_are_stopped(many, "fork", "stop")
    wait_until(lambda: all(status(pid) == "Z" for pid in workers), "the workers to be killed")


@methods
def test_what_a_killed_build_had_under_way_is_compared_by_its_bytes(many, method):
    build_files(many)
    publish_everywhere(many, "1.1.0")
    kill_while_workers_are_stopped(many, method, "stop")
    for number in range(REPOS):
        Path(many.out, f"api/v1/repos/ann/r{number}/versions/1.0.0.txt").write_text("Not this.")
    build(many, index=False, changed=[])
    assert compare(many)[:3] == ([], [], [])


@pytest.mark.parametrize(("method", "fault"), [*some(product(METHODS, FAULTS))])
def test_what_killed_workers_had_is_built_without_them(many, method, fault):
    done = run(many, method, fault)
    assert "A worker process ended with exit code -9 " in done.stderr
    site = read_tree(many.out)
    assert done.stdout == f"{len(site)} 0\n"
    assert site == freshly_built(many)


def test_where_no_worker_can_start_the_build_does_without(many):
    done = run(many, "fork", "no fork")
    assert "Cannot start more than 0 worker processes" in done.stderr
    assert compare(many)[:3] == ([], [], [])


@pytest.fixture
def two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds in this process have two workers, and small batches."""
    monkeypatch.setattr(pool, "REPOS_PER_PROCESS_MIN", 10)
    monkeypatch.setattr(pool, "REPOS_PER_BATCH", 5)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.usefixtures("two_workers")
def test_a_worker_gets_one_batch_at_a_time(many):
    class Counted(list):
        """Counts the parts that are taken of it."""

        taken = 0

        def __getitem__(self, key):
            self.taken += 1
            return super().__getitem__(key)

    with State(None) as remembered, Pulls(many.state) as pulls:
        remembered.begin(forget=True)
        request = Request(many, None, edited=True, full=True, index=False, progress=lambda *_: None)
        found = find_changes(Context(request, remembered, pulls, Site(many.out)))
    tasks = Counted(found.tasks.values())
    rows = pool.render_repos(tasks, many, Site(many.out))
    next(rows)
    # The batch that this row is of, and one for each worker.
    assert tasks.taken == 3
    assert len([*rows]) == REPOS - 1
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("two_workers")
def test_what_a_worker_cannot_write_ends_the_build_and_all_workers(many):
    Path(many.out, "api/v1/repos/ann/r7/raw.txt").mkdir(parents=True)
    with pytest.raises(OperatorError, match=r"Cannot write .*r7/raw\.txt"):
        build(many, index=False)
    assert multiprocessing.active_children() == []


def test_a_worker_that_stays_does_not_hold_up_builds_for_ever(many, monkeypatch):
    monkeypatch.setattr(locks, "WORKERS_SECONDS_MAX", 0.0)
    build(many, index=False)
    with locks.workers_lock(many.state) as file:
        stays = subprocess.Popen(["sleep", str(HANGS_SECONDS)], pass_fds=[file.fileno()])
    with stays:
        with pytest.raises(OperatorError, match=r"lsof .*build\.workers"):
            build(many, index=False)
        stays.kill()
    build(many, index=False)
