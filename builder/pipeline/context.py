"""What the parts of one build share."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from builder.model.errors import ContentError, Fault, PullsError
from builder.model.progress import Progress
from builder.model.settings import Settings
from builder.render.pages import Pages, pages_of
from builder.stats.pulls import PullCounts, Pulls
from builder.store.restored import serial_base
from builder.store.site import Site, read_hub
from builder.store.state import State

# Owner and name of a repo; without a name, the owner's profile.
Named = tuple[str, str | None]


class ShownPulls:
    """The counts that the site shows, where the database of pulls cannot be used: publishers do
    not wait until it is mended.

    They are not known by day, so a repo that is rendered by them is listed too low in `trending`:
    the next build that can read the database looks at all repos.
    """

    def __init__(self, state: State, error: PullsError) -> None:
        self.error = error
        self._state = state

    def note(self) -> None:
        """Have the next build that can read the database see that others than its are shown."""
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
    """The counts that there are, as ``state.pulls.shown`` tells of the shown ones."""
    serial = pulls.serial()
    return serial, pulls.nonce(serial)


class Visible(NamedTuple):
    """What readers can see now. ``serial``: how many publications there are, with the ones made
    visible, or what the build was given. ``faulty``: ids of the repos that stay as they were,
    because of faults.
    """

    serial: int
    faulty: frozenset[str]


class Request(NamedTuple):
    """What is asked of a build.

    ``changed``: the (owner, name) of the only repos that can differ from the last build, with None
    for the name where it is the owner's profile; by default all of the content is looked at.
    ``edited``: whether files of versions that the last build saw may be others now; publications
    and withdrawals do not edit any. ``full``: compare every file. ``index``: bring the search index
    up to date. ``progress(what, done, total)`` is called often. ``on_visible``: once, when the
    changed repos' own files and the first pages of lists are written. ``is_wanted``: whether
    another build should begin soon; then, or when another process waits to build, this one leaves
    what is not urgent to it. By default a build leaves nothing. ``serial``: the serial that readers
    and ``on_visible`` are told, by default the number of publications. ``covers_serial``: whether
    all changes that it counts are in ``changed``, or were built before; otherwise, or where some
    have faults, hub.json keeps the serial that it has.
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


@dataclass
class Context:
    """One build: what it is given, and what it has come to so far.

    ``is_fresh``: nothing is remembered, so everything is to do. ``rendered`` and ``indexed``
    count repos, ``removed`` counts files. ``faults``: why some repos and owners stay as they were.
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

    @property
    def settings(self) -> Settings:
        return self.request.settings

    @property
    def pages(self) -> Pages:
        return pages_of(self.settings)

    @property
    def is_hurried(self) -> bool:
        """Whether somebody may come to wait, for a build that gives way."""
        return self.request.is_wanted is not None and not self.is_fresh

    @property
    def changed(self) -> Collection[Named] | None:
        """All that can differ from what is remembered; None where that is not known."""
        return None if self.is_fresh else self.request.changed

    @property
    def edited(self) -> bool:
        """Whether files that the last build saw may be others now."""
        return self.changed is None or self.request.edited

    @property
    def serial(self) -> int:
        """How many publications there are, or what the build was given. Raises ContentError."""
        if self.request.serial is not None:
            return self.request.serial
        return serial_base(self.settings.content) + self.state.repos.totals()[1]

    @property
    def next_serial(self) -> int:
        """What hub.json is to say after a pass that begins now. Raises ContentError."""
        has_all = not self.faults and (self.changed is None or self.request.covers_serial)
        if self.request.serial is None or has_all:
            return self.serial
        return self.told_serial or 0

    @property
    def told_serial(self) -> int | None:
        """What hub.json says; None where there is none."""
        hub = read_hub(self.settings.out)
        return hub.serial if hub else None

    @property
    def lags(self) -> bool:
        """Whether hub.json is to say another serial than it does, whatever else has changed."""
        return self.request.serial is not None and self.next_serial != self.told_serial

    def note_faults(self, faults: list[Fault]) -> None:
        """Raises ContentError, unless repos were named: then others are not to wait for these."""
        self.faults += faults
        if faults and self.changed is None:
            raise ContentError(sorted(faults))
