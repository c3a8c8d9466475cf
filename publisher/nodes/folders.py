"""A version's text and files as one column of its row: the text, then the files in the order of the
record, which has their sizes. A withdrawal empties the column, and so removes all of them. Pure.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct


class _File(Struct):
    path: str
    size: int


class _Record(Struct):
    files: list[_File] = []


_decode = msgspec.json.Decoder(_Record).decode


def join(text: bytes, files: Iterable[bytes]) -> bytes:
    """The column of a version."""
    return b"".join((text, *files))


def paths_of(record: bytes) -> list[str]:
    """The paths of a version's files, in the order of its record. Raises msgspec.DecodeError."""
    return [one.path for one in _decode(record).files]


def split(record: bytes, joined: bytes) -> tuple[bytes, Mapping[str, bytes]]:
    """The text of a version and its files by their paths. Raises msgspec.DecodeError."""
    files = _decode(record).files
    at = end = len(joined) - sum(one.size for one in files)
    found = {}
    for one in files:
        found[one.path] = joined[at : at + one.size]
        at += one.size
    return joined[:end], found
