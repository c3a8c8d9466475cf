"""Answers kept until the state or the index changes, and who watches these."""

import contextlib
import os
import sqlite3
from collections.abc import Hashable
from operator import itemgetter
from typing import Any

import msgspec
from cachetools import LRUCache

from builder.model.settings import Settings
from builder.search.index import commit_mark
from builder.store.database import connect
from builder.store.state import State

KEPT_BYTES_MAX = 32 * 1024 * 1024
# Of an entry's objects, roughly.
ENTRY_BYTES = 2_000

_encode = msgspec.msgpack.encode


class KeptAnswers:
    """At most ``bytes_max`` bytes of answers; the one that was not asked for longest goes first."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._version: object = None
        self._entries = LRUCache(bytes_max, getsizeof=itemgetter(1))

    @property
    def size(self) -> int:
        return self._entries.currsize

    def get(self, version: object, key: Hashable) -> Any | None:
        """The answer to a question (``key``), and from now on those of this version alone."""
        if version != self._version:
            self._entries.clear()
            self._version = version
        answer, _ = self._entries.get(key, (None, 0))
        return answer

    def put(self, version: object, key: tuple[object, tuple], answer: object) -> None:
        """``key``: anything, and what of it is as long as a caller likes."""
        if version == self._version:
            with contextlib.suppress(ValueError):  # larger than all that is kept
                self._entries[key] = answer, len(_encode((key[1], answer))) + ENTRY_BYTES


class Watch:
    """Tells whether the state and the index are what they were. Never waits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = State.path_in(settings.state)
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._opened: object = None

    def version(self) -> object | None:
        """Differs once anything is committed; None where that cannot be told."""
        try:
            inode = os.stat(self._path).st_ino
            if self._db is None or inode != self._inode:
                self._open(inode)
            (changes,) = self._db.execute("PRAGMA data_version").fetchone()
            return self._opened, changes, commit_mark(self._settings)
        except Exception:
            # Not built yet, locked or damaged, which may show as any error: whoever asks the
            # queries hears of it.
            self.close()
            return None

    def _open(self, inode: int) -> None:
        self.close()
        self._db = connect(self._path, read_only=True)
        self._db.execute("PRAGMA busy_timeout = 0")
        self._inode = inode
        # Another connection counts changes anew.
        self._opened = object()

    def close(self) -> None:
        if self._db:
            self._db.close()
        self._db = None
