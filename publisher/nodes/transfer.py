"""Copies a whole hub from a content folder into a database, and compares the two."""

import contextlib
import hashlib
import itertools
import os
import uuid
from collections.abc import Callable, Iterator

import msgspec

from builder.model import content_tree as tree
from builder.model.errors import OperatorError
from builder.store import content
from builder.store.restored import serial_base
from publisher.accounts.database import Database
from publisher.nodes.copy import lock_folder, mark_as_copy
from publisher.nodes.rows import (
    EVENT,
    PROFILE,
    VERSION,
    WITHDRAWAL,
    File,
    Mark,
    commit,
    join,
    make_change,
    path_of,
    paths_of,
)

# SHA-256 of a record, and of a text.
Hashes = tuple[bytes | None, ...]
# Called with (what, done, total), as ``cli.standard_error.Progress``.
Progress = Callable[[str, int, int], None]

# The most that one transaction copies.
_GROUP_FILES, _GROUP_BYTES = 100, 1024 * 1024
# As ``seen``, a serial that no change overtakes.
_LAST_SERIAL = 2**62

_HASHES = """SELECT serial, request, repo, kind, name, sha256(record), sha256(text) FROM change
WHERE {} AND (kind <> 'version' OR text IS NOT NULL) ORDER BY serial LIMIT ?"""
_RECORDS = f"""SELECT serial, repo, kind, name, record FROM change
WHERE serial > ? AND kind IN ('version', 'withdrawal', '{tree.RESTORED_FILE}') ORDER BY serial
LIMIT 500"""


def copy_in(root: str, database: Database, known_serial: int, progress: Progress) -> int:
    """Copies a folder into a database that is empty, or that has the first files of this folder, as
    an interrupted copy leaves it. Makes the folder a copy of the database; returns how many files
    it has. Readers know serials up to ``known_serial``, so the database counts on from there.

    Raises OperatorError; ContentError; RequestError ``storage_unavailable``; psycopg.Error.
    """
    with contextlib.ExitStack() as held:
        # fails where a node still follows a database into it
        held.callback(os.close, lock_folder(root))
        files = _files(root, progress)
        mark, count = Mark(0, None), 0
        for found, path, hashes in _copied(database):
            _, file = next(files, (None, None))
            if file is None or _hashes_of(file) != (path, hashes):
                raise _differs(root, path)
            mark, count = found, count + 1
        if not count:
            base = max(known_serial, serial_base(root))
            database.execute("UPDATE hub SET serial = greatest(serial, ?) WHERE id = 1", (base,))
        for group in _groups(files):
            mark = _commit(database, group, mark)
            count += len(group)
        if different := next(find_differences(root, database, progress), None):
            raise _differs(root, different)
        mark_as_copy(root, mark)
    return count


def _copied(database: Database) -> Iterator[tuple[Mark, str, Hashes]]:
    """Yields the files that the database has, in its order: the mark, the path and the hashes of
    each.
    """
    serial = 0
    while found := database.execute(_HASHES.format("serial > ?"), (serial, 1000)):
        for serial, request, repo, kind, name, *hashes in found:
            yield Mark(serial, request), path_of(repo, kind, name), tuple(hashes)


def _commit(database: Database, group: list[tuple[str, File]], mark: Mark) -> Mark:
    changes = [
        make_change(owner, owner, [file for _, file in files], _LAST_SERIAL, by_owner=False)
        for owner, files in itertools.groupby(group, lambda one: one[0])
    ]
    with database.engine.connections.asking() as connection:
        _, page = commit(connection, changes, mark)
    if len(page.rows) != len(group):
        raise OperatorError("A node publishes. Stop all nodes, and copy again.")
    return page.rows[-1].mark


def _differs(root: str, path: str) -> OperatorError:
    return OperatorError(
        f"The database does not have what {root} has: {path} differs. Stop the hub and all nodes, "
        "and copy into an empty database."
    )


def find_differences(root: str, database: Database, progress: Progress) -> Iterator[str]:
    """Yields the paths of files that differ between a folder and a database."""
    known = {owner for (owner,) in database.execute("SELECT DISTINCT owner FROM change")}
    owners = sorted({"", *content.list_owners(root)} | known)
    for done, owner in enumerate(owners):
        progress("Verifying owners", done, len(owners))
        there: dict[str, Hashes] = {}
        rows = database.execute(_HASHES.format("owner = ?"), (owner, None))
        for _, _, repo, kind, name, *hashes in rows:
            there[path_of(repo, kind, name)] = tuple(hashes)
        for file in _files_of(root, owner):
            path, hashes = _hashes_of(file)
            if there.pop(path, None) != hashes:
                yield path
        yield from there


def numbered_records(database: Database) -> Iterator[tuple[str, bytes]]:
    """Yields the records that use up numbers, with their paths in a content folder."""
    last = 0
    while rows := database.execute(_RECORDS, (last,)):
        last = rows[-1][0]
        for _, repo, kind, name, record in rows:
            yield path_of(repo, kind, name), record


def read_hub_file(database: Database, name: str) -> bytes | None:
    """The last bytes of a file of the hub itself, one of HUB_FILES; None if it was never
    published.
    """
    newest = "SELECT record FROM change WHERE kind = ? ORDER BY serial DESC LIMIT 1"
    rows = database.execute(newest, (name,))
    return bytes(rows[0][0]) if rows else None


def put_hub_file(database: Database, name: str, data: bytes) -> None:
    """Publishes a file of the hub itself, one of HUB_FILES."""
    file = File("", name, uuid.uuid4().hex, data)
    with database.engine.connections.asking() as connection:
        commit(connection, [make_change("", "", [file], _LAST_SERIAL, False)], Mark(0, None))


# The folder


def _files(root: str, progress: Progress) -> Iterator[tuple[str, File]]:
    """Yields all files of a folder, each with its owner."""
    owners = ["", *content.list_owners(root)]
    for done, owner in enumerate(owners):
        progress("Copying owners", done, len(owners))
        for file in _files_of(root, owner):
            yield owner, file


def _files_of(root: str, owner: str) -> Iterator[File]:
    """Yields the files of an owner; those of the hub itself for "". Withdrawals come after
    versions.
    """
    if not owner:
        for name in tree.HUB_FILES:
            if os.path.lexists(f"{root}/{name}"):
                yield File("", name, uuid.uuid4().hex, _read(f"{root}/{name}"))
        return
    if os.path.lexists(f"{root}/{owner}/{tree.OWNER_FILE}"):
        yield File(owner, PROFILE, uuid.uuid4().hex, _read(f"{root}/{owner}/{tree.OWNER_FILE}"))
    for name in content.list_repos(root, owner):
        repo, folder = f"{owner}/{name}", content.repo_path(root, owner, name)
        listing = content.list_versions(root, owner, name)
        for version in listing.versions:
            record, text = (
                _read(f"{folder}/{kind.file(version)}") for kind in (tree.RECORD, tree.TEXT)
            )
            try:
                paths = paths_of(record)
            except msgspec.DecodeError as error:
                file = f"{folder}/{tree.RECORD.file(version)}"
                raise OperatorError(f"Cannot read {file}: {error}. Run `hubctl check`.") from error
            data = (_read(f"{folder}/{tree.FILE.file(version, path)}") for path in paths)
            yield File(repo, VERSION, str(version), record, join(text, data))
        for number in listing.events:
            yield File(repo, EVENT, str(number), _read(f"{folder}/{tree.LABEL.file(number)}"))
        for what in listing.withdrawn.files:
            yield File(repo, WITHDRAWAL, what, _read(f"{folder}/{tree.WITHDRAWAL.file(what)}"))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise OperatorError(
            f"Cannot read {path}: {error.strerror}. Stop the hub, and run `hubctl check`."
        ) from error


def _hashes_of(file: File) -> tuple[str, Hashes]:
    record, text = (
        None if data is None else hashlib.sha256(data).digest() for data in (file.record, file.text)
    )
    return path_of(file.repo, file.kind, file.name), (record, text)


def _groups(files: Iterator[tuple[str, File]]) -> Iterator[list[tuple[str, File]]]:
    group: list[tuple[str, File]] = []
    size = 0
    for owner, file in files:
        group.append((owner, file))
        size += len(file.record or b"") + len(file.text or b"")
        if len(group) == _GROUP_FILES or size > _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
