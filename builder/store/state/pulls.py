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
        return self._db.execute("SELECT serial, nonce FROM pulls").fetchone() or (0, None)

    def show(self, serial: int, nonce: str | None) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO pulls (rowid, serial, nonce) VALUES (1, ?, ?)", (serial, nonce)
        )

    def of_owner(self, owner: str) -> int | None:
        """The pulls of all repos of an owner; None where none were counted."""
        serial, _ = self.shown()
        if not serial:
            return None
        return self._db.execute(
            "SELECT coalesce(sum(pulls), 0) FROM repo WHERE owner = ?", (owner,)
        ).fetchone()[0]
