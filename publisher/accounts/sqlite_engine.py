"""The accounts database in SQLite: a file in the state folder, but not a cache.

Its content exists nowhere else. So a commit waits for the disk, and a file that cannot be used is
reported, never replaced. Several processes may have it open at once; the threads of one share a
connection and take turns.
"""

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from builder.model.errors import RequestError
from builder.store import sqlite
from builder.store.sqlite import DatabaseFile
from publisher.accounts.schema import ACCOUNTS_ERRORS, SCHEMA_VERSION, upgrade

ACCOUNTS_FILE = "accounts.sqlite3"
BUSY_SECONDS = 10.0

log = logging.getLogger("hub.accounts")

_REMEDIES = {
    sqlite3.SQLITE_FULL: "Free disk space or tell the operator, then try again",
    sqlite3.SQLITE_READONLY: "Give this service write access to the state folder, then restart it",
    sqlite3.SQLITE_CANTOPEN: "Give this service write access to the state folder, then restart it",
    sqlite3.SQLITE_PERM: "Give this service write access to the state folder, then restart it",
    sqlite3.SQLITE_IOERR: "Check the disk, then try again",
    sqlite3.SQLITE_BUSY: "Another process is using it. Try again",
    sqlite3.SQLITE_LOCKED: "Another process is using it. Try again",
}


def accounts_file(folder: str) -> DatabaseFile:
    """Returns the database of a state folder."""
    return DatabaseFile(
        f"{folder}/{ACCOUNTS_FILE}",
        "accounts",
        "the owners and tokens",
        "create owners and tokens again",
    )


class SqliteEngine:
    """The accounts database of a state folder; creates both where they are missing."""

    def __init__(self, state_folder: str) -> None:
        # Reentrant: code in a transaction may call functions that open one of their own.
        self._turn = threading.RLock()
        self._file = accounts_file(state_folder)
        self.path = self._file.path
        with self._file.telling():
            os.makedirs(state_folder, exist_ok=True)
            # SQLite does not wait for another process that changes the file to WAL at the same
            # time.
            with sqlite.folder_lock(state_folder), contextlib.ExitStack() as failing:
                sqlite.make_private(self.path)
                self._db = sqlite3.connect(
                    self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
                )
                failing.callback(self._db.close)
                self._inode = os.stat(self.path)
                self._prepare()
                failing.pop_all()

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]:
        with self._turn, self._telling():
            self._check_in_place()
            return self._db.execute(sql, args).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with self._turn:
            if self._db.in_transaction:
                yield
                return
            self.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                # With a full disk, SQLite itself may have rolled back
                # (https://www.sqlite.org/lang_transaction.html, "Response To Errors Within A
                # Transaction").
                if self._db.in_transaction:
                    with self._telling():
                        self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._turn:
            self._db.close()

    def _prepare(self) -> None:
        db = self._db
        ((version,),) = db.execute("PRAGMA user_version")
        ((tables,),) = db.execute("SELECT count(*) FROM sqlite_master")
        self._file.check_version(version, SCHEMA_VERSION, is_ours=version > 0 or not tables)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
        if version == SCHEMA_VERSION:
            return
        # An error closes the file, which rolls back.
        db.execute("BEGIN IMMEDIATE")
        upgrade(version, db.execute, lambda *statement: db.execute(*statement).fetchall())
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute("COMMIT")
        if version:
            fields = {"file": ACCOUNTS_FILE, "from_version": version, "to_version": SCHEMA_VERSION}
            log.info("upgrade", extra={"fields": fields})

    def _check_in_place(self) -> None:
        # SQLite would continue to use a file that was deleted or replaced
        # (https://www.sqlite.org/howtocorrupt.html). A token that is revoked in the new file would
        # stay good here.
        with contextlib.suppress(OSError):
            if os.path.samestat(self._inode, os.stat(self.path)):
                return
        ACCOUNTS_ERRORS.count()
        raise RequestError(
            "storage_unavailable",
            "The accounts database was deleted, replaced or became unreadable while in use. "
            "Restore it if that was a mistake, then restart this service.",
        )

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            ACCOUNTS_ERRORS.count()
            primary = sqlite.primary_code(error)
            if primary in sqlite.DAMAGE:
                raise self._file.damaged(str(error)) from error
            if primary not in _REMEDIES:
                raise
            raise RequestError(
                "storage_unavailable",
                f"Cannot use the accounts database: {error}. {_REMEDIES[primary]}.",
            ) from error
