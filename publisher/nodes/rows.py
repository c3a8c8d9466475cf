"""What a change is, and the one round trip that commits a group of them.

All of it is sent at once: BEGIN, the lock of the hub's row, what is to be put, the page after what
this node has, COMMIT. So nobody holds the lock while something travels, and a process that stops
in between has sent all or nothing. The answer to COMMIT can be lost; then the same requests are
sent again: they tell what is there already, and wait for a transaction that is not over yet.
"""

import time
import uuid
from collections.abc import Sequence
from typing import NamedTuple

import psycopg
from msgspec import Struct

from builder.model.withdrawn import WHOLE
from builder.store.content import FORMAT_FILE, HOME_FILE
from builder.store.restored import RESTORED_FILE
from publisher.nodes.statements import END_STOPPED, LOCK, NEWER, PUT, SINCE, TAKE_TEXTS
from publisher.write.idempotency import KEPT_SECONDS, IdempotencyKey, KeptAnswer

# Of one page.
PAGE_ROWS, PAGE_BYTES = 500, 8 * 1024 * 1024
# For the hub's row, which others have for no longer than a commit takes; and after so long the
# server ends the transaction of a node that has stopped within it.
LOCK_SECONDS, STOPPED_SECONDS = 2.0, 2.0

# A commit waits for the disk, whatever the server's default is. For this transaction alone, since
# a pooler gives the next one to another connection.
_LIMITS = (
    "SELECT set_config('lock_timeout', %s, true), "
    "set_config('idle_in_transaction_session_timeout', %s, true), "
    "set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'),"
    " true)"
)

VERSION, EVENT, WITHDRAWAL, PROFILE = "version", "label", "withdrawal", "profile"
# Kinds that are files of the hub itself, which has no owner; as of profiles, the last one counts.
HUB_FILES = (FORMAT_FILE, HOME_FILE, RESTORED_FILE)


class Mark(NamedTuple):
    """A row of the history: it has all up to ``serial``, and ``request`` tells which history. None:
    there is no row yet.
    """

    serial: int
    request: uuid.UUID | None


class Row(NamedTuple):
    """A file that was published. ``text``: of a version that is not withdrawn."""

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

    @property
    def size(self) -> int:
        return len(self.record) + len(self.text or b"")


class File(NamedTuple):
    """A file that is to be published; as in ``Row``."""

    repo: str
    kind: str | None
    name: str | None
    record: bytes | None
    text: bytes | None = None


class Answer(NamedTuple):
    """What is kept for a request. ``known``: so many attempts of it were known before."""

    key: IdempotencyKey
    kept: KeptAnswer
    known: int


class Change(Struct, frozen=True):
    """What happens whole or not at all, decided by all of its prompt up to ``seen``, and
    ``by_owner`` by all that the owner has. Without ``files`` it is only an answer.
    """

    owner: str
    repo: str
    files: Sequence[File]
    seen: Mark
    by_owner: bool
    answer: Answer | None
    requests: Sequence[uuid.UUID]

    @property
    def keys(self) -> set[str]:
        return {self.repo, self.owner} if self.by_owner else {self.repo}

    @property
    def size(self) -> int:
        return sum(len(one.record or b"") + len(one.text or b"") for one in self.files) + 500


class OtherHistory(Exception):
    """The database does not have what this node has."""


class Committed(NamedTuple):
    """``serials``: of what is there, by request. ``rows``: the page after a mark, without it."""

    serials: dict[uuid.UUID, int]
    rows: list[Row]


def make_change(
    owner: str, repo: str, files: Sequence[File], seen: Mark, by_owner: bool,
    answer: Answer | None = None,
) -> Change:  # fmt: skip
    # An answer alone is a row, too.
    requests = [uuid.uuid4() for _ in files or [None]]
    return Change(owner, repo, files, seen, by_owner, answer, requests)


def commit(connection: psycopg.Connection, group: Sequence[Change], mark: Mark) -> Committed:
    """Commit those of a group that nobody overtook. Raises OtherHistory, psycopg.Error."""
    columns = _columns(group)
    limits = [f"{round(one * 1000)}ms" for one in (LOCK_SECONDS, STOPPED_SECONDS)]
    with connection.pipeline():  # nothing is fetched inside
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        connection.execute(_LIMITS, limits)
        connection.execute(LOCK)  # so PUT sees all that was committed before
        put = connection.execute(PUT, columns, binary=True)
        if any(one.kind == WITHDRAWAL for change in group for one in change.files):
            connection.execute(TAKE_TEXTS, {"request": columns["request"], "whole": WHOLE})
        since = connection.execute(SINCE, _page(mark), binary=True)
        connection.execute("COMMIT")
    return Committed(dict(put.fetchall()), _after(since, mark))


def read_page(connection: psycopg.Connection, mark: Mark) -> list[Row]:
    """The page after a mark. Raises OtherHistory, psycopg.Error."""
    return _after(connection.execute(SINCE, _page(mark), binary=True), mark)


def end_stopped(connection: psycopg.Connection) -> None:
    """End transactions whose processes have stopped while they held the hub's row. Raises
    psycopg.Error.
    """
    connection.execute(END_STOPPED, (LOCK_SECONDS,))


def newer(
    connection: psycopg.Connection, owner: str, repo: str, seen: Mark, by_owner: bool
) -> tuple[int, int | None]:
    """The serial of all there is, and of the newest change since what was seen. Raises
    OtherHistory, psycopg.Error.
    """
    asked = {"seen": seen.serial, "repo": repo, "owner": owner, "by_owner": by_owner}
    ((serial, request, touched),) = connection.execute(NEWER, asked).fetchall()
    if seen.request and request != seen.request:
        raise OtherHistory
    return serial, touched


def _page(mark: Mark) -> dict[str, int]:
    return {"serial": mark.serial, "rows": PAGE_ROWS + 1, "bytes": PAGE_BYTES}


def _after(cursor: psycopg.Cursor, mark: Mark) -> list[Row]:
    rows = [Row(*row) for row in cursor.fetchall()]
    if mark.request and not (rows and rows[0].mark == mark):
        raise OtherHistory
    return [row for row in rows if row.serial > mark.serial]


def _columns(group: Sequence[Change]) -> dict[str, object]:
    now = int(time.time())
    rows = [row for change in group for row in _rows(change)]
    names = rows[0].keys()
    columns: dict[str, object] = {name: [row[name] for row in rows] for name in names}
    return columns | {"now": now, "kept_until": now + KEPT_SECONDS}


def _rows(change: Change) -> list[dict[str, object]]:
    answer = change.answer
    key = answer.key if answer else None
    rows = []
    for at, (request, file) in enumerate(
        zip(change.requests, change.files or [File(change.repo, None, None, None)], strict=True)
    ):
        # All rows are late alike, so they have the key; its answer is kept once.
        kept = answer.kept if answer and not at else None
        rows.append(
            {
                "request": request, "owner": change.owner, **file._asdict(),
                "seen": change.seen.serial, "history": change.seen.request,
                "by_owner": change.by_owner, "key_owner": key and key.owner,
                "key": key and key.key, "known": answer.known if answer else 0,
                "fingerprint": key and key.fingerprint,
                **dict.fromkeys(KeptAnswer._fields), **(kept._asdict() if kept else {}),
            }
        )  # fmt: skip
    return rows
