"""The second part of a build: what readers can wait for, in slices and passes.

New pulls, deep pages of lists, the search index, the catalogue's own files, what has lost its
object. A pass takes in what was behind when it began; what comes up meanwhile is for the next
one, so no list is put off for ever. It may take several builds, where others wait to publish.
"""

import time
from collections.abc import Callable

from builder.model.progress import Progress
from builder.model.routes import SORTS
from builder.model.settings import Settings
from builder.pipeline.recount import Recount
from builder.render import crawlers, derive, envelopes
from builder.render.pages import pages_of
from builder.search import index as search_index
from builder.stats.pulls import Pulls
from builder.store.site import Site
from builder.store.state import State
from builder.write.home import write_home
from builder.write.lists import find_stale, write_page
from builder.write.orphans import Expected
from builder.write.sitemap import write_sitemap

# From then on, a build that is behind with lists goes on with them, whoever waits: for a slice of
# time, or for a share of what it took to make visible what it was asked for, and for one step at
# least. So a pass has an end under any load.
LAG_SECONDS_MAX = 2.0
SLICE_SECONDS = 0.1
SLICE_SHARE = 0.5
REPOS_PER_INDEXING = 10


class Settling:
    """What one build does of it. ``removed`` and ``indexed`` count files and repos.

    ``is_wanted`` tells whether another build should begin soon, None that none ever does; a fresh
    build does not give way. ``busy_seconds``: how long the first part of the build took.
    """

    def __init__(
        self, settings: Settings, state: State, pulls: Pulls, site: Site, progress: Progress,
        is_wanted: Callable[[], bool] | None, *, is_fresh: bool, busy_seconds: float,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.state = state
        self.site = site
        self.progress = progress
        self.is_wanted = is_wanted
        self.is_fresh = is_fresh
        self.pages = pages_of(settings)
        self.slice_seconds = max(SLICE_SECONDS, SLICE_SHARE * busy_seconds)
        self.slice_end: float | None = None
        self.recount = Recount(
            settings, state, pulls, site, progress, is_hurried=is_wanted is not None
        )
        self.removed = self.indexed = 0
        self._has_removed = False

    def go_on(self, index: bool) -> bool:
        """Go on with all that is left; False if some of it still is."""
        state = self.state
        if self.recount.is_behind():
            state.note_behind()
        if self._is_waited_for() and not self._is_late():
            return False
        while True:
            # Between passes, so that pulls and lists do not put each other off for ever.
            if not state.is_in_pass() and not self.recount.go_on(self._must_yield):
                return False
            serial = state.pass_serial()
            # Else they are done, in a build that was cut short after them.
            if not state.todo("pass step"):
                if not self._write_deep_pages() or (index and not self._update_index()):
                    return False
                self._write_home()
            if not self._write_catalogue_files(serial):
                return False
            if state.end_pass() and not self.recount.is_behind():
                state.done("site", ["catalogue"])
                # Repos that have changed meanwhile.
                return not state.todo("repo")
            if self._must_yield():
                return False

    def _is_waited_for(self) -> bool:
        return not self.is_fresh and self.is_wanted is not None and self.is_wanted()

    def _is_late(self) -> bool:
        return self.state.behind_seconds() >= LAG_SECONDS_MAX

    def _must_yield(self) -> bool:
        """Whether to leave the next step to another build; asked before each."""
        if not self._is_waited_for():
            return False
        if not self._is_late():
            return True
        if self.slice_end is None:
            self.slice_end = time.monotonic() + self.slice_seconds
            return False
        return time.monotonic() >= self.slice_end

    def _write_deep_pages(self) -> bool:
        """Write what is stale of the lists in this pass; False if that was cut short."""
        state = self.state
        for tag in state.todo("pass list"):
            state.add_todo("order", [f"{sort} {tag}" for sort in SORTS])
            state.done("pass list", [tag])
        lists = sorted(state.todo("order"))
        for done, name in enumerate(lists):
            sort, _, tag = name.partition(" ")
            number: int | None = state.page_reached()
            while number:
                if self._must_yield():
                    return False
                stretch = find_stale(state, tag or None, sort, number)
                state.add_orphans(stretch.gone)
                state.checkpoint()
                for page in stretch.pages:
                    self.progress("Writing lists", done, len(lists))
                    write_page(page, state, self.site, self.pages)
                number = stretch.following
                state.reach_page(number or 1)
            state.done("order", [name])
        return True

    def _update_index(self) -> bool:
        """Take into the search index what is for this pass; False if that was cut short."""
        state = self.state
        if "index" in state.todo("site"):
            self.indexed += search_index.update(
                self.settings, state, self.progress, is_hurried=self.is_wanted is not None
            )
            state.done("site", ["index"])
        repos = sorted(state.todo("pass index"))
        # Also with nothing to take in: an index that is lost or damaged is made anew.
        for at in range(0, max(1, len(repos)), REPOS_PER_INDEXING):
            if repos and self._must_yield():
                return False
            batch = repos[at : at + REPOS_PER_INDEXING]
            self.indexed += search_index.update(
                self.settings, state, self.progress, batch, is_hurried=self.is_wanted is not None
            )
            state.done("pass index", batch)
            state.checkpoint()
        return True

    def _write_home(self) -> None:
        if "home" in self.state.todo("site"):
            write_home(self.state, self.site, self.pages)
            self.state.done("site", ["home"])

    def _write_catalogue_files(self, serial: int) -> bool:
        """Write what grows with the catalogue, a step each, and last the serial that lists have;
        False if that was cut short.
        """
        state = self.state
        steps = {
            "sitemap": lambda: write_sitemap(self.settings, state, self.site),
            "llms": self._write_llms,
            "orphans": self._remove_orphans,
            "lines": self._write_lines,
            "hub": lambda: self._write_hub(serial),
        }
        if "catalogue" not in state.todo("site"):
            self._remove_orphans()
            return True
        if not state.todo("pass step"):
            state.add_todo("pass step", steps)
        left = state.todo("pass step")
        for name, step in steps.items():
            if name in left:
                if self._must_yield():
                    return False
                step()
                state.done("pass step", [name])
                state.checkpoint()
        return True

    def _write_llms(self) -> None:
        top = self.state.order(None, "top", crawlers.PROMPTS_MAX)
        rows = self.state.rows([key for key, _ in top])
        llms = crawlers.llms(self.settings, [summary for summary, _ in rows])
        self.site.write_fixed("llms", llms)

    def _write_lines(self) -> None:
        lines = self.state.catalogue_lines()
        self.site.write_fixed("catalogue", b"".join(line + b"\n" for line in lines))

    def _write_hub(self, serial: int) -> None:
        repos_count, _ = self.state.totals()
        hub = derive.hub_record(self.settings, repos_count, serial)
        self.site.write_fixed("hub", envelopes.single(envelopes.json_bytes(hub)))

    def _remove_orphans(self) -> None:
        """Remove what the last build left without an object; note what this one does."""
        expected = Expected(self.state)
        if self.is_fresh and not self.site.is_new:
            # Nothing is remembered of what a site that was there before may hold.
            self.state.add_orphans(file for file in self.site.files() if file not in expected)
        due = []
        for file, is_due in self.state.orphans().items():
            if file in expected:
                continue
            if not is_due or self._has_removed:
                due.append(file)
            elif not self.site.dry:
                self.removed += self.site.remove(file)
        self.state.keep_orphans(due)
        # What a second pass finds due has lost its object in this very build.
        self._has_removed = True
