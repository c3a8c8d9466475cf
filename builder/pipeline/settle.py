"""The second part of a build: what readers can wait for, in slices and passes.

New pulls, deep pages of lists, the search index, the catalogue's own files, what has lost its
object. A pass takes in what was behind when it began; what comes up meanwhile is for the next
one, so no list is put off for ever. It may take several builds, where others wait to publish.
"""

import time

from builder.pipeline.context import Context
from builder.pipeline.recount import is_behind, recount
from builder.search import index as search_index
from builder.store.state.work import Work
from builder.write.catalogue import write_home, write_hub, write_lines, write_llms
from builder.write.lists import find_stale, write_page
from builder.write.orphans import Expected
from builder.write.sitemap import write_sitemap

# From then on, a build that is behind with lists goes on with them, whoever waits: for a slice of
# time, or for a share of what it took to make visible what it was asked for, and for one step at
# least. So a pass has an end under any load.
LAG_SECONDS_MAX = 2.0
SLICE_SECONDS = 0.1
SLICE_SHARE = 0.5
# In a commit of the index. Who waits to publish waits for one.
REPOS_PER_COMMIT = 25
REPOS_PER_COMMIT_UNHURRIED = 2_000


class Settling:
    """What one build does of it. ``busy_seconds``: how long the first part of the build took."""

    def __init__(self, context: Context, busy_seconds: float) -> None:
        self.context = context
        self.slice_seconds = max(SLICE_SECONDS, SLICE_SHARE * busy_seconds)
        self.slice_end: float | None = None
        self._has_removed = False

    def go_on(self) -> bool:
        """Go on with all that is left; False if some of it still is."""
        context, state = self.context, self.context.state
        if is_behind(context) or context.lags:
            state.passes.note_behind()
        if self._is_waited_for() and not self._is_late():
            return False
        while True:
            serial = state.passes.serial()
            if serial is None:
                # Between passes, so that pulls and lists do not put each other off for ever.
                if not recount(context, self._must_yield):
                    return False
                serial = context.next_serial
                state.passes.begin(serial)
            if not self._write_pass(serial):
                return False
            if state.passes.end() and not is_behind(context) and not context.lags:
                state.todo.done(Work.CATALOGUE)
                # Repos that have changed meanwhile.
                return not state.todo.has(Work.REPO)
            if self._must_yield():
                return False

    def _is_waited_for(self) -> bool:
        """Whether another build should begin soon; a fresh one does not give way."""
        is_wanted = self.context.request.is_wanted
        return not self.context.is_fresh and is_wanted is not None and is_wanted()

    def _is_late(self) -> bool:
        return self.context.state.passes.behind_seconds() >= LAG_SECONDS_MAX

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

    def _write_pass(self, serial: int) -> bool:
        """Go on with the pass under way; False if that was cut short."""
        context, todo = self.context, self.context.state.todo
        steps = {
            Work.SITEMAP: lambda: write_sitemap(context.settings, context.state, context.site),
            Work.LLMS: lambda: write_llms(context.settings, context.state, context.site),
            Work.ORPHANS: self._remove_orphans,
            Work.LINES: lambda: write_lines(context.state, context.site),
            # Last the serial that lists have.
            Work.HUB: lambda: write_hub(context.settings, context.state, context.site, serial),
        }
        # Else what comes before them is done, in a build that was cut short after it.
        if not todo.has(*steps):
            if not self._write_deep_pages():
                return False
            if context.request.index and not self._update_index():
                return False
            if todo.has(Work.HOME):
                write_home(context.state, context.site, context.pages)
                todo.done(Work.HOME)
            if todo.has(Work.CATALOGUE):
                for work in steps:
                    todo.add(work)
            else:
                self._remove_orphans()
                if context.request.serial is None or serial == context.told_serial:
                    return True
                todo.add(Work.HUB)
        # What grows with the catalogue, a step each.
        for work, step in steps.items():
            if todo.has(work):
                if self._must_yield():
                    return False
                step()
                todo.done(work)
                context.state.checkpoint()
        return True

    def _write_deep_pages(self) -> bool:
        """Write what is stale of the lists in this pass; False if that was cut short."""
        context, state = self.context, self.context.state
        lists = state.passes.lists()
        for done, one in enumerate(lists):
            number: int | None = one.page
            while number:
                if self._must_yield():
                    return False
                stretch = find_stale(state, one.tag, one.sort, number)
                state.orphans.add(stretch.gone)
                state.checkpoint()
                for page in stretch.pages:
                    context.request.progress("Writing lists", done, len(lists))
                    write_page(
                        page,
                        state,
                        context.site,
                        context.pages,
                        has_langfuse=context.settings.langfuse,
                    )
                number = stretch.following
                state.passes.go_on_at(one, number)
        return True

    def _update_index(self) -> bool:
        """Take into the search index what is for this pass; False if that was cut short."""
        context, state = self.context, self.context.state
        if state.todo.has(Work.INDEX):
            context.indexed += self._index(None)
            state.todo.done(Work.INDEX)
        repos = sorted(state.todo.names(Work.PASS_INDEX_REPO))
        batch_size = REPOS_PER_COMMIT if context.is_hurried else REPOS_PER_COMMIT_UNHURRIED
        # Also with nothing to take in: an index that is lost or damaged is made anew.
        for at in range(0, max(1, len(repos)), batch_size):
            if repos and self._must_yield():
                return False
            batch = repos[at : at + batch_size]
            context.indexed += self._index(batch)
            state.todo.done(Work.PASS_INDEX_REPO, batch)
            state.checkpoint()
        return True

    def _index(self, repos: list[str] | None) -> int:
        context = self.context
        return search_index.update(context.settings, context.state, context.request.progress, repos)

    def _remove_orphans(self) -> None:
        """Remove what the last build left without an object; note what this one does."""
        context, state, site = self.context, self.context.state, self.context.site
        expected = Expected(state, has_langfuse=context.settings.langfuse)
        if context.is_fresh and not site.is_new:
            # Nothing is remembered of what a site that was there before may hold.
            state.orphans.add(file for file in site.files() if file not in expected)
        due = []
        for file, is_due in state.orphans.files().items():
            if file in expected:
                continue
            if not is_due or self._has_removed:
                due.append(file)
            else:
                context.removed += site.remove(file)
        state.orphans.keep(due)
        # What a second pass finds due has lost its object in this very build.
        self._has_removed = True
