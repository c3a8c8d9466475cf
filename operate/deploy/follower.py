"""Deploys after each build of a service, in a thread of its own.

The service knows which files its own builds changed, so a publication costs only the requests for
these files. A deployment compares everything with the destination at the start, after a failure,
every hour, and after a build of another process. If there are several nodes, the one that has the
turn deploys, once its site is as new as the one that was deployed last.
"""

import logging
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from builder.model.metrics import Gauge
from builder.model.records import format_time
from builder.pipeline.background import Background, Failures, pause_seconds
from builder.pipeline.build import Built
from builder.pipeline.rebuild import Outcome
from builder.store.locks import last_build
from builder.store.site import read_serial
from operate.deploy.run import Deployment, Destination, Options
from publisher.log import log_event

DEPLOY_BEHIND = Gauge(
    "hub_deploy_behind_seconds",
    "Age of the oldest build that `--deploy` has not deployed.",
    part="deploy",
    key="behind_seconds",
)
DEPLOY_FAILURES = Gauge(
    "hub_deploy_failures_in_row",
    "Failed deployments since the last that succeeded.",
    part="deploy",
    key="failures",
)
DEPLOY_TURN = Gauge(
    "hub_deploy_has_turn",
    "1 on the one of several nodes that deploys. 0 on all of them: none deploys.",
    part="deploy",
    key="has_turn",
)

if TYPE_CHECKING:
    from publisher.nodes.turn import Turn

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 300.0
COMPARE_SECONDS = 3600.0
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

    def __init__(
        self,
        site: str,
        state: str,
        destination: Destination,
        options: Options,
        turn: "Turn | None" = None,
    ) -> None:
        super().__init__("deploy")
        self._site, self._state, self._turn = site, state, turn
        self._deployment = Deployment(site, state, destination, options, check=self._check)
        # The generation of the turn in which this node deploys; None: it has no turn.
        self._generation: int | None = None
        # The files that each build has changed.
        self._touched: dict[int, frozenset[str] | None] = {}
        self._is_told = False
        # Monotonic times: of the oldest build that was not deployed, and of the next comparison of
        # everything.
        self._since: float | None = None
        self._compare_at = 0.0
        self._failures = Failures()
        self._serial: int | None = None
        self._deployed_at: str | None = None

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
        of the destination's lists, None if unknown. ``has_turn``: only if nodes take turns.
        """
        with self._changed:
            is_standby = self._turn and self._generation is None
            since = None if is_standby else self._since
            status = "failing" if self._failures.count else "behind" if since else "ok"
            return {
                "status": "standby" if is_standby else status,
                "serial": self._serial,
                "deployed_at": self._deployed_at,
                "behind_seconds": round(time.monotonic() - since, 3) if since else 0.0,
                **self._failures.status(),
                **({"has_turn": not is_standby} if self._turn else {}),
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
                if generation != self._generation or self._compare_at <= time.monotonic():
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
                    count = self._failures.count
                pause = pause_seconds(count, RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
            with self._changed:
                is_due = pause == LOOK_SECONDS  # else it waits after a failure
                self._changed.wait_for(
                    lambda is_due=is_due: self._is_stopping or (is_due and self._is_told), pause
                )

    def _may_deploy(self) -> bool:
        serial = read_serial(self._site)
        if serial is None or last_build(self._state) == self._deployment.build:
            return False
        if self._turn:
            # An older site must not replace what another node has deployed.
            if self._generation is None or serial < self._turn.noted:
                return False
            self._turn.note(serial)
        return True

    def _deploy(self) -> None:
        started, serial = time.monotonic(), read_serial(self._site)
        if self._deployment.build is None:
            self._compare_at = started + COMPARE_SECONDS
        report = self._deployment.run(self._touched)
        if last_build(self._state) == self._deployment.build:
            serial = read_serial(self._site)  # a build may have ended while the plan waited for it
        with self._changed:
            build = self._deployment.build
            self._touched = {one: files for one, files in self._touched.items() if one > build}
            self._since = started if self._touched else None
            self._failures.clear()
            self._serial, self._deployed_at = serial, format_time(datetime.now(UTC))
        if report.steps:
            milliseconds = round((time.monotonic() - started) * 1000, 1)
            counts = report.counts()
            log_event(
                log, logging.INFO, "deployment", **counts, serial=serial, milliseconds=milliseconds
            )
