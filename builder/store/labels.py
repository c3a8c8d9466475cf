"""Reads all that a repo's folder says of its labels, for those who have no build's memory."""

from builder.model.errors import ContentError
from builder.model.labels import Labels, Move, find_faults, fold, move_of, moves_with
from builder.store import content
from builder.store.label_files import read_event


def read_labels(root: str, owner: str, name: str) -> Labels:
    """The labels of a repo, from its files; no folder: none. Raises as ``read_moves``."""
    return fold(read_moves(root, owner, name, content.list_versions(root, owner, name)))


def read_moves(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Move]:
    """All moves of a repo's labels, from the files that a look at its folder has found.

    Reads every file of the repo but the texts, so it takes longer with each version and each move.
    Raises ContentError where a file is faulty, OperatorError.
    """
    moves = _read_moves(root, owner, name, listing)
    known = {str(version) for version in listing.versions}
    faults = [
        fault for fault in find_faults(moves, known, f"{owner}/{name}/") if not fault.is_warning
    ]
    if faults:
        raise ContentError(sorted(faults))
    return moves


def _read_moves(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Move]:
    moves, faults = [], []
    for version in listing.versions:
        try:
            record = content.read_record(root, owner, name, version)
            moves += moves_with(str(version), record)
        except ContentError as error:
            faults += error.faults
    for number in listing.events:
        try:
            moves.append(move_of(number, read_event(root, f"{owner}/{name}", number)))
        except ContentError as error:
            faults += error.faults
    if faults:
        raise ContentError(sorted(faults))
    return moves
