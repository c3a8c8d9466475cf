"""Brings the pulls that the site shows to those that are counted, in batches that give way.

Nothing but pulls is new of the repos that are rendered here: their versions' files are left
alone, and what else has changed in the content is for the next build, which looks at it. Counts
that come while these are taken in are for the next time, so that this has an end.
"""

import os
from collections.abc import Callable

from builder.model.errors import ContentError, Fault, PullsError
from builder.model.progress import Progress
from builder.model.settings import Settings
from builder.pipeline.pool import render_repos
from builder.stats.pulls import PullCounts, Pulls
from builder.store import content
from builder.store.site import Site
from builder.store.state import RepoRow, State
from builder.write.owner import write_owner
from builder.write.repo import task_as_remembered

# Who waits to publish waits for one batch. With nobody to wait, several processes take part.
REPOS_PER_BATCH = 25
REPOS_PER_BATCH_UNHURRIED = 2_000


class ShownPulls:
    """The counts that the site shows, where the database of pulls cannot be used: publishers do
    not wait until it is mended.

    They are not known by day, so a repo that is rendered by them is listed too low in `trending`:
    the next build that can read the database looks at all repos.
    """

    def __init__(self, state: State, error: PullsError) -> None:
        self.error = error
        self._state = state
        serial, _ = state.shown_pulls()
        if serial:
            state.show_pulls(serial, "unreadable")

    def serial(self) -> int:
        return self._state.shown_pulls()[0]

    def nonce(self, serial: int) -> str | None:
        return self._state.shown_pulls()[1]

    def of(self, repo_id: str) -> PullCounts | None:
        row = self._state.repo(repo_id)
        return PullCounts(row.pulls if row else 0, ()) if self.serial() else None


def newest(pulls: Pulls | ShownPulls) -> tuple[int, str | None]:
    """The counts that there are, as ``State.shown_pulls`` tells of the shown ones."""
    serial = pulls.serial()
    return serial, pulls.nonce(serial)


class Recount:
    """What one build does of it. ``rendered`` counts repos; ``faults``: why some stay as they were.

    ``is_hurried``: somebody may come to wait for the end of the build.
    """

    def __init__(
        self, settings: Settings, state: State, pulls: Pulls | ShownPulls, site: Site,
        progress: Progress, *, is_hurried: bool,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.state = state
        self.pulls = pulls
        self.site = site
        self.progress = progress
        self.batch_size = REPOS_PER_BATCH if is_hurried else REPOS_PER_BATCH_UNHURRIED
        self.rendered = 0
        self.faults: list[Fault] = []

    def is_behind(self) -> bool:
        """Whether the site has other pulls than are counted."""
        state = self.state
        return state.shown_pulls() != newest(self.pulls) or any(
            state.first_todo(kind, 1) for kind in ("pulls", "pulls owner")
        )

    def go_on(self, must_yield: Callable[[], bool]) -> bool:
        """Go on with all that is left; False if that was cut short."""
        self._note_changes()
        return self._renew_repos(must_yield) and self._renew_owners(must_yield)

    def _note_changes(self) -> None:
        serial, nonce = self.state.shown_pulls()
        if (serial, nonce) == newest(self.pulls):
            return
        if serial and self.pulls.nonce(serial) == nonce:
            repos = self.pulls.changed_since(serial)
        else:
            # The first counts make 0 of every null; and of another database than the one that
            # is shown, or an older copy of it, nobody knows in what they differ.
            repos = self.state.ordered_ids(None)
            self.state.add_todo("pulls owner", self.state.owners())
        self.state.add_todo("pulls", repos)
        self.state.show_pulls(*newest(self.pulls))
        self.state.checkpoint()

    def _renew_repos(self, must_yield: Callable[[], bool]) -> bool:
        done, total = 0, self.state.count_todo("pulls")
        while batch := self.state.first_todo("pulls", self.batch_size):
            if must_yield():
                return False
            self._renew(batch, done, total)
            done += len(batch)
        return True

    def _renew(self, batch: list[str], start: int, total: int) -> None:
        state = self.state
        # Of those that are counted, some may have left the catalogue.
        old = {repo_id: row for repo_id in batch if (row := state.repo(repo_id))}
        tasks = [task_as_remembered(row, self.pulls.of(row.id)) for row in old.values()]
        try:
            for done, row in enumerate(render_repos(tasks, self.settings, self.site), start):
                self.progress("Writing pulls", done, total)
                self.rendered += 1
                self._put(row, old[row.id])
        except ContentError as error:
            for fault in error.faults:
                owner, name, *_ = fault.path.split("/")
                state.add_todo("repo", [f"{owner}/{name}"])
                # That a repo is gone is no fault, but for the next build, too.
                if os.path.isdir(content.repo_path(self.settings.content, owner, name)):
                    self.faults.append(fault)
        state.done("pulls", batch)
        state.checkpoint()

    def _put(self, row: RepoRow, old: RepoRow) -> None:
        state = self.state
        if row.line != old.line:
            # The latest version is not the one that the last build saw.
            state.add_todo("repo", [row.id])
            return
        state.put_repo(row, old)
        if row.digest != old.digest:
            state.add_todo("pulls owner", [row.owner])
        if (row.digest, row.trend) != (old.digest, old.trend):
            state.add_todo("list", ["", *row.tags.split()])
            state.add_todo("site", ["home", "catalogue"])

    def _renew_owners(self, must_yield: Callable[[], bool]) -> bool:
        state = self.state
        done, total = 0, state.count_todo("pulls owner")
        while batch := state.first_todo("pulls owner", 1):
            if must_yield():
                return False
            (owner,) = batch
            self.progress("Writing owners", done, total)
            try:
                write_owner(owner, self.settings, state, self.site)
            except ContentError as error:
                self.faults += error.faults
                state.add_todo("owner", [owner])
            state.done("pulls owner", batch)
            state.checkpoint()
            done += 1
        return True
