"""Snapshots: which there are, which one is meant, what is in one, and which go."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from builder.model.errors import OperatorError
from builder.model.records import Time, format_time
from operate.backup.objects import FOLDER as OBJECTS
from operate.backup.objects import (
    LIST_BYTES_MAX,
    DamagedBackup,
    Hash,
    Objects,
    StoredFile,
    digest_of,
    key_of,
)
from operate.backup.places import Place
from operate.parallel import Work

FORMAT = 1
FOLDER = "snapshots"
# Every backup has this file, so that nothing else is taken for one.
MARKER = "hub-backup.json"
_SNAPSHOT_BYTES_MAX = 16 * 1024 * 1024
_ID_FORMAT = "%Y%m%dT%H%M%SZ"

_key = re.compile(FOLDER + r"/([0-9]{8}T[0-9]{6}Z)\.json")


class Snapshot(Struct):
    """What a hub was at a time. ``release``: of hub, which made it. ``lists``: by the number of its
    shard, the object that lists files of the content. ``files`` and ``bytes``: how many, and how
    large they are, with the databases.
    """

    format: int
    id: str
    at: Time
    release: str
    files: int
    bytes: int
    lists: dict[str, Hash]
    databases: list[StoredFile]


class Version(Struct):
    """Of the format of a snapshot, or of a backup."""

    format: Annotated[int, Meta(ge=1)]


Record = TypeVar("Record")


def _decode(kind: type[Record], where: str, data: bytes) -> Record:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedBackup(f"{where} is damaged ({error}).{_OTHER}") from None


def prepare(place: Place) -> None:
    """Make sure that a place is a backup, or nothing yet. Raises OperatorError."""
    if _check_marker(place):
        return
    if next(iter(place.keys("")), None) is not None:
        raise OperatorError(
            f"{place.name} holds other files, and no backup. Choose an empty folder or prefix."
        )
    place.put(MARKER, msgspec.json.encode(Version(FORMAT)))


def check_is_backup(place: Place) -> None:
    """Raises OperatorError where there is no backup, or one of a newer release."""
    if not _check_marker(place):
        raise OperatorError(
            f"No backup in {place.name}: it has no {MARKER}. Check the name, or make one with "
            "`hubctl backup`."
        )


def _check_marker(place: Place) -> bool:
    data = place.get(MARKER, _SNAPSHOT_BYTES_MAX)
    if data is not None:
        _check_format(place, MARKER, data)
    return data is not None


def _check_format(place: Place, key: str, data: bytes) -> None:
    if _decode(Version, f"{place.name}: {key}", data).format > FORMAT:
        raise OperatorError(
            f"{place.name}: {key} was made by a newer release of hub. Nothing was changed. "
            "Upgrade to that release first."
        )


_OTHER = " Use another snapshot (`--snapshot ID`; `hubctl backup --list` shows them)."


def ids(place: Place) -> list[str]:
    """Of all snapshots, oldest first."""
    return sorted(found[1] for key in place.keys(f"{FOLDER}/") if (found := _key.fullmatch(key)))


def load(place: Place, snapshot_id: str) -> Snapshot:
    """Raises OperatorError for one that is missing, damaged, or of a newer release."""
    key = f"{FOLDER}/{snapshot_id}.json"
    data = place.get(key, _SNAPSHOT_BYTES_MAX) if _key.fullmatch(key) else None
    if data is None:
        raise OperatorError(
            f"{place.name} has no snapshot {snapshot_id!r}. Run `hubctl backup --list "
            f"{place.name}` to see all."
        )
    _check_format(place, key, data)
    snapshot = _decode(Snapshot, f"{place.name}: {key}", data)
    if snapshot.id != snapshot_id:
        raise DamagedBackup(f"{place.name}: {key} is another snapshot's.{_OTHER}")
    return snapshot


def load_all(place: Place) -> list[Snapshot]:
    """All snapshots, oldest first. Raises as ``load``."""
    check_is_backup(place)
    return [load(place, one) for one in ids(place)]


def choose(place: Place, snapshot_id: str | None = None, at: datetime | None = None) -> Snapshot:
    """The snapshot of this id, or the newest; with ``at``, the newest of that time or before.

    Raises OperatorError.
    """
    check_is_backup(place)
    if snapshot_id is not None:
        return load(place, snapshot_id)
    found = ids(place)
    if not found:
        raise OperatorError(f"{place.name} has no finished snapshot. Run `hubctl backup` first.")
    early = [one for one in found if at is None or one <= id_of(at)]
    if not early:
        raise OperatorError(
            f"{place.name} has no snapshot of {format_time(at)} or before. The oldest is "
            f"{found[0]}."
        )
    return load(place, early[-1])


def commit(place: Place, snapshot: Snapshot) -> None:
    """Write a snapshot, whose objects are all there and outlast a power cut."""
    key = f"{FOLDER}/{snapshot.id}.json"
    data = msgspec.json.format(msgspec.json.encode(snapshot), indent=1)
    place.put(key, data)
    place.sync()
    if place.get(key, _SNAPSHOT_BYTES_MAX) != data:
        raise DamagedBackup(
            f"{place.name} does not return what was written to {key}. Check the disk."
        )


def next_id(existing: Sequence[str]) -> tuple[str, str]:
    """Id and time of a new snapshot: later than all others, even if a clock was set back."""
    moment = datetime.now(UTC).replace(microsecond=0)
    if existing:
        last = datetime.strptime(existing[-1], _ID_FORMAT).replace(tzinfo=UTC)
        moment = max(moment, last + timedelta(seconds=1))
    return id_of(moment), format_time(moment)


def id_of(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_ID_FORMAT)


def read_list(objects: Objects, sha256: str) -> list[StoredFile]:
    """The files that an object lists. Raises DamagedBackup."""
    return _parse_list(objects, sha256, objects.get(sha256, LIST_BYTES_MAX))


def _parse_list(objects: Objects, sha256: str, data: bytes) -> list[StoredFile]:
    return _decode(list[StoredFile], f"{objects.place.name}: the list of files {sha256}", data)


def prune(objects: Objects, keep: int, junk: Iterable[str], work: Work) -> tuple[int, int]:
    """Remove all but the newest snapshots, then what no snapshot needs, as what killed backups
    left, and ``junk``; returns how many snapshots and how many objects went.

    ``objects`` knows all that are there. No object goes where it cannot be told what the snapshots
    need: raises OperatorError, until the damaged one is among the old.
    """
    place = objects.place
    existing = ids(place)
    gone = existing[:-keep]
    for one in gone:
        place.delete(f"{FOLDER}/{one}.json")
    # Or a power cut could bring back a snapshot without its objects.
    place.sync()
    try:
        needed = _needed([load(place, one) for one in existing[-keep:]], objects, work)
    except OperatorError as error:
        raise OperatorError(
            f"The new snapshot {existing[-1]} is whole, but no objects were removed, since an "
            f"older one cannot be read. {error}"
        ) from error
    keys = [*junk, *(key_of(one.hex()) for one in objects.known - needed)]
    for _ in work.each("Removing what no snapshot needs", place.delete, keys):
        pass
    return len(gone), len(keys)


def _needed(kept: Iterable[Snapshot], objects: Objects, work: Work) -> set[bytes]:
    """The digests of all that snapshots are made of."""
    lists, pieces = _objects_of(kept)
    needed = set(map(bytes.fromhex, lists | pieces))
    for files in work.each("Looking at snapshots", lambda one: read_list(objects, one), lists):
        needed.update(bytes.fromhex(one) for file in files for one in file.objects)
    return needed


def _objects_of(snapshots: Iterable[Snapshot]) -> tuple[set[str], set[str]]:
    """The lists of files of snapshots, and what their databases are made of."""
    lists, pieces = set(), set()
    for snapshot in snapshots:
        lists.update(snapshot.lists.values())
        pieces.update(one for file in snapshot.databases for one in file.objects)
    return lists, pieces


class Verified(NamedTuple):
    """Ids of the ``snapshots`` of a backup, how many objects they have, how many bytes of these
    are sound, and what is wrong.
    """

    snapshots: list[str]
    objects: int
    bytes: int
    faults: list[str]


def verify(place: Place, work: Work) -> Verified:
    """Read every object of every snapshot, and compare it with its hash.

    Raises OperatorError where there is no backup.
    """
    check_is_backup(place)
    objects, found, sound, faults = Objects(place), ids(place), [], []
    for one in found:
        try:
            sound.append(load(place, one))
        except OperatorError as error:
            faults.append(str(error))
    lists, pieces = _objects_of(sound)
    size = 0

    def check(sha256: str) -> tuple[int, list[StoredFile]]:
        """How large an object is, and which files it lists."""
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


def known_objects(place: Place) -> tuple[set[bytes], list[str]]:
    """The digests of all objects of a place, and the keys of what is no object or snapshot."""
    known, junk = set(), []
    for key in place.keys(f"{OBJECTS}/"):
        digest = digest_of(key)
        if digest:
            known.add(digest)
        else:
            junk.append(key)
    junk += [key for key in place.keys(f"{FOLDER}/") if not _key.fullmatch(key)]
    return known, junk
