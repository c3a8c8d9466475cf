"""Snapshots: all that the entries of a log come to, so that a new node need not read them all.

A snapshot is ``snapshots/{number:012}.gz``: lines of JSON, first its format, then each version
(prompt, number, SHA-256 of the record, number of the entry if that has its text) and each other
file (path, text). Whoever commits each thousandth entry writes one. It follows from the log alone,
so it does not matter who does, or whether anybody does.
"""

import contextlib
import gzip
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from builder.model.background import Background
from builder.model.errors import OperatorError
from publisher.log import log_event
from publisher.nodes.entries import Change, Entry, entry_key, list_entries, read_entries
from publisher.nodes.objects import Objects, StoreUnavailable
from publisher.nodes.removal import remove_texts

SNAPSHOTS = "snapshots/"
EVERY_ENTRIES = 1000
# Of a snapshot as it is stored; a million versions have some 70 MB.
SNAPSHOT_BYTES_MAX = 1024 * 1024 * 1024
_FORMAT = {"format": 1}
# The newest stay for those who are reading them.
_KEPT = 2

log = logging.getLogger("hub.store")


class Version(NamedTuple):
    """The SHA-256 of a version's ``record``, and the number of the ``entry`` that had its text when
    it was read; 0: that is in a blob.
    """

    record: str
    entry: int = 0


class Tree:
    """A content folder as the log tells it: ``versions`` of each prompt, and all other ``files``,
    by path. ``withdrawals``: the changes that removed something.
    """

    def __init__(self) -> None:
        self.versions: dict[str, dict[str, Version]] = {}
        self.files: dict[str, str] = {}
        self.withdrawals: list[Change] = []

    def apply(self, number: int, entry: Entry) -> None:
        """Take in the next entry."""
        for change in entry.changes:
            if change.version:
                version = Version(change.record, number if change.inline else 0)
                self.versions.setdefault(change.keys[0], {})[change.version] = version
            if change.removes:
                self.withdrawals.append(change)
            self.files.update(change.files)
            for path in change.removes:
                repo, _, file = path.rpartition("/")
                self.files.pop(path, None)
                self.versions.get(repo, {}).pop(file.removesuffix(".json"), None)

    def changes(self) -> Iterator[Change]:
        """What brings an empty folder there: for each prompt and other place, what it has."""
        for repo, versions in self.versions.items():
            for version, stored in versions.items():
                yield Change([repo], version=version, record=stored.record)
        for path, text in self.files.items():
            yield Change([place_of(path)], files={path: text})


def place_of(path: str) -> str:
    """Whose file it is: a prompt's, an owner's, or the hub's (empty)."""
    return "/".join(path.split("/")[:2][: path.count("/")])


def newest_snapshot(objects: Objects) -> int:
    """The number of the newest snapshot, 0 where there is none. Raises StoreUnavailable."""
    return max(map(_number, objects.keys(SNAPSHOTS)), default=0)


def read_snapshot(objects: Objects, number: int) -> Tree:
    """All up to an entry. Raises StoreUnavailable; OperatorError where this release does not
    understand it.
    """
    tree = Tree()
    if not number:
        return tree
    data = objects.get(_key(number), SNAPSHOT_BYTES_MAX)
    if data is None:
        raise StoreUnavailable(f"The store {objects.url} has no {_key(number)} any more.")
    try:
        lines = iter(gzip.decompress(data).splitlines())
        if msgspec.json.decode(next(lines)) != _FORMAT:
            raise ValueError("its format is another")
        for line in lines:
            match msgspec.json.decode(line):
                case [str(repo), str(version), str(record), *entry] if len(entry) < 2:
                    tree.versions.setdefault(repo, {})[version] = Version(record, *entry)
                case [str(path), str(text)]:
                    tree.files[path] = text
                case _:
                    raise ValueError("a line is neither a version nor a file")
    except (ValueError, EOFError, gzip.BadGzipFile, StopIteration) as error:
        raise OperatorError(
            f"{_key(number)} in the store {objects.url} cannot be read ({error}). If another node "
            "runs a newer release, upgrade this one; else delete that object."
        ) from error
    return tree


def read_tree(objects: Objects, last: int = 0) -> tuple[int, Tree]:
    """The last entry's number, and all up to it; ``last``: up to this one, or a later snapshot's.
    Raises StoreUnavailable, OperatorError.
    """
    number = newest_snapshot(objects)
    tree = read_snapshot(objects, number)
    numbers = range(number + 1, last + 1) if last else list_entries(objects, number)
    return apply_entries(objects, tree, number, numbers), tree


def fill(objects: Objects, tree: Tree, changes: Iterable[Change]) -> Iterator[Change]:
    """The changes, of ``tree``, with the texts that are in entries; each entry is read once. Raises
    StoreUnavailable, OperatorError.
    """
    wanted: dict[int, list[Change]] = {}
    for change in changes:
        stored = tree.versions.get(change.keys[0], {}).get(change.version)
        if stored and stored.entry:
            wanted.setdefault(stored.entry, []).append(change)
        else:
            yield change
    for number, entry in read_entries(objects, sorted(wanted)):
        # Of an entry that was read before a withdrawal, texts may be in blobs by now.
        texts = {change.blob: change.inline for change in (entry.changes if entry else ())}
        for change in wanted.pop(number):
            yield structs.replace(change, inline=texts.get(change.blob))


def apply_entries(objects: Objects, tree: Tree, number: int, numbers: Sequence[int]) -> int:
    """Take in these entries, which follow ``number`` without a gap: the last one's number. Raises
    StoreUnavailable, OperatorError.
    """
    for at, entry in read_entries(objects, numbers):
        if at != number + 1 or entry is None:
            raise StoreUnavailable(
                f"The store {objects.url} does not show {entry_key(number + 1)}."
            )
        tree.apply(at, entry)
        number = at
    return number


class Snapshots(Background):
    """While entered, writes the snapshots that are due, in a thread."""

    def __init__(self, objects: Objects) -> None:
        super().__init__("snapshots")
        self._objects = objects
        self._due = 0

    def note(self, number: int) -> None:
        """Entry ``number`` was committed here."""
        if number % EVERY_ENTRIES == 0:
            with self._changed:
                self._due = number
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopping or self._due)
                if self._is_stopping:
                    return
                number, self._due = self._due, 0
            try:
                write_snapshot(self._objects, number)
            except Exception as error:
                # The edge of the thread. The next snapshot does as well.
                log_event(log, logging.WARNING, "snapshot", error, number=number)


def write_snapshot(objects: Objects, number: int) -> None:
    """Write the snapshot of all up to an entry, and remove old ones. Raises StoreUnavailable,
    OperatorError.
    """
    before = newest_snapshot(objects)
    if before < number:
        tree = read_snapshot(objects, before)
        apply_entries(objects, tree, before, range(before + 1, number + 1))
        # Who begins with the snapshot does not apply them, and nobody else may be left.
        used = {change.blob for change in tree.changes() if change.version}
        for change in tree.withdrawals:
            remove_texts(objects, change, used.__contains__)
        objects.create(_key(number), _encode(tree))
    old = sorted(filter(None, map(_number, objects.keys(SNAPSHOTS))))[:-_KEPT]
    objects.delete(map(_key, old))


def _encode(tree: Tree) -> bytes:
    lines: list[object] = [_FORMAT]
    for repo, versions in tree.versions.items():
        lines += ([repo, version, *stored] for version, stored in versions.items())
    lines += tree.files.items()
    return gzip.compress(msgspec.json.Encoder().encode_lines(lines), compresslevel=5, mtime=0)


def _key(number: int) -> str:
    return f"{SNAPSHOTS}{number:012}.gz"


def _number(key: str) -> int:
    with contextlib.suppress(ValueError):
        return int(key.removeprefix(SNAPSHOTS).removesuffix(".gz"))
    return 0
