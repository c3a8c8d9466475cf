"""The rows that nodes read and commit, each in one round trip.

A group of changes is committed by one message to the server: BEGIN, the function ``commit_changes``
(see ``shared_tables``), COMMIT, and the page after the rows that this node has. PostgreSQL calls
this a simple query with multiple statements
(https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-MULTI-STATEMENT). The
server begins when it has the whole message, and sends the page after COMMIT. So a node that stops
does not keep the hub's row locked. The answer can be lost. Then the node sends the same requests
again, and the function finds those that are committed.
"""

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import psycopg
from msgspec import Struct

from builder.model.content_tree import HUB_FILES, LABEL, OWNER_FILE, RECORD
from builder.model.content_tree import WITHDRAWAL as WITHDRAWAL_FILE
from publisher.write.idempotency import KEPT_SECONDS, IdempotencyKey, KeptAnswer

# The most that one page has; the rest is on later pages.
PAGE_ROWS, PAGE_BYTES = 500, 8 * 1024 * 1024
# A commit waits at most so long for the locks of other nodes (``lock_timeout``,
# https://www.postgresql.org/docs/current/runtime-config-client.html). Then PostgreSQL cancels it.
LOCK_SECONDS = 2.0

VERSION, EVENT, WITHDRAWAL, PROFILE = "version", "label", "withdrawal", "profile"
# The other kinds are HUB_FILES, files of the hub itself, which has no owner. Of these and of
# profiles, the last row counts.
_NUMBERED = {VERSION: RECORD, EVENT: LABEL, WITHDRAWAL: WITHDRAWAL_FILE}

# With `>=`, the first row is the one that the node has; if it is not, this is another history. The
# server does not send the content of that row, nor of rows that the node has just committed.
_PAGE = """SELECT serial, request, owner, repo, kind, name,
    CASE WHEN is_new THEN record END, CASE WHEN is_new THEN text END,
    (SELECT serial FROM hub WHERE id = 1) AS head
FROM (
    SELECT *, serial > %(serial)s AND request <> ALL(%(own)s::uuid[]) AS is_new,
        sum(octet_length(record) + coalesce(octet_length(text), 0)) OVER (ORDER BY serial) AS size
    FROM change WHERE serial >= %(serial)s ORDER BY serial LIMIT %(rows)s
) AS page WHERE size <= %(bytes)s OR serial <= %(serial)s + 1 ORDER BY serial"""
_COMMIT = f"""BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = %(lock)s;
SELECT * FROM commit_changes(%(changes)s, %(serial)s, %(request)s, %(now)s, %(keep_until)s);
COMMIT; {_PAGE}"""
# The hub's serial; the request of the row that a decision saw last; and the newest change since
# then among those that the decision depends on.
_NEWER = """SELECT serial, (SELECT request FROM change WHERE serial = %(seen)s),
    greatest(
        (SELECT max(serial) FROM change WHERE repo = %(repo)s AND serial > %(seen)s),
        (SELECT max(serial) FROM change
            WHERE %(by_owner)s AND owner = %(owner)s AND serial > %(seen)s))
FROM hub WHERE id = 1"""
FORGET_ANSWERS = "DELETE FROM answer WHERE kept_until <= %s"


class Mark(NamedTuple):
    """The last row that a copy has. ``request`` identifies the history; None: no row yet."""

    serial: int
    request: uuid.UUID | None


class Row(NamedTuple):
    """A file that was published. ``text``: only of a version that is not withdrawn."""

    serial: int
    request: uuid.UUID
    owner: str
    repo: str
    kind: str
    name: str
    record: bytes
    text: bytes | None

    @property
    def mark(self) -> Mark:
        return Mark(self.serial, self.request)


class File(NamedTuple):
    """A file to publish; the fields are those of ``Row``."""

    repo: str
    kind: str | None
    name: str | None
    record: bytes | None
    text: bytes | None = None


class Answer(NamedTuple):
    """An answer to keep with a change. ``known``: how many answers of this request were kept when
    the change was decided.
    """

    key: IdempotencyKey
    kept: KeptAnswer
    known: int


class Change(Struct, frozen=True):
    """Files that are committed together or not at all.

    The decision depends on everything that its prompt has up to the serial ``seen``, and with
    ``by_owner`` on everything that the owner has. A change without ``files`` only keeps an answer.
    """

    owner: str
    repo: str
    files: Sequence[File]
    seen: int
    by_owner: bool
    answer: Answer | None
    requests: Sequence[uuid.UUID]

    @property
    def keys(self) -> set[str]:
        """The names of all that a change decides about. ``commit_changes`` does not compare changes
        of one group, so no two of them share a key.
        """
        keys = {self.repo}
        if self.by_owner:
            keys.add(self.owner)
        if self.answer:
            # No repo's id and no handle has a space.
            keys.add(f"{self.answer.key.owner} {self.answer.key.key}")
        return keys

    @property
    def size(self) -> int:
        return sum(len(one.record or b"") + len(one.text or b"") for one in self.files) + 500


class OtherHistory(Exception):
    """The database does not have the last row that this node has."""


class Page(NamedTuple):
    """The rows after a mark, and ``head``, the serial of the newest row in the database."""

    rows: list[Row]
    head: int


def path_of(repo: str, kind: str, name: str) -> str:
    """The path of a row's file, or of a version's record, below the content folder."""
    if kind in HUB_FILES:
        return kind
    file = _NUMBERED[kind].file(name) if kind in _NUMBERED else name
    return f"{repo}/{OWNER_FILE if kind == PROFILE else file}"


def make_change(
    owner: str,
    repo: str,
    files: Sequence[File],
    seen: int,
    by_owner: bool,
    answer: Answer | None = None,
) -> Change:
    # A change that only keeps an answer has one request, too.
    requests = [uuid.uuid4() for _ in files or [None]]
    return Change(owner, repo, files, seen, by_owner, answer, requests)


def commit(
    connection: psycopg.Connection, group: Sequence[Change], mark: Mark
) -> tuple[dict[uuid.UUID, int], Page]:
    """Commits the changes of a group that no other change overtook. Returns the serials of all
    requests that are committed, and the page after a mark. Raises OtherHistory, psycopg.Error.
    """
    now = int(time.time())
    sent = [row for change in group for row in _rows(change)]
    numbered = [row | {"n": number} for number, row in enumerate(sent)]
    values = {
        "changes": msgspec.json.encode(numbered).decode(),
        "request": mark.request,
        "now": now,
        "keep_until": now + KEPT_SECONDS,
        "lock": f"{round(LOCK_SECONDS * 1000)}ms",
    }
    own = {
        request: file
        for change in group
        for request, file in zip(change.requests, change.files, strict=False)
    }
    cursor = psycopg.ClientCursor(connection)  # one message for all statements
    cursor.execute(_COMMIT, values | _page(mark, [*own]))
    results = []
    while cursor.nextset():
        results.append(cursor.fetchall() if cursor.description else None)
    _, serials, _, page = results
    return dict(serials), _after(page, mark, own)


def read_page(connection: psycopg.Connection, mark: Mark) -> Page:
    """Returns the page after a mark. Raises OtherHistory, psycopg.Error."""
    found = connection.execute(_PAGE, _page(mark, []), binary=True).fetchall()
    return _after(found, mark, {})


def newer(
    connection: psycopg.Connection, owner: str, repo: str, seen: Mark, by_owner: bool
) -> tuple[int, int | None]:
    """Returns the hub's serial, and that of the newest relevant change after ``seen`` or None.
    Raises OtherHistory, psycopg.Error.
    """
    values = {"seen": seen.serial, "repo": repo, "owner": owner, "by_owner": by_owner}
    ((serial, request, touched),) = connection.execute(_NEWER, values).fetchall()
    if seen.request and request != seen.request:
        raise OtherHistory
    return serial, touched


def _page(mark: Mark, own: list[uuid.UUID]) -> dict[str, object]:
    return {"serial": mark.serial, "rows": PAGE_ROWS + 1, "bytes": PAGE_BYTES, "own": own}


def _after(found: list[tuple], mark: Mark, own: dict[uuid.UUID, File]) -> Page:
    rows = [Row(*row) for *row, _ in found]
    if mark.request and not (rows and rows[0].mark == mark):
        raise OtherHistory
    new = [
        row._replace(record=own[row.request].record, text=own[row.request].text)
        if row.request in own
        else row
        for row in rows
        if row.serial > mark.serial
    ]
    return Page(new, found[-1][-1] if found else mark.serial)


def _rows(change: Change) -> list[dict[str, object]]:
    """Returns the arguments of ``commit_changes``. All rows of a change have its key, so they are
    overtaken together. The first one carries its answer.
    """
    answer = change.answer
    key = answer.key if answer else None
    rows: list[dict[str, object]] = []
    for request, file in zip(
        change.requests, change.files or [File(change.repo, None, None, None)], strict=True
    ):
        row = {"request": request, "owner": change.owner, **file._asdict()}
        row |= {"seen": change.seen, "by_owner": change.by_owner}
        if answer:
            row |= {"key_owner": key.owner, "key": key.key, "known": answer.known}
            row |= {} if rows else {"fingerprint": key.fingerprint, **answer.kept._asdict()}
        rows.append(row)
    return rows


class _File(Struct):
    path: str
    size: int


class _Record(Struct):
    files: list[_File] = []


_decode = msgspec.json.Decoder(_Record).decode


def join(text: bytes, files: Iterable[bytes]) -> bytes:
    """A version's text and files as one column of its row: the text, then the files in the order of
    the record, which has their sizes. A withdrawal empties the column, and so removes all of them.
    """
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
