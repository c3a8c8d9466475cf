"""Reads all that a repo's folder says of its labels, for those who have no build's memory."""

from functools import lru_cache
from itertools import chain

from builder.model.errors import ContentError, Fault
from builder.model.labels import Labels, Move, find_faults, fold, move_of, moves_with
from builder.model.names import Version
from builder.store import content
from builder.store.label_files import read_event
from builder.store.withdrawn_files import read_parts

# Of how many files this process remembers the moves: few have any, and a move has some hundred
# bytes.
FILES_KEPT = 10_000


def read_labels(root: str, owner: str, name: str) -> Labels:
    """The labels of a repo, from its files; no folder: none. Raises as ``read_moves``."""
    return fold(read_moves(root, owner, name, content.list_versions(root, owner, name)))


def read_moves(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Move]:
    """All moves of a repo's labels, from the files that a look at its folder has found.

    Reads every file of the repo but the texts: those that this process has read before only where
    they have changed. Raises ContentError where a file is faulty, OperatorError.
    """
    parts = read_parts(root, f"{owner}/{name}", listing.withdrawn)
    moves = [*_read_files(root, owner, name, listing), *parts.moves]
    known = {str(version) for version in listing.versions}
    gone = {str(one.version) for one in parts.versions}
    faults = [
        fault
        for fault in find_faults(moves, known, f"{owner}/{name}/", gone)
        if not fault.is_warning
    ]
    if faults:
        raise ContentError(sorted(faults))
    return moves


def _read_files(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Move]:
    moves: list[Move] = []
    faults: list[Fault] = []
    versions = zip(listing.versions, listing.marks, strict=True)
    for file, mark in chain(versions, listing.events.items()):
        # Without a mark, a file may change again and look the same.
        read = _moves_in if mark else _moves_in.__wrapped__
        try:
            moves += read(root, owner, name, file, mark)
        except ContentError as error:
            faults += error.faults
    if faults:
        raise ContentError(sorted(faults))
    return moves


@lru_cache(FILES_KEPT)
def _moves_in(root: str, owner: str, name: str, file: Version | int, mark: str) -> tuple[Move, ...]:
    """The moves in the record of a version, or in the file of a change with this number."""
    if isinstance(file, int):
        return (move_of(file, read_event(root, f"{owner}/{name}", file)),)
    return tuple(moves_with(str(file), content.read_record(root, owner, name, file)))
