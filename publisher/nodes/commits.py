"""The thread of a node that commits the waiting changes, and follows those of other nodes.

The next group has all waiting changes that fit, so many share a round trip. The database answers
with the new rows, the node's own among them. The thread applies these in order to the node's copy,
and only then answers the publishers. After any failure, the next group sends the same requests
again, and learns which of them are already committed.
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

# The thread looks for changes of other nodes this often.
POLL_SECONDS = 0.25
# The longest time that a publisher waits for a commit, and a shorter one for when the database
# fails. After it, the request fails with ``storage_unavailable``.
PATIENCE_SECONDS, FAILING_PATIENCE_SECONDS = 30.0, 3.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.05, 0.5
# After this time, an answer of the database counts as lost, and the group is sent again.
ANSWER_SECONDS = 6.0
# The most that a group holds; a single larger change is a group of its own.
GROUP_BYTES_MAX, GROUP_CHANGES_MAX = 1024 * 1024, 500
FORGET_SECONDS = 600.0

UNAVAILABLE = (
    "This node cannot save anything now, or is behind the others. Send the same request again in a "
    "moment, or to another node: with an Idempotency-Key nothing is saved twice."
)
OTHER_HISTORY = (
    "The database has another history than this node: it was restored to an earlier moment, or "
    "its standby took over without the last changes. This node writes nothing. Stop it, move its "
    "content folder away, and start it: it reads everything again."
)

log = logging.getLogger("hub.nodes")


class StoreUnavailable(RequestError):
    """Nothing can be committed, or it is not known whether a change is committed."""

    def __init__(self, message: str = UNAVAILABLE) -> None:
        super().__init__("storage_unavailable", message)


class Overtaken(RequestError):
    """Another change was committed first. Decide again once everything up to ``serial`` is
    applied.
    """

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
    """While entered, commits changes, and applies to ``copy`` everything that is committed. Any
    number of threads may use it.
    """

    def __init__(self, connections: Connections, copy: Copy) -> None:
        super().__init__("commits")
        self._connections = connections
        self._copy = copy
        self._waiting: list[_Waiting] = []
        self._failures = Failures()
        self._poll_at = self._try_at = 0.0
        self._forget_at = time.monotonic()
        # The hub's serial at the last look; whether the copy had all up to it then, and whether it
        # ever had.
        self._head = copy.mark.serial
        self._is_current = self._was_current = False
        self._is_checked = False
        self.has_other_history = False
        # The last failure, for operators.
        self.problem: Exception | None = None

    def commit(self, change: Change) -> int:
        """Commits and applies a change; returns its serial. For a change without files, returns the
        serial of the newest change.

        Raises Overtaken; StoreUnavailable, in which case the change may be committed nevertheless.
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
        """True if the copy has everything up to a serial within so many seconds."""
        with self._changed:
            if self._copy.mark.serial < serial:
                self._poll_at = 0.0
                self._changed.notify_all()
            return self._changed.wait_for(lambda: self._copy.mark.serial >= serial, seconds)

    def wait_current(self) -> None:
        """Waits until this node has everything that its last look found: it must not decide while
        it is a page behind. Raises StoreUnavailable.
        """
        with self._changed:
            fails = self._failures.count > 0
            seconds = FAILING_PATIENCE_SECONDS if fails else PATIENCE_SECONDS
            self._changed.wait_for(lambda: self._is_current or self.has_other_history, seconds)
            if self.has_other_history or not self._is_current:
                raise self._unavailable()

    def wait_ready(self, seconds: float) -> bool:
        """True if the copy has what the database had at the start, within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._was_current, max(seconds, 0))

    def note_other_history(self) -> StoreUnavailable:
        """Stops writing until the process ends; returns the error to raise."""
        with self._changed:
            if not self.has_other_history:
                log_event(log, logging.ERROR, "commits", reason=OTHER_HISTORY)
                self.has_other_history = True
                self._failures.add(OTHER_HISTORY)
            self._end(self._waiting, lambda _: self._unavailable())
            return self._unavailable()

    def status(self) -> dict[str, Any]:
        """Returns the state of this thread, for people and monitors."""
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
                # The edge of the thread: any error is logged, and the group is tried again.
                self._fail(error, group)
            else:
                with self._changed:
                    self._failures.clear()
                    self.problem = None

    def _next_group(self) -> list[_Waiting] | None:
        """Returns the changes to commit next, after a wait. An empty list: only look for changes of
        other nodes. None: the thread ends.
        """
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
            # Two changes that share a key were decided without each other, so the second is decided
            # again.
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
            # A change that is not applied yet is on a later page.
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
            # A killed process may have left a folder with later rows than ``.hub-store`` says are
            # on the disk. So the last one is checked once.
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
        """Gives the waiting threads the outcome of their changes. The caller holds the lock."""
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
                # The decision contradicts the database, and would do so again.
                self._end(group, lambda _: StoreUnavailable())
            pause = pause_seconds(self._failures.count, PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX)
            self._try_at = time.monotonic() + pause
            self._changed.notify_all()
            count = self._failures.count
            if isinstance(error, psycopg.OperationalError | RequestError):
                # Only in the operator's log: the text names hosts and users.
                log_event(log, logging.WARNING, "commits", reason=str(error), failures=count)
            else:
                log_event(log, logging.ERROR, "commits", error, failures=count)
