"""Standard error, for people: it loses what cannot be written, so that a log on a full disk stops
nothing.
"""

import io
import sys

import click


def say(message: str) -> None:
    """Print a message on standard error. Standard output is for data."""
    click.echo(message, err=True)


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
