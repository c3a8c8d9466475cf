"""Reads one repo: the contents of its folder, and the last build's record of its files on
the site.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from builder.model.answers import ListedVersion
from builder.model.content_tree import RECORD
from builder.model.errors import Faults
from builder.model.labels import Labels, Move, find_faults, fold, move_of, moves_with
from builder.model.names import Version
from builder.model.ordinals import Counted, count_withdrawn, number_versions
from builder.model.ordinals import find_faults as find_faults_of_ordinals
from builder.model.records import VersionFile
from builder.model.withdrawn import WithdrawnParts
from builder.stats.pulls import PullCounts
from builder.store import content
from builder.store.label_files import read_event
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


class _KnownVersion(ListedVersion, gc=False):
    """An entry that this program has written, so reading it back checks no patterns."""

    version: str
    previous: str | None
    publisher: str
    published_at: str
    sha256: str


class Remembered(msgspec.Struct, array_like=True, gc=False):
    """A version whose files are on the site: its mark, its entry, the labels on its page.
    ``is_counted``: its record stores its number of publication. ``refs``: its refs for Langfuse's
    SDKs.
    """

    version: str
    mark: str
    entry: _KnownVersion
    shown: list[str]
    is_counted: bool
    refs: list[str] = []


class ListedPlace(NamedTuple):
    """A version in the folder, and its mark. ``is_current``: its files on the site are known to be
    up to date.
    """

    version: Version
    name: str
    mark: str
    is_current: bool


class History(NamedTuple):
    """All versions and labels of a repo. ``places``: the readable versions, oldest first;
    ``known``: those that the last build left; ``gone``: the withdrawn ones. ``numbers``: of
    publication. ``moved``: the labels whose moves have changed since the last build.
    """

    places: list[ListedPlace]
    known: dict[str, Remembered]
    gone: WithdrawnParts
    numbers: dict[Version, int]
    moves: list[Marked]
    labels: Labels
    moved: set[str]


_encode = msgspec.msgpack.Encoder().encode
_decode_versions = msgspec.msgpack.Decoder(list[Remembered]).decode
_decode_moves = msgspec.msgpack.Decoder(list[Marked]).decode

encode_versions = _encode


def remembered_versions(row: RepoRow | None) -> list[str]:
    """The versions that the last build put on the site."""
    return row.names.split() if row else []


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
    versions = [*map(Version.parse, remembered_versions(row))]
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
    places = _find_places(root, task, known)
    carried, counted = _read_ahead(read_record, places, known, remembered)
    counted += [count_withdrawn(one, task.withdrawn.versions) for one in gone.versions]
    Faults(find_faults_of_ordinals(counted, f"{task.id}/")).check()
    moves = [*events, *(("", move) for move in (*carried, *gone.moves))]
    of_labels = [move for _, move in moves]
    versions = {place.name for place in places}
    withdrawn = {str(one.version) for one in gone.versions}
    found = find_faults(of_labels, versions, f"{task.id}/", withdrawn)
    Faults(fault for fault in found if not fault.is_warning).check()
    moved = {move.label for _, move in {*remembered} ^ {*moves}}
    numbers = number_versions(counted)
    return History(places, known, gone, numbers, moves, fold(of_labels), moved)


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
            events.append((mark, move_of(number, read_event(root, task.id, number))))
    faults.check()
    return events


def _find_places(root: str, task: Task, known: dict[str, Remembered]) -> list[ListedPlace]:
    """The versions of a repo. The files of each depend on it and on the version below (diff,
    previous).
    """
    found = []
    below_known = dict(zip(known, [None, *known], strict=False))
    below, is_below_same = None, True
    for version in task.versions:
        name = str(version)
        old = known.get(name)
        if old and not task.edited:
            mark, is_same = old.mark, True
        else:
            mark = content.version_mark(root, task.owner, task.name, version)
            is_same = bool(old and mark and mark == old.mark)
        is_current = is_same and is_below_same and below_known[name] == below
        found.append(ListedPlace(version, name, mark, is_current))
        below, is_below_same = name, is_same
    return found


def _read_ahead(
    read_record: ReadRecord,
    places: list[ListedPlace],
    known: dict[str, Remembered],
    remembered: list[Marked],
) -> tuple[list[Move], list[Counted]]:
    """The moves of labels and the numbers in the records of all versions, read first, so that no
    file shows inconsistent ones. Reads the records of versions that are not current.
    """
    current = {place.name for place in places if place.is_current}
    moves = [move for _, move in remembered if move.is_carried and move.version in current]
    counted: list[Counted] = []
    for version, name, _, is_current in places:
        if is_current:
            row = known[name]
            published_at, ordinal = row.entry.published_at, row.is_counted and row.entry.ordinal
        else:
            record = read_record(version)
            moves += moves_with(name, record)
            published_at, ordinal = record.published_at, record.ordinal
        counted.append(Counted(published_at, version, ordinal or None, RECORD.file(name)))
    return moves, counted
