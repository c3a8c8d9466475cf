"""One thread for the queries of all who ask: the reads, and whoever shares it with them.

Knows how many may wait and what becomes of a caller that goes away; not what is asked.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from builder.errors import RequestError
from builder.queries import Queries
from builder.settings import Settings

QUERIES_WAITING_MAX = 64

T = TypeVar("T")


class QueryThread:
    """Owns a ``Queries``, and the only thread that runs it."""

    def __init__(self, settings: Settings) -> None:
        self._queries = Queries(settings)
        self._thread = ThreadPoolExecutor(1, "queries")
        self._places = threading.BoundedSemaphore(QUERIES_WAITING_MAX)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call a method of Queries: ``await thread.run(Queries.find, query, 0, 10)``.

        Raises what it raises, or RequestError ``unavailable`` where too many wait.
        """
        if not self._places.acquire(blocking=False):
            raise RequestError("unavailable", "Too many searches at once; try again in a moment.")
        is_abandoned = threading.Event()
        job = self._thread.submit(self._work, is_abandoned, function, args)
        answer = asyncio.wrap_future(job)
        try:
            # Shielded, or a cancelled job would stay in the queue without a place in the count.
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            is_abandoned.set()
            # Its error is nobody's any more; asyncio would complain that it was not looked at.
            answer.add_done_callback(asyncio.Future.exception)
            raise

    def _work(
        self, is_abandoned: threading.Event, function: Callable[..., T], args: tuple[Any, ...]
    ) -> T | None:
        try:
            return None if is_abandoned.is_set() else function(self._queries, *args)
        finally:
            self._places.release()

    def close(self) -> None:
        """End what is under way and what waits, then close the files."""
        self._thread.submit(self._queries.close)
        self._thread.shutdown()
