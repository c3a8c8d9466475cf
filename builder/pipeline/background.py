"""Threads beside a service, and their retries after failures, at growing intervals."""

import abc
import random
import threading
from datetime import UTC, datetime
from typing import Any, Self

from builder.model.records import format_time


class Background(abc.ABC):
    """A thread that runs as long as the ``with`` block; a subclass does its work in ``_run``.
    ``_changed`` guards the data that the thread shares with others, and is notified of each change.
    """

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abc.abstractmethod
    def _run(self) -> None:
        """Work until ``_is_stopping``."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self, seconds: float | None = None) -> None:
        """Stop the thread and wait for its end, at most ``seconds``."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(seconds)


class Failures:
    """The failures since the last success."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self._since: str | None = None
        self._last_error: str | None = None

    def add(self, message: str) -> None:
        """Note a failure. ``message`` is public."""
        self.count += 1
        self._since = self._since or format_time(datetime.now(UTC))
        self._last_error = message

    def status(self) -> dict[str, Any]:
        return {
            "failures": self.count,
            "failing_since": self._since,
            "last_error": self._last_error,
        }


def pause_seconds(failures: int, shortest: float, longest: float) -> float:
    """The seconds to wait after one or more failures in a row. They are random, so that services
    which failed together do not retry together.
    """
    return min(longest, shortest * 2 ** min(failures - 1, 20)) * random.uniform(0.5, 1.0)
