"""A restore: choose a snapshot, collect and verify it, put it in place.

A snapshot does not know what happened after it. So new versions skip every number that may have
been given since (``floor``), and sessions and tokens that may have ended since are ended
(``distrust``).
"""

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable
from typing import NamedTuple

from builder.model.errors import ContentError, OperatorError
from builder.model.version_files import FOLDER_SUFFIX
from builder.store.content import FORMAT_FILE
from builder.store.locks import build_lock
from builder.store.restored import RESTORED_FILE, Restored, read_restored
from operate.backup import databases, snapshots
from operate.backup.floor import highest_number, take_floor
from operate.backup.objects import DamagedBackup, Objects, StoredFile
from operate.backup.places import Place
from operate.backup.snapshots import Snapshot
from operate.backup.staging import Staging, explained, write_file
from operate.folders import lock
from operate.parallel import Work
from publisher.accounts.database import Database
from publisher.accounts.people.distrust import Ended, end_access
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.write.durable import FORMAT_TEXT
from publisher.write.rendering import render


class Options(NamedTuple):
    """``snapshot_id``: None for the newest. ``complete``: nothing happened after the snapshot, so
    numbers and access continue from it. ``revoke_tokens``: also personal ones. ``replace``: move
    the old files aside. ``accounts``: the URL of their database if they are not in the state
    folder.
    """

    snapshot_id: str | None = None
    complete: bool = False
    revoke_tokens: bool = True
    replace: bool = False
    accounts: str | None = None


class Report(NamedTuple):
    """The result of a restore. ``floor``: of new numbers; 0: they continue from the snapshot's.
    ``ended``: sessions and tokens; None: all are valid as before. ``aside``: folders with the old
    files.
    """

    id: str
    at: str
    files: int
    bytes: int
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

    Raises OperatorError. Until everything is collected and verified, it changes only the folders
    for that; after an error or a crash, the same call continues.
    """
    started = time.perf_counter()
    snapshot = snapshots.choose(place, options.snapshot_id)
    for file in snapshot.databases:
        if file.path not in databases.FILES:
            raise DamagedBackup(
                f"{place.name}: the snapshot has a database {file.path!r}, which no hub has."
            )
    ended, floor = None, 0
    with lock(f"{state}/backup", on_wait):
        databases.check_unused(state)
        with build_lock(state, on_wait):
            staging = Staging(content, state, snapshot.id)
            if staging.is_filling:
                if not options.replace:
                    staging.check_empty()
                highest = _fill(place, snapshot, staging.files, work)
                ended = _fill_databases(place, snapshot, staging.databases, options)
                if not options.complete:
                    floor = _skip_numbers(place, highest, content, staging.files)
                staging.give_to_owners()
                if options.accounts:
                    ended = _end_access(options.accounts, snapshot, options)
            aside = staging.put_in_place()
    return Report(
        snapshot.id,
        snapshot.at,
        snapshot.files,
        snapshot.bytes,
        floor,
        ended,
        aside,
        time.perf_counter() - started,
    )


def _fill(place: Place, snapshot: Snapshot, root: str, work: Work) -> int:
    """Collect the content, except files that a killed restore has collected; returns its highest
    number. If versions have files, writes the format of the content that older releases refuse.
    """
    objects = Objects(place)
    with contextlib.suppress(FileNotFoundError):  # from a killed restore
        os.unlink(f"{root}/{RESTORED_FILE}")

    def fill(sha256: str) -> tuple[int, int]:
        highest = 0
        files = snapshots.read_list(objects, sha256)
        for file in files:
            _check_path(place, file.path)
            path = f"{root}/{file.path}"
            if not _has(path, file):
                write_file(path, objects.read(file))
            if path.endswith(".json"):
                with open(path, "rb") as opened:
                    highest = max(highest, highest_number(file.path, opened.read()))
        if any(f"{FOLDER_SUFFIX}/" in file.path for file in files):
            write_file(f"{root}/{FORMAT_FILE}", [FORMAT_TEXT])
        return highest, len(files)

    results = [*work.each("Restoring", fill, snapshot.lists.values())]
    listed = sum(count for _, count in results) + len(snapshot.databases)
    if listed != snapshot.files:
        raise DamagedBackup(
            f"{place.name}: snapshot {snapshot.id} has {snapshot.files:,} files, and lists "
            f"{listed:,}. Restore another snapshot."
        )
    return max((highest for highest, _ in results), default=0)


def _check_path(place: Place, path: str) -> None:
    """Raises DamagedBackup for a path that leads out of the content."""
    if not all(part and part[0] != "." and "\0" not in part for part in path.split("/")):
        raise DamagedBackup(
            f"{place.name}: the snapshot has the path {path[:200]!r}, which no content has. "
            "An attacker may have changed the backup. Restore another snapshot."
        )


def _has(path: str, file: StoredFile) -> bool:
    """True if a killed restore has collected the file."""
    with explained(path), contextlib.suppress(FileNotFoundError), open(path, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
    return False


def _fill_databases(
    place: Place, snapshot: Snapshot, folder: str, options: Options
) -> Ended | None:
    """Collect the databases, verify them, and end access that may have ended since."""
    objects, ended = Objects(place), None
    for file in snapshot.databases:
        if file.path not in databases.names(has_accounts=not options.accounts):
            continue
        path = f"{folder}/{file.path}"
        write_file(path, objects.read(file), mode=0o600)
        kind = databases.FILES[file.path](folder)
        # The last connection removes the write-ahead log when it closes
        # (https://www.sqlite.org/wal.html).
        with kind.telling(), contextlib.closing(sqlite3.connect(path)) as db:
            kind.check_sound(db)
        if file.path == ACCOUNTS_FILE:
            ended = _end_access(folder, snapshot, options)
    return ended


def _end_access(where: str, snapshot: Snapshot, options: Options) -> Ended | None:
    # Opening a database also rejects one of a newer release.
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
