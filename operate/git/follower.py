"""Follows the builds of a service in a thread of its own: pushes what they made visible, and takes
in what others have pushed.

Nothing waits for it. After a failure it tries again at growing intervals, and the status shows the
failure.
"""

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from builder.model.errors import OperatorError
from builder.model.metrics import Gauge
from builder.model.records import format_time
from builder.model.settings import Settings
from builder.pipeline.background import Background, Failures, pause_seconds
from builder.pipeline.context import Named
from builder.pipeline.rebuild import Outcome
from builder.store.locks import is_building, last_build, lock_file, try_lock
from operate.git.branch import Branch, Moved
from operate.git.commits import ContentChanged
from operate.git.files import Place
from operate.git.options import GitOptions
from operate.git.sync import Done, Sync
from publisher.log import log_event
from publisher.outside.git_program import Git, GitError, GitStopped
from publisher.write.store_protocol import Store

GIT_FAILURES = Gauge(
    "hub_git_failures_in_row",
    "Failed exchanges with the git repository since the last success.",
    part="git",
    key="failures",
)
GIT_BEHIND = Gauge(
    "hub_git_behind_seconds",
    "Age of the oldest change that was not pushed yet.",
    part="git",
    key="waiting_seconds",
)
GIT_PROBLEMS = Gauge(
    "hub_git_problems",
    "Prompts that cannot be pushed or taken in; the log names them.",
    part="git",
    key="problems_count",
)

if TYPE_CHECKING:
    from publisher.nodes.turn import Turn

# With this many changed prompts, comparing all costs less.
PLACES_MAX = 10_000
# Attempts of an exchange while others push or publish. Then it counts as failed.
MOVES_MAX = 5
# Publications within this time are pushed together.
GATHER_SECONDS = 1.0
# The interval of fetching from the remote.
FETCH_SECONDS = 60.0
# The longest time until a build of another process is noticed. Everything is compared then, so the
# next look is later by a multiple of the time that this took, up to a limit.
LOOK_SECONDS = 10.0
LOOK_FACTOR, LOOK_SECONDS_MAX = 20, 300.0
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 5.0, 600.0
# The interval at which one of several nodes tries to get the turn.
TURN_SECONDS = 10.0
# The longest time for which the end of the service waits for the last push.
STOP_SECONDS = 5.0

log = logging.getLogger("hub.git")


class GitFollower(Background):
    """While entered, keeps a branch and the content the same. ``rebuild`` requests a build, as
    ``Rebuilder.request``. ``turn``: works only while this node has it; None: always.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        options: GitOptions,
        rebuild: Callable[[Iterable[Named] | None], None],
        turn: "Turn | None" = None,
    ) -> None:
        super().__init__("git")
        self._settings = settings
        self._turn = turn
        self._git = Git(f"{settings.state}/git", options.remote)
        self._branch = Branch(
            self._git, options.branch, f"{options.folder}/" if options.folder else ""
        )
        self._sync = Sync(settings, store, self._branch, rebuild)
        # The places to compare; all places if ``_is_all``.
        self._places: set[Place] = set()
        self._is_all = True
        self._since: float | None = None
        self._fetch_at = self._look_at = 0.0
        # The last known build.
        self._build = 0
        self._failures = Failures()
        self._last_push: str | None = None
        self._last_check: str | None = None
        self._problems: dict[Place, str] = {}

    def __exit__(self, *_: object) -> None:
        """Push waiting changes if that takes only seconds; the next start does the rest."""
        self._stop(STOP_SECONDS)
        self._git.stop()
        self._stop(STOP_SECONDS)
        if self._turn:
            self._turn.release()

    def tell(self, outcome: Outcome) -> None:
        """Note the outcome of a build; returns at once."""
        with self._changed:
            if isinstance(outcome, Exception) or len(outcome.changed) > PLACES_MAX:
                self._is_all = True  # the published prompts are unknown
            else:
                # The builds before it that this service did not make are of other processes.
                self._is_all = self._is_all or outcome.number > self._build + 1
                self._build = max(self._build, outcome.number)
                self._places.update(Place(owner, name or "") for owner, name in outcome.changed)
                if not (outcome.changed or self._is_all):
                    return
            self._since = self._since or time.monotonic()
            self._changed.notify_all()

    def status(self) -> dict[str, Any]:
        """The state of the exchange, for everyone: without names of prompts and messages of git.

        ``status``: ``ok``, ``starting`` or ``failing``. ``waiting``: places (prompts, profiles)
        that will be compared. ``problems_count``: places that could not be pushed or taken in.
        Times are RFC 3339, None if there was none.
        """
        with self._changed:
            is_failing = self._failures.count > 0
            return {
                "status": "failing" if is_failing else "ok" if self._last_check else "starting",
                "last_push": self._last_push,
                "last_check": self._last_check,
                "waiting": len(self._places),
                "waiting_seconds": round(time.monotonic() - self._since, 3) if self._since else 0.0,
                **self._failures.status(),
                "problems_count": len(self._problems),
            }

    # Methods of the thread

    def _run(self) -> None:
        while self._wait():
            try:
                if not self._is_our_turn():
                    continue
                with self._alone():
                    failures = self._failures.count
                    # Rarely, since it reads the whole repository.
                    if failures > 1 and failures & (failures - 1) == 0:
                        self._branch.remove_damaged()
                    self._branch.open()
                    self._exchange()
                    while self._wait() and self._is_our_turn():
                        self._exchange()
            except GitStopped:
                return
            except Exception as error:
                # Last resort of the thread: it logs any error, and tries again.
                self._note_failure(error)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of the repository. Raises OperatorError."""
        with lock_file(self._settings.state, "git.lock") as file:
            if not try_lock(file):
                raise OperatorError(
                    f"Another process of this hub follows the branch: it locks {file.name}."
                )
            yield

    def _wait(self) -> bool:
        """Wait for the next exchange; False if the service ends."""
        while True:
            if self._turn:
                self._turn.take()  # renews this node's turn
            with self._changed:
                now = time.monotonic()
                self._look(now)
                is_to_push = self._since is not None and not self._failures.count
                if self._is_stopping:
                    return is_to_push
                at = self._fetch_at
                if is_to_push:
                    at = min(at, self._since + GATHER_SECONDS)
                if at <= now:
                    return True
                self._changed.wait(min(at - now, TURN_SECONDS if self._turn else LOOK_SECONDS))

    def _look(self, now: float) -> None:
        """Mark everything for comparison after a build of another process. A build of this service
        is running, or `tell` gets it. The caller holds the lock.
        """
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        state = self._settings.state
        if last_build(state) > self._build and not is_building(state):
            self._is_all, self._since = True, self._since or now

    def _is_our_turn(self) -> bool:
        """True if this node exchanges now. Otherwise another node does, and this one tries again
        later.
        """
        if not self._turn or self._turn.take() is not None:
            return True
        with self._changed:
            # Pushes of the other node meanwhile are unknown here.
            self._is_all, self._since = True, None
            self._fetch_at = time.monotonic() + TURN_SECONDS
        return False

    def _exchange(self) -> None:
        """Make both sides the same. Raises GitError, GitStopped, OperatorError, RequestError."""
        with self._changed:
            if self._is_all:
                # Read first: each change is in the content before its build gets a number.
                self._build = max(self._build, last_build(self._settings.state))
            is_all, places = self._is_all, self._places | self._problems.keys()
            taken, self._places, self._is_all = self._places, set(), False
            since, self._since = self._since, None
        started = time.monotonic()
        try:
            with _naming_files():
                done = self._run_sync(None if is_all else places)
        except BaseException:
            with self._changed:
                self._places |= taken
                self._is_all = self._is_all or is_all
                self._since = since or self._since
            raise
        seconds = time.monotonic() - started
        if is_all:
            self._look_at = time.monotonic() + min(
                max(LOOK_SECONDS, LOOK_FACTOR * seconds), LOOK_SECONDS_MAX
            )
        self._note_success(done, seconds)
        if done.commits:
            self._branch.tidy()

    def _run_sync(self, places: set[Place] | None) -> Done:
        for _ in range(MOVES_MAX):
            with contextlib.suppress(Moved, ContentChanged):
                return self._sync.run(places)
            time.sleep(random.uniform(0, 0.2))
        raise GitError(f"The branch or the content changed in each of {MOVES_MAX} attempts")

    def _note_success(self, done: Done, seconds: float) -> None:
        for place, reason in done.problems.items():
            if self._problems.get(place) != reason:
                log_event(log, logging.WARNING, "git_problem", path=place.path, reason=reason)
        for path, commit in done.conflicts.items():
            log_event(log, logging.WARNING, "git_conflict", path=path, other_in=commit)
        if done.commits or done.taken:
            log_event(
                log,
                logging.INFO,
                "git",
                commits=done.commits,
                taken_in=len(done.taken),
                milliseconds=round(seconds * 1000, 1),
            )
        with self._changed:
            self._last_check = format_time(datetime.now(UTC))
            if done.commits:
                self._last_push = self._last_check
            self._problems = done.problems
            self._failures.clear()
            self._fetch_at = time.monotonic() + FETCH_SECONDS * random.uniform(0.8, 1.0)

    def _note_failure(self, error: Exception) -> None:
        log_event(log, logging.ERROR, "git", error)
        with self._changed:
            self._failures.add("The exchange failed. The log has the cause.")
            pause = pause_seconds(self._failures.count, RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
            self._fetch_at = time.monotonic() + pause


@contextlib.contextmanager
def _naming_files() -> Iterator[None]:
    """Turn system errors into OperatorError, whose message the log shows."""
    try:
        yield
    except OSError as error:
        raise OperatorError(
            f"Cannot use {error.filename or 'the disk'}: {error.strerror}. Check that the user who "
            "runs hubctl may write there, and that the disk has space."
        ) from error
