"""The second part of a build: work that readers can wait for, in slices and passes.

That is new pulls, deep pages of lists, the search index, the catalogue's own files, and files
that are no longer needed. A pass covers the changes from before it began. Later changes are for the
next pass, so no list is delayed forever. A pass may take several builds while others wait to
publish.

New pulls of a repo change nothing else of it: its versions' files are not written, and the next
build finds other changes of the content. Pulls counted meanwhile are left for the next recount, so
that each recount ends.
"""

import os
import time

from builder import emit
from builder.emit.history import task_as_remembered
from builder.model.errors import ContentError
from builder.model.matching import match_file
from builder.pipeline.context import Context, newest
from builder.search import index as search_index
from builder.store import content
from builder.store.state import State
from builder.store.state.left import Wanted, is_urgent
from builder.store.state.repos import RepoRow
from builder.store.state.work import Work

# A build whose lists are behind by this time continues with them even if others wait: for a slice
# of time, or for a share of the time that its urgent part took, and at least for one step. So a
# pass ends under any load.
LAG_SECONDS_MAX = 2.0
SLICE_SECONDS = 0.1
SLICE_SHARE = 0.5
# In one commit of the index. A publisher waits for one commit at most.
REPOS_PER_COMMIT = 25
REPOS_PER_COMMIT_UNHURRIED = 2_000
# A publisher waits for one batch of repos with new pulls at most. If no build can be waiting,
# batches are large, so that several processes render.
REPOS_PER_BATCH = 25
REPOS_PER_BATCH_UNHURRIED = 2_000


class Settling:
    """The settling of one build. ``busy_seconds``: the duration of its first part."""

    def __init__(self, context: Context, busy_seconds: float) -> None:
        self.context = context
        self.slice_seconds = max(SLICE_SECONDS, SLICE_SHARE * busy_seconds)
        self.slice_end: float | None = None
        self._has_removed = False

    def run(self) -> bool:
        """Continue with all that is left; False if some of it still is."""
        context, state = self.context, self.context.state
        if self._is_behind() or context.lags:
            state.passes.note_behind()
        if self._is_waited_for() and not self._is_late():
            return False
        while True:
            serial = state.passes.serial()
            if serial is None:
                # Between passes, so that pulls and lists do not delay each other forever.
                self._note_pulls()
                if not self._renew_repos() or not self._renew_owners():
                    return False
                serial = context.next_serial
                state.passes.begin(serial)
            if not self._write_pass(serial):
                return False
            if state.passes.end() and not self._is_behind() and not context.lags:
                state.todo.done(Work.CATALOGUE)
                # True if repos have changed meanwhile.
                return not state.todo.has(Work.REPO)
            if self._must_yield():
                return False

    def _is_waited_for(self) -> bool:
        """True if another build should begin soon; a fresh build does not yield."""
        is_wanted = self.context.request.is_wanted
        return not self.context.is_fresh and is_wanted is not None and is_wanted()

    def _is_late(self) -> bool:
        return self.context.state.passes.behind_seconds() >= LAG_SECONDS_MAX

    def _must_yield(self) -> bool:
        """True if the next step is left to another build; called before each step."""
        if not self._is_waited_for():
            return False
        if not self._is_late():
            return True
        if self.slice_end is None:
            self.slice_end = time.monotonic() + self.slice_seconds
            return False
        return time.monotonic() >= self.slice_end

    def _write_pass(self, serial: int) -> bool:
        """Continue the current pass; False if it was interrupted."""
        context, todo = self.context, self.context.state.todo
        place = context.settings, context.state, context.site
        steps = {
            Work.SITEMAP: lambda: emit.catalogue.write_sitemap(*place),
            Work.LLMS: lambda: emit.catalogue.write_llms(*place),
            Work.ORPHANS: self._remove_orphans,
            Work.LINES: lambda: emit.catalogue.write_lines(context.state, context.site),
            # Shows the files of all that comes before.
            Work.REFERENCE: self._write_reference,
            # The serial of the lists comes last.
            Work.HUB: lambda: emit.catalogue.write_hub(*place, serial),
        }
        # If a step is pending, everything before the steps was done by a build that was interrupted
        # after it.
        if not todo.has(*steps):
            if not self._write_deep_pages():
                return False
            if context.request.index and not self._update_index():
                return False
            if todo.has(Work.HOME):
                emit.catalogue.write_home(*place)
                todo.done(Work.HOME)
            if todo.has(Work.CATALOGUE):
                for work in steps:
                    todo.add(work)
            else:
                self._remove_orphans()
                if todo.has(Work.EXAMPLES):
                    self._write_reference()
                if context.request.serial is None or serial == context.shown_serial:
                    return True
                todo.add(Work.HUB)
        # One step for each file that grows with the catalogue.
        for work, step in steps.items():
            if todo.has(work):
                if self._must_yield():
                    return False
                step()
                todo.done(work)
                context.state.checkpoint()
        return True

    def _write_reference(self) -> None:
        context = self.context
        emit.catalogue.write_reference(context.settings, context.state, context.site)
        context.state.todo.done(Work.EXAMPLES)

    def _write_deep_pages(self) -> bool:
        """Write the stale pages of this pass's lists; False if interrupted."""
        context, state = self.context, self.context.state
        lists = sorted(state.todo.names(Work.PASS_LIST))
        for done, name in enumerate(lists):
            sort, tag, first = name.split("/")
            number: int | None = int(first)
            while number:
                if self._must_yield():
                    return False
                stretch = emit.catalogue.find_stale(state, tag or None, sort, number)
                state.orphans.add(stretch.gone)
                state.checkpoint()
                for page in stretch.pages:
                    context.request.progress("Writing lists", done, len(lists))
                    emit.catalogue.write_page(page, context.settings, state, context.site)
                state.todo.done(Work.PASS_LIST, [f"{sort}/{tag}/{number}"])
                number = stretch.following
                if number:
                    state.todo.add(Work.PASS_LIST, [f"{sort}/{tag}/{number}"])
        return True

    def _update_index(self) -> bool:
        """Update the search index with the repos of this pass; False if interrupted."""
        context, state = self.context, self.context.state
        if state.todo.has(Work.INDEX):
            context.indexed += self._index(None)
            state.todo.done(Work.INDEX)
        repos = sorted(state.todo.names(Work.PASS_INDEX_REPO))
        batch_size = REPOS_PER_COMMIT if context.is_hurried else REPOS_PER_COMMIT_UNHURRIED
        # Even without repos: a lost or damaged index is rebuilt.
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
        """Remove files that were orphans after the last build; note those of this build."""
        context, state, site = self.context, self.context.state, self.context.site
        state.files.flush()
        wanted = Wanted(state)
        if context.is_fresh and not site.is_new:
            # Nothing is remembered of an existing site's files.
            unwanted = [file for file in site.files() if file not in wanted]
            state.orphans.add(unwanted)
            site.remove(*(one for one in unwanted if (at := match_file(one)) and is_urgent(at)))
        kept = []
        for file, is_old in state.orphans.files().items():
            if file in wanted:
                continue
            if not is_old or self._has_removed:
                kept.append(file)
            else:
                context.removed += site.remove(file)
        state.orphans.keep(kept)
        # A second pass removes nothing more: its files became orphans in this same build.
        self._has_removed = True

    # New pulls

    def _is_behind(self) -> bool:
        """True if the site shows other pulls than were counted."""
        todo = self.context.state.todo
        return not self._are_shown() or todo.has(Work.REPO_PULLS, Work.OWNER_PULLS)

    def _are_shown(self) -> bool:
        shown = self.context.state.pulls
        return shown.shown() == newest(self.context.pulls) and shown.begun() is None

    def _note_pulls(self) -> None:
        """Note which repos and owners show other pulls than were counted."""
        state, pulls = self.context.state, self.context.pulls
        if self._are_shown():
            return
        shown = state.pulls.shown()
        serial, _ = shown
        if serial and all(
            pulls.nonce(one) == nonce for one, nonce in (shown, state.pulls.begun() or shown)
        ):
            repos = pulls.changed_since(serial)
        else:
            # The first counts replace every null with 0. If the database is another one than the
            # site shows, or an older copy of it, their differences are unknown.
            repos = state.ids.all()
            state.todo.add(Work.OWNER_PULLS, state.owners.handles())
        state.todo.add(Work.REPO_PULLS, repos)
        state.pulls.show(*newest(pulls))
        state.checkpoint()

    def _renew_repos(self) -> bool:
        """Write the repos with new pulls; False if interrupted."""
        todo = self.context.state.todo
        is_hurried = self.context.is_hurried
        batch_size = REPOS_PER_BATCH if is_hurried else REPOS_PER_BATCH_UNHURRIED
        done, total = 0, todo.count(Work.REPO_PULLS)
        while batch := todo.first(Work.REPO_PULLS, batch_size):
            if self._must_yield():
                return False
            self._renew(batch, done, total)
            done += len(batch)
        return True

    def _renew(self, batch: list[str], start: int, total: int) -> None:
        context, state = self.context, self.context.state
        # Counted repos may have left the catalogue.
        old = {repo_id: row for repo_id in batch if (row := state.repos.get(repo_id))}
        tasks = [task_as_remembered(row, context.pulls.of(row.id)) for row in old.values()]
        try:
            rendered = emit.pool.render_repos(tasks, context.settings, context.site)
            for done, (row, _) in enumerate(rendered, start):
                context.request.progress("Updating pulls", done, total)
                context.rendered += 1
                _put(state, row, old[row.id])
        except ContentError as error:
            for fault in error.faults:
                owner, name, *_ = fault.path.split("/")
                state.todo.add(Work.REPO, [f"{owner}/{name}"])
                # A removed repo is no fault, but the next build has to handle it, too.
                if os.path.isdir(content.repo_path(context.settings.content, owner, name)):
                    context.faults.append(fault)
        state.todo.done(Work.REPO_PULLS, batch)
        state.checkpoint()

    def _renew_owners(self) -> bool:
        """Write the owners of these repos; False if interrupted."""
        context, todo = self.context, self.context.state.todo
        owners = todo.first(Work.OWNER_PULLS, -1)
        for done, owner in enumerate(owners):
            if self._must_yield():
                return False
            context.request.progress("Writing owners", done, len(owners))
            try:
                emit.catalogue.write_owner(owner, context.settings, context.state, context.site)
            except ContentError as error:
                context.faults += error.faults
                todo.add(Work.OWNER, [owner])
            todo.done(Work.OWNER_PULLS, [owner])
            context.state.checkpoint()
        return True


def _put(state: State, row: RepoRow, old: RepoRow) -> None:
    if row.line != old.line:
        # The latest version differs from the one that the last build read.
        state.todo.add(Work.REPO, [row.id])
        return
    state.repos.put(row, old)
    if row.search_digest != old.search_digest:
        state.todo.add(Work.INDEX_REPO, [row.id])
    if row.digest != old.digest:
        state.todo.add(Work.OWNER_PULLS, [row.owner])
    if (row.digest, row.trend) != (old.digest, old.trend):
        state.todo.add(Work.LIST, ["", *row.tags.split()])
        state.todo.add(Work.HOME)
        state.todo.add(Work.CATALOGUE)
