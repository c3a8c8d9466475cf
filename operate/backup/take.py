"""A backup: one stream into a file, a folder of dated files, or a pipe."""

import contextlib
import glob
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from builder import installed_version
from builder.model.errors import OperatorError, explained
from builder.model.records import format_time
from builder.stats.database import PULLS_FILE, pulls_file
from builder.store import sqlite
from builder.store.content import check_folder
from builder.store.locks import lock
from builder.store.sqlite import DatabaseFile
from operate.backup.archive import DamagedBackup, Summary, Writer, read_summary
from operate.backup.tree import add_content
from publisher.accounts.copying import copy_accounts
from publisher.accounts.database import Database
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE, accounts_file
from publisher.sizes import last_backup_file
from publisher.write.synced_files import sync_folder, unlink

STREAM = "-"
# The databases of a state folder that are no caches, by the names of their files.
DATABASES: dict[str, Callable[[str], DatabaseFile]] = {
    ACCOUNTS_FILE: accounts_file,
    PULLS_FILE: pulls_file,
}
_COUNTED = {ACCOUNTS_FILE: "owner", PULLS_FILE: "repo"}
_BUSY_SECONDS = 30.0
# What stays in a folder: the newest file of each of the last hours, days and months that have any.
# With the length of the names that these share.
_KEPT = ((24, len("hub-20260131T09")), (30, len("hub-20260131")), (12, len("hub-202601")))
_LOST = {"prompts": "prompts", "owners": "accounts", "pulled": "counts of pulls"}
_THEN = "Fix that, and back up again. Older backups are whole."


class BackupReport(NamedTuple):
    """``file``: the path of the backup, or STREAM. ``thinned``: the number of old files that were
    removed. ``skipped``: as of ``add_content``.
    """

    file: str
    prompts: int
    files: int
    bytes: int
    thinned: int
    skipped: list[str]


def back_up(
    content: str,
    state: str,
    destination: str,
    *,
    apart_from: Iterable[str] = (),
    database_url: str | None = None,
    on_wait: Callable[[], None] = lambda: None,
) -> BackupReport:
    """Back up a hub to a file, into a folder, or to standard output (STREAM), while others publish.

    ``database_url``: of the accounts, if they are not in the state folder. ``apart_from``: folders
    in which no backup may be. ``on_wait`` is called if another backup has to end first. Raises
    OperatorError; then all files are as they were, and a stream is incomplete.
    """
    check_folder(content)
    with lock(f"{state}/backup", on_wait):
        moment_ns, now = time.time_ns(), datetime.now(UTC)
        path, folder = _place(destination, apart_from)
        older = backups_in(folder) if folder else [path]
        path = f"{folder}/hub-{now:%Y%m%dT%H%M%SZ}.tar" if folder else path
        # Content before databases. A publication in between leaves its answer in the backup without
        # its version, and a retry publishes it again. In the other order, the version would be in
        # the backup without its answer, and a retry would publish it twice.
        with _created(path) as file:
            writer = Writer(file, path)
            prompts, skipped = add_content(content, writer, moment_ns)
            counts = [_add_database(state, name, database_url, writer) for name in DATABASES]
            summary = Summary(format_time(now), installed_version(), prompts, *counts)
            _check_not_lost(summary, [*reversed(older), last_backup_file(state)])
            writer.end(summary)
        with _created(last_backup_file(state)) as note:
            Writer(note, last_backup_file(state)).end(summary)
        thinned = _thin([*older, path]) if folder else 0
    return BackupReport(path, prompts, writer.files, writer.bytes, thinned, skipped)


def backups_in(folder: str) -> list[str]:
    """The paths of the backups in a folder, oldest first. Raises OperatorError."""
    with explained("read", folder, _THEN):
        names = sorted(os.listdir(folder))
    return [f"{folder}/{name}" for name in names if name[:5] == "hub-2" and name[-4:] == ".tar"]


def _place(destination: str, apart_from: Iterable[str]) -> tuple[str, str | None]:
    """The path of the destination, and again if it is a folder. Raises OperatorError."""
    if destination == STREAM:
        return STREAM, None
    if "://" in destination:
        raise OperatorError(
            f"A backup is a file, so it cannot go to {destination}. Write it into a folder, "
            "and copy that with restic or rclone: docs/operate/backups.md."
        )
    path = os.path.realpath(os.path.expanduser(destination))
    for other in map(os.path.realpath, apart_from):
        if os.path.commonpath([other, path]) == other:
            raise OperatorError(
                f"The backup {destination} would be in {other}, which it is a backup of. Choose a "
                "place outside, best on another disk."
            )
    with explained("write into", path, _THEN):
        if not destination.endswith("/") and not os.path.isdir(path):
            return path, None
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path, path


@contextlib.contextmanager
def _created(path: str) -> Iterator[BinaryIO]:
    """A private file, which gets its name when it is whole; or standard output."""
    with explained("write", path, _THEN), contextlib.ExitStack() as failing:
        if path == STREAM:
            yield sys.stdout.buffer
            return sys.stdout.buffer.flush()
        part = f"{path}.part"
        unlink(part)  # of a killed backup
        opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        failing.callback(unlink, part)
        with open(opened, "wb") as file:
            yield file
            file.flush()
            os.fsync(opened)
        os.rename(part, path)
        sync_folder(os.path.dirname(path) or ".")
        failing.pop_all()


def _add_database(state: str, name: str, url: str | None, writer: Writer) -> int:
    """Add a database as of one moment; returns the number of owners or of prompts with pulls. Adds
    accounts in PostgreSQL as a file of SQLite. Raises OperatorError, also for a damaged one.
    """
    file, is_shared = DATABASES[name](state), bool(url) and name == ACCOUNTS_FILE
    if not is_shared and not os.path.lexists(file.path):
        return 0
    folder = f"{state}/backup.copy"
    shutil.rmtree(folder, ignore_errors=True)  # from a killed backup
    with contextlib.ExitStack() as held, file.telling():
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        os.mkdir(folder, 0o700)
        if is_shared:
            with Database(url) as shared, Database(folder) as target:
                copy_accounts(shared, target)
        copy = held.enter_context(contextlib.closing(sqlite3.connect(f"{folder}/{name}")))
        if not is_shared:
            reading = sqlite.open_for_reading(file.path, timeout=_BUSY_SECONDS)
            with contextlib.closing(reading) as source:
                source.backup(copy)
        file.check_sound(copy)
        with open(f"{folder}/{name}", "rb") as opened:
            writer.add(f"state/{name}", opened, os.fstat(opened.fileno()).st_size)
        return copy.execute(f"SELECT count(*) FROM {_COUNTED[name]}").fetchone()[0]


def _check_not_lost(now: Summary, earlier: list[str]) -> None:
    """Raises OperatorError if all prompts, accounts or counts of the last backup are gone: further
    backups would displace those that have them.
    """
    for path in earlier:
        with contextlib.suppress(OSError, DamagedBackup), open(path, "rb") as file:
            last = read_summary(file, path)
            if lost := [_LOST[key] for key in _LOST if getattr(last, key) > getattr(now, key) == 0]:
                raise OperatorError(
                    f"The backup of {last.at} has {' and '.join(lost)}, and this hub has none. "
                    "Nothing was backed up. Check --content, --state and --database, and that "
                    "their disks are mounted; restore what is lost. To start over, back up to "
                    f"another place, and remove {earlier[-1]}."
                )
            return


def _thin(paths: list[str]) -> int:
    """Remove old backups of a folder, but not the last path; returns how many."""
    kept, folder = {paths[-1]}, os.path.dirname(paths[-1])
    for count, length in _KEPT:
        newest = {path[: len(folder) + 1 + length]: path for path in sorted(paths)}
        kept.update([*newest.values()][-count:])
    old = {*paths} - kept
    with explained("remove old backups in", folder, _THEN):
        for path in old | {*glob.glob(f"{glob.escape(folder)}/hub-2*.tar.part")}:
            os.unlink(path)
    return len(old)
