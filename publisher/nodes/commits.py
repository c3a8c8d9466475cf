"""The thread of a node that commits what waits, and reads what others have committed.

Every change that waits is in the next group, so many share a round trip. If its answer is lost,
the next group has the same requests again, and finds out what became of them. What is not
committed was overtaken, and is decided again.
"""

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.errors import LockNotAvailable

from builder.model.errors import RequestError
from builder.pipeline.background import Background, Failures, pause_seconds
from publisher.accounts.postgres_pool import Connections
from publisher.log import log_event
from publisher.nodes import rows
from publisher.nodes.copy import Copy
from publisher.nodes.rows import Change, Committed, OtherHistory, Row
from publisher.nodes.statements import FORGET_ANSWERS

# How often others' changes are looked for.
POLL_SECONDS = 0.25
# How long somebody waits for a commit, and while the database fails.
PATIENCE_SECONDS, FAILING_PATIENCE_SECONDS = 30.0, 3.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.05, 0.5
# After this time an answer is taken for lost.
ANSWER_SECONDS = 6.0
# Of one group, unless one change alone has more.
GROUP_BYTES_MAX, GROUP_CHANGES_MAX = 1024 * 1024, 500
FORGET_SECONDS = 600.0

UNAVAILABLE = (
    "The database of this hub does not answer. Send the same request again in a moment: with an "
    "Idempotency-Key nothing is saved twice."
)
OTHER_HISTORY = (
    "The database has another history than this node: it was restored to an earlier moment, or "
    "its standby took over without the last changes. This node writes nothing. Stop it, run "
    "`hubctl store renew` with its folders, and start it: it reads everything again."
)

log = logging.getLogger("hub.nodes")


class StoreUnavailable(RequestError):
    """It is not known whether something is committed, or nothing can be."""

    def __init__(self, message: str = UNAVAILABLE) -> None:
        super().__init__("storage_unavailable", message)


class Overtaken(RequestError):
    """Another change was committed first; decide again when all up to ``serial`` is applied."""

    def __init__(self, serial: int) -> None:
        super().__init__(
            "version_conflict",
            "Another node has changed this prompt at the same time. Send the same request again.",
        )
        self.serial = serial


class _Waiting:
    """A change that a thread waits for. ``outcome``: the serial of the change, or what to raise."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.outcome: int | RequestError | None = None


class Commits(Background):
    """While entered, commits changes, and has ``copy`` apply all that is committed. For any number
    of threads.
    """

    def __init__(self, connections: Connections, copy: Copy) -> None:
        super().__init__("commits")
        self._connections = connections
        self._copy = copy
        self._waiting: list[_Waiting] = []
        self._failures = Failures()
        self._poll_at = self._try_at = 0.0
        self._forget_at = time.monotonic()
        # Whether all was read that there was at the last look, and the other history was noticed.
        self._is_current = False
        self._first_head: int | None = None
        self._is_checked = False
        self.has_other_history = False
        # What the database said at the last failure, for operators.
        self.problem: Exception | None = None

    def commit(self, change: Change) -> int:
        """Have a change committed; it is when this returns its serial, or that of the newest
        change, where it has no files.

        Raises Overtaken; StoreUnavailable, after which it may be committed nevertheless.
        """
        waiting = _Waiting(change)
        with self._changed:
            self._waiting.append(waiting)
            self._changed.notify_all()
            if not self._await(lambda: waiting.outcome is not None):
                self._waiting.remove(waiting)
                raise StoreUnavailable(self._reason())
        if isinstance(waiting.outcome, RequestError):
            raise waiting.outcome
        return waiting.outcome

    def wait_current(self) -> None:
        """Wait until this node has read all that there was at its last look: it must not decide
        while it is a page behind. Raises StoreUnavailable.
        """
        with self._changed:
            if not self._await(lambda: self._is_current):
                raise StoreUnavailable(self._reason())

    def first_head(self, seconds: float) -> int | None:
        """The serial of the last change that there was when this node had first read all; None if
        it has not, within so many seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._first_head is not None, seconds)
            return self._first_head

    def hurry(self) -> None:
        """Have others' changes looked for at once."""
        with self._changed:
            self._poll_at = 0.0
            self._changed.notify_all()

    def note_other_history(self) -> StoreUnavailable:
        """Stop writing for good; returns what to raise."""
        with self._changed:
            if not self.has_other_history:
                log_event(log, logging.ERROR, "commits", reason=OTHER_HISTORY)
            self.has_other_history = True
            self._failures.add(OTHER_HISTORY)
            self._end(self._waiting, lambda _: StoreUnavailable(OTHER_HISTORY))
        return StoreUnavailable(OTHER_HISTORY)

    def status(self) -> dict[str, Any]:
        """For people and monitors."""
        with self._changed:
            return {"head": self._copy.head.serial, **self._failures.status()}

    def _reason(self) -> str:
        return OTHER_HISTORY if self.has_other_history else UNAVAILABLE

    def _await(self, is_done: Callable[[], bool]) -> bool:
        """Wait until something is done, less long while the database fails. Has the lock."""
        began = time.monotonic()
        while not is_done():
            fails = self._failures.count > 0
            longest = FAILING_PATIENCE_SECONDS if fails else PATIENCE_SECONDS
            left = began + longest - time.monotonic()
            if left <= 0 or self.has_other_history:
                return False
            self._changed.wait(left)
        return True

    # The thread

    def _run(self) -> None:
        while (group := self._next_group()) is not None:
            try:
                self._take(group)
            except OtherHistory:
                self.note_other_history()
            except Exception as error:
                # The edge of the thread: whatever it was, it is logged, and tried again.
                self._fail(error, group)
            else:
                with self._changed:
                    self._failures.clear()
                    self.problem = None

    def _next_group(self) -> list[_Waiting] | None:
        """What to commit next; none: only look for others' changes. None at the end."""
        with self._changed:
            while True:
                if self._is_stopping or self.has_other_history:
                    return None
                now = time.monotonic()
                due = max(0.0 if self._waiting else self._poll_at, self._try_at)
                if due <= now:
                    return self._group()
                self._changed.wait(due - now)

    def _group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        keys: set[str] = set()
        size = 0
        for waiting in self._waiting:
            size += waiting.change.size
            if group and (size > GROUP_BYTES_MAX or len(group) == GROUP_CHANGES_MAX):
                break
            # Two that share a key do not know each other: the second is decided again.
            if keys.isdisjoint(waiting.change.keys):
                keys |= waiting.change.keys
                group.append(waiting)
        return group

    def _take(self, group: list[_Waiting]) -> None:
        mark = self._copy.head
        with (
            _closed_on_failure(self._connections) as connection,
            self._connections.limiting(connection, ANSWER_SECONDS),
        ):
            if not self._is_checked and self._copy.highest.request:
                # A process that was killed may have left more than it knew to be on the disk.
                rows.newer(connection, "", "", self._copy.highest, by_owner=False)
            self._is_checked = True
            if isinstance(self.problem, LockNotAvailable):
                rows.end_stopped(connection)
            if group:
                changes = [waiting.change for waiting in group]
                committed = rows.commit(connection, changes, mark)
            else:
                committed = Committed({}, rows.read_page(connection, mark))
                if time.monotonic() >= self._forget_at:
                    connection.execute(FORGET_ANSWERS, (int(time.time()),))
                    self._forget_at = time.monotonic() + FORGET_SECONDS
        page = committed.rows
        self._copy.put(page)
        head, serials = self._copy.head.serial, committed.serials
        with self._changed:
            self._end(group, lambda one: serials.get(one.requests[-1], Overtaken(head)))
            self._is_current = not _is_full(page)
            if self._is_current and self._first_head is None:
                self._first_head = self._copy.head.serial
            self._poll_at = time.monotonic() + (POLL_SECONDS if self._is_current else 0.0)
            self._changed.notify_all()

    def _end(self, group: list[_Waiting], outcome: Callable[[Change], int | RequestError]) -> None:
        """Tell the threads that wait for these what became of their changes. Has the lock."""
        for waiting in group:
            waiting.outcome = outcome(waiting.change)
        self._waiting = [waiting for waiting in self._waiting if waiting.outcome is None]
        self._changed.notify_all()

    def _fail(self, error: Exception, group: list[_Waiting]) -> None:
        with self._changed:
            self._failures.add("The database cannot be used; the log has the cause.")
            self.problem = error
            if isinstance(error, psycopg.IntegrityError):
                # A decision contradicts the database; it would do so again.
                self._end(group, lambda _: StoreUnavailable())
            pause = pause_seconds(self._failures.count, PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX)
            self._try_at = time.monotonic() + pause
            self._changed.notify_all()
            count = self._failures.count
            if isinstance(error, psycopg.OperationalError | RequestError):
                # For the operator alone: it names hosts and users.
                log_event(log, logging.WARNING, "commits", reason=str(error), failures=count)
            else:
                log_event(log, logging.ERROR, "commits", error, failures=count)


@contextlib.contextmanager
def _closed_on_failure(connections: Connections):
    """A connection, which is closed if anything fails: nobody knows what it is doing."""
    with connections.taken() as connection:
        try:
            yield connection
        except BaseException:
            connection.close()
            raise


def _is_full(page: list[Row]) -> bool:
    """Whether there may be more after a page."""
    return len(page) >= rows.PAGE_ROWS or sum(row.size for row in page) >= rows.PAGE_BYTES // 2
