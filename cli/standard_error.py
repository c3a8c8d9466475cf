"""Messages on standard error for people. What cannot be written is lost, so a full disk stops no
service.
"""

import io
import sys
import time
from collections.abc import Sequence
from typing import Self

import click


def say(message: str) -> None:
    """Print a message on standard error. Standard output is for data."""
    click.echo(message, err=True)


def say_some(messages: Sequence[str], most: int, then: str = "") -> None:
    """Print the first messages and the number of the others. ``then``: how to see those."""
    for message in messages[:most]:
        say(message)
    if len(messages) > most:
        say(f"… and {len(messages) - most:,} more{then}")


def say_waiting(what: str) -> None:
    say(f"Waiting for another {what} to end.")


class _Losing(io.FileIO):
    def write(self, data: bytes) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def lose_what_cannot_be_written() -> None:
    """Let no message end this process. Does nothing where standard error is closed or replaced."""
    old = sys.stderr
    if old is not None and old is sys.__stderr__:
        raw = _Losing(old.fileno(), "wb", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw), old.encoding, old.errors, line_buffering=True
        )


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
