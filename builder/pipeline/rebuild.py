"""Keeps the site up to date while a service runs, in a thread of its own.

There is one build at a time, for all changes since the last one began. Simultaneous publications
share a build, like a database's group commit. A failed build is retried until it succeeds, so
readers get everything in the content sooner or later.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from builder import emit
from builder.model.errors import ContentError, HubError, PullsError, RequestError
from builder.model.metrics import Reading
from builder.model.progress import Progress
from builder.model.records import format_time
from builder.model.settings import Settings
from builder.pipeline import build_metrics as metrics
from builder.pipeline.background import Background, pause_seconds
from builder.pipeline.build import Built, build
from builder.pipeline.context import Named, Visible
from builder.stats.database import pulls_mark
from builder.store.site import read_serial

# The longest time that a publisher waits until its version is visible. After that, the request
# fails with 503, and the build continues.
PATIENCE_SECONDS = 30.0
# Lists are settled after this time without a publication; otherwise a later build settles them.
QUIET_SECONDS = 0.1
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 60.0
# A full check that is overdue by this time runs before waiting publications.
LOOK_LATE_SECONDS = 10.0
# The delay of a build that no publisher waits for yet. On a node, the publisher begins to wait a
# moment later, and then its build starts at once.
BATCH_WAIT_SECONDS = 0.02
# The interval between checks for pulls that other processes have counted.
COUNTS_SECONDS = 5.0
# A slice of the look for files that the site has lost, and the pause before each: for a while after
# the start, a fiftieth of a core.
CHECK_SECONDS, CHECK_PAUSE_SECONDS = 0.02, 1.0
# The interval between checks for a stop of the service, while the content is not complete.
WAKE_SECONDS = 0.2
# The shortest time between two checks of the caches after a reader could not use them. Failures
# within it cause no further check.
CACHE_CHECK_SECONDS = 60.0

Outcome = Built | Exception


@dataclass
class Batch:
    """The input of one build: repos, with the publishers that wait for each, or everything."""

    is_everything: bool = False
    repos: dict[Named, list[Future[int]]] = field(default_factory=dict)
    # The time of the first request in the batch, by monotonic time.
    since: float | None = None
    # As in ``build``.
    edited: bool = False
    # As in ``build``.
    serial: int | None = None
    covers_serial: bool = True
    check_seconds: float = 0.0

    @property
    def is_waited_for(self) -> bool:
        return any(self.repos.values())

    def note_visible(self, visible: Visible) -> None:
        """Answer the publishers whose repos readers can see now."""
        for (owner, name), futures in self.repos.items():
            is_faulty = f"{owner}/{name}" in visible.faulty
            while futures:
                if is_faulty:
                    error = unavailable(
                        "a file of this prompt has a fault, which the operator's log names"
                    )
                    futures.pop().set_exception(error)
                else:
                    futures.pop().set_result(visible.serial)

    def fail(self, reason: str) -> None:
        """Answer the publishers that still wait that their repos are not visible."""
        for futures in self.repos.values():
            while futures:
                futures.pop().set_exception(unavailable(reason))


def unavailable(reason: str) -> RequestError:
    return RequestError("unavailable", f"It is not on the site yet: {reason}.")


class _Stopped(BaseException):
    """The service stops, and no publisher waits for this build. A BaseException, like
    KeyboardInterrupt, so that the build does not handle it as an error.
    """


class Rebuilder(Background):
    """While entered, builds what is requested. ``report`` gets each build's result, or its error;
    ``progress`` and ``on_wait`` are as in ``build``.

    ``serial`` returns the serial for readers; by default it is the number of publications. It must
    return at once and never decrease. Before it rises, the caller puts the changes that it counts
    into the content and calls ``request`` for them; afterwards, it calls ``note_serial``. hub.json
    gets a serial only when all changes that it counts are in the lists. ``await_content`` takes
    seconds to wait, and returns true if the content is complete by then; the first build waits for
    that.
    """

    def __init__(
        self,
        settings: Settings,
        report: Callable[[Outcome], None],
        progress: Progress = lambda what, done, total: None,
        on_wait: Callable[[], None] = lambda: None,
        serial: Callable[[], int] | None = None,
        await_content: Callable[[float], bool] = lambda seconds: True,
    ) -> None:
        super().__init__("rebuild")
        self._settings = settings
        self._report = report
        self._progress = progress
        self._on_wait = on_wait
        self._serial = serial
        self._await_content = await_content
        # The serial of the last batch.
        self._taken_serial: int | None = None
        self._next = Batch()
        # The times to check everything, to settle what builds have left, and to check for counted
        # pulls; monotonic.
        self._look_at = self._settle_at = math.inf
        self._count_at = 0.0
        self._check_at = time.monotonic() + CHECK_PAUSE_SECONDS
        self._cache_check_at = 0.0
        self._counts: tuple[int, ...] | None = None
        self._failures = 0
        self._fails_publications = False
        self._totals: tuple[int, int] | None = None
        self._behind_since: float | None = None
        self._last_build: dict[str, Any] | None = None
        self._last_error: dict[str, Any] | None = None
        if serial:
            self.request(None)  # Changes from before this process have no request.

    def __exit__(self, *_: object) -> None:
        """Build what publishers already wait for, then stop. The next start builds the rest."""
        # No publisher waits longer than this. The thread may wait longer, for a build of another
        # process.
        self._stop(PATIENCE_SECONDS)

    def request(self, changed: Iterable[Named] | None) -> None:
        """Request a build of these repos, or of everything if the changes are unknown (None)."""
        with self._changed:
            if changed is None:
                self._look_at = time.monotonic()
            else:
                self._next.edited = True
                for repo in changed:
                    self._next.repos.setdefault(repo, [])
            self._note_request()

    def note_serial(self) -> None:
        """Have hub.json updated to a serial that has risen."""
        with self._changed:
            self._changed.notify_all()

    def check_caches(self) -> None:
        """Request a check of the state and the search index, after a reader could not use one. If
        damaged, they are rebuilt.
        """
        with self._changed:
            now = time.monotonic()
            if self._cache_check_at <= now:
                self._cache_check_at = now + CACHE_CHECK_SECONDS
                self._look_at = now
                self._note_request()

    def make_visible(self, owner: str, name: str | None) -> int:
        """Wait until readers get the current content of a repo, at its own address and at the top
        of lists; or of an owner's profile, if the name is None.

        Returns the serial: lists are complete once hub.json has it, or a higher one. Raises
        RequestError ``unavailable`` if the build takes too long or fails; it is retried.
        """
        future: Future[int] = Future()
        with self._changed:
            if self._is_stopping:
                raise unavailable("the service is stopping")
            self._next.repos.setdefault((owner, name), []).append(future)
            self._note_request()
        try:
            return future.result(PATIENCE_SECONDS)
        except TimeoutError:
            metrics.PUBLICATIONS_LATE.count()
            raise unavailable("the build is taking too long") from None
        except RequestError:
            metrics.PUBLICATIONS_LATE.count()
            raise

    def _note_request(self) -> None:
        now = time.monotonic()
        if self._next.repos:
            self._next.since = self._next.since or now
        self._behind_since = self._behind_since or now
        self._changed.notify_all()

    def health(self) -> dict[str, Any]:
        """The state of the builds, for people and monitors, without paths or texts of prompts.

        ``status`` is ``ok``, ``behind`` (lists do not have all publications), ``building``
        (there is no site yet: the first build is running) or ``failing`` (the last build
        failed and is retried). ``serial`` is the serial of the lists, None if there is no
        site. ``lag_seconds`` is the age of the oldest change that they do not have. Times are
        RFC 3339, durations seconds.
        """
        with self._changed:
            lag = time.monotonic() - self._behind_since if self._behind_since else 0.0
            # Read from the site itself, because another process may have built it.
            serial = read_serial(self._settings.out)
            return {
                "status": _status(bool(self._last_error), serial is not None, bool(lag)),
                "serial": serial,
                "lag_seconds": round(lag, 3),
                "waiting": len(self._next.repos),
                "last_build": self._last_build,
                "failures": self._failures,
                "last_error": self._last_error,
            }

    def fails_publications(self) -> bool:
        """True if publications are saved but do not reach readers, because builds fail. False if
        only some prompts have faults, because builds for publications skip those.
        """
        return self._fails_publications

    def readings(self) -> Iterator[Reading]:
        """The gauges of builds."""
        health = self.health()
        yield Reading(metrics.BUILD_FAILURES, health["failures"])
        yield Reading(metrics.BUILD_BEHIND, health["lag_seconds"])
        yield Reading(metrics.BUILD_WAITING, health["waiting"])
        if health["serial"] is not None:
            yield Reading(metrics.SERIAL, health["serial"])
        if self._totals:
            prompts, versions = self._totals
            yield Reading(metrics.PROMPTS, prompts)
            yield Reading(metrics.VERSIONS, versions)

    # The thread

    def _run(self) -> None:
        emit.load()
        while not self._await_content(WAKE_SECONDS):
            if self._is_stopping:
                return
        while batch := self._take():
            self._build(batch)

    def _take(self) -> Batch | None:
        """Wait for the next batch; None at the end."""
        with self._changed:
            while True:
                now = time.monotonic()
                # Read before the batch is taken: all changes that it counts were requested before.
                serial = self._serial() if self._serial else None
                batch = self._next_batch(now, serial)
                if batch:
                    self._taken_serial = batch.serial = serial
                    # Until the full check has run, the content may have other changes.
                    batch.covers_serial = self._look_at == math.inf
                    return batch
                if self._is_stopping and not self._next.repos:
                    return None
                wake_at = min(self._settle_at, self._look_at, self._count_at)
                if wake_at == self._count_at:
                    wake_at = min(wake_at, self._check_at)
                if self._next.repos:
                    wake_at = self._begin_at()
                self._changed.wait(wake_at - now)

    def _begin_at(self) -> float:
        """The time to build the requested repos. The caller holds the lock."""
        since = self._next.since or 0.0
        is_urgent = self._next.is_waited_for or self._is_stopping
        return since if is_urgent else since + BATCH_WAIT_SECONDS

    def _next_batch(self, now: float, serial: int | None) -> Batch | None:
        """The batch to build at this moment, or None. The caller holds the lock."""
        is_look_late = now >= self._look_at + LOOK_LATE_SECONDS
        if self._next.repos and not is_look_late:
            if now < self._begin_at():
                return None
            batch, self._next = self._next, Batch()
            return batch
        if self._is_stopping and not self._next.repos:
            return None
        if self._settle_at <= now and not is_look_late:
            return Batch()
        if self._look_at <= now:
            # Built apart from repos that publishers wait for, because a fault elsewhere must not
            # stop those.
            self._look_at = math.inf
            return Batch(is_everything=True)
        if serial != self._taken_serial and self._look_at == math.inf:
            return Batch()
        if self._count_at <= now:
            self._count_at = now + COUNTS_SECONDS
            counts, self._counts = self._counts, pulls_mark(self._settings.state)
            if counts != self._counts:
                return Batch()
        if self._check_at <= now and self._look_at == self._settle_at == math.inf:
            return Batch(check_seconds=CHECK_SECONDS)
        return None

    def _build(self, batch: Batch) -> None:
        def is_wanted() -> bool:
            return bool(batch.repos or self._next.repos or self._is_stopping)

        def progress(what: str, done: int, total: int) -> None:
            if batch.is_everything and self._is_stopping:
                raise _Stopped
            self._progress(what, done, total)

        try:
            report = build(
                self._settings,
                changed=None if batch.is_everything else batch.repos,
                edited=batch.edited,
                progress=progress,
                on_wait=self._on_wait,
                on_visible=batch.note_visible,
                is_wanted=is_wanted,
                serial=batch.serial,
                covers_serial=batch.covers_serial,
                check_seconds=batch.check_seconds,
            )
        except _Stopped:
            pass  # As after a kill: the next start continues.
        except Exception as error:
            # The edge of the thread: every error is reported, and the build is retried.
            self._note_failure(batch, error)
            self._report(error)
        else:
            self._note_success(batch, report)
            self._report(report)

    def _note_success(self, batch: Batch, report: Built) -> None:
        metrics.BUILDS.count("succeeded")
        metrics.BUILD_SECONDS.observe(report.seconds)
        metrics.BUILD_FILES.count("written", by=report.written)
        metrics.BUILD_FILES.count("removed", by=report.removed)
        with self._changed:
            self._fails_publications = False
            self._totals = report.repos, report.versions
            if batch.check_seconds:
                is_over = report.is_checked
                self._check_at = math.inf if is_over else time.monotonic() + CHECK_PAUSE_SECONDS
            self._settle_at = math.inf if report.is_settled else time.monotonic() + QUIET_SECONDS
            self._last_build = {
                "ended_at": format_time(datetime.now(UTC)),
                "seconds": round(report.seconds, 3),
                "repos": report.rendered,
                "files": report.written,
            }
            if batch.is_everything or self._look_at == math.inf:
                self._failures, self._last_error = 0, None
            if self._look_at == math.inf:
                # The work that this build left is older than all requests made since.
                left = time.monotonic() - report.behind_seconds
                self._behind_since = self._next.since if report.is_settled else left

    def _note_failure(self, batch: Batch, error: Exception) -> None:
        metrics.BUILDS.count("failed")
        is_waited_for = batch.is_waited_for
        batch.fail("the build failed; the operator's log has the cause")
        with self._changed:
            # A later build finds the repos of this batch by checking everything.
            self._failures += 1
            self._fails_publications = is_waited_for or not isinstance(
                error, ContentError | PullsError
            )
            pause = pause_seconds(self._failures, RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
            self._look_at = time.monotonic() + pause
            self._settle_at = self._look_at
            self._behind_since = self._behind_since or time.monotonic()
            self._last_error = {
                "at": format_time(datetime.now(UTC)),
                "message": _public_message(error),
            }


def _status(is_failing: bool, has_site: bool, is_behind: bool) -> str:
    if is_failing:
        return "failing"
    if not has_site:
        return "building"
    return "behind" if is_behind else "ok"


def _public_message(error: Exception) -> str:
    if isinstance(error, ContentError):
        return str(error)  # Its paths are those of the content tree, which readers know.
    if isinstance(error, HubError):
        return "The build cannot use the site or state folder. The log has the cause."
    return "The build failed. The log has the cause."
