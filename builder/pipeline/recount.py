"""Updates the pulls that the site shows, in batches that yield to other builds.

Only pulls change in the repos rendered here: their versions' files are not written, and the next
build finds other changes of the content. Pulls counted meanwhile are left for the next recount, so
that each recount ends.
"""

import os
from collections.abc import Callable

from builder.model.errors import ContentError
from builder.pipeline.context import Context, newest
from builder.pipeline.pool import render_repos
from builder.store import content
from builder.store.state import State
from builder.store.state.repos import RepoRow
from builder.store.state.work import Work
from builder.write.history import task_as_remembered
from builder.write.owner import write_owner

# A publisher waits for one batch at most. If no build can be waiting, batches are large, so that
# several processes render.
REPOS_PER_BATCH = 25
REPOS_PER_BATCH_UNHURRIED = 2_000


def is_behind(context: Context) -> bool:
    """True if the site shows other pulls than were counted."""
    return not _are_shown(context) or context.state.todo.has(Work.REPO_PULLS, Work.OWNER_PULLS)


def recount(context: Context, must_yield: Callable[[], bool]) -> bool:
    """Continue the recount; False if it was interrupted."""
    _note_changes(context)
    return _renew_repos(context, must_yield) and _renew_owners(context, must_yield)


def _are_shown(context: Context) -> bool:
    shown = context.state.pulls
    return shown.shown() == newest(context.pulls) and shown.begun() is None


def _note_changes(context: Context) -> None:
    state, pulls = context.state, context.pulls
    if _are_shown(context):
        return
    shown = state.pulls.shown()
    serial, _ = shown
    if serial and all(
        pulls.nonce(one) == nonce for one, nonce in (shown, state.pulls.begun() or shown)
    ):
        repos = pulls.changed_since(serial)
    else:
        # The first counts replace every null with 0. If the database is another one than the site
        # shows, or an older copy of it, their differences are unknown.
        repos = state.ids.all()
        state.todo.add(Work.OWNER_PULLS, state.owners.handles())
    state.todo.add(Work.REPO_PULLS, repos)
    state.pulls.show(*newest(pulls))
    state.checkpoint()


def _renew_repos(context: Context, must_yield: Callable[[], bool]) -> bool:
    todo = context.state.todo
    batch_size = REPOS_PER_BATCH if context.is_hurried else REPOS_PER_BATCH_UNHURRIED
    done, total = 0, todo.count(Work.REPO_PULLS)
    while batch := todo.first(Work.REPO_PULLS, batch_size):
        if must_yield():
            return False
        _renew(context, batch, done, total)
        done += len(batch)
    return True


def _renew(context: Context, batch: list[str], start: int, total: int) -> None:
    state = context.state
    # Counted repos may have left the catalogue.
    old = {repo_id: row for repo_id in batch if (row := state.repos.get(repo_id))}
    tasks = [task_as_remembered(row, context.pulls.of(row.id)) for row in old.values()]
    try:
        rendered = render_repos(tasks, context.settings, context.site)
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


def _renew_owners(context: Context, must_yield: Callable[[], bool]) -> bool:
    state = context.state
    done, total = 0, state.todo.count(Work.OWNER_PULLS)
    while batch := state.todo.first(Work.OWNER_PULLS, 1):
        if must_yield():
            return False
        (owner,) = batch
        context.request.progress("Writing owners", done, total)
        try:
            write_owner(owner, context.settings, state, context.site)
        except ContentError as error:
            context.faults += error.faults
            state.todo.add(Work.OWNER, [owner])
        state.todo.done(Work.OWNER_PULLS, batch)
        state.checkpoint()
        done += 1
    return True
