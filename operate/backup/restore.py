"""A restore: collect a backup beside its place while verifying it, and put it in place.

A backup does not know what happened after it. So new versions skip every number that may have
been given since (``floor``), and sessions and tokens that may have ended since are ended
(``end_access``).

Everything is collected in the folder ``.restoring`` of the content, and gets its place once it is
verified and on the disk. No command of the hub works on a content with ``.restoring``.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from builder.model.content_tree import RESTORED_FILE, RESTORING
from builder.model.errors import OperatorError, explained
from builder.model.plural import counted
from builder.store import database
from builder.store.locks import build_lock
from builder.store.plain_files import replace_file
from builder.store.privacy import is_marked
from builder.store.restored import read_restored
from builder.store.state import State
from operate.backup.archive import DamagedBackup, read
from operate.backup.floor import floor_above, highest_number
from operate.backup.take import DATABASES, MARKS, STREAM, backups_in
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.write.durable import render
from publisher.write.synced_files import remove


def restore(
    source: str, content: str, state: str, *, complete: bool = False, above: int = 0
) -> list[str]:
    """Put a backup into empty folders; returns what it did, in lines. ``source``: a file, STREAM
    for standard input, or a folder, whose newest backup is taken. ``complete``: nothing happened
    after the backup, so numbers and access continue from it. ``above``: the floor of an earlier
    restore that is noted nowhere.

    Raises OperatorError. After an error or a kill, the same call begins again, unless a kill came
    while the files got their places.
    """
    staged = f"{content}/{RESTORING}"
    then = "Fix that, or choose another backup, and restore again."
    with explained("restore", content, then, is_inside=True), build_lock(state):
        os.makedirs(content, exist_ok=True)
        _check_empty(content, state)
        with contextlib.ExitStack() as failing:
            remove(staged)  # from a killed restore
            failing.callback(shutil.rmtree, staged, ignore_errors=True)
            for folder in (staged, f"{staged}/content", f"{staged}/state"):
                os.mkdir(folder, 0o700)
            lines = [*_collect(source, staged, complete, above)]
            if is_marked(f"{staged}/content"):
                os.chmod(content, 0o700)
            database.remove(State.path_in(state))  # a cache of an old content
            os.sync()
            failing.pop_all()
        for old, new in ((f"{staged}/state", state), (f"{staged}/content", content)):
            for name in os.listdir(old):
                shutil.move(f"{old}/{name}", f"{new}/{name}")
        os.sync()
        remove(staged)
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


def _collect(source: str, staged: str, complete: bool, above: int) -> Iterator[str]:
    """Write the files of a backup into the folder; yields what was done."""
    highest, name, folder = above, "Standard input", ""

    def take(member: str, source: BinaryIO) -> None:
        nonlocal highest
        top, _, path = member.partition("/")
        is_content = top == "content"
        if not (_is_path(path) if is_content else top == "state" and path in DATABASES):
            raise DamagedBackup(
                f"{name} has the path {member[:200]!r}, which no hub has. An attacker may have "
                "changed the backup. Use another one."
            )
        target = f"{staged}/{member}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        private = partial(os.open, mode=0o644 if is_content else 0o600)
        with open(target, "x+b", opener=private) as copy:
            shutil.copyfileobj(source, copy)
            if is_content and path.endswith(".json"):
                copy.seek(0)
                highest = max(highest, highest_number(path, copy.read()))

    if source != STREAM:
        name = os.path.realpath(os.path.expanduser(source))
        if os.path.isdir(name):
            name = [name, *backups_in(name)][-1]
        folder = os.path.dirname(name)
    with sys.stdin.buffer if source == STREAM else open(name, "rb") as file:
        summary = read(file, name, take)
    yield f"Restored the backup of {summary.at}: {counted(summary.prompts, 'prompt')}."
    if os.path.exists(f"{staged}/state/{ACCOUNTS_FILE}"):
        # Raises OperatorError for a database of a newer release.
        with Database(f"{staged}/state") as accounts:
            if not complete:
                yield end_access(accounts, summary.at)
    if not complete:
        yield from _skip_numbers(highest, folder, f"{staged}/content")


def _is_path(path: str) -> bool:
    """True for the path of a file in a content; False for one that leads out of it."""
    parts = path.split("/")
    return path in MARKS or all(part and part[0] != "." and "\0" not in part for part in parts)


def _skip_numbers(highest: int, folder: str, collected: str) -> Iterator[str]:
    """Take a floor for what is collected, and note it beside the backup, in ``folder``."""
    roots = [root for root in (folder, collected) if root]
    restored = floor_above(highest, map(read_restored, roots))
    for root in roots:
        replace_file(f"{root}/{RESTORED_FILE}", render(restored))
    yield f"New versions get numbers from {restored.floor:,} on, so no number is given twice."
    if not folder:
        yield f"To restore this hub again today, add `--above {restored.floor}`."


def end_access(accounts: Database, of: str) -> str:
    """Ends all sessions, invitations, links to teams, and tokens of CI jobs; revokes the personal
    tokens. Notes it in the log of each account. ``of``: the time of the copy, for people. Returns a
    line that counts the sessions, and the personal tokens that were good.

    Raises RequestError ``storage_unavailable``.
    """
    events = Events(accounts)
    with accounts.transaction():
        sessions = accounts.execute("DELETE FROM session RETURNING 1")
        for table in ("invitation", "team_link"):
            accounts.execute(f"DELETE FROM {table}")
        accounts.execute("DELETE FROM token WHERE trusted_publisher IS NOT NULL")
        for (owner,) in accounts.execute("SELECT handle FROM owner"):
            events.note(owner, "restored", note=of)
        tokens = accounts.execute(
            "UPDATE token SET revoked_at = ?1 WHERE revoked_at IS NULL AND expires_at > ?1 "
            "RETURNING 1",
            (epoch_seconds(None),),
        )
    return f"Ended {counted(len(sessions), 'session')}, revoked {counted(len(tokens), 'token')}."
