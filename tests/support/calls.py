"""System calls of the product: watched, and failing where a test wants it."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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


def once(call: str, end: str, act: Callable[[], None]) -> Callable[[str, tuple], None]:
    """Do ``act`` before the first call of this name on a path with this end."""
    is_done = False

    def before(name: str, args: tuple) -> None:
        nonlocal is_done
        if not is_done and name == call and any(str(one).endswith(end) for one in args):
            is_done = True
            act()

    return before


@contextmanager
def noted_writes(root: str | Path) -> Iterator[list[str]]:
    """The folders, links and syncs that the work makes below ``root``, in order."""
    noted: list[str] = []

    def note(name: str, args: tuple) -> None:
        if name == "fsync":
            path = os.readlink(f"/proc/self/fd/{args[0]}")
        elif name in ("link", "mkdir"):
            path = args[name == "link"]
        else:
            return
        noted.append(f"{name} {Path(path).relative_to(root)}")

    with watched(note):
        yield noted


@contextmanager
def few_steps(most: int) -> Iterator[None]:
    """Fails if the work takes more steps: calls and returns. What takes a regular expression too
    long never ends.
    """
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
    assert steps < most
