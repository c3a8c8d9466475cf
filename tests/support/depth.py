"""The share of the long proofs that a run tries: one quarter of their cases, or all of them.

``TEST_QUARTER`` is 0 to 3, or not set for all cases. `make test` and `make test-all` derive it from
the commit, so that the quarters rotate with the commits; `make test-deep` and pytest by itself try
all.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from zlib import crc32

import pytest
from hypothesis import seed, settings

T = TypeVar("T")

QUARTERS = 4
_TEXT = os.environ.get("TEST_QUARTER", "")
assert _TEXT in ("", *map(str, range(QUARTERS))), f"TEST_QUARTER is 0 to 3, not {_TEXT}"
QUARTER = int(_TEXT) if _TEXT else None


def some(cases: Iterable[T]) -> Iterator[T]:
    """The cases to try, which are spread over all of them."""
    for number, case in enumerate(cases):
        if QUARTER is None or number % QUARTERS == QUARTER:
            yield case


def some_of(count: int) -> int:
    """The number of random cases to try where ``count`` would be all."""
    return count if QUARTER is None else max(1, count // QUARTERS)


def searching(count: int, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Lets a test of Hypothesis try ``count`` examples in all, other ones in each quarter. ``more``
    are other settings of Hypothesis.
    """

    def limit(test: Callable[..., None]) -> Callable[..., None]:
        return seeded(settings(max_examples=some_of(count), **more)(test))

    return limit


def seeded(test: Any) -> Any:
    """A test or a machine of Hypothesis, with examples of its own in each quarter."""
    return test if QUARTER is None else seed(QUARTER)(test)


def rotating(values: Iterable[Any]) -> list[Any]:
    """Parameters of a fixture or a test; each test tries a quarter of them. See ``chosen``."""
    return [pytest.param(value, marks=pytest.mark.rotating) for value in values]


def chosen(items: Iterable[pytest.Item]) -> Iterator[bool]:
    """For each item, True if it runs. A ``rotating`` test runs every fourth of its cases.

    Tests begin at different cases, so a run meets every shell, host or SDK in some of them.
    """
    seen: Counter[str] = Counter()
    for item in items:
        if QUARTER is None or not item.get_closest_marker("rotating"):
            yield True
            continue
        test = item.nodeid.partition("[")[0]
        yield (crc32(test.encode()) + seen[test]) % QUARTERS == QUARTER
        seen[test] += 1
