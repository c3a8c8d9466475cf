"""Locks of the state folder: one build at a time, and none beside workers of a killed one."""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import IO, TextIO

from builder.model.errors import OperatorError

# How long a build waits for the workers of one that was killed, and how often it looks.
WORKERS_SECONDS_MAX = 30.0
# Files of the state folder.
BUILD_LOCK = "build.lock"
WORKERS_LOCK = "build.workers"
_WORKERS_LOOK_SECONDS = 0.02

# Locks of builds in this process. A forked worker closes them: it holds ``workers_lock`` instead.
_build_locks: set[TextIO] = set()
os.register_at_fork(after_in_child=lambda: [file.close() for file in _build_locks])


@contextlib.contextmanager
def build_lock(
    folder: str, on_wait: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], bool]]:
    """Hold the only right to build with this state; waits for another build to end.

    ``on_wait`` is called once when there is one. Gives a function that tells whether somebody
    else waits for the right now. Raises OperatorError.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(lock_file(folder, BUILD_LOCK))
        # Who waits for the lock holds a share of this one.
        queue = stack.enter_context(lock_file(folder, "build.queue"))
        _build_locks.add(file)
        stack.callback(_build_locks.discard, file)
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
            pass  # the workers of a killed build are gone
        yield is_wanted


def count_build(folder: str) -> int:
    """The number of what begins now to change the site, for the holder of ``build_lock``: one more
    than the last one, whichever process that was in. Raises OperatorError.
    """
    number = last_build(folder) + 1
    try:
        with open(f"{folder}/build.number", "w") as file:
            file.write(str(number))
    except OSError as error:
        raise OperatorError(
            f"Cannot write {folder}/build.number: {error.strerror}. Fix that and build again."
        ) from error
    return number


def last_build(folder: str) -> int:
    """The number that ``count_build`` gave last; 0 where there is none."""
    with contextlib.suppress(OSError, ValueError), open(f"{folder}/build.number") as file:
        return int(file.read())
    return 0


def is_building(folder: str) -> bool:
    """Whether somebody holds ``build_lock`` now. Raises OperatorError."""
    with lock_file(folder, BUILD_LOCK) as file:
        return not try_lock(file)


@contextlib.contextmanager
def workers_lock(folder: str) -> Iterator[TextIO]:
    """Hold the lock that a build shares with its worker processes, and get its file.

    Only the holder of ``build_lock`` may call this. Workers inherit the descriptor when they start,
    and an ``flock`` lasts until every copy of its descriptor is closed. So while any worker of a
    killed build can still write, whatever state it is in, no other build begins.

    Workers end with their parent (``builder.pipeline.pool``), so the wait is short. A stopped
    worker may not: it is continued, finds its parent gone, and ends. It is not killed, because the
    file's process ids may belong to other processes by now. Raises OperatorError after
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


def lock_file(folder: str, name: str) -> TextIO:
    try:
        os.makedirs(folder, exist_ok=True)
        return open(f"{folder}/{name}", "a+")
    except OSError as error:
        raise OperatorError(
            f"Cannot use {folder} as state folder: {error.strerror}. Fix that, or pass another "
            "folder with --state."
        ) from None


def try_lock(file: IO | int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
