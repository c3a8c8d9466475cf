"""The event loop in which a deployment waits for its destination."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from builder.model.errors import OperatorError

Item = TypeVar("Item")
Result = TypeVar("Result")
Start = Callable[[], Coroutine[Any, Any, None]]


class _Loop(asyncio.SelectorEventLoop):
    """A loop that closes when other threads have left it.

    Threads of obstore wake the loop from Rust. If one of them is still in Python when the
    interpreter ends, the process aborts (https://github.com/PyO3/pyo3-async-runtimes/issues/40).
    """

    def __init__(self) -> None:
        super().__init__()
        self._entered = threading.RLock()

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        with self._entered:
            return super().call_soon_threadsafe(*args, **kwargs)

    def close(self) -> None:
        with self._entered:
            super().close()


def run(start: Start) -> None:
    """Run a coroutine to its end in this thread."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(start())


async def each(
    function: Callable[[Item], Awaitable[Result]],
    items: Iterable[Item],
    jobs: int,
    note: Callable[[Result], None],
) -> None:
    """Await the function for each item, for ``jobs`` at once, and pass each result to ``note``.

    After an error no other item begins. The error is raised when those under way have ended.
    """
    items = iter(items)
    errors: list[OperatorError] = []

    async def work() -> None:
        try:
            for item in items:
                if errors:
                    return
                note(await function(item))
                await asyncio.sleep(0)  # lets a cancellation happen if nothing has waited
        except OperatorError as error:
            errors.append(error)

    await asyncio.gather(*(work() for _ in range(jobs)))
    if errors:
        raise errors[0]
