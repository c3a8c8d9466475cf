"""How far the long proofs go: `make test` tries a quarter of their cases, `make test-all` all.

They have the mark ``long``, and ``TEST_DEPTH`` says which it is: ``short``, or nothing.
"""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_SHARE = 4 if os.environ.get("TEST_DEPTH") == "short" else 1


def some(cases: Iterable[T]) -> Iterator[T]:
    """The cases to try, which are spread over all of them."""
    return islice(cases, 0, None, _SHARE)


def some_of(count: int) -> int:
    """How many random cases to try where ``count`` would be all."""
    return max(1, count // _SHARE)
