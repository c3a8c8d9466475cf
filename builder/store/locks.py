"""Locks of the state folder: one build at a time, and none while workers of a killed build run. And
that of a place that commands write to.
"""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import IO, TextIO

from builder.model.errors import OperatorError
from builder.store.shortage import remedy_for

# The longest wait for the workers of a killed build, and the interval between checks. After it, the
# build fails.
WORKERS_SECONDS_MAX = 30.0
# Files of the state folder.
BUILD_LOCK = "build.lock"
WORKERS_LOCK = "build.workers"
_WORKERS_LOOK_SECONDS = 0.02

# Locks of this process. A forked worker closes them, because it may live longer. It holds
# ``workers_lock`` instead.
_locks: set[TextIO] = set()
os.register_at_fork(after_in_child=lambda: [file.close() for file in _locks])


@contextlib.contextmanager
def build_lock(
    folder: str, on_wait: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], bool]]:
    """Hold the exclusive lock for builds with this state; waits for another build to end.

    ``on_wait`` is called once if there is one. Yields a function that returns true if another
    process is waiting for the lock. Raises OperatorError.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(lock_file(folder, BUILD_LOCK))
        # Processes that wait for the lock hold a shared lock on this file.
        queue = stack.enter_context(lock_file(folder, "build.queue"))
        stack.enter_context(not_in_workers(file))
        if not try_lock(file):
            on_wait()
            fcntl.flock(queue, fcntl.LOCK_SH)
            fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.flock(queue, fcntl.LOCK_UN)

        def is_wanted() -> bool:
            if not try_lock(queue):
                return True
            fcntl.flock(queue, fcntl.LOCK_UN)
            return False

        with workers_lock(folder):
            pass  # The workers of a killed build have ended.
        yield is_wanted


def count_build(folder: str) -> int:
    """The number of a change of the site that begins now, for the holder of ``build_lock``: one
    more than the last one, in whichever process. Raises OperatorError.
    """
    number = last_build(folder) + 1
    try:
        with open(f"{folder}/build.number", "w") as file:
            file.write(str(number))
    except OSError as error:
        raise OperatorError(
            f"Cannot write {folder}/build.number: {error.strerror}. {remedy_for(error)}, and build "
            "again."
        ) from error
    return number


def last_build(folder: str) -> int:
    """The last number that ``count_build`` returned; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError), open(f"{folder}/build.number") as file:
        return int(file.read())
    return 0


@contextlib.contextmanager
def workers_lock(folder: str) -> Iterator[TextIO]:
    """Hold the lock that a build shares with its worker processes; yields its file.

    Only the holder of ``build_lock`` may call this. Workers inherit the descriptor when they start,
    and an ``flock`` lasts until every copy of its descriptor is closed (flock(2)). So while any
    worker of a killed build can still write, in whatever state it is, no other build begins.

    Workers end with their parent (``builder.emit.pool``), so the wait is short. A stopped
    worker may not: it is continued, finds that its parent has ended, and ends. It is not killed,
    because the file's process ids may belong to other processes by now. Raises OperatorError after
    ``WORKERS_SECONDS_MAX``.
    """
    with lock_file(folder, WORKERS_LOCK) as file:
        deadline = time.monotonic() + WORKERS_SECONDS_MAX
        while not try_lock(file):
            if time.monotonic() > deadline:
                raise OperatorError(
                    f"Worker processes of a killed build still lock {file.name}. "
                    f"List them with `lsof {file.name}`, end them with `kill -9`, and build again."
                )
            file.seek(0)
            for pid in filter(str.isdecimal, file.read().split()):
                with contextlib.suppress(OSError, OverflowError):
                    os.kill(int(pid), signal.SIGCONT)
            time.sleep(_WORKERS_LOOK_SECONDS)
        file.truncate(0)
        yield file


@contextlib.contextmanager
def not_in_workers(file: TextIO) -> Iterator[TextIO]:
    """Have workers that are forked meanwhile close a file, whose lock ends with this process."""
    _locks.add(file)
    try:
        yield file
    finally:
        _locks.discard(file)


def lock_file(folder: str, name: str) -> TextIO:
    try:
        os.makedirs(folder, exist_ok=True)
        return open(f"{folder}/{name}", "a+")
    except OSError as error:
        raise OperatorError(
            f"Cannot use {folder} as state folder: {error.strerror}. {remedy_for(error)}, or pass "
            "another folder with --state."
        ) from None


def try_lock(file: IO | int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def lock(path: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock ``{path}.lock``, which one process has at a time; waits for the others.

    ``on_wait`` is called once if another process has it. Raises OperatorError.
    """
    with lock_file(*os.path.split(f"{path}.lock")) as file:
        if not try_lock(file):
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
