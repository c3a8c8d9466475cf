"""The accounts database: owners, what they sign in and publish with, answers kept for retries.

Kept by SQLite in the state folder or, for hubs of several nodes, by PostgreSQL. Both have the same
tables and run the same statements, which are written as SQLite has them.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from builder.model.errors import OperatorError
from publisher.accounts.postgres_url import is_postgres_url
from publisher.accounts.sqlite_engine import SqliteEngine

if TYPE_CHECKING:
    from publisher.accounts.postgres import PostgresEngine


class Engine(Protocol):
    """What keeps the accounts. Its methods mean and raise what those of ``Database`` do."""

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]: ...

    def transaction(self) -> contextlib.AbstractContextManager[None]: ...

    def close(self) -> None: ...


class Database:
    """The accounts database in a state folder, or at the URL of a database of PostgreSQL; makes
    what is missing. Used by any thread.

    Raises OperatorError where it cannot be used, is damaged, or is of a newer release.
    """

    def __init__(self, where: str) -> None:
        self.engine: Engine = (
            open_postgres(where) if is_postgres_url(where) else SqliteEngine(where)
        )

    @property
    def is_shared(self) -> bool:
        """Whether it is the database of several nodes, with all that they publish."""
        return not isinstance(self.engine, SqliteEngine)

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]:
        """The rows of one statement; on its own it is committed when this returns.

        Raises RequestError ``storage_unavailable``; OperatorError where a file is damaged.
        """
        return self.engine.execute(sql, args)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """All that the block executes, or nothing if it raises; durable when the block ends.

        One at a time, in all processes: what the block reads is the newest until it ends. Within
        another transaction it is a part of that one. Keep it short: other writers wait; with
        SQLite, also this process's readers. Raises as ``execute`` does.
        """
        with self.engine.transaction():
            yield self

    def close(self) -> None:
        """Close it; nothing can be executed any more."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_postgres(url: str, *, may_change: bool = True) -> "PostgresEngine":
    """The accounts in PostgreSQL. Raises OperatorError as ``Database``, and where its library is
    not installed. Without ``may_change`` its tables stay as they are, if there are any.
    """
    try:
        from publisher.accounts.postgres import PostgresEngine
    except ImportError as error:
        raise OperatorError(
            f"--database needs psycopg, which cannot be loaded ({error}). Run: pip "
            "install 'psycopg[binary]'"
        ) from error
    return PostgresEngine(url, may_change=may_change)
