"""What builds have begun and not ended."""

import sqlite3
from collections.abc import Iterable
from enum import StrEnum, auto

# Of work that there is only one piece of.
_NO_NAME = ("",)


class Work(StrEnum):
    """A kind of work, and what its pieces are named by."""

    REPO = auto()  # render it, or forget it; by id
    REPO_PULLS = auto()  # render it with other pulls; by id
    OWNER = auto()  # by handle
    OWNER_PULLS = auto()  # by handle
    FIRST_PAGES = auto()  # of a list in all orders; by tag, empty for all repos
    # In the next pass
    LIST = auto()  # all pages; as FIRST_PAGES
    INDEX_REPO = auto()  # take it into the index, or drop it; by id
    # In the pass under way
    PASS_INDEX_REPO = auto()
    # One piece each, without a name
    INDEX = auto()  # look at all repos
    TAGS = auto()
    HOME = auto()
    CATALOGUE = auto()  # in each pass, all of the following
    SITEMAP = auto()
    LLMS = auto()
    ORPHANS = auto()
    LINES = auto()
    HUB = auto()


class Todo:
    """The table ``todo``: names of pieces of work, by kind."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def names(self, kind: Work) -> set[str]:
        """All that is to do of a kind."""
        return {name for (name,) in self._db.execute(
            "SELECT name FROM todo WHERE kind = ?", (kind,)
        )}  # fmt: skip

    def first(self, kind: Work, limit: int) -> list[str]:
        """As ``names``: the first of it by name, ``limit`` at most."""
        return [name for (name,) in self._db.execute(
            "SELECT name FROM todo WHERE kind = ? ORDER BY name LIMIT ?", (kind, limit)
        )]  # fmt: skip

    def count(self, kind: Work) -> int:
        return self._db.execute("SELECT count(*) FROM todo WHERE kind = ?", (kind,)).fetchone()[0]

    def has(self, *kinds: Work) -> bool:
        """Whether something is to do of any of these kinds."""
        row = self._db.execute(
            f"SELECT 1 FROM todo WHERE kind IN ({', '.join('?' * len(kinds))}) LIMIT 1", kinds
        ).fetchone()
        return row is not None

    def add(self, kind: Work, names: Iterable[str] = _NO_NAME) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO todo VALUES (?, ?)", [(kind, name) for name in names]
        )

    def done(self, kind: Work, names: Iterable[str] = _NO_NAME) -> None:
        self._db.executemany(
            "DELETE FROM todo WHERE kind = ? AND name = ?", [(kind, name) for name in names]
        )

    def move(self, kind: Work, to: Work) -> None:
        """Make all that is to do of a kind work of another."""
        self._db.execute("UPDATE OR REPLACE todo SET kind = ? WHERE kind = ?", (to, kind))
