"""Answers kept as long as what they were made of is the same."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

KEPT_BYTES_MAX = 32 * 1024 * 1024
# An entry's key and objects, roughly.
ENTRY_BYTES = 2_000

T = TypeVar("T")


class KeptAnswers(Generic[T]):
    """At most ``bytes_max`` bytes of answers; the one that was not asked for longest goes first."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._version: object = None
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.size = 0

    def get(self, version: object, key: Hashable) -> T | None:
        """What was put for this key. Forgets all answers of other versions."""
        if version != self._version:
            self._entries.clear()
            self.size = 0
            self._version = version
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def put(self, key: Hashable, answer: T, answer_bytes: int) -> None:
        """Keep an answer of the version that was last asked for, which had none for this key."""
        size = answer_bytes + ENTRY_BYTES
        self._entries[key] = answer, size
        self.size += size
        while self.size > self._bytes_max:
            _, (_, dropped) = self._entries.popitem(last=False)
            self.size -= dropped
