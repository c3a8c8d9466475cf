"""Copies of the databases, except caches, while others write to them."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator

from builder.model.errors import OperatorError
from builder.stats.database import PULLS_FILE, pulls_file
from builder.store import sqlite
from builder.store.sqlite import DatabaseFile
from operate.backup.objects import Objects, StoredFile
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE, accounts_file

# The databases, by the name of their file in the state folder.
FILES: dict[str, Callable[[str], DatabaseFile]] = {
    ACCOUNTS_FILE: accounts_file,
    PULLS_FILE: pulls_file,
}
_BUSY_SECONDS = 30.0


def names(has_accounts: bool) -> set[str]:
    """The names in FILES that a hub uses. If the accounts are elsewhere, a file of accounts is an
    old one, and left out.
    """
    return {name for name in FILES if has_accounts or name != ACCOUNTS_FILE}


def store_databases(state: str, objects: Objects, has_accounts: bool) -> list[StoredFile]:
    """Store the databases of a state folder, each as of one moment. Needs space there for a copy of
    the largest. Raises OperatorError, also for a damaged one.
    """
    stored = []
    for name in sorted(names(has_accounts)):
        file = FILES[name](state)
        if os.path.lexists(file.path):
            with _copied(file) as copy, open(copy, "rb") as opened:
                stored.append(objects.put_file(name, opened))
    return stored


@contextlib.contextmanager
def _copied(file: DatabaseFile) -> Iterator[str]:
    """The path of a copy, which exists while the context lasts."""
    folder = f"{file.path}.backup"
    with file.telling(), contextlib.ExitStack() as undone:
        undone.callback(shutil.rmtree, folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)  # from a killed backup
        os.mkdir(folder, 0o700)
        copy = f"{folder}/copy"
        with (
            contextlib.closing(sqlite.open_for_reading(file.path, timeout=_BUSY_SECONDS)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
            file.check_sound(target)
        yield copy


def check_unused(state: str) -> None:
    """Raises OperatorError if another process has a database of the state folder open."""
    for make in FILES.values():
        path = make(state).path
        if not os.path.exists(path):
            continue
        # SQLite removes the write-ahead log only when no other connection is open
        # (https://www.sqlite.org/wal.html).
        try:
            with contextlib.closing(sqlite3.connect(path, timeout=0)) as db:
                db.execute("PRAGMA journal_mode = DELETE").fetchall()
        except sqlite3.Error as error:  # otherwise it is damaged, not in use
            if sqlite.primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise OperatorError(
                    f"Another process uses {path}. Stop `hubctl serve` and all other commands of "
                    "this hub, then try again."
                ) from error
