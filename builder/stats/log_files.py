"""Reads lines of log files, packed with gzip or not, in constant memory."""

import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from builder.model.errors import OperatorError

STANDARD_INPUT = "-"
# Servers limit a request's headers to less, so no real line is longer.
LINE_BYTES_MAX = 1 << 20
# Stands for a longer line; matches no format.
OVERLONG = b"\0"

_BUFFER_BYTES = 1 << 18


def lines_of(path: str) -> Iterator[bytes]:
    """The lines of a log, or of standard input (``-``); ``OVERLONG`` for one of more than
    ``LINE_BYTES_MAX`` bytes. Raises OperatorError if it cannot be read to its end.
    """
    try:
        # Standard input is not closed here, because it belongs to the process.
        is_input = path == STANDARD_INPUT
        source = sys.stdin.fileno() if is_input else path
        with contextlib.ExitStack() as opened:
            file: BinaryIO = opened.enter_context(
                open(source, "rb", _BUFFER_BYTES, closefd=not is_input)
            )
            if file.peek(2).startswith(b"\x1f\x8b"):
                file = opened.enter_context(gzip.open(file))
            while line := file.readline(LINE_BYTES_MAX):
                if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                    # The rest of the line must not be read as a line of its own.
                    while (rest := file.readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
                        pass
                    line = OVERLONG
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise OperatorError(
            f"Cannot read {path}: {getattr(error, 'strerror', None) or error}. Nothing was "
            "counted. Repair the file or leave it out, and run the command again."
        ) from error
