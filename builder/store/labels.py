"""Reads all records of a repo's labels, for callers without a build's state."""

from functools import lru_cache
from itertools import chain

from builder.model.errors import Faults
from builder.model.labels import Labels, Move, find_faults, fold, move_of
from builder.store import content
from builder.store.kept_records import read_kept, read_marked
from builder.store.label_files import read_event
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
    gone = {str(one.version) for one in parts.versions}
    found = find_faults(moves, known, f"{owner}/{name}/", gone)
    Faults(fault for fault in found if not fault.is_warning).check()
    return moves


def _read_files(root: str, owner: str, name: str, listing: content.RepoListing) -> list[Move]:
    moves: list[Move] = []
    faults = Faults()
    with faults:
        moves += chain.from_iterable(one.moves for one in read_kept(root, owner, name, listing))
    with faults:
        moves += read_marked(_read_event, root, owner, name, listing.events.items())
    faults.check()
    return moves


@lru_cache(EVENTS_KEPT)
def _read_event(root: str, owner: str, name: str, number: int, mark: str) -> Move:
    return move_of(number, read_event(root, f"{owner}/{name}", number))
