"""What lists do not have yet, and the pass that takes it in.

A pass may take several builds. What comes up meanwhile is for the next one, so no list is put
off for ever.
"""

import sqlite3
import time
from typing import NamedTuple

from builder.model.routes import SORTS
from builder.store.state.meta import Meta
from builder.store.state.todo import Todo, Work


class PassList(NamedTuple):
    """A list in one order that the pass has still to write, from a page on. ``tag`` None: of all
    repos.
    """

    sort: str
    tag: str | None
    page: int


class Passes:
    """The pass under way, if one is, and since when there is something to take in."""

    def __init__(self, db: sqlite3.Connection, meta: Meta, todo: Todo) -> None:
        self._db = db
        self._meta = meta
        self._todo = todo

    def note_behind(self) -> None:
        """Remember that something has changed now that lists do not have."""
        self._meta.put_first("behind", str(time.time()))

    def behind_seconds(self) -> float:
        """The age of the oldest change that lists do not have; 0 where they have all."""
        since = [self._meta.get("pass behind"), self._meta.get("behind")]
        ages = [time.time() - float(one) for one in since if one]
        return max(0.0, *ages) if ages else 0.0

    def serial(self) -> int | None:
        """How many versions there were when the pass began; None where none is under way."""
        serial = self._meta.get("pass")
        return None if serial is None else int(serial)

    def begin(self, serial: int) -> None:
        """Begin a pass over all lists and repos that are to do now."""
        self._meta.put("pass", str(serial))
        self._meta.rename("behind", "pass behind")
        tags = self._todo.names(Work.LIST)
        rows = [(sort, tag) for sort in SORTS for tag in tags]
        self._db.executemany("INSERT INTO pass_list VALUES (?, ?, 1)", rows)
        self._todo.done(Work.LIST, tags)
        self._todo.move(Work.INDEX_REPO, Work.PASS_INDEX_REPO)

    def end(self) -> bool:
        """End the pass; whether no list has changed meanwhile."""
        self._meta.drop("pass")
        self._meta.drop("pass behind")
        return not self._todo.has(Work.LIST)

    def lists(self) -> list[PassList]:
        """What the pass has still to write of lists, in this order."""
        rows = self._db.execute("SELECT sort, tag, page FROM pass_list ORDER BY sort, tag")
        return [PassList(sort, tag or None, page) for sort, tag, page in rows]

    def go_on_at(self, one: PassList, page: int | None) -> None:
        """Remember which page of a list is the next; None: the list is done."""
        if page:
            self._db.execute(
                "UPDATE pass_list SET page = ? WHERE sort = ? AND tag = ?",
                (page, one.sort, one.tag or ""),
            )
        else:
            self._db.execute(
                "DELETE FROM pass_list WHERE sort = ? AND tag = ?", (one.sort, one.tag or "")
            )
