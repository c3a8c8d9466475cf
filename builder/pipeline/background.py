"""Work in threads beside a service, and what it does after failures: try again, later and later."""

import abc
import random
import threading
from datetime import UTC, datetime
from typing import Any, Self

from builder.model.records import format_time


class Background(abc.ABC):
    """A thread that lasts as long as the ``with`` block; a subclass has its work in ``_run``.
    ``_changed`` guards what the thread shares with others, and tells of each change of it.
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
        """Have the thread end, and wait for that, for so long at most."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(seconds)


class Failures:
    """What has failed since the last success."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self._since: str | None = None
        self._last_error: str | None = None

    def add(self, told: str) -> None:
        """Note a failure. Anybody may read ``told``."""
        self.count += 1
        self._since = self._since or format_time(datetime.now(UTC))
        self._last_error = told

    def status(self) -> dict[str, Any]:
        return {
            "failures": self.count,
            "failing_since": self._since,
            "last_error": self._last_error,
        }


def pause_seconds(failures: int, shortest: float, longest: float) -> float:
    """How long to wait after so many failures in a row, one or more. Services that have all noticed
    the same failure do not come back at the same time.
    """
    return min(longest, shortest * 2 ** min(failures - 1, 20)) * random.uniform(0.5, 1.0)
