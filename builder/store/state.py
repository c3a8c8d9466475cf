"""What the builder remembers between builds, in SQLite under the state folder.

A cache: all of it follows from the content, and when in doubt it is thrown away. It holds, for
each repo, the marks of its files and the bytes that lists are joined from; the digest of each
list page that is on the site; and what a build has begun. A full build is one transaction. Any
other commits what it is about to write before it touches a file, and what it has written after
that: a reader of the state (search, queries) sees a publication whole or not at all, and a
build that dies leaves a list of what the next one has to look at again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TextIO

from builder.model.errors import OperatorError
from builder.store.database import (
    SCHEMA,
    SCHEMA_VERSION,
    STATE_FILE,
    DamageError,
    boot_id,
    checksum,
    connect,
    keep_checksums,
    stop_checksums,
)

# How long a build waits for the workers of one that was killed, and how often it looks.
WORKERS_SECONDS_MAX = 30.0
_WORKERS_LOOK_SECONDS = 0.02

_ORDER = {
    "top": "pulls DESC, updated DESC, id",
    "trending": "trend DESC, id",
    "new": "created DESC, id",
    "updated": "updated DESC, id",
}


class RepoRow(NamedTuple):
    """A row of the table ``repo``, without its key and its checksum."""

    id: str
    owner: str
    mark: str
    versions: bytes
    versions_count: int
    pulls: int
    updated: int
    created: int
    trend: int
    tags: str
    digest: bytes
    text_digest: bytes
    summary: bytes
    card: bytes
    line: bytes


_UPSERT = (
    f"INSERT INTO repo ({', '.join(RepoRow._fields)}, checksum) "
    f"VALUES ({', '.join('?' * len(RepoRow._fields))}, ?) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{field} = excluded.{field}" for field in (*RepoRow._fields[1:], "checksum"))
    + " RETURNING key"
)


# Locks of builds in this process. A forked worker closes them: it holds ``workers_lock`` instead.
_build_locks: set[TextIO] = set()
os.register_at_fork(after_in_child=lambda: [file.close() for file in _build_locks])


def digest_of(*parts: bytes) -> bytes:
    """As in the columns ``digest`` and ``text_digest``."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=12).digest()


@contextlib.contextmanager
def build_lock(
    folder: str, on_wait: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], bool]]:
    """Hold the only right to build with this state; waits for another build to end.

    ``on_wait`` is called once when there is one. Gives a function that tells whether somebody
    else waits for the right now. Raises OperatorError.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_lock_file(folder, "build.lock"))
        # Who waits for the lock holds a share of this one.
        queue = stack.enter_context(_lock_file(folder, "build.queue"))
        _build_locks.add(file)
        stack.callback(_build_locks.discard, file)
        if not _try_lock(file):
            on_wait()
            fcntl.flock(queue, fcntl.LOCK_SH)
            fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.flock(queue, fcntl.LOCK_UN)

        def is_wanted() -> bool:
            if not _try_lock(queue):
                return True
            fcntl.flock(queue, fcntl.LOCK_UN)
            return False

        with workers_lock(folder):
            pass  # the workers of a killed build are gone
        yield is_wanted


@contextlib.contextmanager
def workers_lock(folder: str) -> Iterator[TextIO]:
    """Hold the lock that a build shares with its worker processes, and get its file.

    Only the holder of ``build_lock`` may call this. Workers inherit the descriptor when they start,
    and an ``flock`` lasts until every copy of its descriptor is closed. So while any worker of a
    killed build can still write, whatever state it is in, no other build begins.

    Workers end with their parent (``builder.pipeline.pool``), so the wait is short. A stopped
    worker may not: it is continued, finds its parent gone, and ends. It is not killed, because the
    file's process ids may belong to other processes by now. Raises OperatorError after
    ``WORKERS_SECONDS_MAX``.
    """
    with _lock_file(folder, "build.workers") as file:
        deadline = time.monotonic() + WORKERS_SECONDS_MAX
        while not _try_lock(file):
            if time.monotonic() > deadline:
                raise OperatorError(
                    f"Worker processes of a killed build still hold {file.name}. "
                    f"List them with `lsof {file.name}`, end them with `kill -9`, and build again."
                )
            file.seek(0)
            for pid in filter(str.isdecimal, file.read().split()):
                with contextlib.suppress(OSError, OverflowError):
                    os.kill(int(pid), signal.SIGCONT)
            time.sleep(_WORKERS_LOOK_SECONDS)
        file.truncate(0)
        yield file


def _lock_file(folder: str, name: str) -> TextIO:
    try:
        os.makedirs(folder, exist_ok=True)
        return open(f"{folder}/{name}", "a+")
    except OSError as error:
        raise OperatorError(f"Cannot use {folder} for the state: {error.strerror}.") from None


def _try_lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class State:
    """A connection to the state of one site. ``State(None)`` is an empty one in memory."""

    def __init__(self, folder: str | None, *, read_only: bool = False) -> None:
        self.path = self.path_in(folder) if folder else ":memory:"
        self._db = connect(self.path, read_only=read_only)
        self._is_one_transaction = False

    @staticmethod
    def path_in(folder: str) -> str:
        return f"{folder}/{STATE_FILE}"

    def close(self) -> None:
        """Close the connection; what was not committed is as if it had not been."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Beginning and end of a build

    def vouches_for(self, stamp: str, site_mark: str) -> bool:
        """Whether what is remembered holds for a site.

        Not after another stamp (code, templates, settings), nor when the site is not the one
        that the last build left (``site_mark``), nor after a full build that did not end, nor
        after a restart of the machine, when the kernel may have lost what was not yet on disk.
        """
        return (
            self._version() == SCHEMA_VERSION
            and self._meta("clean") == f"{stamp} {boot_id()} {site_mark}"
        )

    def was_killed(self) -> bool:
        """Whether a build began and could not even say that it failed."""
        return self._meta("running") is not None

    def begin(self, *, forget: bool) -> None:
        """Start a build; ``forget`` all that is remembered first, and commit nothing before
        the end.
        """
        self._is_one_transaction = forget
        if forget and self._has_tables():
            self._drop_meta("clean")
        self._db.execute("BEGIN IMMEDIATE")
        if forget:
            self._reset()
        self._put_meta("running", "yes")

    def checkpoint(self) -> None:
        """Commit what a build has come to, and go on."""
        if not self._is_one_transaction:
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")

    def abandon(self) -> None:
        """End a build that failed: what it has not committed is as if it had not been."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        # Where not even that can be written, the next build takes this one for killed.
        with contextlib.suppress(sqlite3.Error):
            if self._has_tables():
                self._drop_meta("running")

    def end(self, stamp: str, site_mark: str) -> None:
        """Commit a build that has done all that it was to do, or left it in ``todo``."""
        self._put_meta("clean", f"{stamp} {boot_id()} {site_mark}")
        self._drop_meta("running")
        if self._is_one_transaction:
            keep_checksums(self._db)
        self._db.execute("COMMIT")

    def note_behind(self) -> None:
        """Remember that something has changed now that lists do not have."""
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('behind', ?)", (str(time.time()),))

    def behind_seconds(self) -> float:
        """The age of the oldest change that lists do not have; 0 where they have all."""
        since = [self._meta("pass behind"), self._meta("behind")]
        ages = [time.time() - float(one) for one in since if one]
        return max(0.0, *ages) if ages else 0.0

    # A pass over all that is behind. It may take several builds; what comes up meanwhile is for
    # the next pass, so no list is put off for ever.

    def pass_serial(self) -> int:
        """How many versions there were when the pass began; begins one if there is none."""
        serial = self._meta("pass")
        if serial is None:
            serial = str(self.totals()[1])
            self._put_meta("pass", serial)
            self._db.execute("UPDATE OR REPLACE meta SET key = 'pass behind' WHERE key = 'behind'")
            for kind in ("list", "index"):
                self._db.execute(
                    "UPDATE OR REPLACE todo SET kind = 'pass ' || kind WHERE kind = ?", (kind,)
                )
        return int(serial)

    def end_pass(self) -> bool:
        """End the pass; whether nothing came up meanwhile."""
        for key in ("pass", "pass behind"):
            self._drop_meta(key)
        return not self.todo("list")

    def is_in_pass(self) -> bool:
        return self._meta("pass") is not None

    def page_reached(self) -> int:
        """The page at which a pass goes on, in the first of its lists."""
        return int(self._meta("page reached") or 1)

    def reach_page(self, number: int) -> None:
        self._put_meta("page reached", str(number))

    def todo(self, kind: str) -> set[str]:
        """What of a kind has been begun and not ended."""
        if not self._has_tables():
            return set()
        return {name for (name,) in self._db.execute(
            "SELECT name FROM todo WHERE kind = ?", (kind,)
        )}  # fmt: skip

    def first_todo(self, kind: str, limit: int) -> list[str]:
        """As ``todo``: the first of it by name, ``limit`` at most."""
        return [name for (name,) in self._db.execute(
            "SELECT name FROM todo WHERE kind = ? ORDER BY name LIMIT ?", (kind, limit)
        )]  # fmt: skip

    def count_todo(self, kind: str) -> int:
        return self._db.execute("SELECT count(*) FROM todo WHERE kind = ?", (kind,)).fetchone()[0]

    def add_todo(self, kind: str, names: Iterable[str]) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO todo VALUES (?, ?)", [(kind, name) for name in names]
        )

    def done(self, kind: str, names: Iterable[str]) -> None:
        self._db.executemany(
            "DELETE FROM todo WHERE kind = ? AND name = ?", [(kind, name) for name in names]
        )

    def _meta(self, key: str) -> str | None:
        if not self._has_tables():
            return None
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _has_tables(self) -> bool:
        """Whether this is no new file, nor the database of something else."""
        row = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
        return row is not None

    def _version(self) -> int:
        return self._db.execute("PRAGMA user_version").fetchone()[0]

    def _drop_meta(self, key: str) -> None:
        self._db.execute("DELETE FROM meta WHERE key = ?", (key,))

    def _put_meta(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _reset(self) -> None:
        stop_checksums(self._db)
        kept = ("orphan",) if self._version() == SCHEMA_VERSION else ()
        tables = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in tables:
            if name not in kept:
                self._db.execute(f"DROP TABLE {name}")
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        # Not executescript, which would commit: readers keep the old state until the end.
        for statement in SCHEMA.split(";\n"):
            self._db.execute(statement)

    # Repos

    def marks(self) -> dict[str, str]:
        """The remembered mark of each repo, by id."""
        return dict(self._db.execute("SELECT id, mark FROM repo"))

    def repo(self, repo_id: str) -> RepoRow | None:
        found = self._db.execute(
            f"SELECT {', '.join(RepoRow._fields)}, checksum FROM repo WHERE id = ?", (repo_id,)
        ).fetchone()
        if not found:
            return None
        *row, expected = found
        if checksum(*row) != expected:
            raise DamageError(f"the row of {repo_id} is not what was written")
        return RepoRow(*row)

    def put_repo(self, row: RepoRow, old: RepoRow | None) -> None:
        """Remember a repo, instead of what was remembered of it (``old``)."""
        (key,) = self._db.execute(_UPSERT, (*row, checksum(*row))).fetchone()
        if old:
            self._untag(old, key)
        copied = (key, row.id, row.digest, row.pulls, row.updated, row.created, row.trend)
        self._db.executemany(
            "INSERT INTO tag VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(tag, *copied) for tag in row.tags.split()],
        )
        self._count(row, 1)

    def remove_repo(self, old: RepoRow) -> None:
        (key,) = self._db.execute(
            "DELETE FROM repo WHERE id = ? RETURNING key", (old.id,)
        ).fetchone()
        self._untag(old, key)

    def _untag(self, old: RepoRow, key: int) -> None:
        self._db.executemany(
            "DELETE FROM tag WHERE name = ? AND repo = ?", [(tag, key) for tag in old.tags.split()]
        )
        self._count(old, -1)

    def _count(self, row: RepoRow, sign: int) -> None:
        self._db.executemany(
            "INSERT INTO total VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE "
            "SET repos = repos + ?2, versions = versions + ?3",
            [(tag, sign, sign * row.versions_count) for tag in ("", *row.tags.split())],
        )

    def totals(self, tag: str | None = None) -> tuple[int, int]:
        """How many repos (with a tag) there are, and versions of them."""
        row = self._db.execute(
            "SELECT repos, versions FROM total WHERE tag = ?", (tag or "",)
        ).fetchone()
        return row or (0, 0)

    def catalogue_lines(self) -> list[bytes]:
        """Every repo's line, in order of owner/name."""
        return [line for (line,) in self._db.execute("SELECT line FROM repo ORDER BY id")]

    def update_times(self) -> Iterator[tuple[str, str]]:
        """Each repo's id and the time of its last update, in order of owner/name."""
        # With the plus, SQLite sorts what a small index holds instead of reading whole rows.
        return self._db.execute(
            "SELECT id, strftime('%Y-%m-%dT%H:%M:%SZ', updated, 'unixepoch') FROM repo ORDER BY +id"
        )

    # Lists

    def order(
        self, tag: str | None, sort: str, limit: int, *, offset: int = 0
    ) -> list[tuple[int, bytes]]:
        """Key and digest of repos of a list, in its order: ``limit`` of them at most."""
        order = f"ORDER BY {_ORDER[sort]} LIMIT ? OFFSET ?"
        if tag is None:
            return self._db.execute(
                f"SELECT key, digest FROM repo {order}", (limit, offset)
            ).fetchall()
        return self._db.execute(
            f"SELECT repo, digest FROM tag WHERE name = ? {order}", (tag, limit, offset)
        ).fetchall()

    def rows(self, keys: list[int]) -> list[tuple[bytes, bytes]]:
        """Summary and card of the repos with these keys, in their order; at most a page."""
        found = self._shown("key", f"key IN ({', '.join('?' * len(keys))})", keys)
        return [found[key] for key in keys]

    def owner_rows(self, owner: str) -> list[tuple[bytes, bytes]]:
        """Summary and card of all repos of an owner, latest updated first."""
        found = self._shown("key", f"owner = ? ORDER BY {_ORDER['updated']}", [owner])
        return [*found.values()]

    def _shown(
        self, column: str, where: str, values: Sequence[object]
    ) -> dict[Any, tuple[bytes, bytes]]:
        """Summary and card of some repos, by a column. Raises DamageError."""
        found = {}
        for key, digest, summary, card in self._db.execute(
            f"SELECT {column}, digest, summary, card FROM repo WHERE {where}", values
        ):
            if digest_of(summary, card) != digest:
                raise DamageError(f"summary or card of repo {key} is not what was written")
            found[key] = (summary, card)
        return found

    def joined_at(self, owner: str) -> int | None:
        """When the owner's first repo was made, in epoch seconds."""
        return self._db.execute(
            "SELECT min(created) FROM repo WHERE owner = ?", (owner,)
        ).fetchone()[0]

    def tags(self) -> list[tuple[str, int]]:
        """Each tag with its count, most used first, then by name."""
        return self._db.execute(
            "SELECT tag, repos FROM total WHERE tag != '' AND repos > 0 ORDER BY repos DESC, tag"
        ).fetchall()

    def pages(self, tag: str | None, sort: str, first: int = 1) -> dict[int, bytes]:
        """The digest of each page of a list that is on the site, from ``first`` on."""
        return dict(
            self._db.execute(
                "SELECT number, digest FROM page WHERE tag = ? AND sort = ? AND number >= ?",
                (tag or "", sort, first),
            )
        )

    def page(self, tag: str | None, sort: str, number: int) -> bytes | None:
        """The digest of one page, as in ``pages``."""
        row = self._db.execute(
            "SELECT digest FROM page WHERE tag = ? AND sort = ? AND number = ?",
            (tag or "", sort, number),
        ).fetchone()
        return row[0] if row else None

    def put_page(self, tag: str | None, sort: str, number: int, digest: bytes) -> None:
        """Remember a page that is on the site; an empty digest where it is about to be."""
        self._db.execute(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)", (tag or "", sort, number, digest)
        )

    def drop_pages_after(self, tag: str | None, sort: str, last: int) -> None:
        self._db.execute(
            "DELETE FROM page WHERE tag = ? AND sort = ? AND number > ?", (tag or "", sort, last)
        )

    # Queries

    def ordered_ids(self, sort: str | None, limit: int = -1, offset: int = 0) -> list[str]:
        """The ids of all repos in an order; by owner/name where ``sort`` is None."""
        order = _ORDER[sort] if sort else "id"
        rows = self._db.execute(
            f"SELECT id FROM repo ORDER BY {order} LIMIT ? OFFSET ?", (limit, offset)
        )
        return [repo_id for (repo_id,) in rows]

    def in_order(self, ids: Iterable[str], sort: str, limit: int, offset: int) -> list[str]:
        """Of these ids, those of repos that there are, in an order."""
        rows = self._db.execute(
            "SELECT id FROM repo WHERE id IN (SELECT value FROM json_each(?)) "
            f"ORDER BY {_ORDER[sort]} LIMIT ? OFFSET ?",
            (json.dumps([*ids]), limit, offset),
        )
        return [repo_id for (repo_id,) in rows]

    def listed(
        self, tags: Collection[str], owner: str | None, sort: str, limit: int, offset: int
    ) -> tuple[list[str], int]:
        """A part of the ids of the repos that have all of these tags and are an owner's (None: of
        any), in an order; and how many there are.
        """
        where = " AND ".join([
            *["key IN (SELECT repo FROM tag WHERE name = ?)"] * len(tags),
            *([] if owner is None else ["owner = ?"]),
        ]) or "true"  # fmt: skip
        values = [*tags, *([] if owner is None else [owner])]
        (total,) = self._db.execute(f"SELECT count(*) FROM repo WHERE {where}", values).fetchone()
        rows = self._db.execute(
            f"SELECT id FROM repo WHERE {where} ORDER BY {_ORDER[sort]} LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [repo_id for (repo_id,) in rows], total

    def ids_beginning(self, prefix: str, limit: int = -1) -> list[str]:
        """The ids that begin so, in order; all of them where ``limit`` is -1."""
        rows = self._db.execute(
            "SELECT id FROM repo WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            (*_range(prefix), limit),
        )
        return [repo_id for (repo_id,) in rows]

    def ids_around(self, prefix: str, name: str, limit: int) -> list[str]:
        """Up to ``limit`` of the ids that begin with ``prefix``, in order: the neighbours of
        ``prefix + name`` on both sides, whether there is such an id or not.
        """
        first, end = _range(prefix)
        after = self._db.execute(
            "SELECT id FROM repo WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            (first + name, end, limit),
        ).fetchall()
        before = self._db.execute(
            "SELECT id FROM repo WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?",
            (first, first + name, limit),
        ).fetchall()
        # Half from each side, or more from one where the other has fewer.
        half = limit // 2
        before = before[: limit - min(len(after), limit - half)]
        rows = [*reversed(before), *after[: limit - len(before)]]
        return [repo_id for (repo_id,) in rows]

    def ids_named(self, name: str, limit: int) -> list[str]:
        """The ids of the repos of exactly this name, whoever has them; ``top`` ones first."""
        # One pass over an index that has all of this: less than an index would cost each build.
        rows = self._db.execute(
            f"SELECT id FROM repo WHERE id LIKE '%/' || ? ORDER BY {_ORDER['top']} LIMIT ?",
            (name, limit),
        )
        return [repo_id for (repo_id,) in rows]

    def tags_among(self, owner: str | None, tags: Collection[str]) -> list[tuple[str, int]]:
        """As ``tags``, of the repos of an owner (None: of any) that have all of these tags."""
        where = "repo.tags != ''"
        if owner is not None:
            where += " AND repo.owner = ?"
        if tags:
            tagged = " INTERSECT ".join(["SELECT repo FROM tag WHERE name = ?"] * len(tags))
            where += f" AND repo.key IN ({tagged})"
        # Names need no escape in JSON.
        return self._db.execute(
            "SELECT value, count(*) AS repos "
            """FROM repo, json_each('["' || replace(repo.tags, ' ', '","') || '"]') """
            f"WHERE {where} GROUP BY value ORDER BY repos DESC, value",
            [*([] if owner is None else [owner]), *tags],
        ).fetchall()

    def owners_beginning(self, prefix: str, limit: int) -> list[str]:
        """The handles of the owners that begin so, in order."""
        rows = self._db.execute(
            "SELECT handle FROM owner WHERE handle >= ? AND handle < ? ORDER BY handle LIMIT ?",
            (*_range(prefix), limit),
        )
        return [handle for (handle,) in rows]

    def has_tag(self, tag: str) -> bool:
        row = self._db.execute("SELECT 1 FROM tag WHERE name = ? LIMIT 1", (tag,)).fetchone()
        return row is not None

    def summaries(self, ids: list[str]) -> list[bytes]:
        """The summaries of these repos in their order, of those that there are; at most a page."""
        found = self._shown("id", f"id IN ({', '.join('?' * len(ids))})", ids)
        return [found[repo_id][0] for repo_id in ids if repo_id in found]

    # Pulls

    def shown_pulls(self) -> tuple[int, str | None]:
        """Serial and nonce of the counts that the site has or is about to get; 0: none are
        counted.
        """
        serial, _, nonce = (self._meta("pulls") or "0").partition(" ")
        return int(serial), nonce or None

    def show_pulls(self, serial: int, nonce: str | None) -> None:
        self._put_meta("pulls", f"{serial} {nonce or ''}")

    def owner_pulls(self, owner: str) -> int | None:
        """The pulls of all repos of an owner; None where none were counted."""
        serial, _ = self.shown_pulls()
        if not serial:
            return None
        return self._db.execute(
            "SELECT coalesce(sum(pulls), 0) FROM repo WHERE owner = ?", (owner,)
        ).fetchone()[0]

    # Owners

    def owners(self) -> set[str]:
        """The handles of all owners that are on the site."""
        return {handle for (handle,) in self._db.execute("SELECT handle FROM owner")}

    def owner_mark(self, handle: str) -> str | None:
        """The remembered mark of an owner's profile; None for an owner that is not known."""
        row = self._db.execute("SELECT mark FROM owner WHERE handle = ?", (handle,)).fetchone()
        return row[0] if row else None

    def put_owner(self, handle: str, mark: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO owner VALUES (?, ?)", (handle, mark))

    def remove_owner(self, handle: str) -> None:
        self._db.execute("DELETE FROM owner WHERE handle = ?", (handle,))

    # Orphans: files whose object is gone, kept for one build more

    def orphans(self) -> dict[str, bool]:
        """Files that may have no object, and whether they are due to be removed."""
        if not self._has_tables():
            return {}
        rows = self._db.execute("SELECT file, is_due FROM orphan")
        return {file: bool(is_due) for file, is_due in rows}

    def add_orphans(self, files: Iterable[str]) -> None:
        """Take note of files that may have lost their object, or may never get one."""
        self._db.executemany(
            "INSERT OR IGNORE INTO orphan VALUES (?, 0)", [(file,) for file in files]
        )

    def keep_orphans(self, due: Iterable[str]) -> None:
        """Forget all but these, which the next build removes."""
        self._db.execute("DELETE FROM orphan")
        self._db.executemany("INSERT INTO orphan VALUES (?, 1)", [(file,) for file in due])

    # Search

    def text_digests(self, among: Iterable[str] | None) -> dict[str, str]:
        """The ``text_digest`` of each repo in hexadecimal, by id; of those in ``among``."""
        where, ids = "", []
        if among is not None:
            ids = [*among]
            where = f"WHERE id IN ({', '.join('?' * len(ids))})"
        return dict(
            self._db.execute(
                f"SELECT id, lower(hex(text_digest)) FROM repo {where} ORDER BY id", ids
            )
        )


def _range(prefix: str) -> tuple[str, str]:
    """The bounds of the texts that begin so: at least the first, less than the second."""
    return prefix, prefix + "\U0010ffff"
