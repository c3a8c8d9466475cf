"""What the log of a store says: entries, each with some changes of the content, in one order.

An entry is ``log/{number:012}.json``, numbers begin with 1. The text and the record of a version
are a *blob*: inline in the entry where the text is small, else an object of its own, which is put
before the entry. When an inline text is withdrawn, its entry is written again, without any texts;
those that stay are objects then.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from builder.model.errors import OperatorError
from publisher.nodes.objects import Objects, StoreUnavailable

LOG = "log/"
# A whole prompt of 10,000 versions that is withdrawn tells some megabytes of them.
ENTRY_BYTES_MAX = 32 * 1024 * 1024
# A text and its record, escaped.
BLOB_BYTES_MAX = 32 * 1024 * 1024
# Of a text that is in its entry.
INLINE_BYTES_MAX = 32 * 1024


class Blob(Struct, frozen=True, forbid_unknown_fields=True):
    """The two files of a version."""

    record: str
    text: str


class Change(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that happens whole or not at all.

    ``keys``: what it was decided by, first the prompt (``ada/review``), or the owner of a profile.
    Of two changes with a common key, the second one has seen the first. ``version`` is new, and
    ``record`` the SHA-256 of its record, which with it names the blob; ``inline`` is that itself,
    where the text is small and has not left the entry. ``files`` are written, by their path in the
    content folder, then others removed. ``strips``: the entries with inline texts of versions that
    are withdrawn.
    """

    keys: list[str]
    version: str = ""
    record: str = ""
    inline: Blob | None = None
    files: dict[str, str] = {}
    removes: list[str] = []
    strips: list[int] = []

    @property
    def blob(self) -> str:
        return blob_key(self.keys[0], self.version, self.record)

    @property
    def size(self) -> int:
        """About how many bytes it takes in an entry."""
        blob = (self.inline.record, self.inline.text) if self.inline else ()
        texts = sum(len(text.encode()) for text in (*blob, *self.files.values()))
        return 300 + texts + 40 * len(self.removes) + 10 * len(self.strips)

    @property
    def withdrawn(self) -> set[str]:
        """The versions that it removes, each as ``ada/review/1.0.0``."""
        return {path.removesuffix(".json") for path in self.removes if path.endswith(".json")}


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """``id`` is random, so whoever has lost an answer knows its own entry. ``at``: RFC 3339."""

    id: str
    at: str
    node: str
    changes: list[Change]


_encode = msgspec.json.Encoder().encode
_decode_entry = msgspec.json.Decoder(Entry).decode
_decode_blob = msgspec.json.Decoder(Blob).decode


def entry_key(number: int) -> str:
    return f"{LOG}{number:012}.json"


def entry_number(key: str) -> int:
    """The number of the entry at a key; 0 where it is no entry's."""
    digits = key.removeprefix(LOG).removesuffix(".json")
    is_entry = len(digits) == 12 and digits.isascii() and digits.isdigit()
    return int(digits) if is_entry else 0


def blob_key(repo: str, version: str, record_sha256: str) -> str:
    """Where a version is. Its own record tells the name, so what a folder has tells which blobs
    are in use.
    """
    return f"blobs/{repo}/{version}-{record_sha256}"


def version_of(key: str) -> str:
    """Whose blob a key is for: ``ada/review/1.0.0``."""
    return key.removeprefix("blobs/").rpartition("-")[0]


def hash_record(root: str, repo: str, version: str) -> str:
    """The SHA-256 of a version's record in a content folder. Raises OSError."""
    with open(f"{root}/{repo}/{version}.json", "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def encode(value: Any) -> bytes:
    """An entry's or a blob's JSON."""
    return _encode(value)


def read_entry(objects: Objects, number: int) -> Entry | None:
    """An entry of the log; None where there is none yet. Raises StoreUnavailable; OperatorError
    where this release does not understand it.
    """
    data = objects.get(entry_key(number), ENTRY_BYTES_MAX)
    if data is None:
        return None
    try:
        return _decode_entry(data)
    except msgspec.DecodeError as error:
        raise OperatorError(
            f"{entry_key(number)} in the store {objects.url} is not what this release writes "
            f"({error}). If another node runs a newer release, upgrade this one."
        ) from error


def list_entries(objects: Objects, after: int) -> list[int]:
    """The numbers of the entries after one, in order; a listing may lack the newest. Raises
    StoreUnavailable.
    """
    return sorted(filter(None, map(entry_number, objects.keys(LOG, after=entry_key(after)))))


def read_entries(objects: Objects, numbers: Sequence[int]) -> Iterator[tuple[int, Entry | None]]:
    """Entries by their numbers, many at a time. Raises as ``read_entry``."""
    entries = objects.each(lambda number: read_entry(objects, number), numbers)
    yield from zip(numbers, entries, strict=True)


def read_blob(objects: Objects, change: Change) -> Blob | None:
    """The files of a change's version; None where they are gone, since it was withdrawn later.
    Raises StoreUnavailable, also where they are damaged.
    """
    blob = change.inline
    if blob is None:
        data = objects.get(change.blob, BLOB_BYTES_MAX)
        if not data:
            return None
        try:
            blob = _decode_blob(data)
        except msgspec.DecodeError as error:
            raise _damaged(objects, change) from error
    if hashlib.sha256(blob.record.encode()).hexdigest() != change.record:
        raise _damaged(objects, change)
    return blob


def _damaged(objects: Objects, change: Change) -> StoreUnavailable:
    return StoreUnavailable(
        f"{version_of(change.blob)} in the store {objects.url} is damaged. Restore it from "
        "a backup of the bucket, or from another node's content folder."
    )
