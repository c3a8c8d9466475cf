"""Reads all moves of a repo's labels, for callers without a build's state. Caches the parts of
versions' records that each publication needs from all of them.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from builder.model.errors import ContentError, Faults
from builder.model.labels import Labels, Move, find_faults, fold, move_of, moves_with
from builder.model.names import VERSIONS_PER_REPO_MAX, Version
from builder.store import content
from builder.store.withdrawn_files import read_parts

# The most files whose moves this process caches, at some hundred bytes each.
EVENTS_KEPT = 10_000


def read_labels(root: str, owner: str, name: str) -> Labels:
    """The labels of a repo, from its files; none if there is no folder. Raises as
    ``read_moves``.
    """
    return fold(read_moves(root, owner, name, content.list_versions(root, owner, name)))


def read_moves(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Move]:
    """All moves of a repo's labels, from the files of a listing.

    Reads every file of the repo except texts. Files that this process has read before are read
    again only if they have changed. Raises ContentError for a faulty file, OperatorError.
    """
    parts = read_parts(root, f"{owner}/{name}", listing.withdrawn)
    moves = [*_read_files(root, owner, name, listing), *parts.moves]
    known = {str(version) for version in listing.versions}
    found = find_faults(moves, known, f"{owner}/{name}/", parts.names)
    Faults(fault for fault in found if not fault.is_warning).check()
    return moves


def _read_files(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Move]:
    moves: list[Move] = []
    faults = Faults()
    with faults:
        moves += chain.from_iterable(one.moves for one in read_kept(root, owner, name, listing))
    with faults:
        moves += _read_marked(_read_event, root, owner, name, listing.events.items())
    faults.check()
    return moves


@lru_cache(EVENTS_KEPT)
def _read_event(root: str, owner: str, name: str, number: int, mark: str) -> Move:
    return move_of(number, content.read_event(root, f"{owner}/{name}", number))


# The most records that this process caches, at some hundred bytes each.
RECORDS_KEPT = 2 * VERSIONS_PER_REPO_MAX


class Kept(NamedTuple):
    """``ordinal``: the number of publication that the record stores, or None. ``moves``: this
    publication's moves of labels.
    """

    ordinal: int | None
    moves: tuple[Move, ...]


def read_kept(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Kept]:
    """The cached parts of a listing's versions, in their order. Opens only records that this
    process has not read. Raises ContentError with the faults of all.
    """
    # Published files are never edited, so one file's mark shows if the repo has been replaced.
    mark = listing.versions and content.version_mark(root, owner, name, listing.versions[0])
    return _read_marked(_read, root, owner, name, [(one, mark) for one in listing.versions])


def _read_marked(
    cached: Any, root: str, owner: str, name: str, marks: Iterable[tuple[object, str]]
) -> list[Any]:
    """The results of a function with ``lru_cache`` for each file of a repo. It takes the repo, the
    file's key, and its mark. Raises ContentError with the faults of all.
    """
    found, faults = [], Faults()
    for file, mark in marks:
        # Without a mark, the file may change again unnoticed, so the result is not cached.
        read = cached if mark else cached.__wrapped__
        try:  # For thousands of files, ``with faults`` takes twice as long.
            found.append(read(root, owner, name, file, mark))
        except ContentError as error:
            faults += error.faults
    faults.check()
    return found


@lru_cache(RECORDS_KEPT)
def _read(root: str, owner: str, name: str, version: Version, mark: str) -> Kept:
    record = content.read_record(root, owner, name, version)
    return Kept(record.ordinal or None, tuple(moves_with(str(version), record)))
