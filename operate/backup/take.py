"""A backup: one stream into a file, a folder of dated files, or a pipe.

It has the content as of one moment, while others publish. A prompt's folder is listed under the
lock that publications take, so its texts, records, labels and withdrawals belong together. What
began after the moment is left out. Files of content are never written in place, so they can be read
after that. A withdrawal may remove some meanwhile; its own file is read last, and then readers of
the backup ignore the texts that it withdraws.
"""

import contextlib
import glob
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from builder import installed_version
from builder.model import content_tree as table
from builder.model.errors import OperatorError, explained
from builder.model.plural import counted
from builder.model.records import format_time
from builder.stats.database import PULLS_FILE, pulls_file
from builder.store import sqlite
from builder.store.content import check_folder
from builder.store.locks import lock
from operate.backup.archive import Summary, Writer, read_summary
from publisher.accounts.database import Database, copy_accounts
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE, accounts_file
from publisher.sizes import last_backup_file
from publisher.write.synced_files import remove, sync_folder, unlink

STREAM = "-"
# The databases of a state folder that are no caches, by the names of their files.
DATABASES = {ACCOUNTS_FILE: accounts_file, PULLS_FILE: pulls_file}
# Files of the content whose names start with a dot, and which belong to a backup.
MARKS = (table.FORMAT_FILE, table.PRIVATE_FILE)
# What stays in a folder: the newest file of each of the last hours, days and months that have any.
# With the length of the names that these share.
_KEPT = ((24, len("hub-20260131T09")), (30, len("hub-20260131")), (12, len("hub-202601")))
_THEN = "Fix that, and back up again. Older backups are whole."
_GONE = (FileNotFoundError, NotADirectoryError)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def back_up(
    content: str,
    state: str,
    destination: str,
    *,
    apart_from: Iterable[str] = (),
    database_url: str | None = None,
) -> str:
    """Back up a hub to a file, into a folder, or to standard output (STREAM), while others publish;
    returns a line that says where, and what it has.

    ``database_url``: of the accounts, if they are not in the state folder. ``apart_from``: folders
    in which no backup may be. Waits for the end of another backup. Raises OperatorError; then all
    files are as they were, and a stream is incomplete.
    """
    check_folder(content)
    with lock(f"{state}/backup", lambda: None):
        moment_ns, now = time.time_ns(), datetime.now(UTC)
        path, folder = _place(destination, apart_from)
        last = path if not folder else next(reversed(backups_in(folder)), "")
        path = f"{folder}/hub-{now:%Y%m%dT%H%M%SZ}.tar" if folder else path
        # Content before databases. A publication in between leaves its answer in the backup without
        # its version, and a retry publishes it again. In the other order, the version would be in
        # the backup without its answer, and a retry would publish it twice.
        with _created(path) as file:
            writer = Writer(file, path)
            prompts = add_content(content, writer, moment_ns)
            added = [one for one in DATABASES if _add_database(state, one, database_url, writer)]
            summary = Summary(format_time(now), installed_version(), prompts, added)
            _check_not_lost(summary, last)
            writer.end(summary)
        with explained("write", state, _THEN):
            Path(last_backup_file(state)).touch()
        if folder:
            _thin(folder, path)
    return f"{path}: {counted(prompts, 'prompt')}"


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
            f"A backup cannot go to {destination}. Write it into a folder, and copy that with "
            "restic or rclone: docs/operate/backups.md."
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
    with explained("write", path, _THEN), contextlib.ExitStack() as ending:
        if path == STREAM:
            yield sys.stdout.buffer
            return sys.stdout.buffer.flush()
        part = f"{path}.part"
        unlink(part)  # of a killed backup
        ending.callback(unlink, part)
        with open(part, "xb", opener=partial(os.open, mode=0o600)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, path)
        sync_folder(os.path.dirname(path))


def _add_database(state: str, name: str, url: str | None, writer: Writer) -> bool:
    """Add a database as of one moment, accounts in PostgreSQL as a file of SQLite; returns False if
    there is none. Raises OperatorError, also for a damaged one.
    """
    file, is_shared = DATABASES[name](state), bool(url) and name == ACCOUNTS_FILE
    if not is_shared and not os.path.lexists(file.path):
        return False
    folder = f"{state}/backup.copy"
    with contextlib.ExitStack() as held, file.telling():
        remove(folder)  # from a killed backup
        held.callback(remove, folder)
        os.mkdir(folder, 0o700)
        if is_shared:
            with Database(url) as shared, Database(folder) as target:
                copy_accounts(shared, target)
        copy = held.enter_context(contextlib.closing(sqlite3.connect(f"{folder}/{name}")))
        if not is_shared:
            source = held.enter_context(contextlib.closing(sqlite.open_for_reading(file.path)))
            source.backup(copy)
        file.check_sound(copy)
        with open(f"{folder}/{name}", "rb") as opened:
            writer.add(f"state/{name}", opened, os.fstat(opened.fileno()).st_size)
    return True


def _check_not_lost(now: Summary, last: str) -> None:
    """Raises OperatorError if all prompts or a database of the last backup are gone: further
    backups would displace those that have them.
    """
    if not (before := read_summary(last)):
        return
    lost = ["prompts"] if before.prompts > now.prompts == 0 else []
    if lost := lost + [one for one in before.databases if one not in now.databases]:
        raise OperatorError(
            f"The backup {last} has {' and '.join(lost)}, and this hub has none. Nothing was "
            "backed up. Check that --content and --state are right and their disks mounted; to "
            "start over, back up to another place."
        )


def _thin(folder: str, newest: str) -> None:
    """Remove old backups of a folder, but not ``newest``."""
    paths = backups_in(folder)
    kept = {newest}
    for count, length in _KEPT:
        last = {path[: len(folder) + 1 + length]: path for path in paths}
        kept.update([*last.values()][-count:])
    killed = glob.glob(f"{glob.escape(folder)}/hub-2*.tar.part")
    with explained("remove old backups in", folder, _THEN):
        for path in {*paths, *killed} - kept:
            os.unlink(path)


def add_content(root: str, writer: Writer, moment_ns: int) -> int:
    """Add the content as of a moment (epoch nanoseconds) to a backup; returns the number of
    prompts. Leaves out what is no plain file or folder, and names that are not UTF-8: no content
    has such. Raises OperatorError.
    """
    prompts = 0
    with explained("back up", root, "Run this as the hub's user.", is_inside=True):
        for name in MARKS:
            _add(root, name, writer)
        for owner, is_owner in _scan(root, ""):
            for path, is_prompt in _scan(root, owner) if is_owner else [(owner, False)]:
                prompts += is_prompt
                for file in _files_of(root, path, moment_ns) if is_prompt else [path]:
                    _add(root, file, writer)
    return prompts


def _files_of(root: str, folder: str, moment_ns: int) -> Iterator[str]:
    """Yields the files of a prompt, without versions and moves of labels that began after the
    moment; its withdrawals last.
    """
    withdrawals, at = f"{folder}/{table.WITHDRAWN}", len(folder) + 1
    found = {path: table.in_repo(path[at:]) or (None, None) for path in _list(root, folder)}
    now_ns, later = time.time_ns(), set()
    for path, (kind, value) in found.items():
        with contextlib.suppress(*_GONE):
            # A time that is still to come says nothing: some clock was wrong.
            is_record = kind in (table.RECORD, table.LABEL)
            if is_record and moment_ns < os.stat(f"{root}/{path}").st_mtime_ns <= now_ns:
                later.add(value)
    for path, (_, value) in found.items():
        if value not in later and not path.startswith(f"{withdrawals}/"):
            yield path
    for path, _ in _scan(root, withdrawals):
        yield path


def _list(root: str, folder: str) -> list[str]:
    """The files of a prompt, in order; none if it no longer exists. Raises OSError."""
    with contextlib.suppress(*_GONE), sqlite.folder_lock(f"{root}/{folder}"):
        before, found = None, [*_walk(root, folder)]
        # A node applies changes without this lock, but in order. If a second look finds the same
        # files, none is missing to which another one refers.
        while before != found and os.path.lexists(f"{root}/{table.STORE_FILE}"):
            before, found = found, [*_walk(root, folder)]
        return found
    return []


def _walk(root: str, folder: str) -> Iterator[str]:
    for path, is_folder in _scan(root, folder):
        yield from _walk(root, path) if is_folder else [path]


def _scan(root: str, folder: str) -> list[tuple[str, bool]]:
    """The path of each file and folder in a folder, and True for a folder, in order."""
    found = []
    with contextlib.suppress(*_GONE), os.scandir(f"{root}/{folder}") as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_plain = is_folder or entry.is_file(follow_symlinks=False)
            is_utf8 = entry.name.encode(errors="replace").decode() == entry.name
            if is_plain and is_utf8 and entry.name[0] != ".":
                found.append((f"{folder}/{entry.name}".lstrip("/"), is_folder))
    return sorted(found)


def _add(root: str, path: str, writer: Writer) -> None:
    """Add a plain file, unless a withdrawal has removed it."""
    with contextlib.suppress(*_GONE), open(os.open(f"{root}/{path}", _READ), "rb", 0) as file:
        status = os.fstat(file.fileno())
        writer.add(f"content/{path}", file, status.st_size, int(status.st_mtime))
