"""Brings each settled build of a service to where the site is read from, in a thread of its own.

What builds in this process have changed is known, so a publication costs the requests for its
files. Everything is compared, with the destination's listing, at the start, after a failure, every
hour, and after a build of another process. While a deployment runs, what comes up is gathered for
the next one. A process of its own does the work (``worker``).

Of several nodes, the one whose turn it is deploys. One that gets the turn compares everything, as
soon as its site has what the node before it began to deploy, and again after another time of a
turn: what that node sent before its time ended, and the destination took only then, is repaired so.
It may have been paused in the middle of an upload, which no check before it can notice.
"""

import logging
import math
import os
import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from builder.model.background import Background, Failures, pause_seconds
from builder.model.errors import OperatorError
from builder.model.records import format_time
from builder.pipeline.build import Report
from builder.pipeline.rebuild import Outcome
from builder.store.locks import is_building, last_build
from builder.store.site import is_built, read_hub
from operate.deploy import snapshot
from operate.deploy.job import Job
from operate.deploy.notices import Notices
from operate.deploy.worker import Changes, Done, Unfinished, Worker
from publisher.log import log_event

if TYPE_CHECKING:
    from publisher.nodes.turn import Turn

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 300.0
COMPARE_SECONDS = 3600.0
# Under constant load no build settles. After so long, what there is goes: readers see no more of it
# than on the service itself.
UNSETTLED_SECONDS_MAX = 10.0
# How soon a build of another process is noticed after its end. One of this process is told sooner.
LOOK_SECONDS = 10.0
# Files that wait for a deployment. Where there are more, the whole site is compared.
FILES_MAX = 10_000

log = logging.getLogger("hub.deploy")


class _Gathered:
    """Files as they were after the last settled build, for the next deployment."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._paths = snapshot.paths_in(folder)
        self.copies: dict[str, str] = {}
        self.marks: dict[str, str] = {}
        self.gone: set[str] = set()
        self.build = 0
        self.serial: int | None = None

    def add(self, site: str, files: set[str], build: int) -> None:
        """Take these files as they are now. Raises OSError."""
        os.makedirs(self._folder, exist_ok=True)
        taken = snapshot.keep(site, files, self._paths)
        hub = read_hub(site)
        for file in files:
            if old := self.copies.pop(file, None):
                os.unlink(old)
            self.marks.pop(file, None)
        self.copies |= taken.copies
        self.marks |= taken.marks
        self.gone = (self.gone | files) - taken.copies.keys()
        self.build = build
        self.serial = hub.serial if hub else None

    def count(self) -> int:
        return len(self.copies) + len(self.gone)

    def changes(self) -> Changes:
        return Changes(self.copies, self.marks, sorted(self.gone), self.serial)

    def drop(self) -> None:
        # What cannot be removed, the next start tries to remove.
        shutil.rmtree(self._folder, ignore_errors=True)


class Deployer(Background):
    """While entered, deploys what ``tell`` has been told of, and has ``notices`` tell of it.
    Entering raises OperatorError if the destination cannot be used at all. ``turn``: deploys only
    while it is this node's, and releases it at the end; None: always.
    """

    def __init__(
        self, job: Job, notices: Notices | None = None, turn: "Turn | None" = None
    ) -> None:
        super().__init__("deploy")
        self._job = job
        self._notices = notices
        self._folder = f"{job.state}/deploy-following"
        self._folders = snapshot.paths_in(self._folder)
        self._worker = Worker(job, turn)
        self._turn = turn
        # In which this node deploys; None: it is not its turn. ``_is_new``: it has not compared
        # everything yet.
        self._generation: int | None = None
        self._is_new = False
        # What the next deployment is to bring; None: whatever differs. ``_touched``: files of later
        # builds, of which none has settled. ``_build``: the last one that is known.
        self._gathered: _Gathered | None = None
        self._touched: set[str] = set()
        self._build: int | None = None
        # A build that nobody here was told of, and since when it is known, by monotonic time.
        self._foreign: tuple[int, float] = (0, 0.0)
        # When to compare everything and when to try again; since when something waits for a build
        # that settles, for a deployment, and for the end of the one under way: by monotonic time.
        self._compare_at = math.inf
        self._retry_at = 0.0
        self._unsettled_since: float | None = None
        self._waiting_since: float | None = None
        self._deploying_since: float | None = None
        self._failures = Failures()
        self._serial: int | None = None
        self._deployed_at: str | None = None

    def __enter__(self) -> Self:
        snapshot.remove(self._folder)  # of a service that was killed
        self._worker.start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        """Stop at once; the next start goes on where this ended."""
        with self._changed:
            self._is_stopping = True
        self._worker.end()
        self._stop()
        self._worker.stop()
        if self._generation is not None:
            self._turn.release()
        snapshot.remove(self._folder)

    def tell(self, outcome: Outcome) -> None:
        """Take note of a build, in its thread. Costs a link for each file that it has changed."""
        with self._changed:
            if isinstance(outcome, Report):
                self._note_touched(outcome)
                now = time.monotonic()
                since = self._unsettled_since = self._unsettled_since or now
                if outcome.is_settled or now >= since + UNSETTLED_SECONDS_MAX:
                    self._unsettled_since = None
                    self._gather()
            else:
                self._build = None  # what it has written is not known
                if not self._deployed_at and is_built(self._job.out):
                    self._note_due()

    def status(self) -> dict[str, Any]:
        """How the deployments are doing, for anybody: without secrets, paths of this machine and
        the name of the bucket. Times are RFC 3339, durations seconds.

        ``status`` is ``ok``, ``behind`` (a build has not settled, or waits for its deployment),
        ``failing``, or ``standby`` (it is another node's turn, or nobody knows); ``serial`` is
        what the destination's lists have, None where that is not known. ``notices`` is as in
        ``Notices``, None without any. ``has_turn``: only where nodes take turns.
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

    # With the lock held

    def _note_touched(self, report: Report) -> None:
        if self._build is not None and report.number <= self._build:
            return  # what has compared everything since then has it
        is_next = self._build is not None and report.number == self._build + 1
        self._build = report.number
        if not is_next or report.touched is None:
            self._need_everything()
        elif self._gathered:
            self._touched |= report.touched

    def _gather(self) -> None:
        """Keep what has changed as it is now that a build has settled."""
        if self._touched:
            try:
                self._gathered.add(self._job.out, self._touched, self._build)
                # A build of another process may have begun meanwhile.
                is_alone = last_build(self._job.state) == self._build
                if not is_alone or self._gathered.count() > FILES_MAX:
                    self._need_everything()
            except OSError as error:
                log_event(log, logging.WARNING, "deployment", error)
                self._need_everything()
            self._touched = set()
        if self._gathered is None or self._gathered.count():
            self._note_due()

    def _need_everything(self) -> None:
        if self._gathered:
            self._gathered.drop()
        self._gathered = None
        self._touched = set()

    def _note_due(self) -> None:
        self._waiting_since = self._waiting_since or time.monotonic()
        self._changed.notify_all()

    def _look(self) -> None:
        """Find out whether another process has built, which nobody here is told of."""
        number, now = last_build(self._job.state), time.monotonic()
        if self._build is None or number == self._build:
            return
        if number != self._foreign[0] or self._is_building():
            self._foreign = number, now
        elif now >= self._foreign[1] + LOOK_SECONDS:
            self._build = number
            self._need_everything()
            self._note_due()

    def _is_building(self) -> bool:
        try:
            return is_building(self._job.state)
        except OperatorError:
            return True  # no build can begin there, and each says so

    def _note_turn(self, generation: int | None) -> None:
        """Note whether this node deploys from now on, or no more."""
        if generation == self._generation:
            return
        self._generation = generation
        self._is_new = generation is not None
        # Other nodes know nothing of what this one knows, and the other way round.
        self._need_everything()
        self._failures.clear()
        self._retry_at = 0.0
        self._serial = None
        if generation is None:
            self._note_due()
        elif self._notices:
            self._notices.failed(None)

    def _may_deploy(self) -> bool:
        if not self._turn:
            return True
        # What is older than what another node has deployed must not replace it.
        return self._generation is not None and self._site_serial() >= self._turn.noted

    def _site_serial(self) -> int:
        hub = read_hub(self._job.out)
        return hub.serial if hub else -1

    # The thread

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                if self._wait():
                    self._deploy()
            except Exception as error:
                # The edge of the thread: whatever it was, it is told, and tried again.
                self._note_failure(error)

    def _wait(self) -> bool:
        """Wait until something is to be deployed; False at the end."""
        while not self._is_stopping:
            # The database may take long to answer, and `tell` must not wait for it.
            generation = self._turn.take() if self._turn else None
            with self._changed:
                self._look()
                self._note_turn(generation)
                now = time.monotonic()
                if self._compare_at <= now:
                    self._compare_at = math.inf
                    self._need_everything()
                    self._note_due()
                if self._waiting_since and self._retry_at <= now and self._may_deploy():
                    return True
                # While there is nothing to wait for, other processes may build.
                is_later = self._waiting_since and self._retry_at > now
                seconds = self._retry_at - now if is_later else LOOK_SECONDS
                if not self._is_stopping:
                    self._changed.wait(min(seconds, LOOK_SECONDS))
        return False

    def _deploy(self) -> None:
        with self._changed:
            gathered, self._gathered = self._gathered, _Gathered(next(self._folders))
            self._deploying_since, self._waiting_since = self._waiting_since, None
            generation = self._generation
        if self._turn:
            self._turn.note(self._site_serial())
        if self._notices:
            self._notices.begin()
        try:
            done = self._worker.deploy(gathered and gathered.changes(), generation)
            self._note_success(done, is_everything=gathered is None)
        finally:
            if gathered:
                gathered.drop()

    def _note_success(self, done: Done, is_everything: bool) -> None:
        with self._changed:
            report = done.report
            if is_everything:
                again_in = self._turn.seconds if self._is_new else COMPARE_SECONDS
                self._compare_at = time.monotonic() + again_in
                self._is_new = False
                self._build = max(self._build or 0, report.build)
                if self._gathered and self._gathered.build <= report.build:
                    self._gathered.drop()
                    self._gathered = _Gathered(next(self._folders))
                    self._waiting_since = None
            self._deploying_since = None
            self._failures.clear()
            self._serial = done.serial
            self._deployed_at = format_time(datetime.now(UTC))
        if self._notices:
            self._notices.deployed(done.files, done.serial)
        if report.new or report.changed or report.deleted:
            log_event(
                log, logging.INFO, "deployment", serial=done.serial, new=report.new,
                changed=report.changed, deleted=report.deleted, bytes=report.bytes,
                milliseconds=round(report.seconds * 1000, 1),
            )  # fmt: skip

    def _note_failure(self, error: Exception) -> None:
        with self._changed:
            if self._is_stopping:
                return  # it was ended, and the next start compares everything
            # The message may have paths.
            self._failures.add("The deployment failed. The log has the cause.")
            pause = pause_seconds(self._failures.count, RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
            self._retry_at = time.monotonic() + pause
            self._waiting_since = self._deploying_since or self._waiting_since
            self._deploying_since = None
            self._need_everything()
            self._note_due()
        if self._notices:
            self._notices.failed(error.files if isinstance(error, Unfinished) else None)
        log_event(log, logging.ERROR, "deployment", error)
