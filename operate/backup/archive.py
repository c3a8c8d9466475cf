"""The stream of a backup: a tar file of plain files, whose last member proves that it is whole.

Its members are ``content/…``, ``state/…`` and SUMMARY, which has the SHA-256 of everything before
itself. So `tar` can unpack it, and a reader notices damage and a cut.
"""

import contextlib
import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from builder.model.errors import OperatorError, explained
from builder.model.records import Time

SUMMARY = "hub-backup.json"
_READ_BYTES = 128 * tarfile.BLOCKSIZE


class Summary(Struct):
    """``at``: when the backup began. ``prompts``: their number. ``databases``: the names of their
    files. ``format``: 1 was a folder of objects.
    """

    at: Time
    release: str
    prompts: int
    databases: list[str] = []
    sha256: str = ""
    format: Literal[2] = 2


class DamagedBackup(OperatorError):
    """The stream is cut off, changed, or no backup."""


class Writer:
    """Writes the backup ``name``. Methods raise OperatorError."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name, self._digest = file, name, hashlib.sha256()
        self._tar = tarfile.TarFile(fileobj=self, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name: str, source: BinaryIO, size: int, mtime: int = 0) -> None:
        """Add a file of ``size`` bytes; raises OSError if ``source`` cannot be read."""
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, 0o600, mtime
        self._tar.addfile(info, source)
        self._tar.members.clear()  # or memory would grow with the number of files

    def end(self, summary: Summary) -> None:
        """Complete the backup."""
        summary.sha256 = self._digest.hexdigest()
        data = msgspec.json.encode(summary).ljust(tarfile.BLOCKSIZE)
        self.add(SUMMARY, io.BytesIO(data), tarfile.BLOCKSIZE)
        self.write(bytes(2 * tarfile.BLOCKSIZE))

    def write(self, data: bytes) -> None:
        with explained("write", self._name, "Fix that, and back up again."):
            self._file.write(data)
        self._digest.update(data)

    def tell(self) -> int:
        return 0


class _Source:
    """Reads a stream, and keeps the SHA-256 of what it has read before the last part."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest, self._at, self._last = file, hashlib.sha256(), 0, b""

    def read(self, size: int) -> bytes:
        self._digest.update(self._last)
        self._at += len(self._last)
        self._last = self._file.read(size)
        return self._last

    def sha256_before(self, offset: int) -> str:
        """The SHA-256 of everything before a place in the last part."""
        self._digest.update(self._last[: offset - self._at])
        return self._digest.hexdigest()


def read_summary(path: str) -> Summary | None:
    """The summary at the end of a backup, unchecked; None if there is none."""
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        file.seek(-3 * tarfile.BLOCKSIZE, os.SEEK_END)
        return msgspec.json.decode(file.read(tarfile.BLOCKSIZE), type=Summary)
    return None


def read(file: BinaryIO, name: str, take: Callable[[str, BinaryIO], None]) -> Summary:
    """Read the backup ``name``: ``take`` gets the name of each of its files, and the file. Raises
    DamagedBackup if the stream is not as it was written, which shows only at its end, or has
    anything but plain files.
    """
    source = _Source(file)
    try:
        with tarfile.open(fileobj=source, mode="r|", bufsize=_READ_BYTES) as tar:
            while info := tar.next():
                tar.members.clear()
                if not info.isreg() or info.sparse is not None:
                    raise DamagedBackup(f"{name}: {info.name[:200]!r} is no plain file.")
                if info.name == SUMMARY:
                    sha256 = source.sha256_before(info.offset)
                    summary = msgspec.json.decode(tar.extractfile(info).read(), type=Summary)
                    if sha256 == summary.sha256:
                        return summary
                    break
                take(info.name, tar.extractfile(info))
    except (tarfile.TarError, ValueError, ArithmeticError, LookupError) as error:
        raise DamagedBackup(f"{name} is damaged: {error}. Use another backup.") from error
    raise DamagedBackup(
        f"{name} is damaged, cut off, or from another release of hub. Use another backup."
    )
