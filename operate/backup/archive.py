"""The stream of a backup: a tar file of plain files, whose last member proves that it is whole.

Its members are ``content/…``, ``state/…`` and SUMMARY, which has the SHA-256 of everything before
itself. So `tar` can unpack it, and a reader notices damage and a cut.
"""

import contextlib
import hashlib
import io
import tarfile
from collections.abc import Iterator
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from builder.model.errors import OperatorError, explained
from builder.model.records import Time

SUMMARY = "hub-backup.json"
CHUNK_BYTES = 1024 * 1024
# SUMMARY's header and its bytes, and the two empty blocks at the end.
_TAIL_BYTES = 4 * tarfile.BLOCKSIZE


class Summary(Struct):
    """``at``: when the backup began. ``prompts``, ``owners`` and ``pulled`` count what it has;
    ``pulled``: prompts with pulls. ``format``: 1 was a folder of objects.
    """

    at: Time
    release: str
    prompts: int
    owners: int = 0
    pulled: int = 0
    sha256: str = ""
    format: Literal[2] = 2


class DamagedBackup(OperatorError):
    """The stream is cut off, changed, or no backup."""


class Writer:
    """Writes the backup ``name``; counts its files and bytes. Methods raise OperatorError."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name, self._digest = file, name, hashlib.sha256()
        self.files = self.bytes = 0
        self._tar = tarfile.TarFile(fileobj=self, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name: str, source: BinaryIO, size: int, mtime: int = 0) -> None:
        """Add a file of ``size`` bytes; raises OSError if ``source`` cannot be read."""
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, 0o600, mtime
        self._tar.addfile(info, source)
        self._tar.members.clear()  # or memory would grow with the number of files
        self.files += 1
        self.bytes += size

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


def read_summary(file: BinaryIO, name: str) -> Summary:
    """The summary of the backup ``name``; verifies nothing. Raises DamagedBackup."""
    try:
        file.seek(-_TAIL_BYTES, io.SEEK_END)
        tail = file.read()[tarfile.BLOCKSIZE : 2 * tarfile.BLOCKSIZE]
        return msgspec.json.decode(tail, type=Summary)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        raise DamagedBackup(
            f"{name} is cut off, no backup, or from another release of hub. Use another backup."
        ) from None


def verify(file: BinaryIO, name: str) -> Summary:
    """Read all of a backup. Raises DamagedBackup if it is not as it was written."""
    summary, digest = read_summary(file, name), hashlib.sha256()
    left = file.tell() - _TAIL_BYTES
    file.seek(0)
    while data := file.read(min(left, CHUNK_BYTES)):
        digest.update(data)
        left -= len(data)
    if left or digest.hexdigest() != summary.sha256:
        raise DamagedBackup(f"{name} is damaged. Use another backup.")
    return summary


def members(file: BinaryIO, name: str) -> Iterator[tuple[str, BinaryIO]]:
    """Yields the name of each file of a backup, and the file. Raises DamagedBackup for anything
    else, and for a file that would have more bytes than the stream.
    """
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as tar:
        while (info := tar.next()) and info.name != SUMMARY:
            tar.members.clear()
            if not info.isreg() or info.sparse is not None:
                raise DamagedBackup(f"{name}: {info.name[:200]!r} is no plain file.")
            yield info.name, tar.extractfile(info)


@contextlib.contextmanager
def telling(name: str) -> Iterator[None]:
    """Turn errors of a backup that is read into DamagedBackup."""
    try:
        yield
    except (tarfile.TarError, ValueError, ArithmeticError, LookupError) as error:
        raise DamagedBackup(f"{name} is damaged: {error}. Use another backup.") from error
