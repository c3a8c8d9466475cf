"""Messages on standard error for people. What cannot be written is lost, so a full disk stops no
service.
"""

import io
import sys
from collections.abc import Sequence

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
