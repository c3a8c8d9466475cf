"""A restore: verify a backup, collect it beside its place, and put it in place.

A backup does not know what happened after it. So new versions skip every number that may have
been given since (``floor``), and sessions and tokens that may have ended since are ended
(``end_access``).

Everything is collected in the folders ``.restoring`` of the content and ``restoring`` of the state
folder. Once it is on the disk, the report is written there, and then the files get their places, by
renames. No command of the hub works on a content with ``.restoring``. So a restore can be killed at
any moment and run again.
"""

import contextlib
import functools
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from builder.model import errors
from builder.model.content_tree import RESTORED_FILE, RESTORING
from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.store import database
from builder.store.locks import build_lock
from builder.store.plain_files import replace_file
from builder.store.privacy import is_marked
from builder.store.restored import read_restored
from builder.store.state import State
from operate.backup import archive
from operate.backup.floor import floor_above, highest_number
from operate.backup.take import DATABASES, STREAM, backups_in
from operate.backup.tree import MARKS
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.write.rendering import render
from publisher.write.synced_files import remove

_explained = functools.partial(
    errors.explained, "restore", then="Fix that, and run the same command again.", is_inside=True
)


def restore(
    source: str,
    content: str,
    state: str,
    *,
    complete: bool = False,
    above: int = 0,
    on_wait: Callable[[], None] = lambda: None,
) -> list[str]:
    """Put a backup into empty folders; returns what it did, in lines. ``source``: a file, STREAM
    for standard input, or a folder, whose newest backup is taken. ``complete``: nothing happened
    after the backup, so numbers and access continue from it. ``above``: the floor of an earlier
    restore that is noted nowhere.

    Raises OperatorError. After an error or a crash, the same call begins again; or it ends a
    restore that was verified, whatever the source is then.
    """
    staged, beside = f"{content}/{RESTORING}", f"{state}/restoring"
    report = f"{staged}/report"
    with _explained(content), build_lock(state, on_wait):
        os.makedirs(content, exist_ok=True)
        if not os.path.exists(report):
            _check_empty(content, state)
            with contextlib.ExitStack() as failing:
                for folder in (staged, beside):
                    remove(folder)  # from a killed restore
                    failing.callback(shutil.rmtree, folder, ignore_errors=True)
                    os.mkdir(folder, 0o700)
                os.mkdir(f"{staged}/content")
                with _opened(source, staged) as (file, name), archive.telling(name):
                    summary = archive.verify(file, name)
                    highest = _collect(file, name, staged, beside)
                has = f"{counted(summary.prompts, 'prompt')}, {counted(summary.owners, 'owner')}"
                lines = [f"Restored the backup of {summary.at}: {has}."]
                lines += _check_databases(beside, summary.at, complete)
                if not complete:
                    folder = "" if source == STREAM else os.path.dirname(name)
                    lines += _skip_numbers(max(highest, above), folder, f"{staged}/content")
                if is_marked(f"{staged}/content"):
                    os.chmod(content, 0o700)
                os.sync()
                replace_file(report, "\n".join(lines).encode())
                failing.pop_all()
        with open(report) as reading:
            lines = reading.read().split("\n")
        _put_in_place(content, state)
        return lines


def _check_empty(content: str, state: str) -> None:
    """Raises OperatorError if the folders hold anything that the restore would replace."""
    there = [f"{content}/{name}" for name in os.listdir(content) if not name.startswith(".")]
    there += filter(os.path.lexists, (f"{state}/{name}" for name in DATABASES))
    if there:
        raise OperatorError(
            f"{min(there)} exists. Nothing was changed. Stop the hub, move the old folders aside "
            f"(`mv {content} {content}.old`, `mv {state} {state}.old`), and restore again."
        )


@contextlib.contextmanager
def _opened(source: str, staged: str) -> Iterator[tuple[BinaryIO, str]]:
    """The backup and its name; what comes by standard input is stored first."""
    if source == STREAM:
        with open(f"{staged}/stream", "w+b") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
            yield file, "Standard input"
        return os.unlink(f"{staged}/stream")
    path = os.path.realpath(os.path.expanduser(source))
    if os.path.isdir(path):
        path = [path, *backups_in(path)][-1]
    with contextlib.ExitStack() as held:
        with errors.explained("read", path, "Name a file that `hubctl backup` wrote."):
            file = held.enter_context(open(path, "rb"))
        yield file, path


def _collect(file: BinaryIO, name: str, staged: str, beside: str) -> int:
    """Write the files of a backup into the two folders; returns the highest number in them."""
    highest = 0
    for member, source in archive.members(file, name):
        top, _, path = member.partition("/")
        target = f"{staged}/{member}"
        if top == "state" and path in DATABASES:
            target = f"{beside}/{path}"
        elif top != "content" or not _is_path(path):
            raise archive.DamagedBackup(
                f"{name} has the path {member[:200]!r}, which no hub has. An attacker may have "
                "changed the backup. Use another one."
            )
        os.makedirs(os.path.dirname(target), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(target, flags, 0o644 if top == "content" else 0o600), "w+b") as copy:
            shutil.copyfileobj(source, copy)
            if top == "content" and path.endswith(".json"):
                copy.seek(0)
                highest = max(highest, highest_number(path, copy.read()))
    return highest


def _is_path(path: str) -> bool:
    """True for the path of a file in a content; False for one that leads out of it."""
    parts = path.split("/")
    return path in MARKS or all(part and part[0] != "." and "\0" not in part for part in parts)


def _check_databases(folder: str, at: str, complete: bool) -> Iterator[str]:
    """Verify the databases, and end access that may have ended since the backup. Raises
    OperatorError, also for a database of a newer release.
    """
    for name in os.listdir(folder):
        file = DATABASES[name](folder)
        with file.telling(), contextlib.closing(sqlite3.connect(file.path)) as db:
            file.check_sound(db)
    if os.path.exists(f"{folder}/{ACCOUNTS_FILE}"):
        with Database(folder) as accounts:
            if not complete:
                sessions, tokens = end_access(accounts, at)
                yield f"Ended {counted(sessions, 'session')}, revoked {counted(tokens, 'token')}."


def _skip_numbers(highest: int, folder: str, collected: str) -> Iterator[str]:
    """Take a floor for what is collected, and note it beside the backup, in ``folder``."""
    roots = [root for root in (folder, collected) if root]
    restored = floor_above(highest, map(read_restored, roots))
    for root in roots:
        replace_file(f"{root}/{RESTORED_FILE}", render(restored))
    yield f"New versions get numbers from {restored.floor:,} on, so no number is given twice."
    if not folder:
        yield f"To restore this hub again today, add `--above {restored.floor}`."


def _put_in_place(content: str, state: str) -> None:
    """Give the files their places; continues after a kill."""
    database.remove(State.path_in(state))  # a cache of an old content
    staged, beside = f"{content}/{RESTORING}", f"{state}/restoring"
    for old, new in ((beside, state), (f"{staged}/content", content)):
        for name in sorted(os.listdir(old)) if os.path.isdir(old) else ():
            os.rename(f"{old}/{name}", f"{new}/{name}")
    os.sync()
    remove(beside)
    os.rename(staged, f"{staged}.ended")
    remove(f"{staged}.ended")


class Ended(NamedTuple):
    """Counts of the sessions and the personal tokens that were good, and no longer are."""

    sessions: int
    tokens: int


def end_access(database: Database, of: str) -> Ended:
    """Ends all sessions, invitations, links to teams, and tokens of CI jobs; revokes the personal
    tokens. Notes it in the log of each account. ``of``: the time of the copy, for people.

    Raises RequestError ``storage_unavailable``.
    """
    events = Events(database)
    with database.transaction():
        sessions = database.execute("DELETE FROM session RETURNING 1")
        for table in ("invitation", "team_link"):
            database.execute(f"DELETE FROM {table}")
        database.execute("DELETE FROM token WHERE trusted_publisher IS NOT NULL")
        for (owner,) in database.execute("SELECT handle FROM owner"):
            events.note(owner, "restored", note=of)
        revoked = database.execute(
            "UPDATE token SET revoked_at = ?1 WHERE revoked_at IS NULL AND expires_at > ?1 "
            "RETURNING owner, id, name",
            (epoch_seconds(None),),
        )
        for owner, token, name in revoked:
            events.note(owner, "token_revoked", subject=token, note=name)
    return Ended(len(sessions), len(revoked))
