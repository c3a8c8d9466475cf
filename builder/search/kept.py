"""A cache of answers that lasts until the state or the index changes, and the watch for changes."""

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
# The size of an entry's Python objects, roughly.
ENTRY_BYTES = 2_000

_encode = msgspec.msgpack.encode


class KeptAnswers:
    """At most ``bytes_max`` bytes of answers; beyond that, the least recently used one is
    dropped.
    """

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._version: object = None
        self._entries = LRUCache(bytes_max, getsizeof=itemgetter(1))

    @property
    def size(self) -> int:
        return self._entries.currsize

    def get(self, version: object, key: Hashable) -> Any | None:
        """The cached answer for ``key``, or None. Drops the answers of other versions."""
        if version != self._version:
            self._entries.clear()
            self._version = version
        answer, _ = self._entries.get(key, (None, 0))
        return answer

    def put(self, version: object, key: tuple[object, tuple], answer: object) -> None:
        """``key``: any hashable, and the part of it whose length a caller chooses."""
        if version == self._version:
            # An answer larger than the whole cache is not kept.
            with contextlib.suppress(ValueError):
                self._entries[key] = answer, len(_encode((key[1], answer))) + ENTRY_BYTES


class Watch:
    """Detects changes of the state and the index. Never waits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = State.path_in(settings.state)
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._opened: object = None

    def version(self) -> object | None:
        """Changes with each commit; None if the state or index cannot be read."""
        try:
            inode = os.stat(self._path).st_ino
            if self._db is None or inode != self._inode:
                self._open(inode)
            (changes,) = self._db.execute("PRAGMA data_version").fetchone()
            return self._opened, changes, commit_mark(self._settings)
        except Exception:
            # Not built yet, locked or damaged, which may raise any error. The caller's query
            # reports it.
            self.close()
            return None

    def _open(self, inode: int) -> None:
        self.close()
        self._db = connect(self._path, read_only=True)
        self._db.execute("PRAGMA busy_timeout = 0")
        self._inode = inode
        # A new connection's ``data_version`` does not compare with an old one's (SQLite's
        # documentation of PRAGMA data_version).
        self._opened = object()

    def close(self) -> None:
        if self._db:
            self._db.close()
        self._db = None
