"""How far the long proofs go: `make test` tries a quarter of their cases, and the rest of
`make test-all` the other three quarters; pytest by itself tries all.

They have the mark ``long``, which ``searching`` gives to those of Hypothesis. ``TEST_DEPTH`` says
which it is: ``short``, ``rest``, or nothing.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

_SHARE = 4
_DEPTH = os.environ.get("TEST_DEPTH")
assert _DEPTH in (None, "", "short", "rest"), f"TEST_DEPTH is short, rest or nothing, not {_DEPTH}"


def some(cases: Iterable[T]) -> Iterator[T]:
    """The cases to try, which are spread over all of them."""
    for number, case in enumerate(cases):
        is_short = number % _SHARE == 0
        if not _DEPTH or is_short == (_DEPTH == "short"):
            yield case


def some_of(count: int) -> int:
    """How many random cases to try where ``count`` would be all. Their order is always the same, so
    that those of ``short`` are the first of all; ``rest`` has to begin with them again.
    """
    return max(1, count // _SHARE) if _DEPTH == "short" else count


def searching(count: int, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Marks a test of Hypothesis as long: it tries ``count`` examples in all. ``more`` are other
    settings of Hypothesis.
    """

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        return pytest.mark.long(settings(max_examples=some_of(count), **more)(test))

    return mark
