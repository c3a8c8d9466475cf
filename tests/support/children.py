"""Work in child processes: at the same time, or until they die at a system call."""

import multiprocessing
import os
from collections.abc import Callable
from typing import TypeVar

from tests.support.calls import at, watched
from tests.support.servers import DEADLINE_SECONDS

T = TypeVar("T")
_DEAD = 9


def dies_at(number: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that dies at its system call with this number. True if the work got
    that far. It must raise nothing.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with watched(at(number, lambda: os._exit(_DEAD))):
                work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, _DEAD)
    return status == _DEAD


def processes_at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """Results of ``count`` processes that begin together; each gets its number."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(count)
    running = []
    for number in range(count):
        result, sender = context.Pipe(duplex=False)

        def run(number: int = number, sender=sender) -> None:
            start.wait(DEADLINE_SECONDS)
            sender.send(work(number))

        child = context.Process(target=run, daemon=True)
        child.start()
        sender.close()
        running.append((child, result))
    returned = []
    for child, result in running:
        with result:
            returned.append(result.recv())
        child.join()
        assert child.exitcode == 0
    return returned
