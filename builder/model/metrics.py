"""Metrics and their kinds. A metric is defined in the module that counts it.

Counting needs no library and is always on, so any module may count. Only ``hubctl serve --metrics``
shows the counts (``server.metrics_port``). Gauges are not counted but read when they are shown.

A label never has a value that a client chose: no path, owner or token.

A part that follows builds exports values of its ``status()`` in two steps: `hubctl serve` puts that
method into ``parts`` under the part's name, and the part defines a ``Gauge`` with this ``part`` and
a ``key`` of the status. The gauge is shown if the key's value is a number or a boolean.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

# Upper bounds, in seconds; longer requests are counted only in the total.
REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_turn = threading.Lock()

Labels = tuple[str, ...]
# The status of each part that follows builds, by name: small, for JSON. Called from any thread;
# must not raise or wait.
Parts = Mapping[str, Callable[[], dict[str, Any]]]


class _Metric:
    """A metric. Its definition adds it to METRICS. ``labels`` lists all values of each label."""

    def __init__(self, name: str, help: str, **labels: Labels) -> None:
        self.name, self.help, self.labels = name, help, labels
        METRICS.append(self)


# All metrics defined in the modules that this process has loaded.
METRICS: list[_Metric] = []


class Counter(_Metric):
    """A count of events, by the values of the labels, in order."""

    kind = "counter"

    def __init__(self, name: str, help: str, **labels: Labels) -> None:
        super().__init__(name, help, **labels)
        # All series start at 0, because an alert cannot see a series grow that begins with its
        # first count.
        self._counts = dict.fromkeys(product(*labels.values()), 0)

    def count(self, *values: str, by: int = 1) -> None:
        with _turn:
            self._counts[values] += by

    def samples(self) -> Iterator[tuple[Labels, int]]:
        """The counts with the values of their labels."""
        yield from self._counts.items()


class Histogram(_Metric):
    """Durations in seconds, counted in buckets."""

    kind = "histogram"

    def __init__(
        self, name: str, help: str, buckets: tuple[float, ...] = REQUEST_BUCKETS, **labels: Labels
    ) -> None:
        super().__init__(name, help, **labels)
        self.buckets = buckets
        # The count of each bucket alone, then of durations above all bounds, then the sum of
        # seconds.
        self._cells = {
            values: [*[0] * (len(buckets) + 1), 0.0] for values in product(*labels.values())
        }

    def observe(self, seconds: float, *values: str) -> None:
        cell = self._cells[values]
        with _turn:
            cell[bisect_left(self.buckets, seconds)] += 1
            cell[-1] += seconds

    def samples(self) -> Iterator[tuple[Labels, list[float], float]]:
        """The counts of each bucket alone, and the sum of seconds, with the values of labels."""
        for values, cell in self._cells.items():
            *counts, total = cell
            yield values, counts, total


class Gauge(_Metric):
    """A momentary value. ``part`` and ``key`` name the status that it is read from."""

    kind = "gauge"

    def __init__(
        self, name: str, help: str, *, part: str = "", key: str = "", **labels: Labels
    ) -> None:
        super().__init__(name, help, **labels)
        self.part, self.key = part, key


class Reading(NamedTuple):
    """The value of a gauge, with the values of its labels."""

    gauge: Gauge
    value: float
    values: Labels = ()


LIMITS_HIT = Counter(
    "hub_limits_hit_total",
    "Requests refused by a limit. connections: of all clients; client-connections: of one "
    "address; head: size of a request's head; searches: waiting searches; quota: of an owner; "
    "the others: requests in a period.",
    limit=tuple(
        "read publish check compare failed-auth sign-in account preview openid connections "
        "client-connections head searches quota".split()
    ),
)
