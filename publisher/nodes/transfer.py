"""Copies a whole hub between a content folder and a database, and checks what a database has."""

import contextlib
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import psycopg

from builder.model.errors import OperatorError
from builder.model.labels import event_file
from builder.model.records import LabelFile, OwnerFile, VersionFile, WithdrawnFile
from builder.model.withdrawn import WHOLE, withdrawn_file
from builder.store import content
from builder.store.content import OWNER_FILE
from builder.store.restored import serial_base
from publisher.accounts.database import Database
from publisher.nodes.copy import lock_folder, mark_as_copy
from publisher.nodes.rows import (
    EVENT,
    HUB_FILES,
    PROFILE,
    VERSION,
    WITHDRAWAL,
    File,
    Mark,
    Row,
    read_page,
)

# Called with (what, done, total), as ``cli.progress.Progress``.
Progress = Callable[[str, int, int], None]

_GROUP_FILES, _GROUP_BYTES = 500, 1024 * 1024

_PUT = """INSERT INTO change (serial, request, owner, repo, kind, name, record, text)
SELECT ? + n, request, owner, repo, kind, name, record, text
FROM unnest(?::uuid[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bytea[], ?::bytea[])
    WITH ORDINALITY AS w(request, owner, repo, kind, name, record, text, n)"""
_HASHES = """SELECT repo, kind, name, sha256(record), sha256(text) FROM change
WHERE owner = ? AND (kind <> 'version' OR text IS NOT NULL) ORDER BY serial"""
_RECORDS = """SELECT serial, repo, kind, name, record FROM change
WHERE serial > ? AND kind IN ('version', 'withdrawal', 'restored.json') ORDER BY serial LIMIT 500"""
_LAST = "SELECT serial, request FROM change ORDER BY serial DESC LIMIT 1"

_decoders = {
    kind: msgspec.json.Decoder(record).decode
    for kind, record in (
        (VERSION, VersionFile), (EVENT, LabelFile), (PROFILE, OwnerFile),
        (WITHDRAWAL, WithdrawnFile),
    )
}  # fmt: skip


def copy_in(
    root: str, database: Database, told_serial: int, progress: Progress,
    copy_more: Callable[[], None],
) -> int:  # fmt: skip
    """Copy a folder into a database that has nothing, and make the folder a copy of that; returns
    how many files it has. All of it or nothing: ``copy_more`` is part of the transaction.

    Readers know ``told_serial``, so the database counts from there. A database that has the same
    already, because the answer to the commit was lost, is left as it is. Raises OperatorError;
    ContentError; RequestError ``storage_unavailable``.
    """
    with contextlib.ExitStack() as held, database.transaction():
        held.callback(os.close, lock_folder(root))  # of a node that still runs, it is not copied
        # Reading the folder may take longer than a node may stop.
        database.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
        if not database.execute(_LAST):
            serial = max(told_serial, serial_base(root))
            for group in _groups(_files(root, progress)):
                _put(database, serial, group)
                serial += len(group)
            if not database.execute(
                "UPDATE hub SET serial = ? WHERE id = 1 AND serial = 0 RETURNING serial", (serial,)
            ):
                raise OperatorError("A node publishes. Stop all nodes, and copy again.")
            copy_more()
        if different := next(find_differences(root, database, progress), None):
            raise OperatorError(
                f"The database does not have what {root} has: {different} differs. Stop the hub "
                "and all nodes, and copy into an empty database."
            )
        (last,) = database.execute(_LAST) or [(0, None)]
        ((count,),) = database.execute("SELECT count(*) FROM change")
    mark_as_copy(root, Mark(*last))
    return count


def find_differences(root: str, database: Database, progress: Progress) -> Iterator[str]:
    """The paths of files that a folder and a database do not have alike."""
    there = {owner for (owner,) in database.execute("SELECT DISTINCT owner FROM change")}
    owners = sorted({"", *content.list_owners(root)} | there)
    for done, owner in enumerate(owners):
        progress("Verifying owners", done, len(owners))
        hashes: dict[str, tuple[bytes, bytes | None]] = {}
        for repo, kind, name, record, text in database.execute(_HASHES, (owner,)):
            hashes[_path(repo, kind, name)] = (record, text)
        for file in _files_of(root, owner):
            path = _path(file.repo, file.kind, file.name)
            if hashes.pop(path, None) != (_hash(file.record), _hash(file.text)):
                yield path
        yield from hashes


def numbered_records(database: Database) -> Iterator[tuple[str, bytes]]:
    """The records that say which numbers were given, with their paths in a content folder."""
    last = 0
    while rows := database.execute(_RECORDS, (last,)):
        last = rows[-1][0]
        for _, repo, kind, name, record in rows:
            path = _path(repo, kind, name)
            yield f"{path}.json" if kind == VERSION else path, record


def put_hub_file(database: Database, name: str, data: bytes) -> None:
    """Publish a file of the hub itself, one of HUB_FILES, in the database's transaction."""
    ((serial,),) = database.execute("SELECT serial FROM hub WHERE id = 1 FOR UPDATE")
    _put(database, serial, [("", File("", name, uuid.uuid4().hex, data))])
    database.execute("UPDATE hub SET serial = serial + 1 WHERE id = 1")


def find_faults(connection: psycopg.Connection, progress: Progress) -> Iterator[str]:
    """What is wrong in a database, each as a line. Raises psycopg.Error."""
    ((serial,),) = connection.execute("SELECT serial FROM hub WHERE id = 1").fetchall()
    withdrawals = "SELECT repo, name, serial FROM change WHERE kind = 'withdrawal'"
    withdrawn = {(repo, name): at for repo, name, at in connection.execute(withdrawals)}
    mark = Mark(0, None)
    while page := read_page(connection, mark):
        progress("Checking changes", page[-1].serial, serial)
        for row in page:
            if mark.serial and row.serial != mark.serial + 1:
                yield f"change {mark.serial + 1}: it is missing; restore the database"
            gone = (withdrawn.get((row.repo, name), 0) for name in (row.name, WHOLE))
            if fault := _fault_of(row, is_withdrawn=max(gone) > row.serial):
                yield f"change {row.serial}, {_path(row.repo, row.kind, row.name)}: {fault}"
            mark = row.mark
    if mark.serial and mark.serial != serial:
        yield f"the hub's serial is {serial}, and its last change is {mark.serial}"


def _fault_of(row: Row, is_withdrawn: bool) -> str | None:
    if row.kind == VERSION and is_withdrawn:
        if row.record or row.text is not None:
            return (
                "it was withdrawn, and its text is still there; run `UPDATE change SET record = "
                f"'', text = NULL WHERE serial = {row.serial}`, and `hubctl store renew` on nodes "
                "that have it"
            )
        return None
    if row.kind in HUB_FILES:
        return None
    if row.kind not in _decoders:
        return f"this release does not know its kind, {row.kind!r}; upgrade"
    try:
        record: Any = _decoders[row.kind](row.record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"its record cannot be read ({error}); restore it"
    if row.kind == VERSION and row.text is None:
        return "its text is missing; restore it"
    if row.kind == VERSION and hashlib.sha256(row.text).hexdigest() != record.sha256:
        return "its text does not have the hash of its record; restore it"
    return None


# The folder


def _files(root: str, progress: Progress) -> Iterator[tuple[str, File]]:
    """All files of a folder, each with its owner."""
    owners = ["", *content.list_owners(root)]
    for done, owner in enumerate(owners):
        progress("Copying owners", done, len(owners))
        for file in _files_of(root, owner):
            yield owner, file


def _files_of(root: str, owner: str) -> Iterator[File]:
    """The files of an owner; those of the hub itself for "". Withdrawals come after versions."""
    if not owner:
        for name in HUB_FILES:
            if os.path.lexists(f"{root}/{name}"):
                yield File("", name, uuid.uuid4().hex, _read(f"{root}/{name}"))
        return
    if os.path.lexists(f"{root}/{owner}/{OWNER_FILE}"):
        yield File(owner, PROFILE, uuid.uuid4().hex, _read(f"{root}/{owner}/{OWNER_FILE}"))
    for name in content.list_repos(root, owner):
        repo, folder = f"{owner}/{name}", content.repo_path(root, owner, name)
        listing = content.list_versions(root, owner, name)
        for version in listing.versions:
            record, text = (_read(f"{folder}/{version}.{kind}") for kind in ("json", "md"))
            yield File(repo, VERSION, str(version), record, text)
        for number in listing.events:
            yield File(repo, EVENT, str(number), _read(f"{folder}/{event_file(number)}"))
        for what in listing.withdrawn.files:
            yield File(repo, WITHDRAWAL, what, _read(f"{folder}/{withdrawn_file(what)}"))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise OperatorError(
            f"Cannot read {path}: {error.strerror}. Stop the hub, and run `hubctl check`."
        ) from error


def _path(repo: str, kind: str, name: str) -> str:
    if kind in HUB_FILES:
        return kind
    if kind == PROFILE:
        return f"{repo}/{OWNER_FILE}"
    if kind == EVENT:
        return f"{repo}/{event_file(int(name))}"
    return f"{repo}/{withdrawn_file(name) if kind == WITHDRAWAL else name}"


def _hash(data: bytes | None) -> bytes | None:
    return None if data is None else hashlib.sha256(data).digest()


# The database


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


def _put(database: Database, serial: int, group: list[tuple[str, File]]) -> None:
    owners, files = zip(*group, strict=True)
    requests = [uuid.uuid4() for _ in group]
    columns = [[*column] for column in zip(*files, strict=True)]
    database.execute(_PUT, (serial, requests, [*owners], *columns))
