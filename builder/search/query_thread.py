"""One thread for all queries: those of readers, and of services that share it.

It limits the waiting queries and handles callers that disconnect, but does not know the queries.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from builder.model.errors import RequestError
from builder.model.metrics import LIMITS_HIT, Counter, Histogram
from builder.model.settings import Settings
from builder.search.kept import KeptAnswers, Watch
from builder.search.queries import Queries

SEARCHES = Counter(
    "hub_searches_total",
    "Searches and other queries that no file answers, MCP's included. kept: answered from memory; "
    "refused: too many were waiting; failed: the state or the search index was unusable.",
    result=("computed", "kept", "refused", "failed"),
)
SEARCH_SECONDS = Histogram(
    "hub_search_duration_seconds", "Time of a computed search, with its wait for those before it."
)

QUERIES_WAITING_MAX = 64

T = TypeVar("T")

log = logging.getLogger("hub.queries")


class QueryThread:
    """Owns a ``Queries`` and the only thread that runs it. Caches answers until the state or the
    index changes.

    ``report_unusable`` is called if the state or the index cannot be used, so that a build can
    repair it.
    """

    def __init__(
        self, settings: Settings, report_unusable: Callable[[], None] = lambda: None
    ) -> None:
        self._queries = Queries(settings)
        self._report_unusable = report_unusable
        self._thread = ThreadPoolExecutor(1, "queries")
        self._watch = Watch(settings)
        self._kept = KeptAnswers()
        self._places = threading.BoundedSemaphore(QUERIES_WAITING_MAX)

    def version(self) -> object | None:
        """The version of the state and the index; changes with each build that changes them, None
        if they cannot be read. Never waits.
        """
        return self._watch.version()

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call a method of Queries: ``await thread.run(Queries.find, query, 0, 10)``. Do not modify
        the answer: other callers get the same object.

        Raises its RequestErrors, and ``unavailable`` if too many queries wait or it fails in any
        other way.
        """
        version = self.version()
        if version is None:
            return await self._run(function, args)
        answer = self._kept.get(version, (function, args))
        if answer is None:
            answer = await self._run(function, args)
            self._kept.put(version, (function, args), answer)
        else:
            SEARCHES.count("kept")
        return answer

    async def _run(self, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        if not self._places.acquire(blocking=False):
            SEARCHES.count("refused")
            LIMITS_HIT.count("searches")
            raise RequestError("unavailable", "Too many searches at once. Try again in a moment.")
        is_abandoned = threading.Event()
        job = self._thread.submit(self._work, is_abandoned, time.perf_counter(), function, args)
        answer = asyncio.wrap_future(job)
        try:
            # Shielded, because a cancelled job would stay in the queue without being counted.
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            is_abandoned.set()
            # Its error is retrieved here, because asyncio logs errors that are never retrieved.
            answer.add_done_callback(asyncio.Future.exception)
            raise

    def _work(
        self,
        is_abandoned: threading.Event,
        since: float,
        function: Callable[..., T],
        args: tuple[Any, ...],
    ) -> T | None:
        result = "computed"
        try:
            return None if is_abandoned.is_set() else self._ask(function, args)
        except RequestError as error:
            if error.code == "unavailable":
                result = "failed"
            raise
        finally:
            SEARCHES.count(result)
            SEARCH_SECONDS.observe(time.perf_counter() - since)
            self._places.release()

    def _ask(self, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        # Twice, the second time with files opened again: a build may just have replaced the open
        # ones.
        for _ in range(2):
            try:
                return function(self._queries, *args)
            except RequestError as error:
                if error.code != "unavailable":
                    raise
                failure = error
            except Exception:
                log.exception("A query failed")
                self._queries.close()
                failure = RequestError("unavailable", "This query failed. Try again in a moment.")
        self._report_unusable()
        raise failure

    def close(self) -> None:
        """Finish running and waiting queries, then close the files."""
        self._thread.submit(self._queries.close)
        self._thread.shutdown()
        self._watch.close()
