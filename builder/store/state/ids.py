"""Finds ids of repos, for queries and for what looks at all of them."""

import sqlite3
from collections.abc import Iterable

from builder.store.database import beginning_with
from builder.store.state.repos import ORDER_BY


class Ids:
    """Ids (``owner/name``) in the tables ``repo`` and ``tag``."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def in_order(self, sort: str | None) -> list[str]:
        """Those of all repos in an order; by owner/name where ``sort`` is None."""
        order = ORDER_BY[sort] if sort else "id"
        return [repo_id for (repo_id,) in self._db.execute(f"SELECT id FROM repo ORDER BY {order}")]

    def with_tags(self, tags: Iterable[str]) -> set[str]:
        """Those of the repos that have all of these tags."""
        found = None
        for tag in tags:
            rows = self._db.execute("SELECT id FROM tag WHERE name = ?", (tag,))
            ids = {repo_id for (repo_id,) in rows}
            found = ids if found is None else found & ids
        return found or set()

    def beginning(self, prefix: str, limit: int = -1) -> list[str]:
        """Those that begin so, in order; all of them where ``limit`` is -1."""
        rows = self._db.execute(
            "SELECT id FROM repo WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            (*beginning_with(prefix), limit),
        )
        return [repo_id for (repo_id,) in rows]

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
        rows = self._db.execute(
            f"SELECT id FROM repo WHERE id LIKE '%/' || ? ORDER BY {ORDER_BY['top']} LIMIT ?",
            (name, limit),
        )
        return [repo_id for (repo_id,) in rows]
