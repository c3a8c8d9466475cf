"""Folders that two commands may want at once: locks of them, and overlaps."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator

from builder.model.errors import OperatorError


@contextlib.contextmanager
def lock(path: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock ``{path}.lock``, which one process has at a time; waits for the others.

    ``on_wait`` is called once when another process has it. Raises OperatorError.
    """
    with contextlib.ExitStack() as stack:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = stack.enter_context(open(f"{path}.lock", "w"))
        except OSError as error:
            raise OperatorError(
                f"Cannot use {os.path.dirname(path)} as state folder: {error.strerror}. Fix that, "
                "or pass another folder with --state."
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def find_overlap(root: str, others: Iterable[str]) -> str | None:
    """The real path of the first folder that holds ``root``, or lies in it; None if none does."""
    for folder in map(os.path.realpath, others):
        if os.path.commonpath([folder, root]) in (folder, root):
            return folder
    return None
