"""Turns for the work that anyone may request: checks of drafts, and comparisons.

All threads of a process share one lock of the interpreter, so such work slows down publications.
It therefore waits for them, few requests run at a time, and each client has a budget of CPU time.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from server.throttle import Throttle

# CPU time that the requests of one address may take in a minute.
MILLISECONDS_PER_MINUTE = 10_000
RUNNING_MAX = 2
# A request waits this long for publications; then it runs beside them.
PATIENCE_SECONDS = 5.0


class Work:
    """The turns of one process."""

    def __init__(self) -> None:
        self._spent = Throttle(MILLISECONDS_PER_MINUTE, "check")
        self._running = threading.Semaphore(RUNNING_MAX)
        self._change = threading.Condition()
        self._publications = 0

    @contextmanager
    def publication(self) -> Iterator[None]:
        """Has all work wait that has not begun."""
        with self._change:
            self._publications += 1
        try:
            yield
        finally:
            with self._change:
                self._publications -= 1
                self._change.notify_all()

    @contextmanager
    def turn(self, client: str, refuse: Callable[[int], None]) -> Iterator[None]:
        """Waits for a turn, and counts its CPU time for ``client``. Calls ``refuse``, which raises,
        with the seconds to wait if the client's budget is spent.
        """
        if wait_seconds := self._spent.wait_seconds(client):
            refuse(wait_seconds)
        with self._running:
            with self._change:
                self._change.wait_for(lambda: not self._publications, PATIENCE_SECONDS)
            began = time.thread_time()
            try:
                yield
            finally:
                self._spent.spend(client, round(1000 * (time.thread_time() - began)))
