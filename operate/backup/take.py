"""One backup: store what changed, check it, commit the snapshot, remove old ones."""

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from builder import installed_version
from builder.model.errors import OperatorError
from builder.store.content import check_folder
from operate.backup import snapshots
from operate.backup.databases import kinds, store_databases
from operate.backup.objects import LIST_BYTES_MAX, Objects, StoredFile
from operate.backup.places import Place
from operate.backup.snapshots import FORMAT, Snapshot
from operate.backup.tree import find_units, store_unit
from operate.folders import lock
from operate.parallel import Work


class Report(NamedTuple):
    """What a backup came to. ``files`` and ``bytes``: of the snapshot. ``stored`` and
    ``stored_bytes``: objects that were not there before. ``snapshots``: how many there are now;
    ``dropped``: of those before. ``removed``: objects that nothing needs any more. ``skipped``:
    paths of the content that are no plain files.
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
    """The files of a shard: how many, how large, and the object that lists them."""

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

    Others may publish meanwhile. Without ``has_accounts``, those are elsewhere, and whatever is
    left of them in the state folder is passed over. ``on_wait`` is called when another backup has
    to end first. Raises OperatorError; then the snapshots from before are whole, and the next
    backup removes what this one left.
    """
    started = time.perf_counter()
    check_folder(content)
    # Content first: an answer that is kept for a retry, of a version that the content does not
    # have, only means that the retry is done anew. The other way round, it would publish twice.
    with lock(f"{state}/backup", on_wait), place.lock(on_wait):
        snapshots.prepare(place)
        known, junk = snapshots.known_objects(place)
        objects = Objects(place, known)
        existing = snapshots.ids(place)
        last = _last(place, existing)
        shards, skipped = _store_content(content, objects, last.lists if last else {}, work)
        databases = store_databases(state, objects, has_accounts)
        if last:
            _check_still_there(last, content, state, shards, databases, has_accounts)
        place.sync()
        if not place.checks_arrival:
            _check(objects, work)
        snapshot_id, at = snapshots.next_id(existing)
        snapshot = Snapshot(
            FORMAT, snapshot_id, at, installed_version(),
            files=sum(one.files for one in shards) + len(databases),
            bytes=sum(one.bytes for one in shards) + sum(one.size for one in databases),
            lists={one.name: one.listed for one in sorted(shards)},
            databases=databases,
        )  # fmt: skip
        snapshots.commit(place, snapshot)
        dropped, removed = snapshots.prune(objects, keep, junk, work)
    return Report(
        snapshot_id, snapshot.files, snapshot.bytes, len(objects.written), objects.written_bytes,
        len(existing) + 1 - dropped, dropped, removed, sorted(skipped),
        time.perf_counter() - started,
    )  # fmt: skip


def _last(place: Place, existing: list[str]) -> Snapshot | None:
    """The last snapshot; it only spares reading."""
    try:
        return snapshots.load(place, existing[-1]) if existing else None
    except snapshots.DamagedBackup:
        return None


def _check_still_there(
    last: Snapshot, content: str, state: str, shards: list[_Shard], databases: list[StoredFile],
    has_accounts: bool,
) -> None:  # fmt: skip
    """Raises OperatorError where all of something is gone: such backups would push out those that
    have it.
    """
    gone = [f"{state}/{name}" for name in (
        {file.path for file in last.databases} & kinds(has_accounts).keys()
        - {file.path for file in databases}
    )]  # fmt: skip
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
    """The files that the last snapshot has of a shard, by path."""
    if not sha256:
        return {}
    try:
        return {file.path: file for file in snapshots.read_list(objects, sha256)}
    except snapshots.DamagedBackup:
        # Written again: the object cannot be trusted to be there.
        objects.known.discard(bytes.fromhex(sha256))
        return {}


def _check(objects: Objects, work: Work) -> None:
    """Read back what was stored. Raises OperatorError."""

    def read(sha256: str) -> None:
        objects.get(sha256, LIST_BYTES_MAX)

    try:
        for _ in work.each("Checking what was stored", read, objects.written):
            pass
    except OperatorError as error:
        raise OperatorError(
            f"{objects.place.name} does not return what was written to it. Check the disk. {error}"
        ) from error
