"""The log of a store: the one order of all changes, and the thread that writes and follows it.

To create ``log/{number}`` is to commit the changes in it. Whoever finds the number taken reads
what has taken it. Changes that share a key with it are *overtaken*: they were decided without it,
and are decided again. The others try the next number.

Every change that is waited for is in the next attempt, so many publications share one object. If
the answer to a creation is lost, the entry may be there, or even come later. Then the next attempt
is made at the same number, where only one of them can ever be; its id tells which.

Who has created an entry knows its number first, and would be first at the next one, too: others
must read the entry before they can try. So a node *leaves* the next number to the others, for the
time that they need, when they have written one of the last few; and now and then in any case, since
of those who have written nothing it knows nothing.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from builder.model.background import Background, Failures, pause_seconds
from builder.model.errors import RequestError
from builder.model.records import format_time
from publisher.log import log_event
from publisher.nodes.entries import (
    Change,
    Entry,
    encode,
    entry_key,
    list_entries,
    read_entries,
)
from publisher.nodes.objects import Objects, StoreUnavailable

# How often the log is looked at for what other nodes have written.
POLL_SECONDS = 1.0
# How long somebody waits for a commit, and while the store fails.
PATIENCE_SECONDS, FAILING_PATIENCE_SECONDS = 30.0, 3.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.1, 1.0
# Of one entry that this node writes, unless one change alone has more.
BATCH_BYTES_MAX, BATCH_CHANGES_MAX = 1024 * 1024, 500
# So many keys that entries touched are remembered.
TOUCHED_MAX = 50_000
# So many entries are asked for at once where one is known to be there: others who write would be
# one ahead for ever of who reads one after another. Where all are, a listing tells the rest.
AHEAD = 3
# The next number is left to others while one of the last so many entries is theirs, or so often.
# It is left for so many times what a creation takes, since they read before they create.
LEAVE_AFTER, LEAVE_EVERY_SECONDS = 4, 2.0
LEAVE_CREATIONS, LEAVE_SECONDS_MAX = 3, 1.0

UNAVAILABLE = (
    "The store of this hub does not answer. Send the same request again in a moment: with an "
    "Idempotency-Key nothing is saved twice."
)

log = logging.getLogger("hub.store")


def wait_for(
    changed: threading.Condition, is_done: Callable[[], bool], seconds: float, failures: Failures
) -> bool:
    """Wait until something is done, for so many seconds, or as long as one may if what does it
    fails; whether it is. The caller has the lock.
    """
    began = time.monotonic()
    while not is_done():
        longest = min(seconds, FAILING_PATIENCE_SECONDS) if failures.count else seconds
        left = began + longest - time.monotonic()
        if left <= 0:
            return False
        changed.wait(left)
    return True


class Overtaken(RequestError):
    """Another change was committed first, as entry ``number``; decide again when it is applied."""

    def __init__(self, number: int) -> None:
        super().__init__(
            "version_conflict",
            "Another node has changed this prompt at the same time. Send the same request again.",
        )
        self.number = number


class Waiting:
    """A change that somebody waits for, who has seen all entries up to ``seen``."""

    def __init__(self, change: Change, seen: int) -> None:
        self.change = change
        self.seen = seen
        self.is_decided = False
        self.number: int | None = None
        self.overtaken_by: int | None = None
        # Nobody waits any more: whatever comes of it, others apply it.
        self.is_abandoned = False
        # Whoever waited for it has applied it, or has failed to.
        self.is_over = threading.Event()
        self.is_applied = False


class _Asked:
    """Somebody asks whether there is anything newer."""

    is_answered = False


class _Turn(NamedTuple):
    """What the thread does next: try to commit a batch, or look for others' entries if that is
    empty. Then those know whether there is anything newer who asked before it.
    """

    batch: list[Waiting]
    asked: list[_Asked]


class Log(Background):
    """While entered, commits changes and follows what others commit. ``on_entry`` gets each entry
    after the one that ``begin`` tells, in order, with those changes of it that somebody here waits
    for; it may wait until there is room. ``begin`` is called in the thread, until it raises
    nothing. For any number of threads.
    """

    def __init__(
        self, objects: Objects, node: str, begin: Callable[[], int],
        on_entry: Callable[[int, Entry, list[Waiting]], None],
    ) -> None:  # fmt: skip
        super().__init__("log")
        self.head = 0
        self._begin: Callable[[], int] | None = begin
        self._objects = objects
        self._node = node
        self._on_entry = on_entry
        self._waiting: list[Waiting] = []
        self._asked: list[_Asked] = []
        # By id, what was tried at the next number.
        self._attempts: dict[str, list[Waiting]] = {}
        # By key, the last entry that touched it; of those up to the floor nothing is known.
        self._touched: dict[str, int] = {}
        self._floor = 0
        self._failures = Failures()
        # What the store said at the last failure, for operators.
        self.problem: Exception | None = None
        self._look_at = self._try_at = 0.0
        # Until when the next number is left to others, and when that was last so.
        self._leaves_until, self._left_at = 0.0, time.monotonic()
        # The number of the newest entry that others have written.
        self._others = -LEAVE_AFTER

    def commit(self, change: Change, seen: int) -> Waiting:
        """Have a change committed; it is when this returns, and ``number`` says where. The caller
        has seen all entries up to ``seen``, and sets ``is_over`` once it has applied the change.

        Raises Overtaken; StoreUnavailable, after which it may be committed nevertheless.
        """
        waiting = Waiting(change, seen)
        with self._changed:
            self._waiting.append(waiting)
            self._drop_overtaken()
            self._changed.notify_all()
            if not self._await(lambda: waiting.is_decided):
                waiting.is_abandoned = True
                self._waiting.remove(waiting)
                raise StoreUnavailable(UNAVAILABLE)
        if waiting.overtaken_by is not None:
            raise Overtaken(waiting.overtaken_by)
        return waiting

    def newest(self) -> int:
        """The number of an entry after which there was none at some moment of this call. Raises
        StoreUnavailable.
        """
        return self._ask(lambda: False)

    def confirm(self, keys: Collection[str], seen: int) -> int:
        """As ``newest``, of somebody who decides by ``keys`` and has seen all entries up to
        ``seen``. Raises Overtaken, at once, where a later one has one of the keys: who waits for
        that to be applied must not hold what that needs.
        """
        head = self._ask(lambda: self._last_touch(keys, seen) is not None)
        self.check_untouched(keys, seen)
        return head

    def check_untouched(self, keys: Collection[str], seen: int) -> None:
        """Raises Overtaken where an entry after ``seen`` has one of these keys, as far as this node
        has read.
        """
        with self._changed:
            number = self._last_touch(keys, seen)
            if number is not None:
                raise Overtaken(number)

    def status(self) -> dict[str, Any]:
        """For people and monitors."""
        with self._changed:
            return {"head": self.head, "waiting": len(self._waiting), **self._failures.status()}

    def _ask(self, is_enough: Callable[[], bool]) -> int:
        """The newest number, as soon as it is sure or what is known ``is_enough``."""
        asked = _Asked()
        with self._changed:
            self._asked.append(asked)
            self._changed.notify_all()
            if not self._await(lambda: asked.is_answered or is_enough()):
                raise StoreUnavailable(UNAVAILABLE)
            return self.head

    def _await(self, is_done: Callable[[], bool]) -> bool:
        return wait_for(self._changed, is_done, PATIENCE_SECONDS, self._failures)

    # The thread

    def _run(self) -> None:
        while turn := self._next_turn():
            try:
                if self._begin:
                    self.head = self._floor = self._begin()
                    self._begin = None
                self._take(turn)
            except Exception as error:
                # The edge of the thread: whatever it was, it is told, and tried again.
                self._fail(error, turn.asked)
            else:
                with self._changed:
                    self._failures.clear()
                    self.problem = None

    def _next_turn(self) -> _Turn | None:
        with self._changed:
            while True:
                now = time.monotonic()
                if self._is_stopping and not self._waiting:
                    return None
                wanted_at = self._look_at
                if self._waiting or self._asked:
                    wanted_at = 0.0
                due = max(wanted_at, self._try_at)
                if due <= now:
                    asked, self._asked = self._asked, []
                    # Until somebody has taken the number, or nobody in time, this only looks.
                    batch = self._batch() if self._leaves_until <= now else []
                    return _Turn(batch, asked)
                self._changed.wait(due - now)

    def _batch(self) -> list[Waiting]:
        """Those that are in the next attempt; the rest is in a later one."""
        batch: list[Waiting] = []
        keys: set[str] = set()
        size = 0
        for waiting in self._waiting:
            size += waiting.change.size
            is_full = size > BATCH_BYTES_MAX or len(batch) == BATCH_CHANGES_MAX
            if batch and is_full:
                break
            # Two that share a key do not know each other: the second is decided again.
            if keys.isdisjoint(waiting.change.keys):
                keys.update(waiting.change.keys)
                batch.append(waiting)
        return batch

    def _take(self, turn: _Turn) -> None:
        if turn.batch:
            entry = Entry(
                secrets.token_hex(8), format_time(datetime.now(UTC)), self._node,
                [waiting.change for waiting in turn.batch],
            )  # fmt: skip
            number = self.head + 1
            with self._changed:
                # Whoever waits for nothing any more needs to know nothing, either.
                for tried, batch in [*self._attempts.items()]:
                    if all(waiting.is_abandoned for waiting in batch):
                        del self._attempts[tried]
                self._attempts[entry.id] = turn.batch
            began = time.monotonic()
            if self._objects.create(entry_key(number), encode(entry)):
                seconds = time.monotonic() - began
                self._decide(number, entry)
                self._leave_next(seconds)
            elif not self._read_on(AHEAD):
                raise StoreUnavailable(
                    f"The store {self._objects.url} has {entry_key(number)}, and does not show it."
                )
        else:
            self._read_on(AHEAD if self._waiting else 1)
        with self._changed:
            self._look_at = time.monotonic() + POLL_SECONDS
            for asked in turn.asked:
                asked.is_answered = True
            self._changed.notify_all()

    def _leave_next(self, seconds: float) -> None:
        """Leave the next number to others, if it is their turn; a creation took so long."""
        now = time.monotonic()
        is_shared = self.head - self._others <= LEAVE_AFTER
        if is_shared or now - self._left_at >= LEAVE_EVERY_SECONDS:
            self._leaves_until = now + min(LEAVE_CREATIONS * seconds, LEAVE_SECONDS_MAX)
            self._left_at = now

    def _read_on(self, ahead: int) -> bool:
        """Take in all that there is after the head; whether there was any. At first so many
        entries are asked for at once.
        """
        before = self.head
        while self._take_in(range(self.head + 1, self.head + 1 + ahead)):
            if ahead == AHEAD:  # more than a few
                self._take_in(list_entries(self._objects, self.head))
            ahead = AHEAD
        return self.head > before

    def _take_in(self, numbers: Sequence[int]) -> bool:
        """Take in entries with these numbers, up to the first that is not the next one, or is not
        there; whether all were.
        """
        for number, entry in read_entries(self._objects, numbers):
            if number != self.head + 1 or entry is None:
                return False
            self._decide(number, entry)
        return True

    def _decide(self, number: int, entry: Entry) -> None:
        """The entry at the next number is known."""
        with self._changed:
            if entry.id not in self._attempts:
                self._others = number
            batch = self._attempts.pop(entry.id, [])
            self._attempts.clear()
            self.head = number
            self._leaves_until = 0.0
            for change in entry.changes:
                self._remember(number, change)
            own = [waiting for waiting in batch if not waiting.is_abandoned]
            for waiting in own:
                waiting.number = number
                self._waiting.remove(waiting)
                waiting.is_decided = True
            self._drop_overtaken()
            self._changed.notify_all()
        self._on_entry(number, entry, own)

    def _remember(self, number: int, change: Change) -> None:
        for key in change.keys:
            self._touched.pop(key, None)  # so that the newest are last
            self._touched[key] = number
        if len(self._touched) > TOUCHED_MAX:
            for key in [*self._touched][: TOUCHED_MAX // 2]:
                self._floor = max(self._floor, self._touched.pop(key))

    def _drop_overtaken(self) -> None:
        for waiting in [*self._waiting]:
            number = self._last_touch(waiting.change.keys, waiting.seen)
            if number is not None:
                waiting.overtaken_by = number
                self._waiting.remove(waiting)
                waiting.is_decided = True

    def _last_touch(self, keys: Collection[str], seen: int) -> int | None:
        """The last entry after ``seen`` that has one of the keys, or may have."""
        touches = [self._touched.get(key, 0) for key in keys]
        last = max(touches, default=0)
        if last > seen:
            return last
        return self._floor if seen < self._floor else None

    def _fail(self, error: Exception, asked: list[_Asked]) -> None:
        with self._changed:
            self._asked += asked
            self.problem = error
            self._failures.add("The store cannot be reached, or refuses; the log has the cause.")
            count = self._failures.count
            pause = pause_seconds(count, PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX)
            self._try_at = time.monotonic() + pause
            self._changed.notify_all()  # patience is shorter now
        if count == 1 or count % 10 == 0:
            log_event(log, logging.WARNING, "store", error, failures=count)
