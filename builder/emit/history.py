"""Reads one repo: the contents of its folder, and the last build's record of its files on
the site.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from builder.model.content_tree import RECORD
from builder.model.errors import Faults
from builder.model.labels import Labels, Move, find_faults, fold, move_of, moves_with
from builder.model.names import Version
from builder.model.ordinals import Counted, count_withdrawn, number_versions
from builder.model.ordinals import find_faults as find_faults_of_ordinals
from builder.model.records import VersionFile, time_of
from builder.model.withdrawn import WithdrawnParts
from builder.stats.pulls import PullCounts
from builder.store import content
from builder.store.state.repos import RepoRow
from builder.store.withdrawn_files import WithdrawnListing

# A move of a label, and the mark of its separate file; empty if it has none.
Marked = tuple[str, Move]
ReadRecord = Callable[[Version], VersionFile]


class Task(NamedTuple):
    """A repo to render. ``mark`` is its folder's, ``events`` those of its changes of labels.
    Without ``versions``, all of it is ``withdrawn``. ``old`` is the last build's record, None if
    unknown. ``edited``: files that the last build read may have changed. ``pulls`` is None if they
    are not counted.
    """

    owner: str
    name: str
    mark: str
    versions: list[Version]
    events: dict[int, str]
    withdrawn: WithdrawnListing
    old: RepoRow | None
    edited: bool
    pulls: PullCounts | None

    @property
    def id(self) -> str:
        return f"{self.owner}/{self.name}"


class Rendered(NamedTuple):
    """The state's row of a repo, and the ids of all its objects on the site."""

    row: RepoRow
    objects: list[str]


class Remembered(msgspec.Struct, array_like=True, gc=False):
    """A version whose files are on the site: its mark, its entry as JSON without labels, the labels
    on its page. ``published``: in epoch seconds. ``is_counted``: its record stores its number of
    publication. ``refs``: its refs for Langfuse's SDKs.
    """

    version: str
    mark: str
    entry: bytes
    published: int
    ordinal: int
    is_counted: bool
    shown: list[str]
    refs: list[str] = []


class StalePage(NamedTuple):
    """A page that has to be written; ``keys`` are its repos in the state."""

    tag: str | None
    sort: str
    number: int
    total: int
    keys: list[int]
    digest: bytes


class History(NamedTuple):
    """All versions and labels of a repo. ``names``: the readable versions, oldest first; ``known``:
    those that the last build left; ``stale``: the marks of those to write; ``gone``: the
    withdrawn ones. ``numbers``: of publication, by version. ``moved``: the labels whose moves have
    changed since the last build.
    """

    names: list[str]
    known: dict[str, Remembered]
    stale: dict[str, str]
    gone: WithdrawnParts
    numbers: dict[str, int]
    moves: list[Marked]
    labels: Labels
    moved: set[str]


_encode = msgspec.msgpack.Encoder().encode
_decode_versions = msgspec.msgpack.Decoder(list[Remembered]).decode
_decode_moves = msgspec.msgpack.Decoder(list[Marked]).decode

encode_versions = _encode


def remembered_withdrawn(row: RepoRow | None) -> set[str]:
    """The versions that were withdrawn at the last build."""
    return {*row.withdrawn.split()} if row else set()


def read_known(row: RepoRow | None) -> dict[str, Remembered]:
    """The versions that the last build put on the site, oldest first."""
    return {one.version: one for one in _decode_versions(row.versions)} if row else {}


def encode_moves(moves: list[Marked]) -> bytes:
    """The value for ``RepoRow.labels``."""
    return _encode(moves) if moves else b""


def _read_moves(row: RepoRow | None) -> list[Marked]:
    return _decode_moves(row.labels) if row and row.labels else []


def task_as_remembered(row: RepoRow, pulls: PullCounts | None) -> Task:
    """A task that renders a repo with other pulls, and otherwise as the last build left it."""
    owner, name = row.id.split("/")
    versions = [*map(Version.parse, row.names.split())]
    events = {move.number: mark for mark, move in _read_moves(row) if move.has_own_file}
    withdrawn = WithdrawnListing(frozenset(remembered_withdrawn(row)), is_whole=False)
    return Task(owner, name, row.mark, versions, events, withdrawn, row, False, pulls)


def read_history(
    root: str,
    task: Task,
    known: dict[str, Remembered],
    gone: WithdrawnParts,
    read_record: ReadRecord,
) -> History:
    """Read all that has changed since the last build, before any file shows it. Raises
    ContentError.
    """
    remembered = _read_moves(task.old)
    events = _read_events(root, task, remembered)
    names = [*map(str, task.versions)]
    stale = _find_stale(root, task, names, known)
    # Read first, so that no file shows labels or numbers that contradict each other.
    listed = zip(names, task.versions, strict=True)
    records = {name: read_record(version) for name, version in listed if name in stale}
    current = {name: known[name] for name in names if name not in stale}
    carried = [move for _, move in remembered if move.is_carried and move.version in current]
    for name, record in records.items():
        carried += moves_with(name, record)
    numbers = _number(task, current, records, gone)
    moves = [*events, *(("", move) for move in (*carried, *gone.moves))]
    of_labels = [move for _, move in moves]
    found = find_faults(of_labels, {*names}, f"{task.id}/", gone.names)
    Faults(fault for fault in found if not fault.is_warning).check()
    moved = {move.label for _, move in {*remembered} ^ {*moves}}
    return History(names, known, stale, gone, numbers, moves, fold(of_labels), moved)


def _read_events(root: str, task: Task, remembered: list[Marked]) -> list[Marked]:
    """The moves in separate files; reads only files that have changed since the last build."""
    known = {move.number: (mark, move) for mark, move in remembered if move.has_own_file}
    events, faults = [], Faults()
    for number, mark in task.events.items():
        old = known.get(number)
        if old and mark and old[0] == mark:
            events.append(old)
            continue
        with faults:
            events.append((mark, move_of(number, content.read_event(root, task.id, number))))
    faults.check()
    return events


def _find_stale(
    root: str, task: Task, names: list[str], known: dict[str, Remembered]
) -> dict[str, str]:
    """The marks of the versions that have changed, or whose version below has: the files of each
    depend on both (diff, previous).
    """
    marks = {
        name: content.version_mark(root, task.owner, task.name, version)
        for name, version in zip(names, task.versions, strict=True)
        if task.edited or name not in known
    }
    touched = {
        name
        for name, mark in marks.items()
        if not mark or name not in known or known[name].mark != mark
    }
    same = {*zip(known, [None, *known], strict=False)}
    return {
        name: marks[name] if name in marks else known[name].mark
        for name, below in zip(names, [None, *names], strict=False)
        if (name, below) not in same or name in touched or below in touched
    }


def _number(
    task: Task,
    current: dict[str, Remembered],
    records: dict[str, VersionFile],
    gone: WithdrawnParts,
) -> dict[str, int]:
    """The number of publication of each version. Raises ContentError."""
    read = [count_withdrawn(one, task.withdrawn.versions) for one in gone.versions]
    read += [
        Counted(one.published_at, Version.parse(name), one.ordinal or None, RECORD.file(name))
        for name, one in records.items()
    ]
    numbers = {name: one.ordinal for name, one in current.items() if one.is_counted}
    numbers |= {str(one.version): one.ordinal for one in read if one.ordinal}
    if len({*numbers.values()}) == len(current) + len(read):
        return numbers  # Each is stored, and no two are equal.
    for name, one in current.items():
        at, version = time_of(one.published), Version.parse(name)
        read.append(Counted(at, version, numbers.get(name), RECORD.file(name)))
    Faults(find_faults_of_ordinals(read, f"{task.id}/")).check()
    return {str(version): number for version, number in number_versions(read).items()}
