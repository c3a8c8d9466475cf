"""Work that only one node does at a time: a row says whose turn it is, by the database's clock
alone.

The turn has a generation, which rises each time that another process takes it. The holder takes it
again long before it ends, and checks it before each batch of its work. Where the holder has not
done so for the turn's seconds, another node takes it.
"""

import logging
import time
import uuid

import psycopg

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.postgres_pool import Connections
from publisher.log import log_event

SECONDS = 30.0
# The answer of the database is reused for so long.
KEPT_SECONDS = 1.0

# This clock also counts the time that a machine sleeps, so a holder that slept does not rely on an
# old answer (https://man7.org/linux/man-pages/man2/clock_gettime.2.html). On macOS, CLOCK_MONOTONIC
# does so.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_TAKE = """INSERT INTO turn AS t VALUES (%(what)s, 1, %(holder)s,
    clock_timestamp() + make_interval(secs => %(seconds)s), %(noted)s)
ON CONFLICT (what) DO UPDATE SET
    generation = t.generation + (t.holder <> excluded.holder)::int,
    holder = excluded.holder, until = excluded.until, noted = greatest(t.noted, excluded.noted)
WHERE t.holder = excluded.holder OR t.until < clock_timestamp()
RETURNING generation, noted"""
_RELEASE = "UPDATE turn SET until = clock_timestamp() WHERE what = %(what)s AND holder = %(holder)s"

log = logging.getLogger("hub.nodes")


class Turn:
    """The turn of one process to do ``what``."""

    def __init__(self, connections: Connections, what: str, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._connections = connections
        self._what = what
        self._holder = uuid.uuid4()
        # The greatest serial that any holder had noted when this process last took the turn.
        self.noted = 0
        self._generation: int | None = None
        self._taken_at = -KEPT_SECONDS

    def take(self) -> int | None:
        """Takes or keeps the turn. Returns its generation; None if another node has it, or the
        database does not answer.
        """
        now = time.clock_gettime(_CLOCK)
        if now < self._taken_at + KEPT_SECONDS:
            return self._generation
        before, self._generation = self._generation, None
        try:
            found = self._ask(_TAKE)
        except (psycopg.Error, RequestError) as error:
            if before is not None:
                self._log_unknown(error)
            return None
        if found:
            ((self._generation, self.noted),) = found
        self._taken_at = now
        if self._generation != before:
            status = "held" if found else "lost"
            log_event(log, logging.INFO, "turn", what=self._what, status=status)
        return self._generation

    def check(self, generation: int | None) -> None:
        """Raises OperatorError unless this generation of the turn is still this node's."""
        if generation is None or self.take() != generation:
            raise OperatorError(
                f"Another node may {self._what} now, so nothing more is changed from here. If this "
                "happens often, check the connection to the database."
            )

    def note(self, serial: int) -> None:
        """Notes the greatest serial of work that was begun, for later holders."""
        if serial > self.noted:
            self.noted, self._taken_at = serial, -KEPT_SECONDS
            self.take()

    def release(self) -> None:
        """Lets another node take the turn at once. The caller does no more of the work."""
        self._generation = None
        try:
            self._ask(_RELEASE)
        except (psycopg.Error, RequestError) as error:
            self._log_unknown(error)  # other nodes only wait longer

    def _log_unknown(self, error: Exception) -> None:
        entry = {"what": self._what, "status": "unknown", "reason": str(error)}
        log_event(log, logging.WARNING, "turn", **entry)

    def _ask(self, sql: str) -> list[tuple]:
        values = {"what": self._what, "holder": self._holder}
        values |= {"seconds": self.seconds, "noted": self.noted}
        with self._connections.asking() as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []
