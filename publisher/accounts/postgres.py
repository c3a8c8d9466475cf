"""The accounts database in PostgreSQL, which several nodes share, with everything that they
publish.

Each transaction locks the row of the version first. So there is one writer at a time, and it reads
the newest rows, as with SQLite. Reads take no lock, and publications do not take this one.
"""

import contextlib
import functools
import itertools
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.postgres_pool import BUSY_SECONDS, Connections
from publisher.accounts.schema import ACCOUNTS_ERRORS, SCHEMA_VERSION, upgrade
from publisher.accounts.shared_tables import TABLES

STATEMENT_SECONDS = 15.0
# After this time, the server ends a transaction whose node has stopped within it.
STOPPED_SECONDS = 30.0

VERSION_TABLE = "hub_accounts"
_LOCK = f"SELECT version FROM {VERSION_TABLE} FOR UPDATE"

# The first matching class counts.
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
# A command without a log reports a failure by its error alone.
log.addHandler(logging.NullHandler())


class PostgresEngine:
    """The accounts in a PostgreSQL database; creates the tables where they are missing.
    ``server``: the database's name and host, for people.
    """

    def __init__(self, url: str) -> None:
        self.connections = Connections(url)
        self.server = self.connections.server
        self._turn = threading.Lock()
        self._own = threading.local()
        with contextlib.ExitStack() as failing:
            failing.callback(self.close)
            self._prepare()
            failing.pop_all()

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]:
        _check_texts(args)
        connection = getattr(self._own, "connection", None)
        if connection:
            with _telling():
                return self._run(connection, sql, args)
        if sql.startswith("SELECT"):
            with _telling(), self.connections.taken() as taken:
                return self._run(taken, sql, args)
        with self.transaction():
            return self.execute(sql, args)

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        if getattr(self._own, "connection", None):
            return contextlib.nullcontext()
        return self._begun(_LOCK)

    @contextlib.contextmanager
    def _begun(self, lock: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            # A waiting transaction holds no connection: otherwise waiting ones could leave none for
            # reads.
            if not self._turn.acquire(timeout=BUSY_SECONDS):
                raise RequestError(
                    "storage_unavailable", "Another request is changing the accounts. Try again."
                )
            stack.callback(self._turn.release)
            with _telling():
                connection = stack.enter_context(self.connections.taken())
                self._run(connection, f"{_begin()}; {lock}")
            self._own.connection = connection
            stack.callback(delattr, self._own, "connection")
            yield
            with _telling():
                if connection.info.transaction_status == TransactionStatus.INERROR:
                    # A COMMIT would fail silently: it reports the rollback only in its command tag.
                    raise errors.InFailedSqlTransaction("a statement failed, and was passed over")
                self._run(connection, "COMMIT")

    def close(self) -> None:
        self.connections.close()

    def _run(
        self, connection: psycopg.Connection, sql: str, args: Sequence[Any] | None = None
    ) -> list[tuple]:
        """Runs a statement. Without ``args``, it is sent as it is; an empty tuple counts as
        ``args``.
        """
        with self.connections.limiting(connection):
            if args is None:
                cursor = connection.execute(sql)
            else:
                named = {str(number): value for number, value in enumerate(args, 1)}
                cursor = connection.execute(as_postgres(sql), named)
            return cursor.fetchall() if cursor.description else []

    def _prepare(self) -> None:
        try:
            version = self._version_found()
            if version == SCHEMA_VERSION:
                return
            if not version:
                self._make_first_table()
            with self.transaction():
                self._upgrade(self._version_found())
        except (psycopg.Error, RequestError) as error:
            reason = str(error.__cause__ or error).partition("\n")[0].rstrip(".")
            raise OperatorError(
                f"Cannot use the {self.server}: {reason}. Check that it exists, and that "
                "--database and the password are right."
            ) from error

    def _make_first_table(self) -> None:
        """Creates the table that transactions lock. If several nodes do so at once,
        one succeeds.
        """
        with contextlib.suppress(errors.UniqueViolation, errors.DuplicateTable), self._begun(""):
            connection = self._own.connection
            self._run(connection, f"CREATE TABLE {VERSION_TABLE} (version BIGINT NOT NULL)")
            self._run(connection, f"INSERT INTO {VERSION_TABLE} VALUES (0)")

    def _version_found(self) -> int:
        ((encoding,),) = self.execute("SELECT current_setting('server_encoding')")
        if encoding != "UTF8":
            raise OperatorError(
                f"The {self.server} stores texts as {encoding}. Create one with `createdb "
                "--encoding UTF8 --template template0`."
            )
        # Not by `to_regclass`: its cache lacks tables that another node has created since BEGIN.
        tables = self.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        if not tables:
            return 0
        if (VERSION_TABLE,) not in tables:
            raise OperatorError(
                f"The {self.server} has tables of another program. Create a database for the "
                "hub alone, with `createdb`."
            )
        ((version,),) = self.execute(f"SELECT version FROM {VERSION_TABLE}")
        if version > SCHEMA_VERSION:
            raise OperatorError(
                f"The {self.server} was changed by a newer release of hub. Upgrade to that release."
            )
        return version

    def _upgrade(self, before: int) -> None:
        if before == SCHEMA_VERSION:
            return
        connection = self._own.connection
        if not before:
            for sql in TABLES:
                self._run(connection, sql)
        upgrade(before, lambda sql: self._run(connection, _definition(sql)))
        self.execute(f"UPDATE {VERSION_TABLE} SET version = ?", (SCHEMA_VERSION,))
        if before:
            fields = {"file": "postgresql", "from_version": before, "to_version": SCHEMA_VERSION}
            log.info("upgrade", extra={"fields": fields})


def _begin() -> str:
    """Returns the statement that begins a transaction and sets limits for it alone: a pooler gives
    the next transaction to another connection. A commit waits for the disk, whatever the server's
    default.
    """
    limits = {
        "statement_timeout": STATEMENT_SECONDS,
        "lock_timeout": BUSY_SECONDS,
        "idle_in_transaction_session_timeout": STOPPED_SECONDS,
    }
    settings = [
        f"set_config('{name}', '{round(one * 1000)}ms', true)" for name, one in limits.items()
    ]
    durable = "replace(current_setting('synchronous_commit'), 'off', 'on')"
    settings.append(f"set_config('synchronous_commit', {durable}, true)")
    return f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT {', '.join(settings)}"


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        ACCOUNTS_ERRORS.count()
        for kind, remedy in _REMEDIES:
            if isinstance(error, kind):
                # Only in the operator's log: the text names hosts and users.
                log.warning("accounts_unavailable", extra={"fields": {"reason": str(error)}})
                raise RequestError(
                    "storage_unavailable", f"Cannot use the accounts database. {remedy}"
                ) from error
        raise


def _check_texts(args: Sequence[Any]) -> None:
    if any(isinstance(arg, str) and "\0" in arg for arg in args):
        raise RequestError(
            "validation_failed", "A text contains the character U+0000. Remove it, and try again."
        )


@functools.cache
def as_postgres(sql: str) -> str:
    """Returns a statement with SQLite's placeholders (``?``, or all numbered, ``?1``) as psycopg
    takes it. No text in it may contain a question mark.
    """
    numbers = itertools.count(1)
    return re.sub(
        r"\?(\d*)", lambda found: f"%({found[1] or next(numbers)})s", sql.replace("%", "%%")
    )


def _definition(sql: str) -> str:
    """Returns a statement about tables as PostgreSQL takes it. Texts compare by their bytes, as in
    SQLite.
    """
    for there, here in (
        (r"INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        (r"INTEGER", "BIGINT"),
        (r"BLOB", "BYTEA"),
        (r"TEXT", 'TEXT COLLATE "C"'),
        (r" WITHOUT ROWID", ""),
    ):
        sql = re.sub(rf"{there}\b", here, sql)
    return sql
