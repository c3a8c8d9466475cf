"""How the texts of withdrawn versions leave a store.

Every node removes them when it applies the withdrawal, since the one that withdrew may have died.
Any of them may die in the middle, or be late with a request, and still no text comes back:

- An entry loses all its texts at once, so all who write it again write the same bytes.
- Whoever does that has first made blobs of the texts that stay. These are created, never replaced.
- The blob of a withdrawn version is not deleted, but empty, so nobody can create it again who has
  read the entry before the version was withdrawn.
"""

import hashlib
import itertools
from collections.abc import Callable, Container, Iterable
from typing import TypeVar

import msgspec
from msgspec import structs

from builder.model.records import WithdrawnFile
from builder.model.withdrawn import FOLDER, WHOLE, withdrawn_file
from publisher.nodes.entries import (
    BLOB_BYTES_MAX,
    Blob,
    Change,
    Entry,
    encode,
    entry_key,
    read_entries,
    version_of,
)
from publisher.nodes.objects import JOBS, Objects

_T = TypeVar("_T")


def remove_texts(objects: Objects, change: Change, is_used: Callable[[str], bool]) -> None:
    """Remove the texts of the versions that a change withdraws; ``is_used`` tells whether a version
    has the blob at a key. Raises StoreUnavailable, OperatorError.
    """
    repo, gone = change.keys[0], change.withdrawn
    sizes = dict(objects.sizes(f"blobs/{repo}/"))
    there = [key for key, size in sizes.items() if size]
    empty(objects, (key for key in there if version_of(key) in gone))
    is_empty = {key for key, size in sizes.items() if not size}
    for start in range(0, len(change.strips), JOBS):
        some = change.strips[start : start + JOBS]
        entries = {number: entry for number, entry in read_entries(objects, some) if entry}
        _strip(objects, entries, gone, is_empty)
    # Attempts that were overtaken may have put the very text, which nobody can publish any more.
    # Those with another text stay: whoever was overtaken may use the blob again.
    attempts = [key for key in there if version_of(key) not in gone and not is_used(key)]
    hashes = {one for path, file in change.files.items() for one in hashes_of(path, file)}
    is_whole = f"{repo}/{withdrawn_file(WHOLE)}" in change.files
    goes = objects.each(lambda key: is_whole or has_text(objects, key, hashes), attempts)
    empty(objects, itertools.compress(attempts, goes))


def _strip(objects: Objects, entries: dict[int, Entry], gone: set[str], is_empty: set[str]) -> None:
    """Remove all texts of entries; ``gone`` are versions that are withdrawn."""
    blobs = {}
    for entry in entries.values():
        versions = [change for change in entry.changes if change.version]
        if len(versions) > 1:  # a text that is alone becomes a blob nowhere
            blobs |= {change.blob: change for change in versions}
    empty(objects, (key for key in blobs if version_of(key) in gone and key not in is_empty))
    stay = [one for key, one in blobs.items() if one.inline and version_of(key) not in gone]
    _each(objects, lambda one: objects.create(one.blob, encode(one.inline)), stay)
    _each(objects, lambda number: _rewrite(objects, number, entries[number]), entries)


def _rewrite(objects: Objects, number: int, entry: Entry) -> None:
    changes = [structs.replace(change, inline=None) for change in entry.changes]
    if changes != entry.changes:
        objects.put(entry_key(number), encode(structs.replace(entry, changes=changes)))


def empty(objects: Objects, keys: Iterable[str]) -> None:
    """Remove the texts of blobs, for good: where something is, nothing is created. Raises
    StoreUnavailable.
    """
    _each(objects, lambda key: objects.put(key, b""), keys)


def hashes_of(path: str, file: str) -> set[str]:
    """The SHA-256 of the texts that a file of a content folder takes away, if it withdraws any."""
    if path.split("/")[2:3] != [FOLDER]:
        return set()
    withdrawn = msgspec.json.decode(file, type=WithdrawnFile)
    return {remains.sha256 for remains in withdrawn.versions.values()}


def has_text(objects: Objects, key: str, hashes: Container[str]) -> bool:
    """Whether the text of the blob at a key has one of these hashes. Raises StoreUnavailable."""
    try:
        blob = msgspec.json.decode(objects.get(key, BLOB_BYTES_MAX) or b"", type=Blob)
    except msgspec.DecodeError:
        return False
    return hashlib.sha256(blob.text.encode()).hexdigest() in hashes


def _each(objects: Objects, work: Callable[[_T], object], items: Iterable[_T]) -> None:
    for _ in objects.each(work, items):
        pass
