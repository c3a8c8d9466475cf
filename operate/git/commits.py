"""Publications as commits: one for each version, label change and withdrawal, with its author, its
time and its text.

These texts come from others. ``git fast-import`` gets them with their lengths, so it reads no
commands in them. Terminal control characters are removed.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from builder.model.errors import ContentError, Fault
from builder.model.names import Version
from builder.store import content, label_files, withdrawn_files
from builder.text.one_line import one_line
from operate.git import files
from operate.git.branch import Entries, Importing
from operate.git.files import (
    HOME,
    Blob,
    Place,
    by_version,
    event_in,
    file_in,
    is_gone,
    version_in,
    withdrawal_in,
    withdrawn_in,
)

# More changes than this become one commit, which lists this many of them. Each commit writes the
# owner's folder again, which takes git minutes for a large import.
COMMITS_MAX = 100
SUBJECT_CHARS_MAX = 120
LINE_CHARS_MAX = 1000
HUB = "hub"
_RESTORED = "The published files were changed or removed on this branch, and are back."
_MODES = "The records of the versions say which files are executable."


class ContentChanged(Exception):
    """The content has changed meanwhile: compare again."""


class Commit(NamedTuple):
    """``author``: the handle of an owner, or HUB. ``at``: RFC 3339; empty: now. ``rank`` orders
    commits of the same time. Paths are those of the content; ``writes`` has the blob of each.
    """

    at: str
    rank: int
    subject: str
    body: str
    author: str
    writes: dict[str, Blob]
    deletes: Sequence[str] = ()


def commits_of(
    root: str,
    place: Place,
    ours: Mapping[str, Blob],
    theirs: Entries,
    before: Entries,
    strays: frozenset[str],
) -> list[Commit]:
    """The commits that bring a place on the branch (``theirs``) to its state here (``ours``).
    ``before``: its state when both were the same. ``strays``: from ``strays_in``. Raises
    ContentError, OSError.
    """
    writes = {
        path: blob for path, blob in ours.items() if path not in theirs or theirs[path].blob != blob
    }
    if not place.name:
        subject = f"{place.owner}: profile" if place != HOME else "Home page"
        return [Commit("", 0, subject, "", place.owner or HUB, writes)] if writes else []
    here, there = withdrawn_in(ours), withdrawn_in(theirs)
    stale = [path for path in theirs if path not in ours and is_gone(here, path)]
    # A withdrawn text that was not taken in from the branch is not written back to it.
    writes = {
        path: blob
        for path, blob in writes.items()
        if not is_gone(there, path) or is_gone(here, path)
    }
    commits, whole = [], by_version(writes)
    for path in [path for path in writes if path not in theirs and path not in before]:
        if path.endswith(".json") and not file_in(path) and (version := version_in(path)):
            commits.append(
                _publication(root, place, version, {one: writes.pop(one) for one in whole[version]})
            )
        elif number := event_in(path):
            commits.append(_move(root, place, number, {path: writes.pop(path)}))
        elif what := withdrawal_in(path):
            commits.append(_withdrawal(root, place, what, {path: writes.pop(path)}, stale))
            stale = []
    for version in by_version(writes):
        _read_record(root, place, version)
    if writes or stale or strays:
        deletes = sorted({*stale, *strays})
        what, body = "restored", _RESTORED
        # Only modes differ if a version was published in a clone, which stores no executable files.
        if not deletes and all(
            path in theirs and theirs[path].blob.id == blob.id for path, blob in writes.items()
        ):
            what, body = "modes of files", _MODES
        commits.append(Commit("", 3, f"{place.path}: {what}", body, HUB, writes, deletes))
    return commits


def _read_record(root: str, place: Place, version: str) -> content.VersionFile:
    """The record. Raises ContentError, also if the text or a file does not match it."""
    path = f"{place.path}/{version}.md"
    at = root, *place, Version.parse(version)
    record = content.read_record(*at)
    if hashlib.sha256(files.read(root, path)).hexdigest() != record.sha256:
        raise ContentError([Fault(path, content.CHANGED)])
    content.read_files(*at, record)
    return record


def _publication(root: str, place: Place, version: str, writes: dict[str, Blob]) -> Commit:
    record = _read_record(root, place, version)
    subject = f"{place.path} {version}"
    return _commit(record.published_at, 0, subject, record.changelog, record.publisher, writes)


def _move(root: str, place: Place, number: int, writes: dict[str, Blob]) -> Commit:
    event = label_files.read_event(root, place.path, number)
    did = f"label {event.label} to {event.version}" if event.version else f"no label {event.label}"
    return _commit(event.at, 1, f"{place.path} {did}", event.note, event.by, writes)


def _withdrawal(
    root: str, place: Place, what: str, writes: dict[str, Blob], stale: list[str]
) -> Commit:
    stored = withdrawn_files.read_withdrawn(root, place.path, what).withdrawn
    version = "" if what == withdrawn_files.WHOLE else f" {what}"
    subject = f"{place.path}{version} withdrawn ({stored.reason})"
    commit = _commit(stored.at, 2, subject, stored.note, stored.by, writes)
    return commit._replace(deletes=sorted(stale))


def _commit(
    at: str, rank: int, subject: str, text: str, author: str, writes: dict[str, Blob]
) -> Commit:
    """A commit with a text of its author. The first line becomes part of the subject if it fits."""
    lines = [one_line(line, LINE_CHARS_MAX) for line in text.strip().splitlines()]
    if lines:
        whole = f"{subject}: {lines[0]}"
        subject = one_line(whole, SUBJECT_CHARS_MAX)
        if subject == whole:
            del lines[0]
    return Commit(at, rank, subject, "\n".join(lines).strip(), author, writes)


def together(commits: list[Commit]) -> Commit:
    """One commit for several."""
    shown = [commit.subject for commit in commits[:COMMITS_MAX]]
    if len(commits) > COMMITS_MAX:
        shown.append(f"and {len(commits) - COMMITS_MAX:,} more")
    writes = {path: blob for commit in commits for path, blob in commit.writes.items()}
    deletes = [path for commit in commits for path in commit.deletes]
    return Commit("", 0, f"{len(commits):,} changes", "\n".join(shown), HUB, writes, deletes)


def write_commits(
    importing: Importing, commits: Iterable[Commit], root: str, prefix: str, host: str
) -> None:
    """Write commits to git with the present files. Raises ContentChanged if a file is not as its
    ``Commit`` says.
    """
    now = int(datetime.now(UTC).timestamp())
    for commit in commits:
        seconds = int(datetime.fromisoformat(commit.at).timestamp()) if commit.at else now
        author = _person(commit.author, host, max(0, seconds))
        # The author comes last, so git reads no line of the text before as a trailer.
        parts = [commit.subject, commit.body, f"By: {commit.author}"]
        importing.commit(author, _person(HUB, host, now), "\n\n".join(filter(None, parts)) + "\n")
        for path in commit.deletes:
            importing.delete(prefix + path)
        for path, blob in commit.writes.items():
            try:
                data = files.read(root, path)
            except FileNotFoundError:
                data = b""
            if files.blob_id(data) != blob.id:
                raise ContentChanged
            importing.write(prefix + path, data, blob.mode)


def _person(handle: str, host: str, seconds: int) -> str:
    return f"{handle} <{handle}@users.noreply.{host}> {seconds} +0000"
