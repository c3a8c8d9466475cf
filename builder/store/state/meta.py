"""Single facts, by name."""

import sqlite3


class Meta:
    """The table ``meta``: texts by key."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put_first(self, key: str, value: str) -> None:
        """Put it, unless there is one."""
        self._db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, value))

    def rename(self, key: str, new: str) -> None:
        self._db.execute("UPDATE OR REPLACE meta SET key = ? WHERE key = ?", (new, key))

    def drop(self, key: str) -> None:
        self._db.execute("DELETE FROM meta WHERE key = ?", (key,))
