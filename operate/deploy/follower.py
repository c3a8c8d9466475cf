"""Deploys after each build of a service, in a thread of its own.

The service knows which files its own builds changed, so a publication costs only the requests for
these files. A deployment compares everything with the destination at the start, after a failure,
and after a build of another process. If there are several nodes, the one that has the turn deploys,
once its site is as new as the one that was deployed last.
"""

import logging
import time
from typing import TYPE_CHECKING, Any

from builder.model.metrics import Gauge
from builder.pipeline.background import Background, Failures, pause_seconds
from builder.pipeline.build import Built
from builder.pipeline.rebuild import Outcome
from builder.store.locks import last_build
from builder.store.site import read_serial
from operate.deploy.run import Deployment
from publisher.log import log_event

DEPLOY_BEHIND = Gauge(
    "hub_deploy_behind_seconds",
    "Age of the oldest build that `--deploy` has not deployed.",
    part="deploy",
    key="behind_seconds",
)

if TYPE_CHECKING:
    from publisher.nodes.turn import Turn

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 300.0
# The interval of looking for builds of other processes, and for a turn.
LOOK_SECONDS = 10.0
# The longest time that a stopping service waits for uploads under way.
STOP_SECONDS = 5.0
# The most builds that wait for a deployment. With more, it compares everything.
TOUCHED_MAX = 1000

log = logging.getLogger("hub.deploy")


class _Stopped(Exception):
    """No other upload may begin."""


class Deployer(Background):
    """While entered, deploys the builds that ``tell`` gets. ``turn``: deploys only while this node
    has it, and releases it at the end; None: always.
    """

    def __init__(self, deployment: Deployment, turn: "Turn | None" = None) -> None:
        super().__init__("deploy")
        self._deployment, self._turn = deployment, turn
        deployment.check = self._check
        # The generation of the turn in which this node deploys; None: it has no turn.
        self._generation: int | None = None
        # The files that each build has changed.
        self._touched: dict[int, frozenset[str] | None] = {}
        self._is_told = False
        # The monotonic time of the oldest build that was not deployed.
        self._since: float | None = None
        self._failures = Failures()

    def __exit__(self, *_: object) -> None:
        """Stop after the uploads under way; the next start continues."""
        self._stop(STOP_SECONDS)
        if self._turn and not self._thread.is_alive():
            self._turn.release()

    def tell(self, outcome: Outcome) -> None:
        """Note the outcome of a build; returns at once."""
        if isinstance(outcome, Built):
            with self._changed:
                if len(self._touched) >= TOUCHED_MAX:
                    self._touched = {}
                self._touched[outcome.number] = outcome.touched
                self._since = self._since or time.monotonic()
                self._is_told = True
                self._changed.notify_all()

    def status(self) -> dict[str, Any]:
        """The state of deployments, for everyone: without secrets, paths of this machine or the
        name of the bucket. Times are RFC 3339, durations seconds.

        ``status`` is ``ok``, ``behind`` (a build waits for its deployment), ``failing``, or
        ``standby`` (another node has the turn, or the database does not answer); ``serial`` is that
        of the destination's lists, None if unknown.
        """
        with self._changed:
            is_standby = self._turn and self._generation is None
            since = None if is_standby else self._since
            status = "failing" if self._failures.count else "behind" if since else "ok"
            return {
                "status": "standby" if is_standby else status,
                "serial": self._deployment.serial,
                "behind_seconds": round(time.monotonic() - since, 3) if since else 0.0,
                **self._failures.status(),
            }

    def _check(self) -> None:
        if self._is_stopping:
            raise _Stopped
        if self._turn:
            self._turn.check(self._generation)

    def _run(self) -> None:
        while not self._is_stopping:
            pause, self._is_told = LOOK_SECONDS, False
            try:
                # The database may be slow to answer, and `tell` must not wait for it.
                generation = self._turn.take() if self._turn else None
                if generation != self._generation:
                    self._generation, self._deployment.build = generation, None
                if self._may_deploy():
                    self._deploy()
            except _Stopped:
                return
            except Exception as error:
                # Last resort of the thread: any error is logged, and the deployment repeated.
                log_event(log, logging.ERROR, "deployment", error)
                with self._changed:
                    # The message may contain paths.
                    self._failures.add("The deployment failed. The log has the cause.")
                pause = pause_seconds(self._failures.count, RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
            with self._changed:
                # After a failure, a build does not end the pause.
                self._changed.wait_for(
                    lambda: self._is_stopping or (self._is_told and not self._failures.count), pause
                )

    def _may_deploy(self) -> bool:
        serial = read_serial(self._deployment.site)
        if serial is None or last_build(self._deployment.state) == self._deployment.build:
            return False
        if self._turn:
            # An older site must not replace what another node has deployed.
            if self._generation is None or serial < self._turn.noted:
                return False
            self._turn.note(serial)
        return True

    def _deploy(self) -> None:
        started = time.monotonic()
        steps = self._deployment.run(self._touched)
        build, serial = self._deployment.build, self._deployment.serial
        with self._changed:
            self._touched = {one: files for one, files in self._touched.items() if one > build}
            self._since = started if self._touched else None
            self._failures.clear()
        if steps:
            log_event(log, logging.INFO, "deployment", objects=len(steps), serial=serial)
