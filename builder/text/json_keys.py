"""Keys that an object in JSON has twice: readers take one of them, most of them the last (RFC 8259
§4). Pure.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any


class Pairs(dict[str, Any]):
    """An object in JSON; ``repeated`` are the keys that it has more than once."""

    repeated: tuple[str, ...] = ()

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        if len(self) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.repeated = tuple(key for key, count in counts.items() if count > 1)


def only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, for ``json.loads``. Raises ValueError if a key is repeated."""
    found = Pairs(pairs)
    if found.repeated:
        raise ValueError(f"the key {found.repeated[0][:100]!r} is given twice")
    return {**found}


def load_pairs(text: str | bytes) -> Any:
    """The value of a JSON text, whose objects are Pairs. Raises ValueError and RecursionError."""
    return json.loads(text, object_pairs_hook=Pairs)


def repeated_keys(value: Any) -> Iterator[str]:
    """The repeated keys in a value of ``load_pairs``."""
    if isinstance(value, Pairs):
        yield from value.repeated
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from repeated_keys(one)
