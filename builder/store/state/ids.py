"""Finds ids of repos, for queries and for what looks at all of them."""

import sqlite3
from collections.abc import Collection

from builder.store.database import beginning_with
from builder.store.state.repos import ORDER_BY


class Ids:
    """Ids (``owner/name``) in the tables ``repo`` and ``tag``."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def all(self) -> list[str]:
        """Those of all repos, in order."""
        return self._select("SELECT id FROM repo ORDER BY id")

    def fitting(
        self, tags: Collection[str], owner: str | None, sort: str, limit: int, offset: int
    ) -> tuple[list[str], int]:
        """A part of those of the repos that have all of these tags and are an owner's (None: of
        any), in an order; and how many there are.
        """
        where = " AND ".join([
            *["key IN (SELECT repo FROM tag WHERE name = ?)"] * len(tags),
            *([] if owner is None else ["owner = ?"]),
        ]) or "true"  # fmt: skip
        values = [*tags, *([] if owner is None else [owner])]
        (total,) = self._db.execute(f"SELECT count(*) FROM repo WHERE {where}", values).fetchone()
        ids = self._select(
            f"SELECT id FROM repo WHERE {where} ORDER BY {ORDER_BY[sort]} LIMIT ? OFFSET ?",
            *values, limit, offset,
        )  # fmt: skip
        return ids, total

    def beginning(self, prefix: str, limit: int = -1) -> list[str]:
        """Those that begin so, in order; all of them where ``limit`` is -1."""
        return self._select(
            "SELECT id FROM repo WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            *beginning_with(prefix), limit,
        )  # fmt: skip

    def around(self, prefix: str, name: str, limit: int) -> list[str]:
        """Up to ``limit`` of those that begin with ``prefix``, in order: the neighbours of
        ``prefix + name`` on both sides, whether there is such an id or not.
        """
        first, end = beginning_with(prefix)
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

    def named(self, name: str, limit: int) -> list[str]:
        """Those of the repos of exactly this name, whoever has them; ``top`` ones first."""
        # One pass over an index that has all of this: less than an index would cost each build.
        return self._select(
            f"SELECT id FROM repo WHERE id LIKE '%/' || ? ORDER BY {ORDER_BY['top']} LIMIT ?",
            name, limit,
        )  # fmt: skip

    def _select(self, sql: str, *values: str | int) -> list[str]:
        return [repo_id for (repo_id,) in self._db.execute(sql, values)]
