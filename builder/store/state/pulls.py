"""Which counts of pulls the site shows."""

import sqlite3


class SitePulls:
    """The table ``pulls``, and the sums that owners show."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def shown(self) -> tuple[int, str | None]:
        """Serial and nonce of the counts that the site has or is about to get; 0: none are
        counted.
        """
        return self._row(1) or (0, None)

    def show(self, serial: int, nonce: str | None) -> None:
        self._put(1, serial, nonce)
        self._db.execute("DELETE FROM pulls WHERE rowid = 2")

    def begun(self) -> tuple[int, str | None] | None:
        """Serial and nonce of newer counts that some repos already have; None: none have."""
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
        """The pulls of all repos of an owner; None where none were counted."""
        serial, _ = self.shown()
        if not serial:
            return None
        return self._db.execute(
            "SELECT coalesce(sum(pulls), 0) FROM repo WHERE owner = ?", (owner,)
        ).fetchone()[0]
