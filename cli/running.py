"""The parts of a service that publishes over HTTP, as they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from flask import Flask

from builder.model.metrics import Parts, Reading
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from cli.service_options import Publishing
from publisher.accounts.database import Database
from publisher.sizes import size_readings
from publisher.web.app import create_app
from publisher.web.readiness import Readiness
from publisher.write.durable import FolderStore

if TYPE_CHECKING:
    from server.metrics_port import MetricsPort


class Running(NamedTuple):
    """``parts``: the statuses that /readyz and the metrics show, by name."""

    settings: Settings
    database: Database
    store: FolderStore
    rebuilder: Rebuilder
    parts: Parts

    def publish_app(
        self,
        publishing: Publishing,
        monitor: MetricsPort | None,
        *sources: Callable[[], Iterable[Reading]],
    ) -> Flask:
        """The publish service. ``monitor`` shows the metrics, which include those of ``sources``;
        None: no metrics.
        """
        readiness = Readiness(self.settings, self.rebuilder, self.database, self.parts)
        if monitor:
            sizes = partial(size_readings, self.settings)
            every = (self.rebuilder.readings, readiness.readings, sizes, *sources)
            monitor.show(every, self.parts)
        return create_app(
            self.settings,
            self.rebuilder,
            self.database,
            limits=publishing.limits,
            sign_in=publishing.sign_in,
            readiness=readiness,
            store=self.store,
        )
