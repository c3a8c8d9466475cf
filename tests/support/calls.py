"""System calls of the product: watched, and failing where a test wants it."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

CALLS = (
    "open", "write", "fsync", "close", "link", "unlink", "mkdir", "rmdir", "rename", "lstat",
    "stat", "fstat", "listdir", "scandir", "read",
)  # fmt: skip


@contextmanager
def watched(before: Callable[[str, tuple], None]) -> Iterator[None]:
    """Call ``before(call, args)`` ahead of each system call of the work."""

    def wrap(name: str, real: Callable) -> Callable:
        def call(*args, **kwargs):
            try:
                before(name, args)
            except BaseException:
                if name == "close":
                    real(*args)  # a close that fails has closed
                raise
            return real(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, wrap(name, getattr(os, name)))
        patch.setattr(fcntl, "flock", wrap("flock", fcntl.flock))
        yield


def at(number: int, act: Callable[[], None]) -> Callable[[str, tuple], None]:
    """Do ``act`` at the call with this number, counted from 1."""
    left = [number]

    def before(_: str, __: tuple) -> None:
        left[0] -= 1
        if left[0] == 0:
            act()

    return before
