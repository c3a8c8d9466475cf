"""Deploys each settled build of a service, in a thread of its own.

The service knows which files its own builds changed, so a publication costs only the requests for
these files. A deployment compares everything with the destination's listing at the start, after a
failure, every hour, and after a build of another process. Changes of builds during a deployment
wait for the next one.

If there are several nodes, the one that has the turn deploys. A node that gets the turn waits until
its site has what the node before it began to deploy, then compares everything. It compares again
once the length of a turn has passed. That second comparison undoes uploads that the other node sent
before its turn ended, but that the destination stored only later. No check can prevent these, since
a process can be paused in the middle of an upload.
"""

import asyncio
import functools
import logging
import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from builder.model.errors import OperatorError
from builder.model.metrics import Gauge
from builder.model.records import format_time
from builder.pipeline.background import Background, Failures, pause_seconds
from builder.pipeline.build import Built
from builder.pipeline.rebuild import Outcome
from builder.store.locks import is_building, last_build
from builder.store.site import is_built, read_serial
from operate.deploy import loop, run, snapshot
from operate.deploy.destination import open_destination
from operate.deploy.gathered import Gathered
from operate.deploy.notices import PATHS_MAX, Changed, Notices
from operate.deploy.options import Job
from operate.deploy.plan import Plan, Report
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
# Under constant load no build settles. After this time, the site is deployed as it is, which is
# what readers of the service see, too.
UNSETTLED_SECONDS_MAX = 10.0
# The longest time until the end of another process's build is noticed.
LOOK_SECONDS = 10.0
# Files that wait for a deployment. With more, the whole site is compared.
FILES_MAX = 10_000
# The longest time that a stopping service waits for the thread, which may itself be waiting for the
# disk, a lock or a database.
STOP_SECONDS = 5.0

log = logging.getLogger("hub.deploy")


class Deployer(Background):
    """While entered, deploys the builds that ``tell`` gets, and reports to ``notices``. Entering
    raises OperatorError if the destination is invalid. ``turn``: deploys only while this node has
    it, and releases it at the end; None: always.
    """

    def __init__(
        self, job: Job, notices: Notices | None = None, turn: "Turn | None" = None
    ) -> None:
        super().__init__("deploy")
        self._job = job
        self._notices = notices
        self._turn = turn
        self._folder = f"{job.state}/deploy-following"
        self._folders = snapshot.paths_in(self._folder)
        # The task that is waiting for the destination.
        self._task: asyncio.Task | None = None
        # The generation of the turn in which this node deploys; None: it has no turn. ``_is_new``:
        # it has not compared everything since it got the turn.
        self._generation: int | None = None
        self._is_new = False
        # The files of the next deployment; None: it compares everything. ``_touched``: files of
        # later builds, none of which has settled. ``_build``: the last known build.
        self._gathered: Gathered | None = None
        self._touched: set[str] = set()
        self._build: int | None = None
        # A build of another process, and the monotonic time at which it was noticed.
        self._foreign: tuple[int, float] = (0, 0.0)
        # Monotonic times: of the next comparison of everything; of the next attempt; and from when
        # a change has waited for a build that settles, for a deployment to begin, and for it to
        # end.
        self._compare_at = math.inf
        self._retry_at = 0.0
        self._unsettled_since: float | None = None
        self._waiting_since: float | None = None
        self._deploying_since: float | None = None
        self._failures = Failures()
        # The changes of the deployment under way.
        self._files: Changed = {}
        self._serial: int | None = None
        self._deployed_at: str | None = None

    def __enter__(self) -> Self:
        snapshot.remove(self._folder)  # from a killed service
        self._destination = open_destination(
            self._job.destination,
            endpoint_url=self._job.endpoint_url,
            apart_from=(self._job.out, self._job.state),
        )
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        """Stop at once; the next start continues."""
        with self._changed:
            self._is_stopping = True
            if self._task:
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        self._stop(STOP_SECONDS)
        if not self._thread.is_alive():
            if self._generation is not None:
                self._turn.release()
            snapshot.remove(self._folder)

    def tell(self, outcome: Outcome) -> None:
        """Note the outcome of a build; called in the build's thread. Makes a link for each
        changed file.
        """
        with self._changed:
            if isinstance(outcome, Built):
                self._note_touched(outcome)
                now = time.monotonic()
                since = self._unsettled_since = self._unsettled_since or now
                if outcome.is_settled or now >= since + UNSETTLED_SECONDS_MAX:
                    self._unsettled_since = None
                    self._gather()
            else:
                self._build = None  # the files that it wrote are unknown
                if not self._deployed_at and is_built(self._job.out):
                    self._note_waiting()

    def status(self) -> dict[str, Any]:
        """The state of deployments, for everyone: without secrets, paths of this machine or the
        name of the bucket. Times are RFC 3339, durations seconds.

        ``status`` is ``ok``, ``behind`` (a build has not settled, or waits for its deployment),
        ``failing``, or ``standby`` (another node has the turn, or the database does not answer);
        ``serial`` is that of the destination's lists, None if unknown. ``notices`` is as in
        ``Notices``, None without any. ``has_turn``: only if nodes take turns.
        """
        with self._changed:
            since = self._deploying_since or self._waiting_since or self._unsettled_since
            status = "failing" if self._failures.count else "behind" if since else "ok"
            turn = {}
            if self._turn:
                turn = {"has_turn": self._generation is not None}
                if not turn["has_turn"]:
                    status, since = "standby", None
            return {
                "status": status,
                "serial": self._serial,
                "deployed_at": self._deployed_at,
                "behind_seconds": round(time.monotonic() - since, 3) if since else 0.0,
                **self._failures.status(),
                "notices": self._notices and self._notices.status(),
                **turn,
            }

    # Methods called with the lock held

    def _note_touched(self, build: Built) -> None:
        if self._build is not None and build.number <= self._build:
            return  # it existed when everything was compared
        is_next = self._build is not None and build.number == self._build + 1
        self._build = build.number
        if not is_next or build.touched is None:
            self._need_everything()
        elif self._gathered:
            self._touched |= build.touched

    def _gather(self) -> None:
        """Keep the changed files as they are now, after a build that settled."""
        if self._touched:
            try:
                self._gathered.add(self._job.out, self._touched, self._build)
                # A build of another process may have begun meanwhile.
                is_alone = last_build(self._job.state) == self._build
                if not is_alone or len(self._gathered.files) > FILES_MAX:
                    self._need_everything()
            except OSError as error:
                log_event(log, logging.WARNING, "deployment", error)
                self._need_everything()
            self._touched = set()
        if self._gathered is None or self._gathered.files:
            self._note_waiting()

    def _need_everything(self) -> None:
        if self._gathered:
            self._gathered.drop()
        self._gathered = None
        self._touched = set()

    def _note_waiting(self) -> None:
        self._waiting_since = self._waiting_since or time.monotonic()
        self._changed.notify_all()

    def _look(self) -> None:
        """Notice a build of another process after it has ended."""
        number, now = last_build(self._job.state), time.monotonic()
        if self._build is None or number == self._build:
            return
        if number != self._foreign[0] or self._is_building():
            self._foreign = number, now
        elif now >= self._foreign[1] + LOOK_SECONDS:
            self._build = number
            self._need_everything()
            self._note_waiting()

    def _is_building(self) -> bool:
        try:
            return is_building(self._job.state)
        except OperatorError:
            return True  # no build can begin there, and each reports that

    def _note_turn(self, generation: int | None) -> None:
        """Note the turn that this node has now; None: it has none."""
        if generation == self._generation:
            return
        self._generation = generation
        self._is_new = generation is not None
        # The deployments of other nodes are unknown here.
        self._need_everything()
        self._failures.clear()
        self._retry_at = 0.0
        self._serial = None
        if generation is None:
            self._note_waiting()
        elif self._notices:
            self._notices.failed(None)

    def _may_deploy(self) -> bool:
        if not self._turn:
            return True
        # An older site must not replace what another node has deployed.
        return self._generation is not None and self._site_serial() >= self._turn.noted

    def _site_serial(self) -> int:
        serial = read_serial(self._job.out)
        return -1 if serial is None else serial

    # Methods of the thread

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                if self._wait():
                    self._deploy()
            except asyncio.CancelledError:
                pass  # the service is ending
            except Exception as error:
                # Last resort of the thread: any error is logged, and the deployment repeated.
                self._note_failure(error)

    def _wait(self) -> bool:
        """Wait until a deployment has to begin; False at the end."""
        while not self._is_stopping:
            # The database may be slow to answer, and `tell` must not wait for it.
            generation = self._turn.take() if self._turn else None
            with self._changed:
                self._look()
                self._note_turn(generation)
                now = time.monotonic()
                if self._compare_at <= now:
                    self._compare_at = math.inf
                    self._need_everything()
                    self._note_waiting()
                if self._waiting_since and self._retry_at <= now and self._may_deploy():
                    return True
                # Even if no change waits, another process may build.
                is_later = self._waiting_since and self._retry_at > now
                seconds = self._retry_at - now if is_later else LOOK_SECONDS
                if not self._is_stopping:
                    self._changed.wait(min(seconds, LOOK_SECONDS))
        return False

    def _deploy(self) -> None:
        with self._changed:
            gathered, self._gathered = self._gathered, Gathered(next(self._folders))
            self._deploying_since, self._waiting_since = self._waiting_since, None
        self._files = {}
        if self._turn:
            self._turn.note(self._site_serial())
        if self._notices:
            self._notices.begin()
        try:
            self._note_success(self._transfer(gathered), is_everything=gathered is None)
        finally:
            if gathered:
                gathered.drop()

    def _transfer(self, gathered: Gathered | None) -> Report:
        def note_files(plan: Plan) -> None:
            self._files = plan.files(PATHS_MAX)

        hooks = run.Hooks(progress=self._continue, on_plan=note_files, run=self._run_until_end)
        if self._turn:
            hooks = hooks._replace(check=functools.partial(self._turn.check, self._generation))
        job = self._job
        if gathered is None:
            return run.deploy(job.out, job.state, self._destination, job.options, hooks)
        report = run.deploy_changes(
            gathered.files, job.state, self._destination, job.options, hooks
        )
        return report._replace(serial=gathered.serial)

    def _continue(self, what: str, done: int, total: int) -> None:
        if self._is_stopping:
            raise asyncio.CancelledError

    def _run_until_end(self, start: loop.Start) -> None:
        """Run a coroutine to its end, or until the service ends. Raises CancelledError."""

        async def until_end() -> None:
            with self._changed:
                self._task = asyncio.current_task()
            try:
                self._continue("", 0, 0)
                await start()
            finally:
                with self._changed:
                    self._task = None

        loop.run(until_end)

    def _note_success(self, report: Report, *, is_everything: bool) -> None:
        with self._changed:
            if is_everything:
                again_in = self._turn.seconds if self._is_new else COMPARE_SECONDS
                self._compare_at = time.monotonic() + again_in
                self._is_new = False
                self._build = max(self._build or 0, report.build)
                if self._gathered and self._gathered.build <= report.build:
                    self._gathered.drop()
                    self._gathered = Gathered(next(self._folders))
                    self._waiting_since = None
            self._deploying_since = None
            self._failures.clear()
            self._serial = report.serial
            self._deployed_at = format_time(datetime.now(UTC))
        if self._notices:
            self._notices.deployed(self._files, report.serial)
        if report.new or report.changed or report.deleted:
            log_event(
                log,
                logging.INFO,
                "deployment",
                serial=report.serial,
                new=report.new,
                changed=report.changed,
                deleted=report.deleted,
                bytes=report.bytes,
                milliseconds=round(report.seconds * 1000, 1),
            )

    def _note_failure(self, error: Exception) -> None:
        with self._changed:
            if self._is_stopping:
                return  # the next start compares everything
            # The message may contain paths.
            self._failures.add("The deployment failed. The log has the cause.")
            pause = pause_seconds(self._failures.count, RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
            self._retry_at = time.monotonic() + pause
            self._waiting_since = self._deploying_since or self._waiting_since
            self._deploying_since = None
            self._need_everything()
            self._note_waiting()
        if self._notices:
            self._notices.failed(self._files)
        log_event(log, logging.ERROR, "deployment", error)
