"""One restore: choose a snapshot, collect and verify it, put it in place.

A snapshot does not know what happened after it. New versions skip every number that can have been
given since (``floor``). Sessions and tokens that have ended since stay ended (``distrust``).
"""

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from builder.model.errors import ContentError, OperatorError
from builder.store.locks import build_lock
from builder.store.restored import RESTORED_FILE, Restored, read_restored
from operate.backup import databases, snapshots
from operate.backup.floor import highest_number, take_floor
from operate.backup.objects import DamagedBackup, Objects, StoredFile
from operate.backup.places import Place
from operate.backup.snapshots import Snapshot
from operate.backup.staging import Staging, unusable, write_file
from operate.folders import lock
from operate.parallel import Work
from publisher.accounts.database import Database
from publisher.accounts.people.distrust import Ended, end_access
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.write.rendering import render

NAME_BYTES_MAX = 255
# Of a path in the content: owner, prompt, folder, file, and some room for what others put there.
DEPTH_MAX = 16


class Options(NamedTuple):
    """``snapshot_id`` and ``at`` as in ``snapshots.choose``. ``complete``: nothing happened after
    the snapshot, so numbers and access continue from it. ``revoke_tokens``: also personal ones.
    ``replace``: put aside what is there. ``accounts``: the URL of their database, where they are
    not in the state folder.
    """

    snapshot_id: str | None = None
    at: datetime | None = None
    complete: bool = False
    revoke_tokens: bool = True
    replace: bool = False
    accounts: str | None = None


class Report(NamedTuple):
    """The result of a restore. ``fetched``: files that no killed restore had collected.
    ``floor``: of new numbers; 0: they continue from the snapshot's. ``ended``: sessions and
    tokens; None: all are valid as before. ``aside``: folders with what was there before.
    """

    id: str
    at: str
    files: int
    bytes: int
    fetched: int
    floor: int
    ended: Ended | None
    aside: list[str]
    seconds: float


def restore(
    place: Place,
    content: str,
    state: str,
    options: Options,
    *,
    work: Work,
    on_wait: Callable[[], None] = lambda: None,
) -> Report:
    """Put a snapshot in place of the content and the databases.

    Raises OperatorError. Until everything is collected and verified, nothing but the folders for
    that is touched; after an error or a crash, the same call goes on.
    """
    started = time.perf_counter()
    snapshot = snapshots.choose(place, options.snapshot_id, options.at)
    for file in snapshot.databases:
        if file.path not in databases.FILES:
            raise DamagedBackup(
                f"{place.name}: the snapshot has a database {file.path!r}, which no hub has."
            )
    ended, floor, fetched = None, 0, 0
    with (
        place.lock(on_wait, shared=True),
        lock(f"{state}/restore", on_wait),
        lock(f"{state}/backup", on_wait),
    ):
        databases.check_unused(state)
        with build_lock(state, on_wait):
            staging = Staging(content, state, snapshot.id)
            if staging.stage == "filling":
                if not options.replace:
                    staging.check_empty()
                highest, fetched = _fill(place, snapshot, staging.files, work)
                staging.begin_adding()
                ended = _fill_databases(place, snapshot, staging.databases, options)
                if not options.complete:
                    floor = _skip_numbers(place, highest, content, staging.files)
                staging.give_to_owners()
                if options.accounts:
                    ended = _end_access(options.accounts, snapshot, options)
            aside = staging.put_in_place()
    return Report(
        snapshot.id, snapshot.at, snapshot.files, snapshot.bytes, fetched, floor, ended, aside,
        time.perf_counter() - started,
    )  # fmt: skip


def _fill(place: Place, snapshot: Snapshot, root: str, work: Work) -> tuple[int, int]:
    """Collect the content; returns its highest number, and how many files were not there yet."""
    objects = Objects(place)

    def fill(sha256: str) -> tuple[int, int, int]:
        highest = fetched = 0
        files = snapshots.read_list(objects, sha256)
        for file in files:
            _check_path(place, file.path)
            path = f"{root}/{file.path}"
            if not _has(path, file):
                write_file(path, objects.read(file))
                fetched += 1
            highest = max(highest, _highest_in(path, file))
        return highest, fetched, len(files)

    results = [*work.each("Restoring", fill, snapshot.lists.values())]
    listed = sum(count for _, _, count in results) + len(snapshot.databases)
    if listed != snapshot.files:
        raise DamagedBackup(
            f"{place.name}: snapshot {snapshot.id} has {snapshot.files:,} files, and lists "
            f"{listed:,}. Restore another snapshot."
        )
    return max((one for one, _, _ in results), default=0), sum(one for _, one, _ in results)


def _highest_in(path: str, file: StoredFile) -> int:
    if not path.endswith(".json"):
        return 0
    with open(path, "rb") as opened:
        return highest_number(file.path, opened.read())


def _fill_databases(
    place: Place, snapshot: Snapshot, folder: str, options: Options
) -> Ended | None:
    """Collect the databases, check them, and let nobody in who may not be any more."""
    objects = Objects(place)
    files = databases.kinds(has_accounts=not options.accounts)
    there = [file for file in snapshot.databases if file.path in files]
    for file in there:
        path = f"{folder}/{file.path}"
        write_file(path, objects.read(file), mode=0o600)
        kind = files[file.path](folder)
        with kind.telling(), contextlib.closing(sqlite3.connect(path)) as db:
            kind.check_sound(db)
            # The last one to close it takes its write-ahead log away.
    if not any(file.path == ACCOUNTS_FILE for file in there):
        return None
    return _end_access(folder, snapshot, options)


def _end_access(where: str, snapshot: Snapshot, options: Options) -> Ended | None:
    # Opening it also refuses what a newer release has made.
    with Database(where) as database:
        if options.complete:
            return None
        return end_access(database, snapshot.at, tokens=options.revoke_tokens)


def _skip_numbers(place: Place, highest: int, content: str, files: str) -> int:
    """Take a floor for the content in ``files``, which will replace ``content``."""
    restored = take_floor(place, highest, [_restored_in(content), _restored_in(files)])
    write_file(f"{files}/{RESTORED_FILE}", [render(restored)])
    return restored.floor


def _restored_in(root: str) -> Restored | None:
    try:
        return read_restored(root)
    except ContentError as error:
        raise OperatorError(
            f"{error} It says which numbers an earlier restore took. Repair it, and restore again."
        ) from error


def _check_path(place: Place, path: str) -> None:
    """Raises DamagedBackup for a path that does not stay in the content."""
    parts = path.split("/")
    if len(parts) > DEPTH_MAX or not all(
        part and part[0] != "." and "\0" not in part and len(part.encode()) <= NAME_BYTES_MAX
        for part in parts
    ):
        raise DamagedBackup(
            f"{place.name}: the snapshot has the path {path[:200]!r}, which no content has. "
            "Somebody may have changed the backup. Restore another snapshot."
        )


def _has(path: str, file: StoredFile) -> bool:
    """Whether a file was collected already."""
    try:
        with open(path, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable(path, error) from error
