"""Tags and how many repos have them."""

import sqlite3
from collections.abc import Collection


class Tags:
    """The tables ``tag`` and ``total``, as ``Repos`` writes them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def has(self, tag: str) -> bool:
        row = self._db.execute("SELECT 1 FROM tag WHERE name = ? LIMIT 1", (tag,)).fetchone()
        return row is not None

    def counts(self) -> list[tuple[str, int]]:
        """Each tag with its count, most used first, then by name."""
        return self._db.execute(
            "SELECT tag, repos FROM total WHERE tag != '' AND repos > 0 ORDER BY repos DESC, tag"
        ).fetchall()

    def counts_among(self, owner: str | None, tags: Collection[str]) -> list[tuple[str, int]]:
        """As ``counts``, of the repos of an owner (None: of any) that have all of these tags."""
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
