"""The thread of a node that commits what waits, and follows what other nodes commit.

All changes that wait are in the next group, so many share a round trip. The thread applies the rows
that come back to the node's copy in their order, its own among them, and only then answers. After
any failure, the next group has the same requests again, and finds those that are committed.
"""

import contextlib
import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import psycopg

from builder.model.errors import RequestError
from builder.pipeline.background import Background, Failures, pause_seconds
from publisher.accounts.postgres_pool import Connections
from publisher.log import log_event
from publisher.nodes import rows
from publisher.nodes.copy import Copy
from publisher.nodes.rows import FORGET_ANSWERS, Change, OtherHistory, Page

# How often the thread looks for changes of other nodes.
POLL_SECONDS = 0.25
# How long a publisher waits for a commit, and while the database fails.
PATIENCE_SECONDS, FAILING_PATIENCE_SECONDS = 30.0, 3.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.05, 0.5
# After this time an answer counts as lost.
ANSWER_SECONDS = 6.0
# The most that a group has, unless one change alone has more.
GROUP_BYTES_MAX, GROUP_CHANGES_MAX = 1024 * 1024, 500
FORGET_SECONDS = 600.0

UNAVAILABLE = (
    "This node cannot save anything now, or is behind the others. Send the same request again in a "
    "moment, or to another node: with an Idempotency-Key nothing is saved twice."
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


class _Waiting(NamedTuple):
    """A change that a thread waits for; ``done`` gets its serial."""

    change: Change
    done: Future[int]


class Commits(Background):
    """While entered, commits changes, and applies all that is committed to ``copy``. For any number
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
        # The hub's serial at the last look; whether the copy had all up to there, or ever had.
        self._head = copy.mark.serial
        self._is_current = self._was_current = False
        self._is_checked = False
        self.has_other_history = False
        # What the last failure was, for operators.
        self.problem: Exception | None = None

    def commit(self, change: Change) -> int:
        """Commit and apply a change; returns its serial, or that of the newest change, where it has
        no files.

        Raises Overtaken; StoreUnavailable, after which it may be committed nevertheless.
        """
        waiting = _Waiting(change, Future())
        with self._changed:
            self._waiting.append(waiting)
            self._changed.notify_all()
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            left = until - time.monotonic()
            with contextlib.suppress(TimeoutError):
                return waiting.done.result(min(left, FAILING_PATIENCE_SECONDS))
            with self._changed:
                if (left <= 0 or self._failures.count) and waiting.done.cancel():
                    self._waiting.remove(waiting)
                    raise self._unavailable()

    def wait_applied(self, serial: int, seconds: float) -> bool:
        """Whether the copy has all up to a serial within so many seconds."""
        with self._changed:
            if self._copy.mark.serial < serial:
                self._poll_at = 0.0
                self._changed.notify_all()
            return self._changed.wait_for(lambda: self._copy.mark.serial >= serial, seconds)

    def wait_current(self) -> None:
        """Wait until this node has all that there was at its last look: it must not decide while it
        is a page behind. Raises StoreUnavailable.
        """
        with self._changed:
            fails = self._failures.count > 0
            seconds = FAILING_PATIENCE_SECONDS if fails else PATIENCE_SECONDS
            self._changed.wait_for(lambda: self._is_current or self.has_other_history, seconds)
            if self.has_other_history or not self._is_current:
                raise self._unavailable()

    def wait_ready(self, seconds: float) -> bool:
        """Whether the copy has what there was at the start, within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._was_current, max(seconds, 0))

    def note_other_history(self) -> StoreUnavailable:
        """Stop writing for good; returns what to raise."""
        with self._changed:
            if not self.has_other_history:
                log_event(log, logging.ERROR, "commits", reason=OTHER_HISTORY)
                self.has_other_history = True
                self._failures.add(OTHER_HISTORY)
            self._end(self._waiting, lambda _: self._unavailable())
            return self._unavailable()

    def status(self) -> dict[str, Any]:
        """For people and monitors."""
        with self._changed:
            applied = self._copy.mark.serial
            return {
                "applied": applied,
                "behind": max(self._head - applied, 0),
                "other_history": self.has_other_history,
                **self._failures.status(),
            }

    def _unavailable(self) -> StoreUnavailable:
        return StoreUnavailable(OTHER_HISTORY if self.has_other_history else UNAVAILABLE)

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
        with self._connections.asking(ANSWER_SECONDS) as connection:
            serials, page = self._ask(connection, [waiting.change for waiting in group])
        self._copy.apply(page.rows)
        applied = self._copy.mark.serial

        def outcome(change: Change) -> int | RequestError | None:
            serial = serials.get(change.requests[-1])
            if serial is None:
                return Overtaken(applied)
            # Otherwise it is on a later page.
            return serial if serial <= applied or not change.files else None

        with self._changed:
            self._head = page.head
            self._is_current = applied >= page.head
            self._was_current = self._was_current or self._is_current
            self._poll_at = time.monotonic() + (POLL_SECONDS if self._is_current else 0.0)
            self._end(group, outcome)

    def _ask(
        self, connection: psycopg.Connection, changes: list[Change]
    ) -> tuple[dict[uuid.UUID, int], Page]:
        if not self._is_checked and self._copy.highest.request:
            # A process that was killed may have left more than it knew to be on the disk.
            rows.newer(connection, "", "", self._copy.highest, by_owner=False)
        self._is_checked = True
        if changes:
            return rows.commit(connection, changes, self._copy.mark)
        if time.monotonic() >= self._forget_at:
            connection.execute(FORGET_ANSWERS, (int(time.time()),))
            self._forget_at = time.monotonic() + FORGET_SECONDS
        return {}, rows.read_page(connection, self._copy.mark)

    def _end(
        self, group: list[_Waiting], outcome: Callable[[Change], int | RequestError | None]
    ) -> None:
        """Give the threads that wait for these what became of their changes. Has the lock."""
        for change, done in group:
            result = None if done.cancelled() else outcome(change)
            if isinstance(result, RequestError):
                done.set_exception(result)
            elif result is not None:
                done.set_result(result)
        self._waiting = [waiting for waiting in self._waiting if not waiting.done.done()]
        self._changed.notify_all()

    def _fail(self, error: Exception, group: list[_Waiting]) -> None:
        with self._changed:
            self._failures.add("A change cannot be committed or applied; the log has the cause.")
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
