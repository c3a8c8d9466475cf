"""The lock of a place that commands write to."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from builder.store.locks import lock_file, try_lock


@contextlib.contextmanager
def lock(path: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock ``{path}.lock``, which one process has at a time; waits for the others.

    ``on_wait`` is called once if another process has it. Raises OperatorError.
    """
    with lock_file(*os.path.split(f"{path}.lock")) as file:
        if not try_lock(file):
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
