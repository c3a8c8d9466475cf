"""Folders that two commands may want at once: locks of them, and overlaps."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator

from builder.store.locks import lock_file, try_lock


@contextlib.contextmanager
def lock(path: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock ``{path}.lock``, which one process has at a time; waits for the others.

    ``on_wait`` is called once when another process has it. Raises OperatorError.
    """
    with lock_file(*os.path.split(f"{path}.lock")) as file:
        if not try_lock(file):
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def find_overlap(root: str, others: Iterable[str]) -> str | None:
    """The real path of the first folder that holds ``root``, or lies in it; None if none does."""
    for folder in map(os.path.realpath, others):
        if os.path.commonpath([folder, root]) in (folder, root):
            return folder
    return None
