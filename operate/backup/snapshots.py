"""Snapshots: list them, choose one, verify them, remove old ones."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from builder.model.errors import OperatorError
from builder.model.records import Time, format_time
from operate.backup.objects import LIST_BYTES_MAX, DamagedBackup, Hash, Objects, StoredFile, key_of
from operate.backup.places import Place
from operate.parallel import Work

FORMAT = 1
FOLDER = "snapshots/"
# Every backup has this file, so no other folder is mistaken for one.
MARKER = "hub-backup.json"
_SNAPSHOT_BYTES_MAX = 16 * 1024 * 1024
_ID_FORMAT = "%Y%m%dT%H%M%SZ"
_key = re.compile(FOLDER + r"([0-9]{8}T[0-9]{6}Z)\.json")
_OTHER = " Use another snapshot (`--snapshot ID`; `hubctl backup --list` shows them)."


class Snapshot(Struct):
    """A hub at one time. ``release``: the version of hub that took it. ``lists``: the object with
    the list of files of each shard, by the shard's number. ``files`` and ``bytes``: their number
    and size, with the databases.
    """

    id: str
    at: Time
    release: str
    files: int
    bytes: int
    lists: dict[str, Hash]
    databases: list[StoredFile]


class _Marker(Struct):
    format: Annotated[int, Meta(ge=1)]


Record = TypeVar("Record")


def _decode(kind: type[Record], where: str, data: bytes) -> Record:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedBackup(f"{where} is damaged ({error}).{_OTHER}") from None


def prepare(place: Place) -> None:
    """Make sure that a place is a backup or empty. Raises OperatorError."""
    if _is_backup(place):
        return
    if next(iter(place.keys("")), None) is not None:
        raise OperatorError(
            f"{place.name} holds other files, and no backup. Choose an empty folder or prefix."
        )
    place.put(MARKER, msgspec.json.encode(_Marker(FORMAT)))


def _is_backup(place: Place) -> bool:
    """Raises OperatorError for a backup of a newer release."""
    data = place.get(MARKER, _SNAPSHOT_BYTES_MAX)
    if data is not None and _decode(_Marker, f"{place.name}: {MARKER}", data).format > FORMAT:
        raise OperatorError(
            f"A newer release of hub made the backup in {place.name}. Nothing was changed. "
            "Upgrade to that release first."
        )
    return data is not None


def ids(place: Place) -> list[str]:
    """The ids of all snapshots, oldest first."""
    return sorted(found[1] for key in place.keys(FOLDER) if (found := _key.fullmatch(key)))


def _snapshot_key(snapshot_id: str) -> str:
    return f"{FOLDER}{snapshot_id}.json"


def load(place: Place, snapshot_id: str) -> Snapshot:
    """The snapshot. Raises OperatorError if it is missing, DamagedBackup if it is damaged."""
    key = _snapshot_key(snapshot_id)
    data = place.get(key, _SNAPSHOT_BYTES_MAX) if _key.fullmatch(key) else None
    if data is None:
        raise OperatorError(
            f"{place.name} has no snapshot {snapshot_id!r}. Run `hubctl backup --list "
            f"{place.name}` to see all."
        )
    return _decode(Snapshot, f"{place.name}: {key}", data)


def find_ids(place: Place) -> list[str]:
    """As ``ids``. Raises OperatorError if there is no backup, or one of a newer release."""
    if not _is_backup(place):
        raise OperatorError(
            f"No backup in {place.name}: it has no {MARKER}. Check the name, or make one with "
            "`hubctl backup`."
        )
    return ids(place)


def choose(place: Place, snapshot_id: str | None = None) -> Snapshot:
    """The snapshot of this id, or the newest. Raises OperatorError."""
    found = find_ids(place)
    if not found:
        raise OperatorError(f"{place.name} has no finished snapshot. Run `hubctl backup` first.")
    return load(place, found[-1] if snapshot_id is None else snapshot_id)


def commit(place: Place, snapshot: Snapshot) -> None:
    """Write a snapshot, whose objects are all stored."""
    place.put(_snapshot_key(snapshot.id), msgspec.json.format(msgspec.json.encode(snapshot)))


def next_id(existing: Sequence[str]) -> tuple[str, str]:
    """Id and time of a new snapshot: later than all others, even if a clock was set back."""
    moment = datetime.now(UTC).replace(microsecond=0)
    if existing:
        last = datetime.strptime(existing[-1], _ID_FORMAT).replace(tzinfo=UTC)
        moment = max(moment, last + timedelta(seconds=1))
    return moment.strftime(_ID_FORMAT), format_time(moment)


def read_list(objects: Objects, sha256: str) -> list[StoredFile]:
    """The files that an object lists. Raises OperatorError, DamagedBackup."""
    return _parse_list(objects, sha256, objects.get(sha256, LIST_BYTES_MAX))


def _parse_list(objects: Objects, sha256: str, data: bytes) -> list[StoredFile]:
    return _decode(list[StoredFile], f"{objects.place.name}: the list of files {sha256}", data)


def prune(objects: Objects, keep: int, work: Work) -> tuple[int, int]:
    """Remove all but the newest snapshots, then all objects that no snapshot needs, such as those
    of killed backups. Returns the numbers of removed snapshots and objects.

    ``objects`` knows all that exist. Removes no object while a snapshot that stays is damaged:
    raises OperatorError.
    """
    place, existing = objects.place, ids(objects.place)
    kept = existing[-keep:]
    for key in {*place.keys(FOLDER)} - {*map(_snapshot_key, kept)}:
        place.delete(key)
    try:
        lists, needed = _objects_of(load(place, one) for one in kept)
        for files in work.each("Looking at snapshots", lambda one: read_list(objects, one), lists):
            needed.update(one for file in files for one in file.objects)
    except OperatorError as error:
        raise OperatorError(
            f"The new snapshot {existing[-1]} is whole, but no objects were removed, since an "
            f"older one cannot be read. {error}"
        ) from error
    unneeded = objects.known - {*map(key_of, lists | needed)}
    for _ in work.each("Removing what no snapshot needs", place.delete, unneeded):
        pass
    return len(existing) - len(kept), len(unneeded)


def _objects_of(snapshots: Iterable[Snapshot]) -> tuple[set[str], set[str]]:
    """The hashes of the lists of files of snapshots, and of the objects of their databases."""
    lists, pieces = set(), set()
    for snapshot in snapshots:
        lists.update(snapshot.lists.values())
        pieces.update(one for file in snapshot.databases for one in file.objects)
    return lists, pieces


class Verified(NamedTuple):
    """The ids of the ``snapshots`` of a backup, the number of their objects, the bytes of the
    sound ones, and the faults.
    """

    snapshots: list[str]
    objects: int
    bytes: int
    faults: list[str]


def verify(place: Place, work: Work) -> Verified:
    """Read every object of every snapshot, and compare it with its hash.

    Raises OperatorError if there is no backup.
    """
    objects, found, sound, faults = Objects(place), find_ids(place), [], []
    for one in found:
        try:
            sound.append(load(place, one))
        except OperatorError as error:
            faults.append(str(error))
    lists, pieces = _objects_of(sound)
    size = 0

    def check(sha256: str) -> tuple[int, list[StoredFile]]:
        """The size of an object, and the files that it lists."""
        try:
            data = objects.get(sha256, LIST_BYTES_MAX)
            return len(data), _parse_list(objects, sha256, data) if sha256 in lists else []
        except OperatorError as error:
            faults.append(str(error))
            return 0, []

    for wanted in (lists, pieces):
        for bytes_read, files in work.each("Verifying", check, wanted):
            size += bytes_read
            pieces.update(one for file in files for one in file.objects)
    return Verified(found, len(lists) + len(pieces), size, sorted(faults))
