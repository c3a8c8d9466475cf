"""Snapshots: which there are, which one is meant, what is in one, and which go."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from backup.objects import FOLDER as OBJECTS
from backup.objects import LIST_BYTES_MAX, DamagedBackup, Hash, Objects, StoredFile, digest_of
from backup.places import Place
from builder.deploy.parallel import in_parallel
from builder.model.errors import OperatorError
from builder.model.progress import Progress
from builder.model.records import Time, format_time

FORMAT = 1
FOLDER = "snapshots"
# Every backup has this file, so that nothing else is taken for one.
MARKER = "hub-backup.json"
_SNAPSHOT_BYTES_MAX = 16 * 1024 * 1024
_ID_FORMAT = "%Y%m%dT%H%M%SZ"

_key = re.compile(FOLDER + r"/([0-9]{8}T[0-9]{6}Z)\.json")


class Snapshot(Struct, forbid_unknown_fields=False):
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


_decode = msgspec.json.Decoder(Snapshot).decode
_decode_version = msgspec.json.Decoder(Version).decode
_decode_list = msgspec.json.Decoder(list[StoredFile]).decode
encode_list = msgspec.json.Encoder().encode


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
    try:
        version = _decode_version(data).format
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedBackup(f"{place.name}: {key} is damaged ({error}).{_OTHER}") from None
    if version > FORMAT:
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
    try:
        snapshot = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedBackup(f"{place.name}: {key} is damaged ({error}).{_OTHER}") from None
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


def next_id(existing: Sequence[str], now: datetime) -> tuple[str, str]:
    """Id and time of a new snapshot: later than all others, even if a clock was set back."""
    moment = now.astimezone(UTC).replace(microsecond=0)
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
    try:
        return _decode_list(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedBackup(
            f"{objects.place.name}: the object {sha256} lists no files ({error}).{_OTHER}"
        ) from None


def prune(
    place: Place, objects: Objects, keep: int, junk: Iterable[str], jobs: int, progress: Progress
) -> tuple[int, int]:
    """Remove all but the newest snapshots, then what no snapshot needs, as what killed backups
    left, and ``junk``; returns how many snapshots and how many objects went.

    ``objects`` knows all that are there. Nothing goes where a snapshot cannot be read: raises
    OperatorError.
    """
    existing = ids(place)
    gone = existing[:-keep]
    try:
        kept = [load(place, one) for one in existing[-keep:]]
    except OperatorError as error:
        raise OperatorError(
            f"The new snapshot {existing[-1]} is whole, but no old one was removed. {error}"
        ) from error
    for one in gone:
        place.delete(f"{FOLDER}/{one}.json")
    # Or a power cut could bring back a snapshot without its objects.
    place.sync()
    garbage = set(objects.known)
    for digest in _needed(kept, objects, jobs, progress):
        garbage.discard(digest)
    keys = [*junk, *(f"{OBJECTS}/{one.hex()[:2]}/{one.hex()[2:]}" for one in garbage)]
    for done, _ in enumerate(in_parallel(place.delete, keys, jobs)):
        progress("Removing what no snapshot needs", done, len(keys))
    return len(gone), len(keys)


def _needed(
    snapshots: Iterable[Snapshot], objects: Objects, jobs: int, progress: Progress
) -> Iterator[bytes]:
    lists: set[str] = set()
    for snapshot in snapshots:
        lists.update(snapshot.lists.values())
        for file in snapshot.databases:
            yield from map(bytes.fromhex, file.objects)
    yield from map(bytes.fromhex, lists)
    read = in_parallel(lambda sha256: read_list(objects, sha256), lists, jobs)
    for done, files in enumerate(read):
        progress("Looking at snapshots", done, len(lists))
        for file in files:
            yield from map(bytes.fromhex, file.objects)


class Verified(NamedTuple):
    """Ids of the ``snapshots`` of a backup, how many objects they have, how many bytes of these
    are sound, and what is wrong.
    """

    snapshots: list[str]
    objects: int
    bytes: int
    faults: list[str]


def verify(place: Place, jobs: int, progress: Progress) -> Verified:
    """Read every object of every snapshot, and compare it with its hash.

    Raises OperatorError where there is no backup.
    """
    check_is_backup(place)
    objects, found, faults = Objects(place), ids(place), []
    lists: set[str] = set()
    needed: set[str] = set()
    size = 0

    def check(sha256: str, is_list: bool) -> tuple[int, list[str], str]:
        """How large an object is, what it lists, and what is wrong."""
        try:
            data = objects.get(sha256, LIST_BYTES_MAX)
            files = _parse_list(objects, sha256, data) if is_list else []
        except OperatorError as error:
            return 0, [], str(error)
        return len(data), [one for file in files for one in file.objects], ""

    for one in found:
        try:
            snapshot = load(place, one)
        except OperatorError as error:
            faults.append(str(error))
            continue
        lists.update(snapshot.lists.values())
        needed.update(one for file in snapshot.databases for one in file.objects)
    for is_list, wanted in ((True, lists), (False, needed)):
        results = in_parallel(partial(check, is_list=is_list), wanted, jobs)
        for done, (bytes_read, inside, fault) in enumerate(results):
            progress("Verifying", done, len(wanted))
            size += bytes_read
            needed.update(inside)
            faults += [fault] if fault else []
    return Verified(found, len(lists) + len(needed), size, sorted(faults))


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
