"""Caches in SQLite: opening one, and the checksums that show damage.

Everything in a cache can be made again, so a damaged file is thrown away, and nothing waits for
the disk. Damage that SQLite does not notice shows in the checksums: each table has one over its
rows, which triggers keep up to date.
"""

import contextlib
import os
import sqlite3
import zlib
from urllib.parse import quote

import msgspec

from builder.model.errors import OperatorError

# How long to wait for another program that has the file locked.
LOCK_SECONDS = 5.0

# Errors that the machine or another process is to blame for. All others come from damage, or from
# us; some have no code, such as that of a text that is not UTF-8.
_TROUBLE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY,
}  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode


class DamageError(sqlite3.DatabaseError):
    """A row that is not what was written."""


def connect(path: str, *, read_only: bool) -> sqlite3.Connection:
    """Open the database, with explicit transactions. Raises OperatorError."""
    # A reader's thread is not the one that opened it.
    options = {"isolation_level": None, "check_same_thread": False, "timeout": LOCK_SECONDS}
    try:
        if read_only:
            return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, **options)
        with contextlib.ExitStack() as opened:
            db = opened.enter_context(contextlib.closing(sqlite3.connect(path, **options)))
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            # Or the triggers would not see a row that is replaced.
            db.execute("PRAGMA recursive_triggers = ON")
            db.create_function("checksum", -1, checksum, deterministic=True)
            opened.pop_all()
        return db
    except sqlite3.Error as error:
        if is_damaged(error):
            raise
        raise _unusable("open", path, str(error)) from None


def _unusable(action: str, path: str, cause: str) -> OperatorError:
    return OperatorError(
        f"Cannot {action} {path}: {cause}. Fix that, or remove the file: it is only a cache."
    )


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether an error can come from a damaged file; else from a full disk, a lock, a right."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return True
    return code is None or code & 0xFF not in _TROUBLE


def beginning_with(prefix: str) -> tuple[str, str]:
    """The bounds of the texts that begin so: at least the first, less than the second."""
    return prefix, prefix + "\U0010ffff"


def checksum(*values: int | str | bytes | None) -> int:
    """Of a row's values."""
    return zlib.crc32(_encode(values))


def keep_checksums(db: sqlite3.Connection) -> None:
    """Compute the checksum of each table, and keep it up to date from now on."""
    stop_checksums(db)
    db.execute("CREATE TABLE checksum (name TEXT PRIMARY KEY, value INTEGER NOT NULL)")
    for table, columns in _tables(db).items():
        old, new = (f"checksum({', '.join(f'{row}.{one}' for one in columns)})"
                    for row in ("old", "new"))  # fmt: skip
        db.execute("INSERT INTO checksum VALUES (?, ?)", (table, _sum(db, table, columns)))
        changes = {"INSERT": f"+ {new}", "DELETE": f"- {old}", "UPDATE": f"+ {new} - {old}"}
        for event, change in changes.items():
            db.execute(
                f"CREATE TRIGGER checksum_{table}_{event} AFTER {event} ON {table} BEGIN "
                f"UPDATE checksum SET value = value {change} WHERE name = '{table}'; END"
            )
    db.execute("INSERT INTO checksum VALUES ('sqlite_master', ?)", (_sum_schema(db),))


def stop_checksums(db: sqlite3.Connection) -> None:
    """Keep none until ``keep_checksums``: a table that is filled anew is summed up faster then."""
    triggers = db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in triggers:
        db.execute(f"DROP TRIGGER {name}")
    db.execute("DROP TABLE IF EXISTS checksum")


def find_damage(path: str, version: int) -> str | None:
    """What shows that a database is damaged; None for one that is sound, that is not there, or
    whose tables have another ``user_version``. Reads all of it. Raises OperatorError.
    """
    try:
        with open(path, "rb") as file:
            formats = file.read(20)[18:]
        if formats not in (b"", b"\1\1", b"\2\2"):
            # SQLite would say that nobody may write to it.
            return "unknown format of its header"
        with contextlib.closing(connect(path, read_only=False)) as db:
            return _find_damage(db, version)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable("read", path, error.strerror) from None
    except (sqlite3.Error, UnicodeError) as error:
        # The name of a table, too, can be no UTF-8 any more.
        if isinstance(error, UnicodeError) or is_damaged(error):
            return str(error)
        raise _unusable("read", path, str(error)) from None


def _find_damage(db: sqlite3.Connection, version: int) -> str | None:
    ((found,),) = db.execute("PRAGMA integrity_check(1)")
    if found != "ok":
        return found
    if db.execute("PRAGMA user_version").fetchone() != (version,):
        return None
    known = dict(db.execute("SELECT name, value FROM checksum"))
    if known.get("sqlite_master") != _sum_schema(db):
        return "wrong checksum of the schema"
    for table, columns in _tables(db).items():
        if known.get(table) != _sum(db, table, columns):
            return f"wrong checksum of the table {table}"
    return None


def _tables(db: sqlite3.Connection) -> dict[str, list[str]]:
    """The names of all tables and of their columns."""
    tables = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'checksum' ORDER BY name"
    ).fetchall()
    return {
        name: [column[1] for column in db.execute(f"PRAGMA table_info({name})")]
        for (name,) in tables
    }


def _sum_schema(db: sqlite3.Connection) -> int:
    return _sum(db, "sqlite_master", ["type", "name", "tbl_name", "rootpage", "sql"])


def _sum(db: sqlite3.Connection, table: str, columns: list[str]) -> int:
    rows = f"SELECT coalesce(sum(checksum({', '.join(columns)})), 0) FROM {table}"
    return db.execute(rows).fetchone()[0]


def remove(path: str) -> None:
    """Throw the database away."""
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + suffix)


def boot_id() -> str:
    """Differs after each start of the machine, where the system tells."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "unknown"
