"""Databases in SQLite that are no caches: their data exists nowhere else.

So a file that cannot be used is reported to the operator, never replaced. Several processes may
open one at the same time.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from builder.model.errors import OperatorError
from builder.store.shortage import disk_remedy

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class DatabaseFile(NamedTuple):
    """The path of a database, and the words for its errors.

    ``subject``: its topic (``accounts``); ``holds``: the data that is lost with it; ``start_over``:
    how to continue without it; ``error``: the class to raise.
    """

    path: str
    subject: str
    holds: str
    start_over: str
    error: type[OperatorError] = OperatorError

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Turn errors of the system and of SQLite into ``error``."""
        try:
            yield
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        except sqlite3.Error as error:
            if primary_code(error) in DAMAGE:
                raise self.damaged(str(error)) from error
            raise self._unusable(str(error)) from error

    def damaged(self, reason: str) -> OperatorError:
        """The ``error`` for a damaged file."""
        return self.error(
            f"{self.path} is damaged ({reason}). It holds the only copy of {self.holds}. Restore a "
            f"backup, or rescue what `sqlite3 {self.path} .recover` prints. To start over, move it "
            f"and its -wal file away, and {self.start_over}."
        )

    def check_version(self, version: int, newest: int, *, is_ours: bool) -> None:
        """Raise ``error`` for another program's database, or one of a newer release."""
        if not is_ours:
            raise self.error(
                f"{self.path} is not hub's database of {self.subject}. Move it elsewhere, or "
                "choose another state folder with --state."
            )
        if version > newest:
            raise self.error(
                f"{self.path} was created by a newer release of hub. Upgrade to that release."
            )

    def check_sound(self, db: sqlite3.Connection) -> None:
        """Read all of the database; raise ``error`` if it is damaged."""
        with self.telling():
            found = [text for (text,) in db.execute("PRAGMA quick_check(3)")]
        if found != ["ok"]:
            raise self.damaged("; ".join(found))

    def _unusable(self, reason: str) -> OperatorError:
        remedy = disk_remedy(os.path.dirname(self.path)) or (
            "Check that the user who runs hubctl may write it and its folder"
        )
        return self.error(
            f"Cannot use {self.path}: {reason}. {remedy}, or choose another folder with --state."
        )


@contextlib.contextmanager
def folder_lock(path: str) -> Iterator[int]:
    """Hold the exclusive lock for preparing a database in a folder; yields the folder's
    descriptor.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def open_for_reading(path: str, **options: Any) -> sqlite3.Connection:
    """Open a database that exists, with options of ``sqlite3.connect``."""
    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, **options)


def make_private(path: str) -> None:
    """Create the file if it is missing, readable for its user alone; SQLite gives its -wal the same
    mode.
    """
    # Only a new file is opened here, because closing an existing one would release SQLite's locks
    # on it (POSIX advisory locks; SQLite, How To Corrupt, 2.2).
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if os.stat(path).st_mode & 0o077:
        os.chmod(path, 0o600)


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code; None if the error is not SQLite's own."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
