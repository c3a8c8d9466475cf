"""What the parts of one build share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from builder.model.errors import ContentError, Fault
from builder.model.progress import Progress
from builder.model.settings import Settings
from builder.pipeline.shown_pulls import ShownPulls
from builder.render.pages import Pages, pages_of
from builder.stats.pulls import Pulls
from builder.store.restored import serial_base
from builder.store.site import Site
from builder.store.state import State

# Owner and name of a repo; without a name, the owner's profile.
Named = tuple[str, str | None]


class Visible(NamedTuple):
    """What readers can see now. ``serial``: how many publications there are, with the ones made
    visible. ``faulty``: ids of the repos that stay as they were, because of faults.
    """

    serial: int
    faulty: frozenset[str]


class Request(NamedTuple):
    """What is asked of a build, as ``build`` says."""

    settings: Settings
    changed: list[Named] | None
    full: bool
    index: bool
    progress: Progress
    on_visible: Callable[[Visible], None] = lambda visible: None
    is_wanted: Callable[[], bool] | None = None


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
    def changed(self) -> list[Named] | None:
        """All that can differ from what is remembered; None where that is not known."""
        return None if self.is_fresh else self.request.changed

    @property
    def serial(self) -> int:
        """How many publications there are. Raises ContentError."""
        return serial_base(self.settings.content) + self.state.repos.totals()[1]

    def note_faults(self, faults: list[Fault]) -> None:
        """Raises ContentError, unless repos were named: then others are not to wait for these."""
        self.faults += faults
        if faults and self.changed is None:
            raise ContentError(sorted(faults))
