"""The small tables of the state: facts, owners, repos withdrawn whole, orphans, pulls."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from builder.store.database import beginning_with


def one_of(column: str, values: Sequence[object]) -> str:
    """A condition: the column has one of these values, which are the next parameters."""
    return f"{column} IN ({', '.join('?' * len(values))})"


class Table:
    """Base of classes that read and write one or several tables."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def _value(self, sql: str, *values: object) -> Any:
        """The first column of the first row; None if there is no row."""
        row = self._db.execute(sql, values).fetchone()
        return row[0] if row else None

    def _column(self, sql: str, *values: object) -> list[Any]:
        """The first column of all rows."""
        return [row[0] for row in self._db.execute(sql, values)]


class Meta(Table):
    """The table ``meta``: texts by key."""

    def get(self, key: str) -> str | None:
        return self._value("SELECT value FROM meta WHERE key = ?", key)

    def put(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put_first(self, key: str, value: str) -> None:
        """Store the value, unless the key exists."""
        self._db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, value))

    def rename(self, key: str, new: str) -> None:
        self._db.execute("UPDATE OR REPLACE meta SET key = ? WHERE key = ?", (new, key))

    def drop(self, key: str) -> None:
        self._db.execute("DELETE FROM meta WHERE key = ?", (key,))


class Owners(Table):
    """The table ``owner``: the marks of profiles, by handle."""

    def handles(self) -> set[str]:
        """The handles of all owners."""
        return {*self._column("SELECT handle FROM owner")}

    def beginning(self, prefix: str, limit: int) -> list[str]:
        """The handles with this prefix, in order; at most ``limit``."""
        return self._column(
            "SELECT handle FROM owner WHERE handle >= ? AND handle < ? ORDER BY handle LIMIT ?",
            *beginning_with(prefix),
            limit,
        )

    def mark(self, handle: str) -> str | None:
        """The stored mark of an owner's profile; None for an unknown owner."""
        return self._value("SELECT mark FROM owner WHERE handle = ?", handle)

    def joined_at(self, handle: str) -> int | None:
        """The time of the owner's first repo, in epoch seconds."""
        return self._value("SELECT min(created) FROM repo WHERE owner = ?", handle)

    def put(self, handle: str, mark: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO owner VALUES (?, ?)", (handle, mark))

    def remove(self, handle: str) -> None:
        self._db.execute("DELETE FROM owner WHERE handle = ?", (handle,))


class Withdrawn(Table):
    """The table ``withdrawn``: repos without readable versions. Also writes ``total``, because
    their versions count as publications.
    """

    def marks(self) -> dict[str, str]:
        """The remembered mark of each such repo, by id."""
        return dict(self._db.execute("SELECT id, mark FROM withdrawn"))

    def has(self, repo_id: str) -> bool:
        return self._value("SELECT 1 FROM withdrawn WHERE id = ?", repo_id) is not None

    def put(self, repo_id: str, mark: str, versions_count: int, gone: bytes) -> None:
        """Store a repo; ``gone``: its lines of ``withdrawn.jsonl``."""
        self.remove(repo_id)
        row = (repo_id, mark, versions_count, gone)
        self._db.execute("INSERT INTO withdrawn VALUES (?, ?, ?, ?)", row)
        self._count(versions_count)

    def lines(self) -> list[bytes]:
        """The lines of ``withdrawn.jsonl``, also of repos that have other versions; by id."""
        return self._column(
            "SELECT gone FROM (SELECT id, gone FROM repo WHERE withdrawn > '' "
            "UNION ALL SELECT id, gone FROM withdrawn) ORDER BY id"
        )

    def remove(self, repo_id: str) -> bool:
        """Remove a repo; False if it is unknown."""
        count = self._value("DELETE FROM withdrawn WHERE id = ? RETURNING versions_count", repo_id)
        if count is not None:
            self._count(-count)
        return count is not None

    def _count(self, versions: int) -> None:
        self._db.execute(
            "INSERT INTO total VALUES ('', 0, ?1) "
            "ON CONFLICT DO UPDATE SET versions = versions + ?1",
            (versions,),
        )


class Orphans(Table):
    """The table ``orphan``: files that may no longer be needed, kept for one more build."""

    def files(self) -> dict[str, bool]:
        """The files, and for each true if the next build removes it."""
        rows = self._db.execute("SELECT file, is_due FROM orphan")
        return {file: bool(is_old) for file, is_old in rows}

    def add(self, files: Iterable[str]) -> None:
        """Note files that may no longer be needed, or may never be."""
        self._db.executemany(
            "INSERT OR IGNORE INTO orphan VALUES (?, 0)", [(file,) for file in files]
        )

    def keep(self, files: Iterable[str]) -> None:
        """Replace all notes by these files, which the next build removes."""
        self._db.execute("DELETE FROM orphan")
        self._db.executemany("INSERT INTO orphan VALUES (?, 1)", [(file,) for file in files])


class SitePulls(Table):
    """The table ``pulls``: the identity of the counts that the site shows; and owners' sums."""

    def shown(self) -> tuple[int, str | None]:
        """Serial and nonce of the counts that the site has or is about to get; serial 0: none are
        counted.
        """
        return self._row(1) or (0, None)

    def show(self, serial: int, nonce: str | None) -> None:
        self._put(1, serial, nonce)
        self._db.execute("DELETE FROM pulls WHERE rowid = 2")

    def begun(self) -> tuple[int, str | None] | None:
        """Serial and nonce of newer counts that some repos already have; None if there are none."""
        return self._row(2)

    def begin(self, serial: int, nonce: str | None) -> None:
        self._put(2, serial, nonce)

    def _row(self, number: int) -> tuple[int, str | None] | None:
        return self._db.execute(
            "SELECT serial, nonce FROM pulls WHERE rowid = ?", (number,)
        ).fetchone()

    def _put(self, number: int, serial: int, nonce: str | None) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO pulls (rowid, serial, nonce) VALUES (?, ?, ?)",
            (number, serial, nonce),
        )

    def of_owner(self, owner: str) -> int | None:
        """The pulls of all repos of an owner; None if none were counted."""
        serial, _ = self.shown()
        sum_of = "SELECT coalesce(sum(pulls), 0) FROM repo WHERE owner = ?"
        return self._value(sum_of, owner) if serial else None
