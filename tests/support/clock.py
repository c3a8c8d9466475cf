"""A clock that tests control."""

from collections.abc import Callable
from types import ModuleType

import pytest


class Clock:
    """Stands in for the module ``time``; stands still until a test adds to ``now``."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def time(self) -> float:
        return self.now

    monotonic = perf_counter = time


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes builds trust the marks of files of any age."""
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 0)


StopClock = Callable[..., Clock]


@pytest.fixture
def stop_clock(monkeypatch: pytest.MonkeyPatch) -> StopClock:
    """Gives modules of the product the clock that it returns."""

    def stop(*modules: ModuleType) -> Clock:
        clock = Clock()
        for module in modules:
            monkeypatch.setattr(module, "time", clock)
        return clock

    return stop
