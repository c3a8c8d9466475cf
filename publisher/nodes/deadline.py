"""Until when a node may work, for all its processes: two numbers in memory that they share."""

import mmap
import os
import tempfile
import time

from builder.model.errors import OperatorError

# Also a machine that sleeps loses its right; macOS knows this clock by the other name.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BYTES = 16


def now() -> float:
    """Seconds on this machine's clock, which nobody sets and which all its processes share."""
    return time.clock_gettime(_CLOCK)


class Deadline:
    """The tenure of a node, numbered from 1, and the end of what it has of it. ``descriptor``: of
    the memory, in a process that has inherited it.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            with tempfile.TemporaryFile() as file:
                file.truncate(_BYTES)
                descriptor = os.dup(file.fileno())
        self.descriptor = descriptor
        self._map = mmap.mmap(descriptor, _BYTES)
        # Each number is read and written at once, so that nobody sees half of it.
        self._numbers = memoryview(self._map).cast("d")
        self._expected: int | None = None

    def extend(self, tenure: int, end: float) -> None:
        """Let whoever works in this tenure go on until ``end``, by ``now``."""
        self._numbers[0] = tenure  # first: what began in an earlier one must not go on
        self._numbers[1] = end

    def drop(self) -> None:
        """Let nobody go on."""
        self._numbers[1] = 0.0

    def tenure(self) -> int | None:
        """The tenure in which work may go on; None: there is none now."""
        return int(self._numbers[0]) if now() < self._numbers[1] else None

    def expect(self, tenure: int) -> None:
        """What is done in this process from now on belongs to this tenure."""
        self._expected = tenure

    def check(self) -> None:
        """Raises OperatorError if the work that was begun must not go on."""
        if self.tenure() != self._expected:
            raise OperatorError(
                "The lease of this node has ended, so another one may deploy. Nothing more is "
                "changed from here. If this happens often, check the connection to the store."
            )

    def close(self) -> None:
        self._numbers.release()
        self._map.close()
        os.close(self.descriptor)
