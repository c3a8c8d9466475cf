"""The accounts database in SQLite: a file in the state folder, but not a cache.

Its content exists nowhere else. So a commit waits for the disk, and a file that cannot be used is
reported, never replaced. Several processes may have it open at once; the threads of one share a
connection and take turns.
"""

import contextlib
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from builder.model.errors import OperatorError, RequestError
from builder.store import sqlite
from builder.store.shortage import disk_remedy
from builder.store.sqlite import DatabaseFile
from publisher.accounts.schema import ACCOUNTS_ERRORS, SCHEMA_VERSION, upgrade

ACCOUNTS_FILE = "accounts.sqlite3"
BUSY_SECONDS = 10.0

# The shortest time between two attempts to open a database that could not be opened.
AGAIN_SECONDS = 1.0
MISSING = (
    "The accounts database is missing, so publishing and sign-in are stopped; reads continue. "
    "Restore it from a backup. If this hub never had accounts, create an owner with `hubctl owner "
    "add`; to begin anew, restart the service with --new-accounts."
)
_UNUSABLE = (
    "The accounts database cannot be opened, so publishing and sign-in are stopped; reads "
    "continue. The log has the cause; this service tries again by itself."
)

log = logging.getLogger("hub.accounts")

_NO_ACCESS = "Give this service write access to the state folder"
_REMEDIES = {
    sqlite3.SQLITE_FULL: "Free disk space",
    sqlite3.SQLITE_READONLY: _NO_ACCESS,
    sqlite3.SQLITE_CANTOPEN: _NO_ACCESS,
    sqlite3.SQLITE_PERM: _NO_ACCESS,
    sqlite3.SQLITE_IOERR: "Check the disk",
    sqlite3.SQLITE_BUSY: "Another process is using it",
    sqlite3.SQLITE_LOCKED: "Another process is using it",
}
# A connection that was opened while the disk could not be written stays so.
_STALE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)


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
        version = _check_version(self._file, db)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
        if version == SCHEMA_VERSION:
            return
        # An error closes the file, which rolls back.
        db.execute("BEGIN IMMEDIATE")
        upgrade(version, db.execute)
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
            remedy = disk_remedy(os.path.dirname(self.path)) or _REMEDIES[primary]
            raise RequestError(
                "storage_unavailable",
                f"Cannot use the accounts database: {error}. {remedy}, or tell the "
                "operator of this hub. Then try again.",
            ) from error


def _check_version(file: DatabaseFile, db: sqlite3.Connection) -> int:
    ((version,),) = db.execute("PRAGMA user_version")
    ((tables,),) = db.execute("SELECT count(*) FROM sqlite_master")
    file.check_version(version, SCHEMA_VERSION, is_ours=version > 0 or not tables)
    return version


class LateEngine:
    """The accounts database of a service: reads of the hub continue while it cannot be used. Every
    use then raises RequestError ``storage_unavailable``, and opens it again at most once in
    ``AGAIN_SECONDS``. ``may_create``: a missing file is created; otherwise it counts as lost.

    Raises OperatorError where the file is of a newer release or of another program.
    """

    def __init__(self, state_folder: str, *, may_create: bool) -> None:
        self._folder = state_folder
        self._may_create = may_create
        self._turn = threading.Lock()
        self._engine: SqliteEngine | None = None
        self._error = RequestError("storage_unavailable", "")
        self._again_at = -math.inf
        self._check_release()
        with contextlib.suppress(RequestError):  # it is in the log
            self._opened()

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]:
        engine = self._opened()
        with self._replacing(engine):
            return engine.execute(sql, args)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        engine = self._opened()
        with self._replacing(engine), engine.transaction():
            yield

    def close(self) -> None:
        if self._engine:
            self._engine.close()

    def _check_release(self) -> None:
        file = accounts_file(self._folder)
        if not os.path.exists(file.path):
            return
        with (
            contextlib.suppress(sqlite3.Error),  # `_opened` reports the reason
            contextlib.closing(sqlite.open_for_reading(file.path)) as db,
        ):
            _check_version(file, db)

    def _opened(self) -> SqliteEngine:
        with self._turn:
            if self._engine:
                return self._engine
            if time.monotonic() < self._again_at:
                raise self._error
            try:
                self._engine = self._open()
            except OperatorError as error:
                ACCOUNTS_ERRORS.count()
                self._again_at = time.monotonic() + AGAIN_SECONDS
                if str(error) != str(self._error.__cause__):
                    log.error("accounts_unusable", extra={"fields": {"message": str(error)}})
                public = MISSING if isinstance(error, _MissingError) else _UNUSABLE
                self._error = RequestError("storage_unavailable", public)
                raise self._error from error
            return self._engine

    def _open(self) -> SqliteEngine:
        if not self._may_create and not os.path.lexists(accounts_file(self._folder).path):
            raise _MissingError(f"No {accounts_file(self._folder).path}. {MISSING}")
        return SqliteEngine(self._folder)

    @contextlib.contextmanager
    def _replacing(self, engine: SqliteEngine) -> Iterator[None]:
        """Have a connection that the disk has failed replaced at the next use."""
        try:
            yield
        except RequestError as error:
            cause = error.__cause__
            if isinstance(cause, sqlite3.Error) and sqlite.primary_code(cause) in _STALE:
                with self._turn:
                    if self._engine is engine:
                        self._engine = None
            raise


class _MissingError(OperatorError):
    """The accounts of a hub that had some are lost."""
