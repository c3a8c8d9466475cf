"""The counts of pulls, for the build."""

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from builder.stats.database import PULLS_FILE, open_for_reading, pulls_file

__all__ = ["PULLS_FILE", "PullCounts", "Pulls"]


class PullCounts(NamedTuple):
    """The pulls of one repo. ``by_day``: (days since 1970-01-01 UTC, pulls that day), oldest
    first, only days with pulls.
    """

    total: int
    by_day: tuple[tuple[int, int], ...]


class Pulls(contextlib.AbstractContextManager):
    """The counts of a state folder, as of the moment of construction.

    If nothing was ever counted, the file may be missing. Keep it open for one build, not longer: it
    sees no newer counts, and SQLite cannot checkpoint them while it is open. The constructor and
    every method raise OperatorError if the file is damaged, foreign or unreadable.
    """

    def __init__(self, folder: str) -> None:
        self._file = pulls_file(folder)
        self._serial = 0
        self._db: sqlite3.Connection | None = None
        if os.path.lexists(self._file.path):
            self._db = open_for_reading(self._file)
            with contextlib.ExitStack() as failing:
                failing.callback(self._db.close)
                # A transaction sees nothing newer than its first read (SQLite's documentation of
                # isolation).
                self._execute("BEGIN")
                sql = "SELECT coalesce(max(serial), 0) FROM ingestion"
                ((self._serial,),) = self._execute(sql)
                failing.pop_all()

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._db:
            self._db.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def serial(self) -> int:
        """0: never measured. Otherwise it grows with the first ingestion and with every one that
        changed a count.
        """
        return self._serial

    def nonce(self, serial: int) -> str | None:
        """Random text of the ingestion that brought this serial; None if this database had no such
        ingestion.

        If it differs from the one seen with ``serial``, this is another database, or a copy that
        has diverged since then, and ``changed_since`` is incomplete.
        """
        rows = self._execute("SELECT nonce FROM ingestion WHERE serial = ?", (serial,))
        return rows[0][0] if rows else None

    def changed_since(self, serial: int) -> list[str]:
        """The repos (``owner/name``) whose counts changed after ``serial``, sorted. Some may not be
        in the catalogue.
        """
        rows = self._execute("SELECT id FROM repo WHERE serial > ? ORDER BY id", (serial,))
        return [repo_id for (repo_id,) in rows]

    def of(self, repo_id: str) -> PullCounts | None:
        """The pulls of one repo (``owner/name``); None if nothing was ever measured."""
        if not self._serial:
            return None
        by_day = self._execute(
            "SELECT day, count.pulls FROM repo JOIN count ON repo = key WHERE id = ? ORDER BY day",
            (repo_id,),
        )
        return PullCounts(sum(pulls for _, pulls in by_day), tuple(by_day))

    def _execute(self, sql: str, args: Sequence[object] = ()) -> list[tuple]:
        """Runs a query; no rows if there is no file."""
        if not self._db:
            return []
        with self._file.telling():
            return self._db.execute(sql, args).fetchall()
