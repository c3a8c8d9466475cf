"""The port from which monitors read the metrics, apart from the readers' port.

The server is that of prometheus_client, which bounds no connections: use an address that only your
monitoring reaches.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from builder.model.errors import OperatorError
from builder.model.metrics import METRICS, Counter, Gauge, Histogram, Labels, Parts, Reading
from builder.model.service_urls import url_at

METRICS_URL = "/metrics"

Source = Callable[[], Iterable[Reading]]

_FAMILIES = {
    Counter: CounterMetricFamily,
    Gauge: GaugeMetricFamily,
    Histogram: HistogramMetricFamily,
}


class MetricsPort:
    """Answers ``GET /metrics`` until ``close``. Port 0 picks a free one. Raises OperatorError."""

    def __init__(self, host: str, port: int) -> None:
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        try:
            self._server, self._thread = start_http_server(port, host, self._registry)
        except OSError as error:
            raise OperatorError(
                f"Cannot listen on {host}:{port}: {error.strerror or error}. Choose another "
                "address with --metrics or HUB_METRICS, like 127.0.0.1:9108."
            ) from None
        self.url = url_at(host, self._server.server_port) + METRICS_URL

    def show(self, sources: Iterable[Source], parts: Parts) -> None:
        """Show the hub's metrics, too: ``sources`` and ``parts`` have the values of gauges."""
        self._registry.register(Collector(sources, parts))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Collector:
    """The hub's metrics, as those of prometheus_client. Pages are made one after the other."""

    def __init__(self, sources: Iterable[Source], parts: Parts) -> None:
        self._sources = [*sources]
        self._parts = parts
        self._turn = threading.Lock()

    def describe(self) -> list[Metric]:
        """Returns nothing, so registering calls no source."""
        return []

    def collect(self) -> list[Metric]:
        with self._turn:
            return [*self._families()]

    def _families(self) -> Iterator[Metric]:
        readings: dict[str, list[tuple[Labels, float]]] = {}
        for source in [*self._sources, self._read_parts]:
            for gauge, value, values in source():
                readings.setdefault(gauge.name, []).append((values, float(value)))
        for metric in METRICS:
            family = _FAMILIES[type(metric)](metric.name, metric.help, labels=[*metric.labels])
            if isinstance(metric, Histogram):
                bounds = [*map(str, metric.buckets), "+Inf"]
                for values, counts, total in metric.samples():
                    buckets = [*zip(bounds, accumulate(counts), strict=True)]
                    family.add_metric(values, buckets, total)
            else:
                is_gauge = isinstance(metric, Gauge)
                for values, value in (
                    readings.get(metric.name, []) if is_gauge else metric.samples()
                ):
                    family.add_metric(values, value)
            if family.samples:
                yield family

    def _read_parts(self) -> Iterator[Reading]:
        statuses = {name: status() for name, status in self._parts.items()}
        for metric in METRICS:
            if isinstance(metric, Gauge) and metric.part in statuses:
                value = statuses[metric.part].get(metric.key)
                if isinstance(value, int | float):
                    yield Reading(metric, value)
