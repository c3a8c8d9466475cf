"""Work that builds have begun and not ended, changes that lists do not have yet, and the pass that
adds them.

A pass may take several builds. Later changes are for the next one, so no list is delayed forever.
"""

import sqlite3
import time
from collections.abc import Iterable
from enum import StrEnum, auto

from builder.model.routes import SORTS
from builder.store.state.tables import Meta, Table, one_of

# For kinds of work that have only one piece.
_NO_NAME = ("",)


class Work(StrEnum):
    """A kind of work; comments say how its pieces are named."""

    REPO = auto()  # render it, or remove it from the state; by id
    REPO_PULLS = auto()  # render it with other pulls; by id
    OWNER = auto()  # by handle
    OWNER_PULLS = auto()  # by handle
    FIRST_PAGES = auto()  # of a list in all orders; by tag, empty for all repos
    # For the next pass
    LIST = auto()  # all pages; as FIRST_PAGES
    INDEX_REPO = auto()  # add it to the index, or remove it; by id
    # In the current pass
    PASS_INDEX_REPO = auto()
    PASS_LIST = auto()  # in one order; by order, tag and the next page, such as "top//1"
    # One piece each, without a name
    INDEX = auto()  # compare all repos
    TAGS = auto()
    WITHDRAWN = auto()
    HOME = auto()
    FIXED = auto()  # files that depend on code and settings alone
    EXAMPLES = auto()  # a prompt has changed, which the pages about the API may show
    CATALOGUE = auto()  # in each pass, all of the following
    SITEMAP = auto()
    LLMS = auto()
    ORPHANS = auto()
    LINES = auto()
    REFERENCE = auto()
    HUB = auto()


class Todo(Table):
    """The table ``todo``: names of pieces of work, by kind."""

    def names(self, kind: Work) -> set[str]:
        """The names of all pending work of a kind."""
        return {*self._column("SELECT name FROM todo WHERE kind = ?", kind)}

    def first(self, kind: Work, limit: int) -> list[str]:
        """As ``names``, sorted by name, at most ``limit``."""
        first = "SELECT name FROM todo WHERE kind = ? ORDER BY name LIMIT ?"
        return self._column(first, kind, limit)

    def count(self, kind: Work) -> int:
        return self._value("SELECT count(*) FROM todo WHERE kind = ?", kind)

    def has(self, *kinds: Work) -> bool:
        """True if work of any of these kinds is pending."""
        where = one_of("kind", kinds)
        return bool(self._value(f"SELECT 1 FROM todo WHERE {where} LIMIT 1", *kinds))

    def add(self, kind: Work, names: Iterable[str] = _NO_NAME) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO todo VALUES (?, ?)", [(kind, name) for name in names]
        )

    def done(self, kind: Work, names: Iterable[str] = _NO_NAME) -> None:
        self._db.executemany(
            "DELETE FROM todo WHERE kind = ? AND name = ?", [(kind, name) for name in names]
        )

    def move(self, kind: Work, to: Work) -> None:
        """Turn all pending work of a kind into work of another kind."""
        self._db.execute("UPDATE OR REPLACE todo SET kind = ? WHERE kind = ?", (to, kind))


class Passes(Table):
    """The current pass, if any, and the time since which changes wait for one."""

    def __init__(self, db: sqlite3.Connection, meta: Meta, todo: Todo) -> None:
        super().__init__(db)
        self._meta = meta
        self._todo = todo

    def note_behind(self) -> None:
        """Note that something has changed now that lists do not have."""
        self._meta.put_first("behind", str(time.time()))

    def behind_seconds(self) -> float:
        """The age of the oldest change that lists do not have; 0 if they have all."""
        since = [self._meta.get("pass behind"), self._meta.get("behind")]
        ages = [time.time() - float(one) for one in since if one]
        return max(0.0, *ages) if ages else 0.0

    def serial(self) -> int | None:
        """The number of versions when the pass began; None if there is no current pass."""
        serial = self._meta.get("pass")
        return None if serial is None else int(serial)

    def begin(self, serial: int) -> None:
        """Begin a pass over all lists and repos with pending changes."""
        self._meta.put("pass", str(serial))
        self._meta.rename("behind", "pass behind")
        tags = self._todo.names(Work.LIST)
        self._todo.add(Work.PASS_LIST, [f"{sort}/{tag}/1" for sort in SORTS for tag in tags])
        self._todo.done(Work.LIST, tags)
        self._todo.move(Work.INDEX_REPO, Work.PASS_INDEX_REPO)

    def end(self) -> bool:
        """End the pass; returns true if no list has changed meanwhile."""
        self._meta.drop("pass")
        self._meta.drop("pass behind")
        return not self._todo.has(Work.LIST)
