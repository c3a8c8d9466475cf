"""Folders and buckets that commands write to: their names, locks, and overlaps."""

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator

from builder.model.errors import OperatorError
from builder.store.locks import lock_file, try_lock

# A URL, even if it lacks a slash. A path with ``./`` before it does not match.
_has_scheme = re.compile(r"[a-z0-9+.-]+:/", re.IGNORECASE).match


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


def is_bucket(name: str, what: str, folder: str) -> bool:
    """True for ``s3://…``, False for the path of a folder, such as ``folder``. Raises OperatorError
    for any other URL. ``what``: the kind of place, for the message.
    """
    if not name.strip():
        raise OperatorError(
            f"The {what} is empty. If it comes from a variable, set the variable. Pass a folder "
            f"({folder}) or s3://BUCKET/PREFIX."
        )
    if _has_scheme(name) and not name.startswith("s3://"):
        raise OperatorError(
            f"Unknown kind of {what} {name!r}. Pass a folder ({folder}) or s3://BUCKET/PREFIX; add "
            "--endpoint-url for a service other than AWS."
        )
    return name.startswith("s3://")


def find_overlap(root: str, others: Iterable[str]) -> str | None:
    """The real path of the first folder that contains ``root`` or lies in it; None if none does."""
    for folder in map(os.path.realpath, others):
        if os.path.commonpath([folder, root]) in (folder, root):
            return folder
    return None
