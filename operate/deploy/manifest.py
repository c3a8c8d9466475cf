"""What is remembered of a destination since the last deployment, in SQLite.

A cache: a lost one costs reading everything again. One row an object: what the site's file was,
what the bytes and the rules were, and how the destination marked it.
"""

import contextlib
import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Iterator
from typing import NamedTuple, Self

from builder.model.errors import OperatorError
from builder.model.routes import Route
from builder.store import database
from operate.deploy.order import Put, cache_control

_SCHEMA = """
CREATE TABLE object (
    key TEXT PRIMARY KEY,
    file TEXT NOT NULL,
    route TEXT NOT NULL,
    mark TEXT NOT NULL,               -- of the site's file
    md5 BLOB NOT NULL,                -- of its bytes
    rules BLOB NOT NULL,              -- a digest of its headers and of how keys are made
    remote TEXT NOT NULL              -- the destination's mark
) WITHOUT ROWID;
"""
# What a deployment that is killed may have to find out again.
COMMIT_EVERY_SECONDS = 1.0

log = logging.getLogger("hub.deploy")

_VERSION = zlib.crc32(_SCHEMA.encode()) >> 1


class Row(NamedTuple):
    """An object as it was put; see the table."""

    key: str
    file: str
    route: str
    mark: str
    md5: bytes
    rules: bytes
    remote: str


def path_for(state: str, identity: str) -> str:
    """Where the files about a destination are, without extension."""
    return f"{state}/deploy-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def rules_digest(route: Route) -> bytes:
    """Differs when an object would get other headers or other keys."""
    text = "\n".join((route.media, cache_control(route), route.url, route.file))
    return hashlib.sha256(text.encode()).digest()[:8]


def row_for(put: Put, remote: str) -> Row:
    return Row(
        put.key, put.file, put.route.name, put.mark, put.md5, rules_digest(put.route), remote
    )


class Manifest:
    """A connection to the manifest at ``path``, without extension; made where there is none, and
    anew where it is damaged or another version's. ``is_checked``: look for damage, which reads all
    of it.
    """

    def __init__(self, path: str, *, is_checked: bool = True) -> None:
        path = f"{path}.sqlite3"
        with _explained(path):
            damage = is_checked and database.find_damage(path)
            if damage:
                log.warning(
                    "%s is damaged (%s). Comparing every file with the destination.", path, damage
                )
                database.remove(path)
            self._db = _open(path)
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def rows(self) -> Iterator[Row]:
        with _explained(self._path):
            for values in self._db.execute("SELECT * FROM object"):
                yield Row(*values)

    def row(self, key: str) -> Row | None:
        with _explained(self._path):
            values = self._db.execute("SELECT * FROM object WHERE key = ?", (key,)).fetchone()
        return Row(*values) if values else None

    def put(self, row: Row) -> None:
        self._write("INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def forget(self, key: str) -> None:
        self._write("DELETE FROM object WHERE key = ?", (key,))

    def commit(self) -> None:
        with _explained(self._path):
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    def _write(self, statement: str, values: tuple) -> None:
        with _explained(self._path):
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
                self._commit_at = time.monotonic() + COMMIT_EVERY_SECONDS
            self._db.execute(statement, values)
        if time.monotonic() >= self._commit_at:
            self.commit()


def _open(path: str) -> sqlite3.Connection:
    """The database, with its table."""
    with contextlib.ExitStack() as stack:
        db = database.connect(path, read_only=False)
        stack.callback(db.close)
        if db.execute("PRAGMA user_version").fetchone() != (_VERSION,):
            db.execute("BEGIN IMMEDIATE")
            db.execute("DROP TABLE IF EXISTS object")
            db.execute(_SCHEMA)
            db.execute(f"PRAGMA user_version = {_VERSION}")
            db.execute("COMMIT")
        stack.pop_all()
        return db


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OperatorError(
            f"Cannot use {path}: {error}. Fix that, or remove the file: it is only a cache."
        ) from error
