"""Answers kept as bytes, as long as the files that they were made of are the same."""

import os
from collections import OrderedDict
from collections.abc import Hashable

from builder.store.site import Mark, mark_of

KEPT_BYTES_MAX = 64 * 1024 * 1024
# An entry's keys, tuples and marks, roughly.
ENTRY_BYTES = 1000


def _is_same(path: str, mark: Mark) -> bool:
    try:
        return mark_of(os.stat(path)) == mark
    except OSError:
        return False


class KeptAnswers:
    """At most ``bytes_max`` bytes of answers; the one that was not asked for longest goes first."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._entries: OrderedDict[Hashable, tuple[bytes, dict[str, Mark], int]] = OrderedDict()
        self.size = 0

    def get(self, key: Hashable) -> bytes | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        answer, sources, _ = entry
        if not all(_is_same(path, mark) for path, mark in sources.items()):
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return answer

    def put(self, key: Hashable, key_bytes: int, answer: bytes, sources: dict[str, Mark]) -> None:
        """``key_bytes``: what of the key is as long as a caller likes."""
        size = len(answer) + key_bytes + ENTRY_BYTES
        self._drop(key)
        # One answer must not drive out many.
        if size > self._bytes_max // 16:
            return
        self._entries[key] = (answer, sources, size)
        self.size += size
        while self.size > self._bytes_max:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry:
            self.size -= entry[2]
