"""Objects: bytes under their SHA-256, checked whenever they are read."""

import hashlib
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Annotated, BinaryIO

from msgspec import Meta, Struct

from builder.model.errors import OperatorError
from operate.backup.places import Place

# What is larger is stored in pieces: of a database, most stay the same from day to day.
PIECE_BYTES = 1024 * 1024
FOLDER = "objects"
# A list of the files of a shard (see ``tree``): some 200 bytes for each.
LIST_BYTES_MAX = 64 * 1024 * 1024

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_key = re.compile(FOLDER + r"/([0-9a-f]{2})/([0-9a-f]{62})")


class StoredFile(Struct, omit_defaults=True, frozen=True):
    """A file in a backup. ``path``: relative to the content or the state folder. ``pieces``: the
    objects that it is made of; without any, it is the object of its own ``sha256``. ``mark``: what
    the file looked like when it was read, as in ``mark_of_files``.
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
    """An object is missing, or is not what it was."""


class Objects:
    """The objects of a place. ``known``: digests of those that are there. For several threads."""

    def __init__(self, place: Place, known: Iterable[bytes] = ()) -> None:
        self.place = place
        self.known = set(known)
        # Those that this run has stored, and how many bytes they have.
        self.written: list[str] = []
        self.written_bytes = 0
        self._lock = threading.Lock()

    def put(self, data: bytes) -> str:
        """Store an object, unless it is there; returns its hash."""
        sha256 = hashlib.sha256(data)
        if sha256.digest() not in self.known:
            self.place.put(key_of(sha256.hexdigest()), data)
            self.known.add(sha256.digest())
            with self._lock:
                self.written.append(sha256.hexdigest())
                self.written_bytes += len(data)
        return sha256.hexdigest()

    def has(self, file: StoredFile) -> bool:
        return all(bytes.fromhex(sha256) in self.known for sha256 in file.objects)

    def put_file(self, path: str, file: BinaryIO, mark: str = "") -> StoredFile:
        """Store what is left to read of a file."""
        whole = hashlib.sha256()
        size, pieces = 0, []
        while data := file.read(PIECE_BYTES):
            whole.update(data)
            size += len(data)
            pieces.append(self.put(data))
        if not pieces:
            self.put(b"")
        return StoredFile(path, size, whole.hexdigest(), mark, pieces if len(pieces) > 1 else [])

    def get(self, sha256: str, bytes_max: int = PIECE_BYTES) -> bytes:
        """The bytes of an object. Raises DamagedBackup."""
        data = self.place.get(key_of(sha256), bytes_max)
        if data is None:
            raise DamagedBackup(f"{self.place.name} has lost the object {sha256}.{_ADVICE}")
        if hashlib.sha256(data).hexdigest() != sha256:
            raise DamagedBackup(
                f"{self.place.name}: the object {sha256} is damaged. "
                f"Remove {key_of(sha256)} there, and it is as if it was lost.{_ADVICE}"
            )
        return data

    def read(self, file: StoredFile) -> Iterator[bytes]:
        """The bytes of a file, piece by piece; checked when all are read. Raises DamagedBackup."""
        whole, size = hashlib.sha256(), 0
        for sha256 in file.objects:
            data = self.get(sha256)
            whole.update(data)
            size += len(data)
            if size > file.size:
                break
            yield data
        if (size, whole.hexdigest()) != (file.size, file.sha256):
            raise DamagedBackup(
                f"{self.place.name}: {file.path!r} is not what the snapshot says.{_ADVICE}"
            )


_ADVICE = (
    " Restore another snapshot (`--snapshot ID`; `hubctl backup --list` shows them). The next "
    "`hubctl backup` stores it again if the hub still has it."
)


def key_of(sha256: str) -> str:
    return f"{FOLDER}/{sha256[:2]}/{sha256[2:]}"


def digest_of(key: str) -> bytes | None:
    """The digest of an object by its key; None for what is no object."""
    found = _key.fullmatch(key)
    return bytes.fromhex(found[1] + found[2]) if found else None
