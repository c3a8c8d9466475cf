"""The way from a content folder to a store, and back; and a look at whether a store is whole.

Both are compared as trees, and what the one lacks is copied. So a copy that was interrupted goes
on where it was, and the same command again changes nothing, or says what differs.
"""

import hashlib
import itertools
import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec import structs

from builder.model.errors import OperatorError
from builder.model.labels import event_file
from builder.model.records import VersionFile, format_time
from builder.model.withdrawn import WHOLE, withdrawn_file
from builder.store import content
from builder.store.content import FORMAT_FILE, HOME_FILE, OWNER_FILE, STORE_FILE
from builder.store.restored import RESTORED_FILE, check_not_restoring, serial_base
from builder.store.withdrawn_files import read_parts
from publisher.nodes.about import identify
from publisher.nodes.entries import (
    INLINE_BYTES_MAX,
    Blob,
    Change,
    Entry,
    encode,
    entry_key,
    hash_record,
    read_blob,
    read_entries,
    version_of,
)
from publisher.nodes.log import BATCH_BYTES_MAX, BATCH_CHANGES_MAX
from publisher.nodes.objects import Objects, StoreUnavailable
from publisher.nodes.removal import has_text, hashes_of
from publisher.nodes.replica import Replica
from publisher.nodes.snapshots import (
    Tree,
    Version,
    fill,
    place_of,
    read_tree,
    write_snapshot,
)
from publisher.write.store import check_is_no_copy

# As ``builder.model.progress``: what, how many are done, of how many.
Progress = Callable[[str, int, int], None]
# How many differences a message shows.
SHOWN_MAX = 5
# Beyond this, withdrawals and new nodes should not have to read the entries, which are large.
_SNAPSHOT_CHANGES_MIN = 1000


class Copied(NamedTuple):
    """What a copy came to: versions and other files that are there now, and how many were new."""

    versions: int
    files: int
    new: int


class Checked(NamedTuple):
    """What a look at a store has found. ``unused``: blobs that no entry names, left by attempts
    that others overtook, or under way.
    """

    entries: int
    versions: int
    files: int
    unused: int
    faults: list[str]


def copy_to_store(root: str, url: str, progress: Progress) -> Copied:
    """Bring a store up to what a folder has. Nobody may publish meanwhile.

    Raises OperatorError where the store has something else, or somebody writes to it;
    StoreUnavailable; ContentError.
    """
    content.check_folder(root)
    content.check_format(root)
    check_not_restoring(root)
    check_is_no_copy(root)
    objects = Objects(url)
    tree, publications = read_folder(root)
    identify(objects, serial=serial_base(root) + publications)
    number, stored = read_tree(objects)
    extra = [*missing(stored, tree)]
    if extra:
        raise OperatorError(
            f"{url} has what {root} has not, or has otherwise: {_shown(extra)}. Copy to an empty "
            "prefix, or go on with the folder from which the copy was begun."
        )
    new = [*missing(tree, stored)]
    done = 0
    for batch in _batches(objects.each(lambda change: _load(objects, root, change), new)):
        number += 1
        now = format_time(datetime.now(UTC))
        entry = Entry(secrets.token_hex(8), now, "copy", batch)
        if not objects.create(entry_key(number), encode(entry)):
            raise OperatorError(
                f"Somebody else writes to {url}. Stop all nodes that publish there, then run the "
                "command again: it goes on where it was."
            )
        done += len(batch)
        progress("copying", done, len(new))
    if len(new) >= _SNAPSHOT_CHANGES_MIN:
        write_snapshot(objects, number)
    _check_equal(tree, read_tree(objects)[1], root, url)
    return _copied(tree, len(new))


def copy_from_store(url: str, root: str, progress: Progress) -> Copied:
    """Bring a folder, empty or begun so, up to what a store has; a plain content folder then.

    Raises OperatorError where the folder has something else; StoreUnavailable, ContentError.
    """
    objects = Objects(url)
    about = identify(objects, make=False)
    _, tree = read_tree(objects)
    with Replica(root, objects, about) as replica:
        there, _ = read_folder(root)
        stale = [
            change
            for change in missing(there, tree)
            if change.version and _is_withdrawn(version_of(change.blob), tree)
        ]
        new = [*missing(tree, there)]
        changes = itertools.chain(map(_removal, stale), fill(objects, tree, new))
        for done in replica.apply_changes(changes):
            progress("copying", done, len(stale) + len(new))
    _check_equal(read_folder(root)[0], tree, root, url)
    os.sync()
    os.unlink(f"{root}/{STORE_FILE}")
    return _copied(tree, len(new))


def check_store(url: str, progress: Progress) -> Checked:
    """Read everything in a store, and compare it with its hashes. Raises OperatorError,
    StoreUnavailable.
    """
    objects = Objects(url)
    identify(objects, make=False)
    number, tree = read_tree(objects)
    versions = {change.blob: change for change in tree.changes() if change.version}
    unused = {key for key, size in objects.sizes("blobs/") if size} - versions.keys()
    faults = [*_leftovers(objects, unused, tree)]

    def texts() -> Iterator[Change]:
        left = dict(versions)
        for at, entry in read_entries(objects, range(1, number + 1)):
            for change in entry.changes if entry else ():
                if change.inline and left.pop(change.blob, None):
                    yield change
                elif change.inline:
                    faults.append(
                        f"{entry_key(at)} has the text of {version_of(change.blob)}, which is "
                        "withdrawn. Start a node, or wait: each node removes such texts."
                    )
        yield from left.values()

    told = objects.each(lambda change: _fault_of(objects, change), texts())
    for done, fault in enumerate(told, 1):
        faults += [fault] if fault else []
        progress("checking", done, len(versions))
    return Checked(number, len(versions), len(tree.files), len(unused), faults)


def read_folder(root: str) -> tuple[Tree, int]:
    """A content folder as the log would tell it, and how many publications it has seen. Raises
    ContentError, OperatorError.
    """
    tree, publications = Tree(), 0
    _read_file(tree, root, HOME_FILE)
    _read_file(tree, root, RESTORED_FILE)
    _read_file(tree, root, FORMAT_FILE)
    for owner in content.list_owners(root):
        _read_file(tree, root, f"{owner}/{OWNER_FILE}")
        for name in content.list_repos(root, owner):
            repo = f"{owner}/{name}"
            listing = content.list_versions(root, owner, name)
            for version in map(str, listing.versions):
                mark = hash_record(root, repo, version)
                tree.versions.setdefault(repo, {})[version] = Version(mark)
            for number in listing.events:
                _read_file(tree, root, f"{repo}/{event_file(number)}")
            for what in listing.withdrawn.files:
                _read_file(tree, root, f"{repo}/{withdrawn_file(what)}")
            withdrawn = read_parts(root, repo, listing.withdrawn).versions
            publications += len(listing.versions) + len(withdrawn)
    return tree, publications


def missing(tree: Tree, other: Tree) -> Iterator[Change]:
    """What ``other`` lacks, or has otherwise, of what ``tree`` has."""
    for change in tree.changes():
        if change.version:
            there = other.versions.get(change.keys[0], {}).get(change.version)
            has = bool(there) and there.record == change.record
        else:
            has = all(other.files.get(path) == text for path, text in change.files.items())
        if not has:
            yield change


def _read_file(tree: Tree, root: str, path: str) -> None:
    try:
        with open(f"{root}/{path}", encoding="utf-8", newline="") as file:
            tree.files[path] = file.read()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{root}/{path} cannot be read ({error}). Correct the file.") from error


def _batches(changes: Iterable[Change]) -> Iterator[list[Change]]:
    batch: list[Change] = []
    size = 0
    for change in changes:
        size += change.size
        if batch and (size > BATCH_BYTES_MAX or len(batch) == BATCH_CHANGES_MAX):
            yield batch
            batch, size = [], change.size
        batch.append(change)
    if batch:
        yield batch


def _load(objects: Objects, root: str, change: Change) -> Change:
    """A change with its text, or once that is in the store."""
    if not change.version:
        return change
    path = f"{root}/{change.keys[0]}/{change.version}"
    files = []
    for end in ("json", "md"):
        with open(f"{path}.{end}", "rb") as file:
            files.append(file.read())
    record, text = files
    if hashlib.sha256(record).hexdigest() != change.record:
        raise OperatorError(f"{path}.json has changed while it was copied. Run the command again.")
    try:
        blob = Blob(record.decode(), text.decode())
    except UnicodeDecodeError as error:
        raise OperatorError(f"{path} is not UTF-8. Correct the file.") from error
    if len(text) <= INLINE_BYTES_MAX:
        return structs.replace(change, inline=blob)
    objects.create(change.blob, encode(blob))
    return change


def _removal(change: Change) -> Change:
    """What takes away a version that the store no longer has."""
    repo, version = change.keys[0], change.version
    return Change([repo], removes=[f"{repo}/{version}{end}" for end in (".json", ".md")])


def _is_withdrawn(place: str, tree: Tree) -> bool:
    """Whether a version, such as ``ada/review/1.0.0``, was withdrawn."""
    repo, _, version = place.rpartition("/")
    return any(f"{repo}/{withdrawn_file(what)}" in tree.files for what in (version, WHOLE))


def _leftovers(objects: Objects, unused: set[str], tree: Tree) -> Iterator[str]:
    """The faults of blobs that no version has, and whose texts are withdrawn."""
    hashes: dict[str, set[str]] = defaultdict(set)
    for path, text in tree.files.items():
        hashes[place_of(path)] |= hashes_of(path, text)

    def is_left(key: str) -> bool:
        place = version_of(key)
        repo = place.rpartition("/")[0]
        return _is_withdrawn(place, tree) or has_text(objects, key, hashes.get(repo, ()))

    for key in itertools.compress(unused, objects.each(is_left, unused)):
        yield (
            f"{key} has a text that is withdrawn. Wait until all nodes have the withdrawal, then "
            "delete this object if it is still there."
        )


def _fault_of(objects: Objects, change: Change) -> str | None:
    place = version_of(change.blob)
    try:
        blob = read_blob(objects, change)
    except StoreUnavailable as error:
        return str(error)
    if blob is None:
        return f"{place} is missing: no {change.blob}. Restore it from a node's content folder."
    record = msgspec.json.decode(blob.record, type=VersionFile)
    if hashlib.sha256(blob.text.encode()).hexdigest() != record.sha256:
        return f"{place} has another text than its record says."
    return None


def _check_equal(folder: Tree, store: Tree, root: str, url: str) -> None:
    differing = [*itertools.chain(missing(folder, store), missing(store, folder))]
    if differing:
        raise OperatorError(
            f"{root} and {url} differ after the copy: {_shown(differing)}. Somebody has written to "
            "one of them. Stop that, then run the command again."
        )


def _shown(changes: list[Change]) -> str:
    named = [
        f"{change.keys[0]} {change.version}" if change.version else ", ".join(change.files)
        for change in changes[:SHOWN_MAX]
    ]
    more = len(changes) - SHOWN_MAX
    return "; ".join(named) + (f"; and {more:,} more" if more > 0 else "")


def _copied(tree: Tree, new: int) -> Copied:
    return Copied(sum(map(len, tree.versions.values())), len(tree.files), new)
