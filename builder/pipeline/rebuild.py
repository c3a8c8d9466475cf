"""Keeps the site up with the content while a service runs, in a thread of its own.

One build at a time, for everything that has come up since the last one began: many
publications at once share a build, as a database's group commit does. A build that fails is
tried again until it succeeds, so nothing that is in the content is lost to readers for good.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from builder.model.errors import ContentError, HubError, PullsError, RequestError
from builder.model.metrics import Reading
from builder.model.progress import Progress
from builder.model.records import format_time
from builder.model.settings import Settings
from builder.pipeline.background import Background, pause_seconds
from builder.pipeline.build import Built, build
from builder.pipeline.build_metrics import (
    BUILD_BEHIND,
    BUILD_FAILURES,
    BUILD_FILES,
    BUILD_SECONDS,
    BUILD_WAITING,
    BUILDS,
    PROMPTS,
    PUBLICATIONS_LATE,
    SERIAL,
    VERSIONS,
)
from builder.pipeline.context import Named, Visible
from builder.stats.database import pulls_mark
from builder.store.site import read_hub

# How long a publisher waits to be told that its version can be seen.
PATIENCE_SECONDS = 30.0
# Lists are settled when nobody has published for so long; or in the end by any build.
QUIET_SECONDS = 0.1
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 60.0
# From then on, a look at everything that is due goes before what somebody waits for.
LOOK_LATE_SECONDS = 10.0
# How long a build that nobody waits for is put off: on a node, whoever has published comes to wait
# for it a moment later.
COMPANY_SECONDS = 0.02
# How soon pulls that another process has counted are noticed.
COUNTS_SECONDS = 5.0
# How often, while the content is not there yet, it is noticed that the service ends.
WAKE_SECONDS = 0.2
# How often the caches are looked at, at most, because a reader could not use them.
DOUBT_SECONDS = 60.0

Outcome = Built | Exception


@dataclass
class _Batch:
    """What one build is to take in: repos with those who wait for them, or all there is."""

    is_everything: bool = False
    repos: dict[Named, list[Future[int]]] = field(default_factory=dict)
    # When the first of them was asked for, by monotonic time.
    since: float | None = None
    # As ``build`` gets it.
    edited: bool = False
    # As ``build`` gets them.
    serial: int | None = None
    covers_serial: bool = True

    @property
    def is_waited_for(self) -> bool:
        return any(self.repos.values())


class _Stopped(BaseException):
    """The service ends, and nobody waits for this build. As a KeyboardInterrupt, it is no error
    that a build could look into.
    """


class Rebuilder(Background):
    """While entered, builds what is asked for. ``tell`` gets each build's report, or its error;
    ``progress`` and ``on_wait`` are as in ``build``.

    ``serial`` gives the serial that readers are told; by default it is the number of publications.
    It must return at once, never less than before. Whoever raises it has put what it counts into
    the content and called ``request`` for it before, and calls ``note_serial`` afterwards. hub.json
    has a serial only when all that it counts is in the lists. ``await_content``: whether the
    content is all there within so many seconds; the first build waits for that.
    """

    def __init__(
        self,
        settings: Settings,
        tell: Callable[[Outcome], None],
        progress: Progress = lambda what, done, total: None,
        on_wait: Callable[[], None] = lambda: None,
        serial: Callable[[], int] | None = None,
        await_content: Callable[[float], bool] = lambda seconds: True,
    ) -> None:
        super().__init__("rebuild")
        self._settings = settings
        self._tell = tell
        self._progress = progress
        self._on_wait = on_wait
        self._serial = serial
        self._await_content = await_content
        # That of the last batch.
        self._taken_serial: int | None = None
        self._next = _Batch()
        # When to look at everything, when to settle what builds have left, and when to look whether
        # pulls were counted; by monotonic time.
        self._look_at = self._settle_at = math.inf
        self._count_at = 0.0
        self._doubt_at = 0.0
        self._counts: tuple[int, ...] | None = None
        self._failures = 0
        self._fails_publications = False
        self._totals: tuple[int, int] | None = None
        self._behind_since: float | None = None
        self._last_build: dict[str, Any] | None = None
        self._last_error: dict[str, Any] | None = None
        if serial:
            self.request(None)  # nobody asks for what came before this process

    def __exit__(self, *_: object) -> None:
        """Build what publishers wait for already, then stop; the rest is left to the next start."""
        # Nobody waits longer; the thread may, for the end of another process's build.
        self._stop(PATIENCE_SECONDS)

    def request(self, changed: Iterable[Named] | None) -> None:
        """Have these repos built, or whatever has changed where that is not known (None)."""
        with self._changed:
            if changed is None:
                self._look_at = time.monotonic()
            else:
                self._next.edited = True
                for repo in changed:
                    self._next.repos.setdefault(repo, [])
            self._note_request()

    def note_serial(self) -> None:
        """Have hub.json brought up to a serial that has risen."""
        with self._changed:
            self._changed.notify_all()

    def doubt(self) -> None:
        """Have the state and the search index looked at, and made anew if they are damaged: a
        reader could not use them.
        """
        with self._changed:
            now = time.monotonic()
            if self._doubt_at <= now:
                self._doubt_at = now + DOUBT_SECONDS
                self._look_at = now
                self._note_request()

    def make_visible(self, owner: str, name: str | None) -> int:
        """Wait until readers get what the content has of a repo now, by itself and first in lists;
        or of an owner's profile, where the name is None.

        Returns the serial: lists are complete once hub.json has it, or a higher one. Raises
        RequestError ``unavailable`` where that takes too long or fails; it is tried again.
        """
        future: Future[int] = Future()
        with self._changed:
            if self._is_stopping:
                raise _unavailable("the service is stopping")
            self._next.repos.setdefault((owner, name), []).append(future)
            self._note_request()
        try:
            return future.result(PATIENCE_SECONDS)
        except TimeoutError:
            PUBLICATIONS_LATE.count()
            raise _unavailable("the build is taking too long") from None
        except RequestError:
            PUBLICATIONS_LATE.count()
            raise

    def _note_request(self) -> None:
        now = time.monotonic()
        if self._next.repos:
            self._next.since = self._next.since or now
        self._behind_since = self._behind_since or now
        self._changed.notify_all()

    def health(self) -> dict[str, Any]:
        """How the builds are doing, for people and monitors: no path, no text of a prompt.

        ``status`` is ``ok``, ``behind`` (lists do not have all that is published), ``building``
        (there is no site yet: the first build is under way) or ``failing`` (the last build did not
        succeed; it is tried again). ``serial`` is what the lists have, None where there is no
        site; ``lag_seconds`` is the age of the oldest change that they do not have. Times are
        RFC 3339, durations seconds.
        """
        with self._changed:
            lag = time.monotonic() - self._behind_since if self._behind_since else 0.0
            serial = self._read_serial()
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
        """Whether publications are saved, but reach no readers, because builds fail. Not so where
        only some prompts have faults, as builds for publications skip those.
        """
        return self._fails_publications

    def readings(self) -> Iterator[Reading]:
        """The gauges of builds."""
        health = self.health()
        yield Reading(BUILD_FAILURES, health["failures"])
        yield Reading(BUILD_BEHIND, health["lag_seconds"])
        yield Reading(BUILD_WAITING, health["waiting"])
        if health["serial"] is not None:
            yield Reading(SERIAL, health["serial"])
        if self._totals:
            prompts, versions = self._totals
            yield Reading(PROMPTS, prompts)
            yield Reading(VERSIONS, versions)

    def _read_serial(self) -> int | None:
        # From the site itself: another process may have built it.
        hub = read_hub(self._settings.out)
        return hub.serial if hub else None

    # The thread

    def _run(self) -> None:
        while not self._await_content(WAKE_SECONDS):
            if self._is_stopping:
                return
        while batch := self._take():
            self._build(batch)

    def _take(self) -> _Batch | None:
        """What to build next, once there is something; None at the end."""
        with self._changed:
            while True:
                now = time.monotonic()
                # Before anything is taken: all that it counts was asked for until now.
                serial = self._serial() if self._serial else None
                batch = self._due(now, serial)
                if batch:
                    self._taken_serial = batch.serial = serial
                    # As long as a look is due, nobody knows what else the content has.
                    batch.covers_serial = self._look_at == math.inf
                    return batch
                if self._is_stopping and not self._next.repos:
                    return None
                wake_at = min(self._settle_at, self._look_at, self._count_at)
                if self._next.repos:
                    wake_at = self._begin_at()
                self._changed.wait(wake_at - now)

    def _begin_at(self) -> float:
        """When to build what has been asked for. The caller holds the lock."""
        since = self._next.since or 0.0
        is_urgent = self._next.is_waited_for or self._is_stopping
        return since if is_urgent else since + COMPANY_SECONDS

    def _due(self, now: float, serial: int | None) -> _Batch | None:
        """What to build at this moment. The caller holds the lock."""
        is_look_late = now >= self._look_at + LOOK_LATE_SECONDS
        if self._next.repos and not is_look_late:
            if now < self._begin_at():
                return None
            batch, self._next = self._next, _Batch()
            return batch
        if self._is_stopping and not self._next.repos:
            return None
        if self._settle_at <= now and not is_look_late:
            return _Batch()
        if self._look_at <= now:
            # Apart from what somebody waits for: a fault elsewhere must not stop it.
            self._look_at = math.inf
            return _Batch(is_everything=True)
        if serial != self._taken_serial and self._look_at == math.inf:
            return _Batch()
        if self._count_at <= now:
            self._count_at = now + COUNTS_SECONDS
            counts, self._counts = self._counts, pulls_mark(self._settings.state)
            if counts != self._counts:
                return _Batch()
        return None

    def _build(self, batch: _Batch) -> None:
        def on_visible(visible: Visible) -> None:
            for (owner, name), futures in batch.repos.items():
                is_faulty = f"{owner}/{name}" in visible.faulty
                while futures:
                    if is_faulty:
                        told = _unavailable(
                            "a file of this prompt has a fault, which the operator's log names"
                        )
                        futures.pop().set_exception(told)
                    else:
                        futures.pop().set_result(visible.serial)

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
                on_visible=on_visible,
                is_wanted=is_wanted,
                serial=batch.serial,
                covers_serial=batch.covers_serial,
            )
        except _Stopped:
            pass  # as if it had been killed: the next start goes on
        except Exception as error:
            # The edge of the thread: whatever it was, it is told, and tried again.
            self._note_failure(batch, error)
            self._tell(error)
        else:
            self._note_success(batch, report)
            self._tell(report)

    def _note_success(self, batch: _Batch, report: Built) -> None:
        BUILDS.count("succeeded")
        BUILD_SECONDS.observe(report.seconds)
        BUILD_FILES.count("written", by=report.written)
        BUILD_FILES.count("removed", by=report.removed)
        with self._changed:
            self._fails_publications = False
            self._totals = report.repos, report.versions
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
                # What this build left is older than what has been asked for meanwhile.
                left = time.monotonic() - report.behind_seconds
                self._behind_since = self._next.since if report.is_settled else left

    def _note_failure(self, batch: _Batch, error: Exception) -> None:
        BUILDS.count("failed")
        is_waited_for = batch.is_waited_for
        for futures in batch.repos.values():
            while futures:
                futures.pop().set_exception(
                    _unavailable("the build failed; the operator's log has the cause")
                )
        with self._changed:
            # What this build was to take in, a later one finds by looking at everything.
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
        return str(error)  # its paths are those of the content tree, which readers know
    if isinstance(error, HubError):
        return "The build cannot use the site or state folder. The log has the cause."
    return "The build failed. The log has the cause."


def _unavailable(reason: str) -> RequestError:
    return RequestError("unavailable", f"It is not on the site yet: {reason}.")
