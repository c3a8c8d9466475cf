"""The accounts database: owners, their ways to sign in, their tokens, and the answers kept for
retries.

It is in SQLite in the state folder or, for hubs of several nodes, in PostgreSQL. Both have the same
tables and run the same statements, which are written for SQLite.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, Self

from builder.model.errors import OperatorError
from builder.store.state.serving import had_service
from publisher.accounts.postgres_url import is_postgres_url
from publisher.accounts.sqlite_engine import MISSING, SqliteEngine, accounts_file

if TYPE_CHECKING:
    from publisher.accounts.postgres import PostgresEngine


class Engine(Protocol):
    """The database program that stores the accounts. Its methods do and raise what those of
    ``Database`` do.
    """

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]: ...

    def transaction(self) -> contextlib.AbstractContextManager[None]: ...

    def close(self) -> None: ...


class Database:
    """The accounts database in a state folder, or at the URL of a PostgreSQL database. Creates what
    is missing. For any thread. ``make_engine`` opens a state folder's.

    Raises OperatorError where it cannot be used, is damaged, or was written by a newer release.
    """

    def __init__(self, where: str, make_engine: Callable[[str], Engine] = SqliteEngine) -> None:
        # True if this is the database of several nodes, with everything that they publish.
        self.is_shared = is_postgres_url(where)
        self.engine: Engine = open_postgres(where) if self.is_shared else make_engine(where)

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
