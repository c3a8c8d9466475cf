"""Lists: which repos they show, and which of their pages are on the site."""

import sqlite3

from builder.store.state.repos import ORDER_BY


class Lists:
    """Orders of repos, and the table ``page``. ``tag`` None: the list of all repos."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def order(
        self, tag: str | None, sort: str, limit: int, *, offset: int = 0
    ) -> list[tuple[int, bytes]]:
        """Key and digest of repos of a list, in its order: ``limit`` of them at most."""
        order = f"ORDER BY {ORDER_BY[sort]} LIMIT ? OFFSET ?"
        if tag is None:
            return self._db.execute(
                f"SELECT key, digest FROM repo {order}", (limit, offset)
            ).fetchall()
        return self._db.execute(
            f"SELECT repo, digest FROM tag WHERE name = ? {order}", (tag, limit, offset)
        ).fetchall()

    def pages(self, tag: str | None, sort: str, first: int = 1) -> dict[int, bytes]:
        """The digest of each page of a list that is on the site, from ``first`` on."""
        return dict(
            self._db.execute(
                "SELECT number, digest FROM page WHERE tag = ? AND sort = ? AND number >= ?",
                (tag or "", sort, first),
            )
        )

    def page(self, tag: str | None, sort: str, number: int) -> bytes | None:
        """The digest of one page, as in ``pages``."""
        row = self._db.execute(
            "SELECT digest FROM page WHERE tag = ? AND sort = ? AND number = ?",
            (tag or "", sort, number),
        ).fetchone()
        return row[0] if row else None

    def put_page(self, tag: str | None, sort: str, number: int, digest: bytes) -> None:
        """Remember a page that is on the site; an empty digest where it is about to be."""
        self._db.execute(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)", (tag or "", sort, number, digest)
        )

    def drop_pages_after(self, tag: str | None, sort: str, last: int) -> None:
        self._db.execute(
            "DELETE FROM page WHERE tag = ? AND sort = ? AND number > ?", (tag or "", sort, last)
        )
