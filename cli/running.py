"""The parts of a service that publishes over HTTP, as they run."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from flask import Flask

from builder.model.metrics import Parts, Reading
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from cli.service_options import Publishing
from publisher.accounts.database import Database
from publisher.sizes import size_readings
from publisher.web.app import create_app
from publisher.web.readiness import Readiness
from publisher.write.store_protocol import Store


class Running(NamedTuple):
    """``parts``: the statuses that /readyz and the metrics show, by name."""

    settings: Settings
    database: Database
    store: Store
    rebuilder: Rebuilder
    parts: Parts

    def publish_app(
        self,
        stack: ExitStack,
        publishing: Publishing,
        monitor: socket.socket | None,
        *sources: Callable[[], Iterable[Reading]],
    ) -> Flask:
        """The publish service. ``stack`` closes what it uses. ``monitor``: the listener for
        metrics, which include those of ``sources``; None: no metrics. Raises OperatorError.
        """
        limits = publishing.limits
        if publishing.counts_url:
            from publisher.nodes.shared_counts import SharedCounts  # an optional library

            counts = SharedCounts(publishing.counts_url, self.settings.base_url)
            limits = limits._replace(shared=stack.enter_context(counts))
            self.parts["limits"] = counts.status
        readiness = Readiness(self.settings, self.rebuilder, self.database, self.parts)
        if monitor:
            # Loaded late: its library is slow to load, and few hubs need it.
            from server.metrics_port import MetricsPort

            sizes = partial(size_readings, self.settings)
            every = (self.rebuilder.readings, readiness.readings, sizes, *sources)
            stack.enter_context(MetricsPort(monitor, every, self.parts))
        return create_app(
            self.settings,
            self.rebuilder,
            self.database,
            limits=limits,
            sign_in=publishing.sign_in,
            readiness=readiness,
            store=self.store,
        )
