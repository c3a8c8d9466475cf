"""Shows on standard error how far long work is, once it has taken a second."""

import sys
import time
from typing import Self

FIRST_AFTER_SECONDS = 1.0
TERMINAL_EVERY_SECONDS = 0.1
# In a log, a line now and then shows that the work continues.
LOG_EVERY_SECONDS = 10.0


class Progress:
    """Call it with (what, done, total) as often as you like; use it as a context manager."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next = time.monotonic() + FIRST_AFTER_SECONDS
        self._is_line_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Clear the progress line."""
        if self._is_line_open:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        line = f"{what}: {done:,} of {total:,}"
        if self._is_terminal:
            sys.stderr.write(f"\r\033[K{line}")
            sys.stderr.flush()
            self._is_line_open = True
            self._next = now + TERMINAL_EVERY_SECONDS
        else:
            print(line, file=sys.stderr)
            self._next = now + LOG_EVERY_SECONDS
