"""The port from which monitors read the metrics, apart from the readers' port.

Bounded like the hub's port, but tighter: few connections, whose requests have to arrive in time.
The page is created at most once a second, in a thread of its own.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Self

import uvicorn
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from builder.model.metrics import METRICS, Counter, Gauge, Histogram, Labels, Parts, Reading
from server.app import Receive, Scope, Send
from server.connections import ConnectionLimits, Connections

METRICS_URL = "/metrics"
PAGE_KEPT_SECONDS = 1.0
CONNECTIONS_MAX = 16
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

Source = Callable[[], Iterable[Reading]]

_FAMILIES = {
    Counter: CounterMetricFamily,
    Gauge: GaugeMetricFamily,
    Histogram: HistogramMetricFamily,
}


class MetricsPort:
    """While entered, answers ``GET /metrics`` on ``listener``, and closes it at the end.

    For each page, ``sources`` give the values of gauges, and ``parts`` their statuses; all are
    called in a thread of this port, one after the other.
    """

    def __init__(
        self, listener: socket.socket, sources: Iterable[Source], parts: Parts | None = None
    ) -> None:
        self._listener = listener
        self._registry = CollectorRegistry()
        self._registry.register(_Collector([*sources], parts or {}))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._page = b""
        self._kept_until = 0.0
        connections = Connections(
            CONNECTIONS_MAX, limits=ConnectionLimits(per_network=CONNECTIONS_MAX // 2)
        )
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            loop="uvloop",
            http=connections.protocol,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=CONNECTIONS_MAX,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        # A daemon thread: a WSGI server runs exit handlers, which end this port, only after all
        # other threads.
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="metrics", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    def page(self) -> bytes:
        """All metrics in Prometheus' text format."""
        if self._kept_until <= time.monotonic():
            self._page = generate_latest(self._registry)
            self._kept_until = time.monotonic() + PAGE_KEPT_SECONDS
        return self._page

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != METRICS_URL:
            status, body = 404, b"The metrics are at /metrics.\n"
        elif scope["method"] not in ("GET", "HEAD"):
            status, body = 405, b"Send GET.\n"
        else:
            status, body = 200, self.page()
        headers = [
            (b"content-type", CONTENT_TYPE),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": body})


class _Collector:
    """The hub's metrics, as those of prometheus_client."""

    def __init__(self, sources: list[Source], parts: Parts) -> None:
        self._sources = sources
        self._parts = parts

    def describe(self) -> list[Metric]:
        """Returns nothing, so registering calls no source."""
        return []

    def collect(self) -> Iterator[Metric]:
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
