"""Owners that are on the site."""

import sqlite3

from builder.store.database import beginning_with


class Owners:
    """The table ``owner``: the marks of profiles, by handle."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def handles(self) -> set[str]:
        """Those of all owners."""
        return {handle for (handle,) in self._db.execute("SELECT handle FROM owner")}

    def beginning(self, prefix: str, limit: int) -> list[str]:
        """The handles that begin so, in order; ``limit`` of them at most."""
        rows = self._db.execute(
            "SELECT handle FROM owner WHERE handle >= ? AND handle < ? ORDER BY handle LIMIT ?",
            (*beginning_with(prefix), limit),
        )
        return [handle for (handle,) in rows]

    def mark(self, handle: str) -> str | None:
        """The remembered mark of an owner's profile; None for an owner that is not known."""
        row = self._db.execute("SELECT mark FROM owner WHERE handle = ?", (handle,)).fetchone()
        return row[0] if row else None

    def joined_at(self, handle: str) -> int | None:
        """When the owner's first repo was made, in epoch seconds."""
        return self._db.execute(
            "SELECT min(created) FROM repo WHERE owner = ?", (handle,)
        ).fetchone()[0]

    def put(self, handle: str, mark: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO owner VALUES (?, ?)", (handle, mark))

    def remove(self, handle: str) -> None:
        self._db.execute("DELETE FROM owner WHERE handle = ?", (handle,))
