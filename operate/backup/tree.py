"""The content's files as they are at one moment of each prompt, while others publish.

A prompt's folder is listed under the lock that publications take, so its texts, records, labels
and withdrawals belong together. Files of content are never written in place, so they can be read
after that; if one has been withdrawn by then, the folder is listed again.
"""

import contextlib
import fcntl
import os
import stat
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from builder.model.errors import OperatorError, explained
from builder.store.content import CLOCK_GRAIN_NS, STORE_FILE
from builder.store.plain_files import mark_of_files
from operate.backup.objects import Objects, StoredFile

# The number of lists of files, by unit. A publication changes one of these.
SHARDS = 256
# Attempts to store a unit. An attempt fails only if something was withdrawn meanwhile; after these,
# the backup fails.
_ATTEMPTS = 100
_GONE = (FileNotFoundError, NotADirectoryError)
_THEN = "Run the backup as the user who runs the hub."
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Units(NamedTuple):
    """The units to list, by shard: folders of prompts, and files beside them, with paths relative
    to the content. ``skipped``: anything that is no plain file or folder, or has a name that is not
    UTF-8.
    """

    shards: dict[int, list[str]]
    skipped: list[str]


def find_units(root: str) -> Units:
    """List the folders of the content and of the owners. Raises OperatorError."""
    units = Units({}, [])
    with explained("read", root, _THEN, is_inside=True):
        for path, is_folder in _scan(root, "", units.skipped):
            inside = _scan(root, path, units.skipped) if is_folder else [(path, False)]
            for unit, _ in inside:
                units.shards.setdefault(zlib.crc32(unit.encode()) % SHARDS, []).append(unit)
    return units


def store_unit(
    root: str, unit: str, old: Mapping[str, StoredFile], objects: Objects, skipped: list[str]
) -> list[StoredFile]:
    """Store the files of a unit that differ from ``old``, by path; returns all of them in order.

    Adds to ``skipped``. Raises OperatorError.
    """
    for _ in range(_ATTEMPTS):
        left_out: list[str] = []
        reading = explained("read", root, _THEN, is_inside=True)
        with reading, contextlib.suppress(*_GONE):
            paths = _list(root, unit, left_out)
            files = [_store(root, path, old.get(path), objects) for path in paths]
            skipped += left_out
            return files
    raise OperatorError(
        f"{root}/{unit} changes faster than it can be copied. Back up again when it is quiet."
    )


def _list(root: str, unit: str, skipped: list[str]) -> list[str]:
    """The files of a unit, in order; none if it no longer exists. Raises OSError."""
    try:
        descriptor = os.open(f"{root}/{unit}", _READ)
    except _GONE:
        return []
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            return [unit]
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        found = sorted(_walk(root, unit, skipped))
        if os.path.lexists(f"{root}/{STORE_FILE}"):
            # A node applies changes without this lock, but in order. If a second look finds the
            # same files, none is missing to which another one refers.
            while (again := sorted(_walk(root, unit, []))) != found:
                found = again
        return found
    finally:
        os.close(descriptor)


def _walk(root: str, folder: str, skipped: list[str]) -> Iterator[str]:
    for path, is_folder in _scan(root, folder, skipped):
        if is_folder:
            yield from _walk(root, path, skipped)
        else:
            yield path


def _scan(root: str, folder: str, skipped: list[str]) -> Iterator[tuple[str, bool]]:
    """The path of each file and folder in a folder, and True for a folder, in no order."""
    with contextlib.suppress(*_GONE), os.scandir(f"{root}/{folder}") as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = f"{folder}/{entry.name}".lstrip("/")
            is_folder = entry.is_dir(follow_symlinks=False)
            is_utf8 = entry.name.encode(errors="replace").decode() == entry.name
            if is_utf8 and (is_folder or entry.is_file(follow_symlinks=False)):
                yield path, is_folder
            else:
                skipped.append(path)


def _store(root: str, path: str, old: StoredFile | None, objects: Objects) -> StoredFile:
    settled_ns = time.time_ns() - CLOCK_GRAIN_NS
    mark = mark_of_files((os.stat(f"{root}/{path}", follow_symlinks=False),), settled_ns)
    if mark and old and old.mark == mark and objects.has(old):
        return old
    with open(os.open(f"{root}/{path}", _READ), "rb", buffering=0) as file:
        return objects.put_file(path, file, mark)
