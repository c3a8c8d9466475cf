"""The model that the state machine of publications compares the service with: requests, their
possible results, and ways to fail.
"""

import errno
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from hypothesis import assume
from hypothesis import strategies as st
from msgspec import UNSET

from publisher.write.publish import Published
from tests.builder.pipeline.test_incremental import Stopped
from tests.publisher.write.readers import REPOS, TEXTS, Repo, Stored

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


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


class Model:
    """The versions and moves of labels that were published, and the answers that keys remember."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[Repo, list[Stored]] = {repo: [] for repo in REPOS}
        self.moves: dict[Repo, list[Moved]] = {repo: [] for repo in REPOS}  # in order
        # By owner and key: possible stored answers; None: no answer stored.
        self.memories: dict[tuple[str, str], list[Memory | None]] = {}
        self.keyed: list[Request] = []
        self.unbuilt: set[Repo] = set()  # what differs from what readers were shown
        self.minutes = 0

    def outcomes(self, request: Request, now: datetime) -> list[Outcome]:
        """Possible results of the request, one for each possible stored answer for its key."""
        found = []
        for memory in self.kept(request):
            if memory and memory.request != request:
                found.append(Outcome("idempotency_key_reused", None, memory))
            elif memory and memory.is_stored:
                found.append(Outcome(memory.answer, None, memory))
            else:
                answer, stored = self.plan(request, now)
                if isinstance(answer, Published):
                    memory = Memory(request, answer, True)
                found.append(Outcome(answer, stored, memory, is_done_now=True))
        return found

    def kept(self, request: Request) -> list[Memory | None]:
        return self.memories.get((request.repo[0], request.key), [None])

    def plan(self, request: Request, now: datetime) -> tuple[Published | str, Stored | None]:
        """The result of the request without a stored answer, and the version that it makes."""
        owner, name = request.repo
        fields = json.loads(request.body)
        versions = self.versions[request.repo]
        latest = versions[-1] if versions else None
        if fields.get("base_version") not in (None, latest and latest.version):
            return "base_version_mismatch", None
        new = Stored(
            bumped(latest and latest.version, fields.get("bump", "patch")),
            fields["content"],
            fields.get("title", latest.title if latest else name),
            fields.get("tags", latest.tags if latest else []),
            fields.get("changelog", ""),
            now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        is_same = latest is not None and new[1:4] == latest[1:4]
        if not is_same:
            versions = [*versions, new]
        last = versions[-1]
        answer = Published(
            owner=owner, name=name, version=last.version,
            previous_version=versions[-2].version if len(versions) > 1 else None,
            changelog=last.changelog, sha256=sha256(last.text.encode()).hexdigest(),
            size=len(last.text), publisher=owner, published_at=last.published_at,
            unchanged=is_same, warnings=[], labels=sorted(fields.get("labels", ())) or UNSET,
        )  # fmt: skip
        return answer, None if is_same else new

    def make_request(self, repo: Repo, fields: dict, base: str | None, key: str | None) -> Request:
        versions = self.versions[repo]
        if base == "right":
            assume(versions)
            fields = fields | {"base_version": versions[-1].version}
        elif base == "wrong":
            fields = fields | {"base_version": "7.0.0"}
        request = Request(repo, json.dumps(fields).encode(), key)
        if key:
            self.keyed.append(request)
        return request

    def tick(self) -> datetime:
        self.minutes += 1
        return BEGINNING + timedelta(minutes=self.minutes)

    def note_version(self, repo: Repo, stored: Stored) -> None:
        self.versions[repo].append(stored)
        self.unbuilt.add(repo)

    def current(self, repo: Repo, label: str) -> str | None:
        """The version that a label names."""
        named = [move.version for move in self.moves[repo] if move.label == label]
        return named[-1] if named else None

    def moves_with(self, request: Request) -> list[Moved]:
        """The moves of a publication to what is the latest version by now."""
        latest = self.versions[request.repo][-1].version
        wanted = json.loads(request.body).get("labels", [])
        return [
            Moved(label, latest, self.current(request.repo, label), "")
            for label in wanted
            if self.current(request.repo, label) != latest
        ]

    def note_moves(self, repo: Repo, moves: list[Moved]) -> None:
        self.moves[repo] += moves
        if moves:
            self.unbuilt.add(repo)

    def plan_move(self, repo: Repo, label: str, number: int | None, base: str | None) -> Moved:
        """A move to one of the versions; None: to none, so the label goes."""
        versions = self.versions[repo]
        assume(versions)
        version = None if number is None else versions[number % len(versions)].version
        current = self.current(repo, label)
        assume(version is not None or current is not None)
        return Moved(label, version, current, f"{self.minutes} {base}")
