"""The state between builds, in SQLite under the state folder.

A cache: all of it follows from the content, and any inconsistency makes it invalid. It holds, for
each repo, the marks of its files and the bytes that lists are joined from; the digest of each list
page on the site; and unfinished work. A full build is one transaction. Any other build commits the
list of its work before it writes a file, and the results after that. So a reader of the state
(search, queries) sees a publication whole or not at all, and a killed build leaves a list of what
the next one has to check again.

``State`` is the connection, and begins and ends builds. Each of its parts has one theme.
"""

import contextlib
import json
import os
import sqlite3
from typing import Any, Self

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.store.database import boot_id, connect, find_damage
from builder.store.state.files import Files
from builder.store.state.repos import Ids, Lists, Repos, Tags
from builder.store.state.schema import INDEXES, LASTING, SCHEMA, SCHEMA_VERSION
from builder.store.state.tables import Meta, Orphans, Owners, SitePulls, Withdrawn
from builder.store.state.work import Passes, Todo

_FILE = "build.sqlite3"
_FOLDERS = ("content", "out", "state")


class State:
    """A connection to the state of one site. ``State(None)`` is an empty one in memory."""

    def __init__(self, folder: str | None, *, read_only: bool = False) -> None:
        self.path = self.path_in(folder) if folder else ":memory:"
        self._db = db = connect(self.path, read_only=read_only)
        self._is_one_transaction = False
        self._meta = Meta(db)
        self.todo = Todo(db)
        self.passes = Passes(db, self._meta, self.todo)
        self.repos = Repos(db)
        self.withdrawn = Withdrawn(db)
        self.ids = Ids(db)
        self.tags = Tags(db)
        self.lists = Lists(db)
        self.owners = Owners(db)
        self.pulls = SitePulls(db)
        self.orphans = Orphans(db)
        self.files = Files(db)

    @staticmethod
    def path_in(folder: str) -> str:
        return f"{folder}/{_FILE}"

    @classmethod
    def find_damage(cls, folder: str) -> str | None:
        """The evidence that a folder's state is damaged; reads it whole. Raises OperatorError."""

        def look(db: sqlite3.Connection) -> str | None:
            is_ours = db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
            return Repos(db).find_damage() if is_ours else None

        return find_damage(cls.path_in(folder), look)

    @classmethod
    def is_of_another_release(cls, folder: str) -> bool:
        """True if a folder has a sound state with other tables than those of this release."""
        if not os.path.exists(cls.path_in(folder)):
            return False
        with contextlib.suppress(sqlite3.Error), cls(folder, read_only=True) as state:
            return state._version() not in (0, SCHEMA_VERSION)
        return False  # `find_damage` has the cause

    def close(self) -> None:
        """Close the connection; uncommitted changes are lost."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has_tables(self) -> bool:
        """True if the file has the state's tables."""
        row = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
        return row is not None

    # Beginning and end of a build

    def vouches_for(self, stamp: str, site_mark: str) -> bool:
        """True if the remembered state is valid for a site.

        False after a change of the stamp (code, templates, settings), if the site is not the one
        that the last build left (``site_mark``), after a full build that did not end, and after a
        restart of the machine, because the kernel may have lost data that was not yet on disk.
        """
        clean = _clean(stamp, site_mark)
        return self._version() == SCHEMA_VERSION and self._meta.get("clean") == clean

    def was_built_by(self, stamp: str) -> bool:
        """True if the last build had this stamp, and ended."""
        noted = self._meta.get("clean") if self.has_tables() else None
        return self._version() == SCHEMA_VERSION and (noted or "").startswith(f"{stamp} ")

    def has_left(self, site_mark: str) -> bool:
        """True if the last build ended, and left the site with this mark."""
        return (self._meta.get("clean") or "").endswith(f" {site_mark}")

    def was_killed(self) -> bool:
        """True if a build began and was killed before it could record a failure."""
        return self._meta.get("running") is not None

    def begin(self, *, forget: bool) -> None:
        """Start a build. With ``forget``, delete the remembered state first, and commit nothing
        before the end.
        """
        self._is_one_transaction = forget
        if forget and self.has_tables():
            self._meta.drop("clean")
        self._db.execute("BEGIN IMMEDIATE")
        if forget:
            self._reset()
        self._meta.put("running", "yes")

    def checkpoint(self) -> None:
        """Commit the build's progress, and continue."""
        self.files.flush()
        if not self._is_one_transaction:
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")

    def abandon(self) -> None:
        """End a failed build; its uncommitted changes are lost."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        # If even that cannot be written, the next build takes this one for killed.
        with contextlib.suppress(sqlite3.Error):
            self._meta.drop("running")

    def end(self, stamp: str, site_mark: str) -> None:
        """Commit a finished build; work left over is in ``todo``."""
        self.files.flush()
        self._meta.put("clean", _clean(stamp, site_mark))
        self._meta.drop("running")
        self._db.execute("COMMIT")

    def home(self) -> tuple[str | None, str]:
        """The mark and the text of ``home.md`` as the last build read it; the mark is None before
        the first build.
        """
        return self._meta.get("home mark"), self._meta.get("home text") or ""

    def put_home(self, mark: str, text: str) -> None:
        self._meta.put("home mark", mark)
        self._meta.put("home text", text)

    def looked(self) -> tuple[int, int, str]:
        """The time at which the last full look for lost files began, by the site's clock; that of
        a look under way, and its last object. Zeros and empty if there was none.
        """
        last, begun, object_id = (self._meta.get("looked") or "0 0 ").split(" ", 2)
        return int(last), int(begun), object_id

    def put_looked(self, last: int, begun: int = 0, object_id: str = "") -> None:
        self._meta.put("looked", f"{last} {begun} {object_id}")

    def note_settings(self, settings: Settings) -> None:
        """Store the settings of this build's site, without its folders."""
        fields = {key: value for key, value in settings._asdict().items() if key not in _FOLDERS}
        self._meta.put("settings", json.dumps(fields))

    def settings(self) -> dict[str, Any]:
        """The stored settings, without the folders; empty before the first build."""
        return json.loads(self._meta.get("settings") or "{}")

    def _version(self) -> int:
        return self._db.execute("PRAGMA user_version").fetchone()[0]

    def _reset(self) -> None:
        kept = LASTING if self._version() == SCHEMA_VERSION else ()
        tables = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in tables:
            if name not in kept:
                self._db.execute(f"DROP TABLE {name}")
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._execute(SCHEMA)

    def add_indexes(self) -> None:
        """Create the indexes. A build with ``forget`` calls this after it has stored its repos, and
        before it reads lists.
        """
        self._execute(INDEXES)

    def _execute(self, script: str) -> None:
        # Not executescript, which would commit. Readers keep the old state until the end.
        for statement in script.split(";\n"):
            self._db.execute(statement)


def last_settings(content: str, out: str, folder: str) -> Settings | None:
    """The settings of the last build with this state folder; None if no build has ended, or its
    state cannot be read.
    """
    if not os.path.exists(State.path_in(folder)):
        return None
    try:
        with State(folder, read_only=True) as state:
            noted = state.settings() if state.has_tables() else {}
        # Another release of hub may have stored more fields.
        known = {key: value for key, value in noted.items() if key in Settings._fields}
    except (sqlite3.Error, ValueError, OperatorError):
        return None
    return Settings(content, out, folder, **known) if known else None


def last_base_url(folder: str) -> str | None:
    """The base URL of the last build with this state folder; None as ``last_settings``."""
    settings = last_settings("", "", folder)
    return settings and settings.base_url


def _clean(stamp: str, site_mark: str) -> str:
    return f"{stamp} {boot_id()} {site_mark}"
