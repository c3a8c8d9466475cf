"""Processes many items in parallel, with a limited number under way."""

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from typing import NamedTuple, TypeVar

from builder.model.progress import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    """Yields the result of ``function`` for each item, as it arrives, from ``jobs`` threads.

    After an error nothing more begins. The error is raised when items under way have ended.
    """
    items = iter(items)
    with ThreadPoolExecutor(jobs) as pool:
        # More items than threads, so that no thread waits for the caller.
        running = {pool.submit(function, item) for item in islice(items, 2 * jobs)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                running |= {pool.submit(function, item) for item in islice(items, len(done))}
        finally:
            pool.shutdown(cancel_futures=True)


class Work(NamedTuple):
    """The number of parallel jobs, and the function that shows progress."""

    jobs: int = 8
    progress: Progress = lambda what, done, total: None

    def each(
        self, what: str, function: Callable[[Item], Result], items: Collection[Item]
    ) -> Iterator[Result]:
        """See ``in_parallel``. ``what`` names the work for ``progress``."""
        for done, result in enumerate(in_parallel(function, items, self.jobs)):
            self.progress(what, done, len(items))
            yield result
