"""The accounts database: owners, their ways to sign in, their tokens, and the answers kept for
retries.

It is in SQLite in the state folder or, for hubs of several nodes, in PostgreSQL. Both have the same
tables and run the same statements, which are written for SQLite.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from builder.model.errors import OperatorError
from builder.store.state.serving import had_service
from publisher.accounts.postgres_url import is_postgres_url
from publisher.accounts.sqlite_engine import MISSING, SqliteEngine, accounts_file

if TYPE_CHECKING:
    from publisher.accounts.postgres import PostgresEngine


class Database:
    """The accounts database in a state folder, or at the URL of a PostgreSQL database. Creates what
    is missing. For any thread. ``make_engine`` opens a state folder's; the methods of an engine do
    and raise what those here do.

    Raises OperatorError where it cannot be used, is damaged, or was written by a newer release.
    """

    def __init__(self, where: str, make_engine: Callable[[str], Any] = SqliteEngine) -> None:
        # True if this is the database of several nodes, with everything that they publish.
        self.is_shared = is_postgres_url(where)
        self.engine = open_postgres(where) if self.is_shared else make_engine(where)

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]:
        """Returns the rows of one statement. Outside a transaction, it is committed when this
        returns.

        Raises RequestError ``storage_unavailable``; OperatorError where a file is damaged.
        """
        return self.engine.execute(sql, args)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commits all that the block executes, or nothing if it raises; durable when the block
        ends.

        One transaction runs at a time, in all processes: until it ends, what it reads stays the
        newest. Within another transaction, this one is part of it. Keep it short: other writers
        wait and, with SQLite, also this process's readers. Raises as ``execute`` does.
        """
        with self.engine.transaction():
            yield self

    def new_id(self, table: str) -> str:
        """Returns a short id that no row of a table has. Raises as ``execute`` does."""
        while True:
            new = secrets.token_hex(4)
            if not self.execute(f"SELECT 1 FROM {table} WHERE id = ?", (new,)):
                return new

    def close(self) -> None:
        """Closes the database; nothing can be executed after this."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_accounts(where: str) -> Database:
    """The accounts of a hub, for a command that creates none. Raises OperatorError as ``Database``,
    and where a service has used the state folder ``where`` and the file is gone: an empty one would
    hide the loss from the service.
    """
    path = accounts_file(where).path
    if not is_postgres_url(where) and had_service(where) and not os.path.lexists(path):
        raise OperatorError(f"No {path}. {MISSING}")
    return Database(where)


def open_postgres(url: str) -> "PostgresEngine":
    """Returns the accounts in PostgreSQL. Raises OperatorError as ``Database``, and where its
    library is not installed.
    """
    try:
        from publisher.accounts.postgres import PostgresEngine
    except ImportError as error:
        raise OperatorError(
            f"--database needs psycopg, which cannot be loaded ({error}). Run: pip "
            "install 'psycopg[binary]'"
        ) from error
    return PostgresEngine(url)


def epoch_seconds(now: datetime | None) -> int:
    """Returns an aware moment in whole epoch seconds; None is the present."""
    return int((now or datetime.now(UTC)).timestamp())


# Owners first, as the other tables refer to them. Each database numbers events itself; they keep
# their order.
TABLES = {
    "owner": "*",
    "token": "*",
    "answer": "*",
    "event": "owner, at, kind, subject, address, note, author",
    "password": "*",
    "invitation": "*",
    "session": "*",
    "identity": "*",
    "trusted_publisher": "*",
    "trusted_only": "*",
    "exchanged": "*",
    "protected_label": "*",
    "draft": "*",
    "member": "*",
    "team_link": "*",
}


def copy_accounts(source: Database, target: Database) -> int:
    """Copies all accounts, or nothing; returns how many owners there are. Leaves a target with the
    same owners as it is.

    Raises OperatorError where the target has other owners; RequestError ``storage_unavailable``.
    """
    owners = "SELECT * FROM owner ORDER BY handle"
    with source.transaction(), target.transaction():
        if there := target.execute(owners):
            if there == source.execute(owners):
                return len(there)
            raise OperatorError(
                "There are other accounts where they are to be copied. Copy into an empty database."
            )
        for table, columns in TABLES.items():
            names = "" if columns == "*" else f" ({columns})"
            order = " ORDER BY id" if table == "event" else ""
            for row in source.execute(f"SELECT {columns} FROM {table}{order}"):
                # PostgreSQL cannot store this character in a text
                # (https://www.postgresql.org/docs/current/datatype-character.html); the title of a
                # draft can have it.
                values = [one.replace("\0", "�") if isinstance(one, str) else one for one in row]
                marks = ", ".join("?" * len(values))
                target.execute(f"INSERT INTO {table}{names} VALUES ({marks})", values)
        ((owners,),) = target.execute("SELECT count(*) FROM owner")
    return owners
