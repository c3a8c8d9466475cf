"""The database of pulls: its tables, opening it, and its errors as messages for the operator.

It is SQLite in the state folder, but no cache: logs are deleted, and then nothing else has their
pulls. So a commit waits for the disk, and a file that cannot be used is reported, never replaced.
"""

import contextlib
import os
import sqlite3

from builder.model.errors import PullsError
from builder.store import sqlite
from builder.store.sqlite import DatabaseFile

PULLS_FILE = "pulls.sqlite3"

APPLICATION_ID = 0x68756270  # "hubp"
SCHEMA_VERSION = 1
# Days are whole days since 1970-01-01, UTC.
SCHEMA = """
-- Those that changed a count, and the first.
CREATE TABLE ingestion (
    serial INTEGER PRIMARY KEY,
    nonce TEXT NOT NULL               -- random: tells this database's history from a copy's
);
CREATE TABLE repo (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,          -- owner/name
    serial INTEGER NOT NULL           -- of the ingestion that changed its counts last
);
CREATE INDEX repo_serial ON repo (serial);
CREATE TABLE count (
    repo INTEGER NOT NULL, day INTEGER NOT NULL, pulls INTEGER NOT NULL,
    PRIMARY KEY (repo, day)
) WITHOUT ROWID;
CREATE TABLE day (
    day INTEGER PRIMARY KEY,
    salt BLOB                         -- null: closed, nothing is counted any more
);
-- Pulls that are counted. A mark is the keyed hash of address and repo: it tells neither.
CREATE TABLE seen (
    day INTEGER NOT NULL, mark INTEGER NOT NULL,
    PRIMARY KEY (day, mark)
) WITHOUT ROWID;
"""


def pulls_file(folder: str) -> DatabaseFile:
    """The database of a state folder."""
    return DatabaseFile(
        os.path.join(folder, PULLS_FILE),
        "pulls",
        "the pull counts",
        "count the logs that you still have again",
        PullsError,
    )


def pulls_mark(folder: str) -> tuple[int, ...] | None:
    """Changes after each ingestion into a state folder; None before the first."""
    found: tuple[int, ...] = ()
    for suffix in ("", "-wal"):
        with contextlib.suppress(OSError):
            status = os.stat(os.path.join(folder, PULLS_FILE + suffix))
            found += (status.st_mtime_ns, status.st_size, status.st_ino)
    return found or None


def open_for_reading(file: DatabaseFile) -> sqlite3.Connection:
    """Open a database that exists. Raises PullsError."""
    with file.telling():
        db = sqlite.open_for_reading(file.path, isolation_level=None, check_same_thread=False)
        return _checked(file, db)


def open_for_writing(file: DatabaseFile) -> sqlite3.Connection:
    """Open a database; creates it and its folder if they are missing.

    Raises PullsError.
    """
    with file.telling():
        os.makedirs(os.path.dirname(file.path) or ".", exist_ok=True)
        if not os.path.exists(file.path):
            _make(file.path)
        db = _checked(file, sqlite3.connect(file.path, isolation_level=None))
        db.execute("PRAGMA synchronous = FULL")
        # A deleted salt must not remain in a free page.
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA cache_size = -65536")
        return db


def _checked(file: DatabaseFile, db: sqlite3.Connection) -> sqlite3.Connection:
    try:
        ((application,),) = db.execute("PRAGMA application_id")
        ((version,),) = db.execute("PRAGMA user_version")
        ((tables,),) = db.execute("SELECT count(*) FROM sqlite_master")
        if not tables:
            # It is never created without tables, so something has emptied it.
            raise file.damaged("it is empty")
        file.check_version(version, SCHEMA_VERSION, is_ours=application == APPLICATION_ID)
    except BaseException:
        db.close()
        raise
    return db


def _make(path: str) -> None:
    """Create a database that is complete as soon as its name exists."""
    with sqlite.folder_lock(os.path.dirname(path) or ".") as descriptor:
        if os.path.exists(path):
            return
        temporary = f"{path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        # Files that SQLite creates are readable by others, but pulls are private.
        sqlite.make_private(temporary)
        if os.geteuid() == 0:
            # Otherwise other users could not read or count after root. SQLite gives the same owner
            # to the files beside it.
            owner = os.fstat(descriptor)
            os.chown(temporary, owner.st_uid, owner.st_gid)
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as db:
            db.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {SCHEMA_VERSION}; {SCHEMA}; COMMIT;"
            )
            # The build reads while logs are counted.
            db.execute("PRAGMA journal_mode = WAL")
        os.rename(temporary, path)
        os.fsync(descriptor)
