"""The objects of a destination as the last deployment left them, in SQLite, with the plan of the
deployment under way.

A cache: without it, a deployment reads everything again. The plan is in the same file, so memory
does not grow with the site.
"""

import contextlib
import functools
import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Self

from builder.model.caching import CACHE_CONTROL
from builder.model.errors import OperatorError
from builder.model.routes import BY_NAME
from builder.store import database
from operate.deploy.order import Step

_SCHEMA = """
CREATE TABLE IF NOT EXISTS object (
    key TEXT PRIMARY KEY,
    mark TEXT NOT NULL,               -- of the site's file
    md5 BLOB NOT NULL,                -- of its bytes
    rules BLOB NOT NULL,              -- a digest of its headers and of how its keys are made
    remote TEXT NOT NULL              -- the destination's mark
) WITHOUT ROWID;
-- The plan: objects that the destination has, objects that the site needs, and what to do.
CREATE TABLE IF NOT EXISTS listed (key TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS wanted (
    key TEXT PRIMARY KEY,
    file TEXT NOT NULL,
    route TEXT NOT NULL,
    mark TEXT NOT NULL,
    copy TEXT,                        -- the path that keeps the file; NULL: the object is current
    round INTEGER NOT NULL            -- of looking at the site, which last saw the file
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS step (
    place INTEGER,
    key TEXT,
    file TEXT,                        -- NULL: delete the object
    route TEXT NOT NULL,
    mark TEXT NOT NULL,
    copy TEXT NOT NULL,
    md5 BLOB NOT NULL,
    size INTEGER NOT NULL,
    old TEXT,
    PRIMARY KEY (place, key)
) WITHOUT ROWID;
"""
# Commit at least this often: a killed deployment repeats at most this much work.
COMMIT_EVERY_SECONDS = 1.0

log = logging.getLogger("hub.deploy")

_VERSION = zlib.crc32(_SCHEMA.encode()) >> 1


def rules_digest(route: str) -> bytes:
    """A digest that differs if objects of this route would get other headers or keys."""
    found = BY_NAME[route]
    return _digest("\n".join((found.media, CACHE_CONTROL[found.cache], found.url, found.file)))


@functools.cache
def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:8]


def path_for(state: str, identity: str) -> str:
    """The path of the files about a destination, without extension."""
    return f"{state}/deploy-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


class Manifest:
    """A connection to the manifest at ``path`` (without extension), which is created if missing.
    ``is_checked``: replace a manifest that is damaged or another version's; reads all of it.
    Methods raise OperatorError.
    """

    def __init__(self, path: str, *, is_checked: bool = True) -> None:
        self._path = f"{path}.sqlite3"
        with self._explained():
            if is_checked and (damage := database.find_damage(self._path, _other_version)):
                log.warning("Replacing %s (%s): every file is compared.", self._path, damage)
                database.remove(self._path)
            self._db = database.connect(self._path, read_only=False)
            self._db.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def read(self, statement: str, *values: object) -> Iterator[tuple]:
        with self._explained():
            # Does not yield from the cursor itself: the generator would close it, perhaps after its
            # database.
            yield from iter(self._db.execute(statement, values).fetchone, None)

    def write(self, statement: str, rows: Iterable[tuple]) -> bool:
        """Execute a statement for each of these rows; returns True if that changed any. ``commit``
        makes it durable.
        """
        with self._explained():
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
                self._commit_at = time.monotonic() + COMMIT_EVERY_SECONDS
            count = self._db.executemany(statement, rows).rowcount
        if time.monotonic() >= self._commit_at:
            self.commit()
        return count > 0

    def commit(self) -> None:
        with self._explained():
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    def note(self, step: Step, remote: str | None) -> None:
        """Note that the destination has a step's object, with this mark; None: it has none."""
        if remote is None:
            self.write("DELETE FROM object WHERE key = ?", [(step.key,)])
        else:
            row = step.key, step.mark, step.md5, rules_digest(step.route), remote
            self.write("INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?, ?)", [row])

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OperatorError(
                f"Cannot use {self._path}: {error}. Fix that, or remove the file: it is only a "
                "cache."
            ) from error


def _other_version(db: sqlite3.Connection) -> str | None:
    is_ours = db.execute("PRAGMA user_version").fetchone() == (_VERSION,)
    return None if is_ours else "of another version"
