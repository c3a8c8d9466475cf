"""Objects: bytes under their SHA-256, checked whenever they are read."""

import hashlib
import threading
from collections.abc import Iterable, Iterator
from typing import Annotated, BinaryIO

from msgspec import Meta, Struct

from builder.model.errors import OperatorError
from operate.backup.places import Place

# A larger file is stored in pieces of this size: most pieces of a database stay the same from day
# to day.
PIECE_BYTES = 1024 * 1024
FOLDER = "objects/"
# The largest list of the files of a shard (see ``tree``), with some 200 bytes for each. A longer
# one counts as damaged.
LIST_BYTES_MAX = 64 * 1024 * 1024

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]

_ADVICE = (
    " Restore another snapshot (`--snapshot ID`; `hubctl backup --list` shows them). The next "
    "`hubctl backup` stores it again if the hub still has it."
)


class StoredFile(Struct, omit_defaults=True, frozen=True):
    """A file in a backup. ``path``: relative to the content or the state folder. ``pieces``: its
    objects; if empty, the file is the object of its own ``sha256``. ``mark``: as in
    ``mark_of_files``, from the time of reading.
    """

    path: str
    size: Annotated[int, Meta(ge=0)]
    sha256: Hash
    mark: str = ""
    pieces: list[Hash] = []

    @property
    def objects(self) -> list[str]:
        return self.pieces or [self.sha256]


class DamagedBackup(OperatorError):
    """An object or a snapshot is missing, or is not what was stored."""


class Objects:
    """The objects of a place; several threads may use them. ``known``: the keys of those that
    exist. ``written`` and ``written_bytes``: the number and bytes of those stored since.
    """

    def __init__(self, place: Place, known: Iterable[str] = ()) -> None:
        self.place = place
        self.known = set(known)
        self.written = self.written_bytes = 0
        self._lock = threading.Lock()

    def put(self, data: bytes) -> str:
        """Store an object unless it exists; returns its hash."""
        sha256 = hashlib.sha256(data).hexdigest()
        if key_of(sha256) not in self.known:
            self.place.put(key_of(sha256), data)
            with self._lock:
                self.known.add(key_of(sha256))
                self.written += 1
                self.written_bytes += len(data)
        return sha256

    def has(self, file: StoredFile) -> bool:
        return self.known.issuperset(map(key_of, file.objects))

    def put_file(self, path: str, file: BinaryIO, mark: str = "") -> StoredFile:
        """Store the rest of a file."""
        whole, size, pieces = hashlib.sha256(), 0, []
        while data := file.read(PIECE_BYTES):
            whole.update(data)
            size += len(data)
            pieces.append(self.put(data))
        if not pieces:
            self.put(b"")
        return StoredFile(path, size, whole.hexdigest(), mark, pieces if len(pieces) > 1 else [])

    def get(self, sha256: str, bytes_max: int = PIECE_BYTES) -> bytes:
        """The bytes of an object. Raises OperatorError, DamagedBackup."""
        data = self.place.get(key_of(sha256), bytes_max)
        if data is None:
            raise DamagedBackup(f"{self.place.name} has lost the object {sha256}.{_ADVICE}")
        if hashlib.sha256(data).hexdigest() != sha256:
            raise DamagedBackup(
                f"{self.place.name}: the object {sha256} is damaged. "
                f"Remove {key_of(sha256)} there, and it counts as lost.{_ADVICE}"
            )
        return data

    def read(self, file: StoredFile) -> Iterator[bytes]:
        """The bytes of a file, piece by piece, verified at the end. Raises as ``get``."""
        whole, size = hashlib.sha256(), 0
        for data in map(self.get, file.objects):
            whole.update(data)
            size += len(data)
            yield data
        if (size, whole.hexdigest()) != (file.size, file.sha256):
            raise DamagedBackup(
                f"{self.place.name}: {file.path!r} is not what the snapshot says.{_ADVICE}"
            )


def key_of(sha256: str) -> str:
    return f"{FOLDER}{sha256[:2]}/{sha256[2:]}"
