"""The database of pulls: its tables, opening it, and what its errors mean for the operator.

SQLite in the state folder, yet no cache: logs go, and then nothing else knows what was in them.
So a commit waits for the disk, and a file that cannot be used is told, never replaced.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from urllib.parse import quote

from builder.model.errors import PullsError

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

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def pulls_path(folder: str) -> str:
    """The database of a state folder."""
    return os.path.join(folder, PULLS_FILE)


def pulls_mark(folder: str) -> tuple[int, ...] | None:
    """Differs after each ingestion into a state folder; None before the first."""
    found: tuple[int, ...] = ()
    for path in (pulls_path(folder), f"{pulls_path(folder)}-wal"):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            found += (status.st_mtime_ns, status.st_size, status.st_ino)
    return found or None


def open_for_reading(path: str) -> sqlite3.Connection:
    """Open a database that exists. Raises PullsError."""
    with telling(path):
        db = sqlite3.connect(
            f"file:{quote(path)}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        return _checked(db, path)


def open_for_writing(path: str) -> sqlite3.Connection:
    """Open a database, after making it and its folder where they are missing.

    Raises PullsError.
    """
    with telling(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if not os.path.exists(path):
            _make(path)
        db = sqlite3.connect(path, isolation_level=None)
        _checked(db, path)
        db.execute("PRAGMA synchronous = FULL")
        # A salt that is dropped must not be left in a page that is free.
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA cache_size = -65536")
        return db


@contextlib.contextmanager
def telling(path: str) -> Iterator[None]:
    """Raises what the system and SQLite complain of as PullsError."""
    try:
        yield
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    except sqlite3.Error as error:
        if _primary_code(error) in _DAMAGE:
            raise _damaged(path, str(error)) from error
        raise _unusable(path, str(error)) from error


def _checked(db: sqlite3.Connection, path: str) -> sqlite3.Connection:
    try:
        ((application,),) = db.execute("PRAGMA application_id")
        ((version,),) = db.execute("PRAGMA user_version")
        ((tables,),) = db.execute("SELECT count(*) FROM sqlite_master")
        if not tables:
            # It is never made without tables, so something has emptied it.
            raise _damaged(path, "it is empty")
        if application != APPLICATION_ID:
            raise PullsError(
                f"{path} is a database, but not of hub's pulls; move it elsewhere, or choose "
                "another state folder (--state)."
            )
        if version > SCHEMA_VERSION:
            raise PullsError(f"{path} was made by a newer release of hub; use that release.")
    except BaseException:
        db.close()
        raise
    return db


def _make(path: str) -> None:
    """Make a database that is whole from its first moment under its name."""
    folder = os.path.dirname(path) or "."
    with _folder_lock(folder) as descriptor:
        if os.path.exists(path):
            return
        temporary = f"{path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        # What SQLite makes, others may read: who pulled what is nobody's business.
        made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if os.geteuid() == 0:
                # Else what root counts once, nobody else can read or go on counting. The files
                # beside it get the same owner from SQLite.
                owner = os.fstat(descriptor)
                os.fchown(made, owner.st_uid, owner.st_gid)
        finally:
            os.close(made)
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as db:
            db.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {SCHEMA_VERSION}; {SCHEMA}; COMMIT;"
            )
            # The build reads while logs are counted.
            db.execute("PRAGMA journal_mode = WAL")
        os.rename(temporary, path)
        os.fsync(descriptor)


@contextlib.contextmanager
def _folder_lock(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _unusable(path: str, reason: str) -> PullsError:
    return PullsError(
        f"Cannot use {path}: {reason}. Let the user who runs this read and write it and its "
        "folder, see that its disk has space, or choose another folder (--state)."
    )


def _damaged(path: str, reason: str) -> PullsError:
    return PullsError(
        f"{path} is damaged ({reason}). It holds the counts of pulls, and nothing else does: put "
        f"a backup in its place, or save what `sqlite3 {path} .recover` finds. Or move it away "
        "with its -wal file, and count anew the logs that there still are."
    )


def _primary_code(error: sqlite3.Error) -> int | None:
    """The result code of SQLite without its extension; None: not SQLite itself complained."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
