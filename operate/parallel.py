"""Does the same to many things at once, a bounded number of them under way."""

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import NamedTuple, TypeVar

from builder.model.progress import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    """Yields the result of ``function`` for each item, as it comes, from ``jobs`` threads.

    After an error nothing more begins; it is raised once what was under way has been yielded.
    """
    items = iter(items)
    failure: BaseException | None = None
    with ThreadPoolExecutor(jobs) as pool:
        # More than threads, so that no thread waits for the caller.
        running = {pool.submit(function, item) for item in islice(items, 2 * jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            results, failures = _split(done)
            if failures and failure is None:
                failure = failures[0]
                running = {future for future in running if not future.cancel()}
            yield from results
            if failure is None:
                running |= {pool.submit(function, item) for item in islice(items, len(done))}
    if failure:
        raise failure


class Work(NamedTuple):
    """The number of things done at once, and the function that shows progress."""

    jobs: int = 8
    progress: Progress = lambda what, done, total: None

    def each(
        self, what: str, function: Callable[[Item], Result], items: Collection[Item]
    ) -> Iterator[Result]:
        """See ``in_parallel``. ``what`` names the work for ``progress``."""
        for done, result in enumerate(in_parallel(function, items, self.jobs)):
            self.progress(what, done, len(items))
            yield result


def _split(done: set[Future[Result]]) -> tuple[list[Result], list[BaseException]]:
    failures = [error for future in done if (error := future.exception())]
    return [future.result() for future in done if not future.exception()], failures
