"""Connections to PostgreSQL, each used by one thread at a time. Every wait has an end."""

import contextlib
import functools
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.postgres_url import parse_postgres_url

# The most connections of one process; a further request waits BUSY_SECONDS. PostgreSQL allows 100
# by default, for all nodes together (``max_connections``).
CONNECTIONS_MAX = 8
CONNECT_SECONDS = 5
# A request waits this long for another thread's connection, then fails with
# ``storage_unavailable``.
BUSY_SECONDS = 10.0
# The server does not limit a commit, which may wait for a lost standby; and a server that hangs
# limits nothing. So the connection is closed after this time. The wait is never canceled: a
# canceled wait for a standby makes COMMIT succeed.
ANSWER_SECONDS = 20.0
_LOOKED_EVERY_SECONDS = 0.25

# The warning of a commit whose wait for a standby was canceled (SyncRepWaitForLSN in PostgreSQL's
# syncrep.c): the commit succeeds, but may be lost with the primary.
_UNCONFIRMED = "01000"

# Only a primary is used: a standby may still lack a revocation. Nothing is prepared and no setting
# lasts, since a pooler gives each transaction to another connection.
_OPTIONS = {
    "application_name": "prompt-hub",
    "client_encoding": "UTF8",
    "target_session_attrs": "read-write",
    "keepalives_idle": 60,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": round(ANSWER_SECONDS * 1000),
}


class Unconfirmed(psycopg.OperationalError):
    """A transaction is committed on this server alone, and may be lost with it."""


class Connections:
    """The connections of this process to a database. ``server``: its name and host, for people."""

    def __init__(self, url: str) -> None:
        self.url = url
        options = _options(url)
        host = options.get("host") or options.get("hostaddr") or "this machine"
        self.server = f"PostgreSQL database {options['dbname']} at {host}"
        self._connect = functools.partial(
            psycopg.connect, autocommit=True, prepare_threshold=None, **options
        )
        self._idle: list[psycopg.Connection] = []
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._watch = _Watch()
        self._is_closed = False

    @contextlib.contextmanager
    def taken(self) -> Iterator[psycopg.Connection]:
        """Yields a connection for this thread alone. Raises psycopg.Error; RequestError where other
        threads have all of them.
        """
        if self._is_closed:
            raise psycopg.InterfaceError("the database is closed")
        if not self._free.acquire(timeout=BUSY_SECONDS):
            raise RequestError(
                "storage_unavailable", "Too many requests use the database. Try again."
            )
        try:
            connection = self._quiet() or self._connect()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    @contextlib.contextmanager
    def asking(self, seconds: float | None = None) -> Iterator[psycopg.Connection]:
        """Yields a connection for this thread alone, which is closed if the block takes longer than
        this. Raises as ``taken`` and ``limiting`` do.
        """
        with self.taken() as connection, self.limiting(connection, seconds):
            yield connection

    @contextlib.contextmanager
    def limiting(
        self, connection: psycopg.Connection, seconds: float | None = None
    ) -> Iterator[None]:
        """Closes the connection if the block takes longer than this: for the block, it is then
        lost. Raises Unconfirmed.
        """
        states: list[str | None] = []

        def note(notice: psycopg.errors.Diagnostic) -> None:
            states.append(notice.sqlstate)

        connection.add_notice_handler(note)
        try:
            with self._watch.limiting(connection, seconds or ANSWER_SECONDS):
                yield
        finally:
            connection.remove_notice_handler(note)
        if _UNCONFIRMED in states:
            raise Unconfirmed("no standby has confirmed the commit")

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
        self._watch.close()

    def _quiet(self) -> psycopg.Connection | None:
        """Returns a connection that was used before and that its server has not closed; None if
        there is none.
        """
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

    def _give_back(self, connection: psycopg.Connection) -> None:
        # A connection that cannot be rolled back is closed, which does the same.
        with contextlib.suppress(psycopg.Error):
            if connection.info.transaction_status in (
                TransactionStatus.INTRANS,
                TransactionStatus.INERROR,
            ):
                with self.limiting(connection):
                    connection.execute("ROLLBACK")
        if self._is_closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
        else:
            self._idle.append(connection)


class _Watch:
    """Closes the connections whose server does not answer in time: for the thread that waits, they
    are then lost.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._ends: dict[psycopg.Connection, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="postgres-watch", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def limiting(self, connection: psycopg.Connection, seconds: float) -> Iterator[None]:
        with self._turn:
            self._ends[connection] = time.monotonic() + seconds
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
            # While this lock is held, the connection's thread cannot close it, so the descriptor
            # stays its own.
            with self._turn:
                for connection, end in self._ends.items():
                    if end < time.monotonic():
                        _hang_up(connection)


def _hang_up(connection: psycopg.Connection) -> None:
    # An error means that the connection is lost already.
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as shared,
    ):
        shared.shutdown(socket.SHUT_RDWR)


def _options(url: str) -> dict[str, Any]:
    """Returns the options to connect with. Raises OperatorError, without any part of the URL."""
    try:
        given = conninfo_to_dict(parse_postgres_url(url))
    except psycopg.ProgrammingError:
        raise OperatorError(
            "PostgreSQL's library does not understand the URL of --database. Check what stands "
            "behind its ? and whether each % is followed by two hexadecimal digits."
        ) from None
    return {"connect_timeout": CONNECT_SECONDS} | _OPTIONS | given
