"""Caches in SQLite: opening one, and finding damage.

Everything in a cache can be rebuilt, so a damaged file is removed, and no write waits for the disk.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from urllib.parse import quote

from builder.model.errors import OperatorError
from builder.store.shortage import disk_remedy

# The longest wait for another program that has locked the file. After that, the operation fails.
LOCK_SECONDS = 5.0

# Errors caused by the machine or another process. All others come from damage or from a bug; some
# have no code, such as that of a text that is not UTF-8.
_TROUBLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


class DamageError(sqlite3.DatabaseError):
    """A row that differs from what was written."""


def connect(path: str, *, read_only: bool) -> sqlite3.Connection:
    """Open the database, with explicit transactions. Raises OperatorError."""
    # A reader may use it in another thread than the one that opened it.
    options = {"isolation_level": None, "check_same_thread": False, "timeout": LOCK_SECONDS}
    try:
        if read_only:
            return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, **options)
        with contextlib.ExitStack() as opened:
            db = opened.enter_context(contextlib.closing(sqlite3.connect(path, **options)))
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA cache_size = -16384")  # KiB; with less, builds read pages again
            opened.pop_all()
        return db
    except sqlite3.Error as error:
        if is_damaged(error):
            raise
        raise _unusable("open", path, str(error)) from None


def _unusable(action: str, path: str, cause: str) -> OperatorError:
    remedy = (
        disk_remedy(os.path.dirname(path)) or "Fix that, or remove the file: it is only a cache"
    )
    return OperatorError(f"Cannot {action} {path}: {cause}. {remedy}.")


def is_damaged(error: sqlite3.Error) -> bool:
    """True if an error can come from a damaged file; false for a full disk, a lock or missing
    permission.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return True
    return code is None or code & 0xFF not in _TROUBLE


def beginning_with(prefix: str) -> tuple[str, str]:
    """The bounds of the texts with this prefix: at least the first, less than the second."""
    return prefix, prefix + "\U0010ffff"


def find_damage(
    path: str, look: Callable[[sqlite3.Connection], str | None] = lambda db: None
) -> str | None:
    """The evidence that a database is damaged; None if it is sound or missing. Reads all of it,
    then calls ``look`` to check its rows. Raises OperatorError.
    """
    try:
        with open(path, "rb") as file:
            formats = file.read(20)[18:]
        if formats not in (b"", b"\1\1", b"\2\2"):
            # SQLite would report this as a read-only database.
            return "unknown format of its header"
        with contextlib.closing(connect(path, read_only=False)) as db:
            ((found,),) = db.execute("PRAGMA quick_check(1)")
            return look(db) if found == "ok" else found
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable("read", path, error.strerror) from None
    except OperatorError:
        raise
    except Exception as error:
        # Damage can raise an error of any kind: for example, a table's name may not be UTF-8 any
        # more.
        if isinstance(error, sqlite3.Error) and not is_damaged(error):
            raise _unusable("read", path, str(error)) from None
        return str(error)


def remove(path: str) -> None:
    """Delete the database."""
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + suffix)


def boot_id() -> str:
    """Changes with each start of the machine; "unknown" if the system has no such id."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "unknown"
