"""Documents with one fault each."""

import copy
from collections.abc import Iterator
from typing import Any

_WRONG = (None, True, 7, -1.5, "", " ", "text", [], [None], ["text"], {}, {"lc": 1, "id": [0]})


def mutate(value: Any) -> Iterator[Any]:
    """``value`` with each of its inner values missing, or replaced by one of another type."""
    for path in _list_paths(value):
        *outer, last = path
        for wrong in (*_WRONG, _WRONG):
            broken = copy.deepcopy(value)
            inner = broken
            for key in outer:
                inner = inner[key]
            if wrong is _WRONG:
                del inner[last]
            else:
                inner[last] = wrong
            yield broken


def _list_paths(value: Any) -> Iterator[tuple[Any, ...]]:
    pairs = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list)
        else ()
    )  # fmt: skip
    for key, inner in pairs:
        yield (key,)
        yield from ((key, *path) for path in _list_paths(inner))
