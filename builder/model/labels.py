"""The labels of one repo: the version that each names, and its history. Pure.

A label changes by *moves*. A move is a file of its own, or part of a publication or of a
withdrawal. One counter of the repo numbers all of them, and the order of these numbers is the
history. The version that a label named before a move follows from that order.
"""

from collections.abc import Container, Iterable, Iterator
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from builder.model.answers import LabelMove
from builder.model.content_tree import LABEL, LABELS, RECORD
from builder.model.errors import Fault
from builder.model.names import LABELS_PER_REPO_MAX
from builder.model.records import LabelFile, Remains, Source, VersionFile


class Move(NamedTuple):
    """One change of one label, which ``file`` records (relative to the repo's folder). ``version``
    is None if the label was removed. ``source``: the CI job that made it, if one did.
    """

    number: int
    file: str
    label: str
    version: str | None
    at: str
    by: str
    note: str = ""
    source: Source | None = None

    @property
    def has_own_file(self) -> bool:
        """True if the move is not part of a publication or a withdrawal."""
        return self.file.startswith(f"{LABELS}/")

    @property
    def is_carried(self) -> bool:
        """True if the move is part of a publication that was not withdrawn."""
        return "/" not in self.file


class Labels(NamedTuple):
    """``current``: the last move of each label that names a version. ``history``: all moves of each
    label that ever existed, newest first. Both are sorted by label. ``next_number``: the number of
    the next move.
    """

    current: dict[str, LabelMove]
    history: dict[str, list[LabelMove]]
    next_number: int

    def versions(self) -> dict[str, str]:
        """The version that each label names."""
        return {label: str(move.version) for label, move in self.current.items()}

    def by_version(self) -> dict[str, list[str]]:
        """The labels of each version that has any, sorted."""
        found: dict[str, list[str]] = {}
        for label, version in self.versions().items():
            found.setdefault(version, []).append(label)
        return found

    def newest_moves(self, most: int) -> list[tuple[int, LabelMove]]:
        """The newest moves of all labels, newest first, each with its number among those of its
        label, from 1.
        """
        histories = self.history.values()
        moves = [(len(one) - age, move) for one in histories for age, move in enumerate(one[:most])]
        return sorted(moves, key=lambda one: one[1].moved_at, reverse=True)[:most]


NO_LABELS = Labels({}, {}, 1)


def move_of(number: int, event: LabelFile) -> Move:
    """The move that a separate file records."""
    source = event.source or None
    what = event.label, event.version, event.at, event.by, event.note, source
    return Move(number, LABEL.file(number), *what)


def moves_with(version: str, record: VersionFile | Remains) -> list[Move]:
    """The moves that a publication carried; they share one number. The remains of a withdrawn one
    have no source.
    """
    source = (record.source or None) if isinstance(record, VersionFile) else None
    return [
        Move(
            record.label_number,
            RECORD.file(version),
            label,
            version,
            record.published_at,
            record.publisher,
            source=source,
        )
        for label in record.labels or ()
    ]


def history_of(moves: Iterable[Move]) -> list[LabelMove]:
    """The changes of all labels, oldest first, from moves in any order."""
    named: dict[str, str | None] = {}
    past = []
    for move in _in_order(moves):
        previous = named.get(move.label)
        _, _, label, version, at, by, note, source = move
        past.append(LabelMove(label, version, previous, at, by, note, source))
        named[move.label] = move.version
    return past


def fold(moves: Iterable[Move]) -> Labels:
    """The labels that result from ``moves``, given in any order."""
    ordered = _in_order(moves)
    history: dict[str, list[LabelMove]] = {}
    for change in history_of(ordered):
        history.setdefault(change.label, []).append(change)
    newest_first = {label: history[label][::-1] for label in sorted(history)}
    current = {label: past[0] for label, past in newest_first.items() if past[0].version}
    return Labels(current, newest_first, ordered[-1].number + 1 if ordered else 1)


def find_faults(
    moves: Iterable[Move],
    versions: Container[str],
    where: str = "",
    withdrawn: Container[str] = (),
) -> Iterator[Fault]:
    """The faults in the moves of a repo, in order of number; paths start with ``where``.
    ``versions`` are those of the repo, ``withdrawn`` those it had. A warning does not keep a label
    from being shown.
    """
    ordered = _in_order(moves)
    current: dict[str, str] = {}
    for move in ordered:
        if move.version is None and move.label not in current:
            yield Fault(
                where + move.file, f"removes the label {move.label}, which is not there", True
            )
        if move.version is None:
            current.pop(move.label, None)
            continue
        if move.version not in versions and move.version not in withdrawn:
            yield Fault(
                where + move.file,
                f"the label {move.label} names {move.version}, which is not a version; "
                "restore that version, or remove this file",
            )
        if move.label not in current and len(current) == LABELS_PER_REPO_MAX:
            yield Fault(where + move.file, f"more than {LABELS_PER_REPO_MAX} labels at once", True)
        current[move.label] = move.version
    for label, version in current.items():
        if version in withdrawn:
            last = next(move for move in reversed(ordered) if move.label == label)
            yield Fault(
                f"{where}{last.file}",
                f"the label {label} names {version}, which is withdrawn; "
                "remove the label, or this file",
            )
    for before, move in pairwise(ordered):
        if move.number == before.number and move.file != before.file:
            reason = f"has number {move.number:,}, as {before.file}; give it another one"
            yield Fault(where + move.file, reason)
        if move.at < before.at:
            yield Fault(where + move.file, f"its time is earlier than that of {before.file}", True)


def _in_order(moves: Iterable[Move]) -> list[Move]:
    # Faulty moves may share a number; the file name keeps the order stable.
    return sorted(moves, key=itemgetter(0, 1))
