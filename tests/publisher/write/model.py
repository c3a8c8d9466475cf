"""Requests of the state machine of publications, their possible results, and ways to fail."""

import errno
import os
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st

from publisher.write.publish import Published
from tests.builder.pipeline.test_incremental import Stopped, small_pages  # noqa: F401
from tests.publisher.write.readers import REPOS, TEXTS, Repo, Stored


class Moved(NamedTuple):
    """A move of a label as the model has it; a version of None removes it."""

    label: str
    version: str | None
    previous: str | None
    note: str


class Request(NamedTuple):
    """A publication as it is sent."""

    repo: Repo
    body: bytes
    key: str | None


class Memory(NamedTuple):
    """The stored answer for a key. ``is_stored``: its version is in the content."""

    request: Request
    answer: Published
    is_stored: bool


class Outcome(NamedTuple):
    """A possible result of a request: an answer or a code, the new version, and the memory for its
    key.
    """

    answer: Published | str
    stored: Stored | None
    memory: Memory | None
    is_done_now: bool = False  # and not before


bodies = st.fixed_dictionaries(
    {"content": st.sampled_from(TEXTS)},
    optional={
        "title": st.sampled_from(("A title", "<b>")),
        "tags": st.sampled_from(([], ["code"], ["code", "fun"])),
        "changelog": st.sampled_from(("Better.", "")),
        "bump": st.sampled_from(("major", "minor", "patch")),
        "labels": st.sampled_from(([], ["production"], ["production", "canary"])),
    },
)
labels = st.sampled_from(("production", "canary"))
repos = st.sampled_from(REPOS)
bases = st.sampled_from((None, None, None, "right", "wrong"))
keys = st.sampled_from((None, None, "k", "l"))
calls = st.integers(1, 60)
deaths = st.sampled_from(("killed", "killed", "interrupted", "full"))


def bumped(version: str | None, bump: str) -> str:
    if not version:
        return "1.0.0"
    major, minor, patch = map(int, version.split("."))
    if bump == "major":
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if bump == "minor" else f"{major}.{minor}.{patch + 1}"


def failing(call: int, death: str) -> Callable[[str, tuple], None]:
    """Fail at the system call with this number: for want of space; interrupted, with time to
    clear up; or killed, after which nothing is called any more.
    """
    count = 0

    def before(_: str, __: tuple) -> None:
        nonlocal count
        count += 1
        if count == call or (count > call and death == "killed"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if death == "full" else Stopped

    return before
