"""Reads lines of log files, compressed or not, in constant memory."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from builder.model.errors import OperatorError

STANDARD_INPUT = "-"
# Servers limit a request's headers to less, so no real line is longer.
LINE_BYTES_MAX = 1 << 20
# Stands for a longer line; matches no format.
OVERLONG = b"\0"

_BUFFER_BYTES = 1 << 18
_READERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


class LogFile:
    """One log as a context manager; ``-`` is standard input.

    All methods raise OperatorError if the file cannot be read to its end.
    """

    def __init__(self, path: str) -> None:
        #: The name in messages.
        self.name = "standard input" if path == STANDARD_INPUT else path
        self._path = path

    def __enter__(self) -> "LogFile":
        with self._telling():
            if self._path == STANDARD_INPUT:
                # Not closed here, because it belongs to the process.
                raw = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
            else:
                raw = open(self._path, "rb", buffering=0)
            with contextlib.ExitStack() as failing:
                self._raw = failing.enter_context(raw)
                #: Bytes of the file; None if unknown, as for a pipe.
                self.size = _size(raw)
                self._lines = self._unpacked(io.BufferedReader(raw, _BUFFER_BYTES))
                failing.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def position(self) -> int:
        """The number of bytes of the file that have been read."""
        return self._raw.tell()

    def lines(self) -> Iterator[bytes]:
        """Its lines; ``OVERLONG`` for one of more than ``LINE_BYTES_MAX`` bytes."""
        with self._telling():
            readline: Callable[[int], bytes] = self._lines.readline
            while line := readline(LINE_BYTES_MAX):
                if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                    # The rest of the line must not be read as a line of its own.
                    while (rest := readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
                        pass
                    line = OVERLONG
                yield line

    def _unpacked(self, file: io.BufferedReader) -> BinaryIO:
        start = file.peek(8)
        if start.startswith(_ZSTANDARD):
            raise OperatorError(
                f"Cannot read {self.name}: zstd is not supported. Nothing was counted. Unpack it "
                "first: `zstd -dc FILE | hubctl stats ingest -`."
            )
        for magic, reader in _READERS.items():
            if start.startswith(magic):
                return io.BufferedReader(reader(file), _BUFFER_BYTES)
        return file

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OperatorError(
                f"Cannot read {self.name}: {reason}. Nothing was counted. Repair the file or leave "
                "it out, and run the command again."
            ) from error


def _size(raw: io.FileIO) -> int | None:
    return os.fstat(raw.fileno()).st_size if raw.seekable() else None
