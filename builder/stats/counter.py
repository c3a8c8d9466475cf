"""Counts pulls into the database: one for each client, repo and UTC day, however often it is
logged.

A counted pull is recognised by its mark: a keyed hash of address and repo, with a random key for
each day. A mark reveals neither, and marks of different days cannot be compared. When a day is
``KEPT_DAYS`` old, its key and marks are deleted and it is closed: no more pulls are counted for it,
because new pulls can no longer be distinguished from known ones. An older day that has no counts
yet is open until the end of the ingestion that counts it.
"""

import collections
import contextlib
import json
import secrets
import sqlite3
from hashlib import blake2b
from itertools import groupby
from typing import Self

from builder.stats.database import open_for_writing, pulls_file
from builder.store import sqlite

KEPT_DAYS = 35
# This many pulls are collected before the database checks which are new.
BATCH_PULLS = 50_000
# The longest wait for readers at the end. After that, deleted data stays on disk until a later run.
WIPE_MILLISECONDS = 3_000

# Short, because SQLite cannot be interrupted while it waits.
_WAIT_MILLISECONDS = 200
_KNOWN = "SELECT mark FROM seen WHERE day = ? AND mark IN (SELECT value FROM json_each(?))"
_COUNT = (
    "INSERT INTO repo (id, serial) VALUES (:repo, :serial) "
    "ON CONFLICT (id) DO UPDATE SET serial = :serial",
    "INSERT INTO count SELECT key, :day, :pulls FROM repo WHERE id = :repo "
    "ON CONFLICT (repo, day) DO UPDATE SET pulls = pulls + :pulls",
)


class Counter:
    """One ingestion into a state folder's database, as a context manager. At the end of its block
    everything is counted and on disk; if the block raises or the process dies, nothing is.

    ``today`` decides which days are closed at the end (whole days since 1970-01-01 UTC, like all
    days here). If another ingestion is running, this one waits for its end.
    All methods may raise OperatorError.
    """

    def __init__(self, folder: str, today: int) -> None:
        self._file = pulls_file(folder)
        self._oldest_kept = today - KEPT_DAYS
        self._salts: dict[int, bytes | None] = {}
        self._batch: dict[tuple[int, int], str] = {}
        #: The numbers of new and of known pulls; valid right after the block.
        self.counted = 0
        self.repeated = 0
        #: True if no deleted data is on disk any more; valid right after the block.
        self.is_wiped = False

    def __enter__(self) -> Self:
        self._db = open_for_writing(self._file)
        with contextlib.ExitStack() as failing, self._file.telling():
            failing.callback(self._db.close)
            self._begin()
            ((last,),) = self._db.execute("SELECT coalesce(max(serial), 0) FROM ingestion")
            self._serial = last + 1
            failing.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.closing(self._db), self._file.telling():
            if kind is None:
                self._flush()
                self._close_old_days()
                if self.counted or self._serial == 1:
                    note = self._serial, secrets.token_hex(8)
                    self._db.execute("INSERT INTO ingestion VALUES (?, ?)", note)
                self._db.execute("COMMIT")
                self._wipe()

    def add(self, day: int, client: bytes, repo_id: str) -> bool:
        """Count a pull of ``owner/name`` by a client, unless one of that day is known. False if the
        day is closed.

        ``client`` identifies the client; it is not stored.
        """
        salt = self._salt(day)
        if salt is None:
            return False
        hashed = b"%d:%b%b" % (len(client), client, repo_id.encode())
        mark = int.from_bytes(blake2b(hashed, key=salt, digest_size=8).digest(), signed=True)
        key = day, mark
        self.repeated += key in self._batch
        self._batch[key] = repo_id
        if len(self._batch) >= BATCH_PULLS:
            self._flush()
        return True

    def _salt(self, day: int) -> bytes | None:
        """The key of a day's marks; None for a closed day."""
        if day not in self._salts:
            with self._file.telling():
                found = self._db.execute("SELECT salt FROM day WHERE day = ?", (day,)).fetchone()
            self._salts[day] = found[0] if found else secrets.token_bytes(32)
        return self._salts[day]

    def _begin(self) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {_WAIT_MILLISECONDS}")
        while not self._db.in_transaction:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if sqlite.primary_code(error) != sqlite3.SQLITE_BUSY:
                    raise

    def _flush(self) -> None:
        with self._file.telling():
            for day, pulls in groupby(sorted(self._batch.items()), key=lambda pull: pull[0][0]):
                self._flush_day(day, {mark: repo for (_, mark), repo in pulls})
        self._batch.clear()

    def _flush_day(self, day: int, repos: dict[int, str]) -> None:
        """Count the pulls of a day that are new, from their repos by mark."""
        for (mark,) in self._db.execute(_KNOWN, (day, json.dumps([*repos]))).fetchall():
            del repos[mark]
            self.repeated += 1
        self.counted += len(repos)
        self._db.execute("INSERT OR IGNORE INTO day VALUES (?, ?)", (day, self._salts[day]))
        self._db.executemany("INSERT INTO seen VALUES (?, ?)", ((day, mark) for mark in repos))
        for repo, pulls in collections.Counter(repos.values()).items():
            values = {"repo": repo, "day": day, "pulls": pulls, "serial": self._serial}
            for statement in _COUNT:
                self._db.execute(statement, values)

    def _close_old_days(self) -> None:
        self._db.execute("DELETE FROM seen WHERE day < ?", (self._oldest_kept,))
        self._db.execute(
            "UPDATE day SET salt = NULL WHERE day < ? AND salt IS NOT NULL", (self._oldest_kept,)
        )

    def _wipe(self) -> None:
        # Deleted data is overwritten only when the whole write-ahead log is checkpointed into the
        # database (SQLite's documentation of wal_checkpoint). That takes a moment without readers
        # and writers.
        self._db.execute(f"PRAGMA busy_timeout = {WIPE_MILLISECONDS}")
        ((is_busy, _, _),) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.is_wiped = not is_busy
