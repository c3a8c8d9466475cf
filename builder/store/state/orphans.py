"""Orphans: files whose object is gone, kept for one build more."""

import sqlite3
from collections.abc import Iterable


class Orphans:
    """The table ``orphan``: files that may have no object."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def files(self) -> dict[str, bool]:
        """Each with whether it is due to be removed."""
        rows = self._db.execute("SELECT file, is_due FROM orphan")
        return {file: bool(is_due) for file, is_due in rows}

    def add(self, files: Iterable[str]) -> None:
        """Take note of files that may have lost their object, or may never get one."""
        self._db.executemany(
            "INSERT OR IGNORE INTO orphan VALUES (?, 0)", [(file,) for file in files]
        )

    def keep(self, due: Iterable[str]) -> None:
        """Forget all but these, which the next build removes."""
        self._db.execute("DELETE FROM orphan")
        self._db.executemany("INSERT INTO orphan VALUES (?, 1)", [(file,) for file in due])
