"""The accounts database in PostgreSQL, which several nodes share.

Each transaction takes one lock for the whole database first. So there is one writer at a time, and
what it reads is the newest, as SQLite has it; reads take no lock. Every wait has an end.
"""

import contextlib
import functools
import itertools
import logging
import os
import re
import select
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from builder.model.errors import OperatorError, RequestError
from builder.model.metrics import ACCOUNTS_ERRORS
from publisher.accounts.postgres_url import parse_postgres_url
from publisher.accounts.schema import SCHEMA_VERSION, upgrade

# Of one process. PostgreSQL allows 100 by default, to all nodes together.
CONNECTIONS_MAX = 8
CONNECT_SECONDS = 5
# For another's transaction, or for a connection that another thread has.
BUSY_SECONDS = 10.0
STATEMENT_SECONDS = 15.0
# The server does not limit a commit, which may wait for a standby that is lost; nor does one that
# hangs limit anything. After this time the connection is given up.
ANSWER_SECONDS = 20.0
# After this time the server ends the transaction of a node that has stopped within it.
STOPPED_SECONDS = 30.0
_LOOKED_EVERY_SECONDS = 0.5

VERSION_TABLE = "hub_accounts"
_LOCK_NUMBER = 7_598_826_120_453_190_501  # any that no other program is likely to take
_BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({_LOCK_NUMBER})"
# A commit waits for the disk, whatever the server's default is.
_SESSION = (
    "SELECT set_config('statement_timeout', ?, false), set_config('lock_timeout', ?, false), "
    "set_config('idle_in_transaction_session_timeout', ?, false), "
    "set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'),"
    " false)"
)
# A standby may not know yet what was revoked, so only a primary is asked.
_OPTIONS = {
    "application_name": "prompt-hub", "client_encoding": "UTF8",
    "target_session_attrs": "read-write", "keepalives_idle": 60, "keepalives_interval": 10,
    "keepalives_count": 3,
}  # fmt: skip

# The first that fits.
_REMEDIES: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.LockNotAvailable, "Another process is using it. Try again."),
    (errors.QueryCanceled, "It takes too long to answer. Try again."),
    (errors.DiskFull, "Its disk is full. Tell the operator, then try again."),
    (errors.UndefinedTable, "Its tables are missing. Tell the operator, who can restore them."),
    (
        errors.InsufficientPrivilege,
        "PostgreSQL refuses access to its tables. Tell the operator, who can grant it.",
    ),
    (errors.ReadOnlySqlTransaction, "PostgreSQL refuses changes. Tell the operator, or try again."),
    (psycopg.OperationalError, "PostgreSQL cannot be reached. Try again, or tell the operator."),
    (psycopg.InternalError, "PostgreSQL has failed. Tell the operator; its log has the cause."),
)

log = logging.getLogger("hub.accounts")
# A command that has no log says what is wrong by its error.
log.addHandler(logging.NullHandler())


class PostgresEngine:
    """The accounts in a database of PostgreSQL; makes the tables where they are missing.

    ``version``: of the tables that are there; 0: none, which ``may_change`` would make.
    ``server``: which one it is, for people.
    """

    def __init__(self, url: str, *, may_change: bool = True) -> None:
        options = _options(url)
        self.server = f"PostgreSQL database {options.get('dbname')} at {_host(options)}"
        self.version = 0
        self._connect = functools.partial(_connect, options)
        self._idle: list[psycopg.Connection] = []
        self._turn = threading.Lock()
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._own = threading.local()
        self._watch = _Watch()
        self._is_closed = False
        with contextlib.ExitStack() as failing:
            failing.callback(self.close)
            self._prepare(may_change)
            failing.pop_all()

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]:
        _check_texts(args)
        connection = getattr(self._own, "connection", None)
        if connection:
            with _telling():
                return self._run(connection, sql, args)
        if sql.startswith("SELECT"):
            with _telling(), self._taken() as taken:
                return self._run(taken, sql, args)
        with self.transaction():
            return self.execute(sql, args)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        if getattr(self._own, "connection", None):
            yield
            return
        with contextlib.ExitStack() as stack:
            # Those that wait have no connection, or reads would find none.
            if not self._turn.acquire(timeout=BUSY_SECONDS):
                raise RequestError(
                    "storage_unavailable", "Another request is changing the accounts. Try again."
                )
            stack.callback(self._turn.release)
            with _telling():
                connection = stack.enter_context(self._taken())
                self._run(connection, _BEGIN)
            self._own.connection = connection
            stack.callback(delattr, self._own, "connection")
            yield
            with _telling():
                if connection.info.transaction_status == TransactionStatus.INERROR:
                    # A commit would only say so by the name that it gives itself.
                    raise errors.InFailedSqlTransaction("a statement failed, and was passed over")
                self._run(connection, "COMMIT")

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
        self._watch.close()

    def _run(
        self, connection: psycopg.Connection, sql: str, args: Sequence[Any] | None = None
    ) -> list[tuple]:
        """Without ``args`` (none are also given as such), the statement is sent as it is."""
        with self._watch.limiting(connection):
            if args is None:
                # Several statements cannot be prepared.
                cursor = connection.execute(sql, prepare=False)
            else:
                named = {str(number): value for number, value in enumerate(args, 1)}
                cursor = connection.execute(as_postgres(sql), named)
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def _taken(self) -> Iterator[psycopg.Connection]:
        """A connection for this thread alone."""
        if self._is_closed:
            raise psycopg.InterfaceError("the accounts database is closed")
        if not self._free.acquire(timeout=BUSY_SECONDS):
            raise RequestError(
                "storage_unavailable", "Too many requests use the accounts database. Try again."
            )
        try:
            connection = self._quiet() or self._new()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def _quiet(self) -> psycopg.Connection | None:
        """One that was used before, and whose server has not said that it is over."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            if not poll.poll(0):
                return connection
            connection.close()

    def _new(self) -> psycopg.Connection:
        connection = self._connect()
        limits = (STATEMENT_SECONDS, BUSY_SECONDS, STOPPED_SECONDS)
        try:
            self._run(connection, _SESSION, [f"{round(one * 1000)}ms" for one in limits])
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: psycopg.Connection) -> None:
        # What cannot be rolled back is closed, which does the same.
        with contextlib.suppress(psycopg.Error):
            if connection.info.transaction_status != TransactionStatus.IDLE:
                self._run(connection, "ROLLBACK")
        if self._is_closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def _prepare(self, may_change: bool) -> None:
        try:
            self.version = self._version_found()
            if self.version == SCHEMA_VERSION or not may_change:
                return
            # Another node may be doing the same.
            with self.transaction():
                self.version = self._version_found()
                self._upgrade()
        except (psycopg.Error, RequestError) as error:
            reason = error.__cause__ if isinstance(error, RequestError) else error
            raise OperatorError(
                f"Cannot use the {self.server}: {' '.join(str(reason).split())}. Check that it "
                "is there, and that --accounts and the password are right."
            ) from error

    def _version_found(self) -> int:
        ((encoding,),) = self.execute("SELECT current_setting('server_encoding')")
        if encoding != "UTF8":
            raise OperatorError(
                f"The {self.server} stores texts as {encoding}. Create one with `createdb "
                "--encoding UTF8 --template template0`."
            )
        # Not by `to_regclass`, whose cache does not know what another has made since BEGIN.
        tables = self.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        if not tables:
            return 0
        if (VERSION_TABLE,) not in tables:
            raise OperatorError(
                f"The {self.server} has tables of another program. Create a database for the "
                "accounts alone, with `createdb`."
            )
        ((version,),) = self.execute(f"SELECT version FROM {VERSION_TABLE}")
        if version > SCHEMA_VERSION:
            raise OperatorError(
                f"The {self.server} was changed by a newer release of hub. Upgrade to that release."
            )
        return version

    def _upgrade(self) -> None:
        before = self.version
        if before == SCHEMA_VERSION:
            return
        connection = self._own.connection
        if not before:
            self._run(connection, f"CREATE TABLE {VERSION_TABLE} (version BIGINT NOT NULL)")
            self.execute(f"INSERT INTO {VERSION_TABLE} VALUES (0)")
        upgrade(before, lambda sql: self._run(connection, _definition(sql)), self.execute)
        self.execute(f"UPDATE {VERSION_TABLE} SET version = ?", (SCHEMA_VERSION,))
        self.version = SCHEMA_VERSION
        if before:
            told = {"file": "postgresql", "from_version": before, "to_version": SCHEMA_VERSION}
            log.info("upgrade", extra={"fields": told})


class _Watch:
    """Ends the connections whose server does not answer in ANSWER_SECONDS: to the thread that
    waits, they are then lost.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._ends: dict[psycopg.Connection, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="accounts-watch", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def limiting(self, connection: psycopg.Connection) -> Iterator[None]:
        with self._turn:
            self._ends[connection] = time.monotonic() + ANSWER_SECONDS
        try:
            yield
        finally:
            with self._turn:
                del self._ends[connection]

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(_LOOKED_EVERY_SECONDS):
            # Its thread cannot close it meanwhile, so the descriptor is no other's.
            with self._turn:
                for connection, end in self._ends.items():
                    if end < time.monotonic():
                        _hang_up(connection)


def _hang_up(connection: psycopg.Connection) -> None:
    # Not found: the connection is lost already.
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as shared,
    ):
        shared.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        ACCOUNTS_ERRORS.count()
        for kind, remedy in _REMEDIES:
            if isinstance(error, kind):
                # For the operator alone: it names hosts and users.
                log.warning("accounts_unavailable", extra={"fields": {"reason": str(error)}})
                raise RequestError(
                    "storage_unavailable", f"Cannot use the accounts database. {remedy}"
                ) from error
        raise


def _options(url: str) -> dict[str, Any]:
    """What to connect with. Raises OperatorError, without what stands in the URL."""
    try:
        given = conninfo_to_dict(parse_postgres_url(url))
    except psycopg.ProgrammingError:
        raise OperatorError(
            "PostgreSQL's library does not understand the URL of --accounts. Check what stands "
            "behind its ? and whether each % is followed by two hexadecimal digits."
        ) from None
    return {"connect_timeout": CONNECT_SECONDS} | _OPTIONS | given


def _host(options: dict[str, Any]) -> str:
    return options.get("host") or options.get("hostaddr") or "this machine"


def _connect(options: dict[str, Any]) -> psycopg.Connection:
    return psycopg.connect(autocommit=True, **options)


def _check_texts(args: Sequence[Any]) -> None:
    if any(isinstance(arg, str) and "\0" in arg for arg in args):
        raise RequestError(
            "validation_failed", "A text contains the character U+0000. Remove it, and try again."
        )


@functools.cache
def as_postgres(sql: str) -> str:
    """A statement with the placeholders of SQLite (``?``, or all numbered, ``?1``), as psycopg has
    it. No text in it contains a question mark.
    """
    numbers = itertools.count(1)
    return re.sub(
        r"\?(\d*)", lambda found: f"%({found[1] or next(numbers)})s", sql.replace("%", "%%")
    )


def _definition(sql: str) -> str:
    """A statement about tables as PostgreSQL has it. Texts compare by their bytes, as in SQLite."""
    for there, here in (
        (r"INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        (r"INTEGER", "BIGINT"),
        (r"BLOB", "BYTEA"),
        (r"TEXT", 'TEXT COLLATE "C"'),
        (r" WITHOUT ROWID", ""),
    ):
        sql = re.sub(rf"{there}\b", here, sql)
    return sql
