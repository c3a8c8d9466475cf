"""The data that the parts of one build share."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from builder.model.errors import ContentError, Fault, PullsError
from builder.model.progress import Progress
from builder.model.settings import Settings
from builder.stats.pulls import PullCounts, Pulls
from builder.store.restored import serial_base
from builder.store.site import Site, read_serial
from builder.store.state import State

# Owner and name of a repo; without a name, the owner's profile.
Named = tuple[str, str | None]


class ShownPulls:
    """The counts that the site shows, used while the database of pulls cannot be read, because
    publishers do not wait for its repair.

    The counts per day are unknown, so a repo rendered with these ranks too low in `trending`. The
    next build that can read the database corrects all repos.
    """

    def __init__(self, state: State, error: PullsError) -> None:
        self.error = error
        self._state = state

    def note(self) -> None:
        """Note that the site shows other counts than the database, for the next build that can read
        it.
        """
        if serial := self.serial():
            self._state.pulls.show(serial, "unreadable")

    def serial(self) -> int:
        return self._state.pulls.shown()[0]

    def nonce(self, serial: int) -> str | None:
        return self._state.pulls.shown()[1]

    def of(self, repo_id: str) -> PullCounts | None:
        row = self._state.repos.get(repo_id)
        return PullCounts(row.pulls if row else 0, ()) if self.serial() else None


def newest(pulls: Pulls | ShownPulls) -> tuple[int, str | None]:
    """The current counts, in the form of ``state.pulls.shown``."""
    serial = pulls.serial()
    return serial, pulls.nonce(serial)


class Visible(NamedTuple):
    """The state that readers can see now. ``serial``: the number of publications, with those made
    visible, or the serial given to the build. ``faulty``: ids of the repos that stay unchanged
    because of faults.
    """

    serial: int
    faulty: frozenset[str]


class Request(NamedTuple):
    """The options of a build.

    ``changed``: the (owner, name) of the only repos that can differ from the last build, with None
    for the name for an owner's profile; by default the build checks all of the content. ``edited``:
    true if files of versions that the last build read may have changed; publications and
    withdrawals edit none. ``full``: compare every file. ``index``: update the search index.
    ``progress(what, done, total)`` is called often. ``on_visible`` is called once, when the changed
    repos' own files and the first pages of lists are written. ``is_wanted``: true if another build
    should begin soon. Then, or when another process waits to build, this build leaves work that is
    not urgent to the next one. By default a build leaves nothing. ``serial``: the serial for
    hub.json and ``on_visible``, by default the number of publications. ``covers_serial``: true if
    all changes that it counts are in ``changed`` or already built. If not, or if some have faults,
    hub.json keeps its serial. ``check_seconds``: look for files that the site has lost, for so long
    (see ``heal``).
    """

    settings: Settings
    changed: Iterable[Named] | None = None
    edited: bool = True
    full: bool = False
    index: bool = True
    progress: Progress = lambda what, done, total: None
    on_visible: Callable[[Visible], None] = lambda visible: None
    is_wanted: Callable[[], bool] | None = None
    serial: int | None = None
    covers_serial: bool = True
    check_seconds: float = 0.0


@dataclass
class Context:
    """One build: its inputs and its results so far.

    ``is_fresh``: nothing is remembered, so everything has to be built. ``rendered`` and ``indexed``
    count repos, ``removed`` counts files. ``faults``: the reasons why some repos and owners stay
    unchanged. ``lost``: objects with missing files.
    """

    request: Request
    state: State
    pulls: Pulls | ShownPulls
    site: Site
    is_fresh: bool = False
    rendered: int = 0
    indexed: int = 0
    removed: int = 0
    faults: list[Fault] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site.noted = self.state.files.noted

    @property
    def settings(self) -> Settings:
        return self.request.settings

    @property
    def is_hurried(self) -> bool:
        """True if another build may ask this one to yield."""
        return self.request.is_wanted is not None and not self.is_fresh

    @property
    def changed(self) -> Collection[Named] | None:
        """All repos and owners that can differ from the remembered state; None if unknown."""
        return None if self.is_fresh else self.request.changed

    @property
    def edited(self) -> bool:
        """True if files that the last build read may have changed."""
        return self.changed is None or self.request.edited

    @property
    def serial(self) -> int:
        """The number of publications, or the serial given to the build. Raises ContentError."""
        if self.request.serial is not None:
            return self.request.serial
        return serial_base(self.settings.content) + self.state.repos.totals()[1]

    @property
    def next_serial(self) -> int:
        """The serial for hub.json after a pass that begins now. Raises ContentError."""
        has_all = not self.faults and (self.changed is None or self.request.covers_serial)
        if self.request.serial is None or has_all:
            return self.serial
        return self.shown_serial or 0

    @property
    def shown_serial(self) -> int | None:
        """The serial in hub.json; None if there is no hub.json."""
        return read_serial(self.settings.out)

    @property
    def lags(self) -> bool:
        """True if hub.json needs another serial, even if nothing else has changed."""
        return self.request.serial is not None and self.next_serial != self.shown_serial

    def note_faults(self, faults: list[Fault]) -> None:
        """Raises ContentError, unless the build has ``changed``: faults must not delay others."""
        self.faults += faults
        if faults and self.changed is None:
            raise ContentError(sorted(faults))
