"""A backup: store what changed, commit the snapshot, remove old ones."""

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from builder import installed_version
from builder.model.errors import OperatorError
from builder.store.content import check_folder
from operate.backup import databases, snapshots
from operate.backup.objects import FOLDER as OBJECTS
from operate.backup.objects import DamagedBackup, Objects, StoredFile, key_of
from operate.backup.places import Place
from operate.backup.snapshots import Snapshot
from operate.backup.tree import find_units, store_unit
from operate.folders import lock
from operate.parallel import Work


class Report(NamedTuple):
    """The result of a backup. ``files`` and ``bytes``: of the snapshot. ``stored`` and
    ``stored_bytes``: new objects. ``snapshots``: their number now. ``dropped``: removed snapshots.
    ``removed``: objects that no snapshot needed any more. ``skipped``: paths of the content that
    are no plain files.
    """

    id: str
    files: int
    bytes: int
    stored: int
    stored_bytes: int
    snapshots: int
    dropped: int
    removed: int
    skipped: list[str]
    seconds: float


class _Shard(NamedTuple):
    """The files of a shard: their number and size, and the object that lists them."""

    name: str
    files: int
    bytes: int
    listed: str


def back_up(
    content: str,
    state: str,
    place: Place,
    *,
    keep: int,
    work: Work,
    on_wait: Callable[[], None] = lambda: None,
    has_accounts: bool = True,
) -> Report:
    """Store a snapshot of the content and the databases, and keep the newest ``keep``.

    Others may publish meanwhile. Without ``has_accounts``, a database of accounts in the state
    folder is an old one, and left out. ``on_wait`` is called if another backup has to end first.
    Raises OperatorError; then older snapshots are whole, and the next backup removes the objects
    that this one left.
    """
    started = time.perf_counter()
    check_folder(content)
    # Content before databases. A publication in between leaves its answer in the backup without its
    # version, and a retry publishes it again. In the other order, the version would be in the
    # backup without its answer, and a retry would publish it twice.
    with lock(f"{state}/backup", on_wait):
        snapshots.prepare(place)
        objects = Objects(place, place.keys(OBJECTS))
        existing = snapshots.ids(place)
        last = _last(place, existing)
        shards, skipped = _store_content(content, objects, last.lists if last else {}, work)
        stored = databases.store_databases(state, objects, has_accounts)
        if last:
            _check_still_there(last, content, state, shards, stored, has_accounts)
        snapshot = _snapshot(snapshots.next_id(existing), shards, stored)
        snapshots.commit(place, snapshot)
        dropped, removed = snapshots.prune(objects, keep, work)
    return Report(
        snapshot.id,
        snapshot.files,
        snapshot.bytes,
        objects.written,
        objects.written_bytes,
        len(existing) + 1 - dropped,
        dropped,
        removed,
        sorted(skipped),
        time.perf_counter() - started,
    )


def _snapshot(named: tuple[str, str], shards: list[_Shard], stored: list[StoredFile]) -> Snapshot:
    return Snapshot(
        *named,
        installed_version(),
        files=sum(one.files for one in shards) + len(stored),
        bytes=sum(one.bytes for one in shards) + sum(one.size for one in stored),
        lists={one.name: one.listed for one in sorted(shards)},
        databases=stored,
    )


def _last(place: Place, existing: list[str]) -> Snapshot | None:
    """The last snapshot, which saves reading; None if it is damaged."""
    try:
        return snapshots.load(place, existing[-1]) if existing else None
    except DamagedBackup:
        return None


def _check_still_there(
    last: Snapshot,
    content: str,
    state: str,
    shards: list[_Shard],
    stored: list[StoredFile],
    has_accounts: bool,
) -> None:
    """Raises OperatorError if a database or all content is missing: further backups would displace
    the snapshots that have it.
    """
    there = {file.path for file in last.databases} & databases.names(has_accounts)
    gone = [f"{state}/{name}" for name in there - {file.path for file in stored}]
    if last.lists and not shards:
        gone.append(f"all of {content}")
    if gone:
        raise OperatorError(
            f"Missing since the snapshot {last.id}: {', '.join(sorted(gone))}. Nothing was "
            "backed up. Check --content and --state, and that their disks are mounted; restore "
            "what is lost. To start over, back up to another place."
        )


def _store_content(
    content: str, objects: Objects, previous: dict[str, str], work: Work
) -> tuple[list[_Shard], list[str]]:
    """The shards, and the paths that were skipped."""
    units = find_units(content)

    def store(shard: int) -> _Shard:
        name = f"{shard:02x}"
        old = _read_old(objects, previous.get(name))
        files = [
            file
            for unit in sorted(units.shards[shard])
            for file in store_unit(content, unit, old, objects, units.skipped)
        ]
        listed = objects.put(msgspec.json.encode(files))
        return _Shard(name, len(files), sum(file.size for file in files), listed)

    return [*work.each("Backing up", store, units.shards)], units.skipped


def _read_old(objects: Objects, sha256: str | None) -> dict[str, StoredFile]:
    """The files of a shard in the last snapshot, by path."""
    if not sha256:
        return {}
    try:
        return {file.path: file for file in snapshots.read_list(objects, sha256)}
    except DamagedBackup:
        objects.known.discard(key_of(sha256))  # so it is written again
        return {}
