"""The second part of a build: what readers can wait for, in slices and passes.

New pulls, deep pages of lists, the search index, the catalogue's own files, what has lost its
object. A pass takes in what was behind when it began; what comes up meanwhile is for the next
one, so no list is put off for ever. It may take several builds, where others wait to publish.
"""

import time
from collections.abc import Callable

from builder import crawlers, derive, render, search
from builder.changes import Progress
from builder.home import write_home
from builder.lists import find_stale, write_page
from builder.orphans import Expected
from builder.recount import Recount
from builder.routes import SORTS
from builder.settings import Settings
from builder.site import Site
from builder.sitemap import write_sitemap
from builder.state import State
from builder.stats.pulls import Pulls

# From then on, a build that is behind with lists spends a slice of time on them, whoever waits.
LAG_SECONDS_MAX = 2.0
SLICE_SECONDS = 0.1
REPOS_PER_INDEXING = 10


class Settling:
    """What one build does of it. ``removed`` and ``indexed`` count files and repos.

    ``is_wanted`` tells whether another build should begin soon, None that none ever does; a fresh
    build does not give way.
    """

    def __init__(
        self, settings: Settings, state: State, pulls: Pulls, site: Site, progress: Progress,
        is_wanted: Callable[[], bool] | None, *, is_fresh: bool,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.state = state
        self.site = site
        self.progress = progress
        self.is_wanted = is_wanted
        self.is_fresh = is_fresh
        self.pages = render.pages_of(settings)
        self.slice_end = time.monotonic() + SLICE_SECONDS
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
        while not self._must_yield():
            # Between passes, so that pulls and lists do not put each other off for ever.
            if not state.is_in_pass() and not self.recount.go_on(self._must_yield):
                break
            serial = state.pass_serial()
            if not self._write_deep_pages() or (index and not self._update_index()):
                break
            self._write_home()
            is_changed = "catalogue" in state.todo("site")
            if is_changed:
                self._write_guides()
            self._remove_orphans()
            if is_changed:
                self._write_catalogue_files(serial)
            if state.end_pass() and not self.recount.is_behind():
                state.done("site", ["catalogue"])
                # Repos that have changed meanwhile.
                return not state.todo("repo")
        return False

    def _must_yield(self) -> bool:
        if self.is_fresh or not (self.is_wanted and self.is_wanted()):
            return False
        is_late = self.state.behind_seconds() >= LAG_SECONDS_MAX
        return not is_late or time.monotonic() >= self.slice_end

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
            self.indexed += search.update(self.settings, state, self.progress)
            state.done("site", ["index"])
        repos = sorted(state.todo("pass index"))
        # Also with nothing to take in: an index that is lost or damaged is made anew.
        for at in range(0, max(1, len(repos)), REPOS_PER_INDEXING):
            if self._must_yield():
                return False
            batch = repos[at : at + REPOS_PER_INDEXING]
            self.indexed += search.update(self.settings, state, self.progress, batch)
            state.done("pass index", batch)
            state.checkpoint()
        return True

    def _write_home(self) -> None:
        if "home" in self.state.todo("site"):
            write_home(self.state, self.site, self.pages)
            self.state.done("site", ["home"])

    def _write_guides(self) -> None:
        """What tells programs where the pages and the best prompts are."""
        write_sitemap(self.settings, self.state, self.site)
        top = self.state.order(None, "top", crawlers.PROMPTS_MAX)
        rows = self.state.rows([key for key, _ in top])
        llms = crawlers.llms(self.settings, [summary for summary, _ in rows])
        self.site.write_fixed("llms", llms)

    def _write_catalogue_files(self, serial: int) -> None:
        lines = self.state.catalogue_lines()
        self.site.write_fixed("catalogue", b"".join(line + b"\n" for line in lines))
        repos_count, _ = self.state.totals()
        hub = derive.hub_record(self.settings, repos_count, serial)
        self.site.write_fixed("hub", render.single(render.json_bytes(hub)))

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
