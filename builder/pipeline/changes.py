"""Detects changes of the content since the last build, without opening a file. Removes withdrawn
texts that crashes have left.
"""

import logging
from collections.abc import Collection
from typing import NamedTuple

from builder.emit.history import Task
from builder.model.errors import Faults
from builder.pipeline.context import Context, Named
from builder.store import content
from builder.store.state.work import Work
from builder.store.withdrawn_files import NOTHING_WITHDRAWN, remove_left

log = logging.getLogger("hub.build")


class Changes(NamedTuple):
    """``home``: the mark and the text of ``home.md`` if it has changed, otherwise None. ``tasks``:
    repos to render; ``withdrawn``: repos without readable versions; both by id. ``removed``: ids of
    removed repos. ``owners``: handles whose profile has changed or was removed. ``faults``: the
    reasons why other repos cannot be built.
    """

    home: tuple[str, str] | None
    tasks: dict[str, Task]
    withdrawn: dict[str, Task]
    removed: list[str]
    owners: set[str]
    faults: Faults


def find_changes(context: Context) -> Changes:
    """Compare the tree with the remembered state; tasks get their current pulls.

    Checks ``context.changed`` only, and repos whose build did not end. Raises ContentError if the
    tree cannot be walked, and OperatorError.
    """
    root, state = context.settings.content, context.state
    begun = state.todo.names(Work.REPO)
    if context.changed is None:
        owners = content.list_owners(root)
        remembered = state.repos.marks() | state.withdrawn.marks()
        named = None
    else:
        named = owners = _by_owner(context.changed, begun)
        remembered = {f"{owner}/{name}": "" for owner in named for name in named[owner]}
    faults = Faults()
    found = Changes(_find_home(context, faults), {}, {}, [], set(), faults)
    seen = set()
    for done, owner in enumerate(owners):
        context.request.progress("Checking owners", done, len(owners))
        repos: list[str] = []
        with faults:
            repos = content.list_repos(root, owner) if named is None else named[owner]
        for name in repos:
            repo_id = f"{owner}/{name}"
            mark = content.repo_mark(root, owner, name) if context.edited else ""
            if mark and mark == remembered.get(repo_id) and repo_id not in begun:
                seen.add(repo_id)
                continue
            with faults:
                task = _task(context, owner, name, mark, repo_id in begun)
                if not task:
                    continue
                (found.tasks if task.versions else found.withdrawn)[repo_id] = task
            seen.add(repo_id)
        mark = content.owner_mark(root, owner)
        if not mark or mark != (state.owners.mark(owner) or content.NO_FILE_MARK):
            found.owners.add(owner)
    found.removed.extend(sorted(remembered.keys() - seen))
    if named is None:
        found.owners.update(state.owners.handles() - set(owners))
    return found


def _find_home(context: Context, faults: Faults) -> tuple[str, str] | None:
    if context.changed is not None:
        return None
    mark = content.home_mark(context.settings.content)
    if mark and mark == context.state.home()[0]:
        return None
    with faults:
        return mark, content.read_home(context.settings.content)
    return None


def _by_owner(changed: Collection[Named], begun: set[str]) -> dict[str, list[str]]:
    """The names of the repos to check, by the handle of each owner to check."""
    repos_of: dict[str, list[str]] = {owner: [] for owner, _ in changed}
    for repo_id in sorted({f"{owner}/{name}" for owner, name in changed if name} | begun):
        owner, name = repo_id.split("/")
        repos_of.setdefault(owner, []).append(name)
    return repos_of


def _task(context: Context, owner: str, name: str, mark: str, is_begun: bool) -> Task | None:
    """The task of a repo; None if it has no version and never had one. Raises ContentError."""
    root, repo_id = context.settings.content, f"{owner}/{name}"
    listing = content.list_versions(root, owner, name)
    if listing.left and not context.site.dry:
        # A withdrawal had no time to remove these files. The site shows none of them in any case.
        for fault in remove_left(root, repo_id, listing.left):
            log.warning("%s", fault)
        mark = ""
    if not listing.versions and listing.withdrawn == NOTHING_WITHDRAWN:
        return None
    # If a build of the repo did not end, it is not known which of its files are on the site.
    old = None if is_begun or context.is_fresh else context.state.repos.get(repo_id)
    return Task(
        owner,
        name,
        mark,
        listing.versions,
        listing.events,
        listing.withdrawn,
        old,
        context.edited,
        context.pulls.of(repo_id),
    )
