"""Finds out what has changed in the content since the last build, without opening a file."""

from collections.abc import Collection
from typing import NamedTuple

from builder.model.errors import ContentError, Fault
from builder.model.progress import Progress
from builder.stats.pulls import Pulls
from builder.store import content
from builder.store.state import State
from builder.write.repo import Task


class Changes(NamedTuple):
    """``tasks``: repos to render. ``removed``: ids of repos that are gone. ``owners``: handles
    whose profile is not as remembered, or gone. ``faults``: why other repos cannot be built.
    """

    tasks: list[Task]
    removed: list[str]
    owners: set[str]
    faults: list[Fault]


def find_changes(
    root: str,
    state: State,
    pulls: Pulls,
    changed: Collection[tuple[str, str | None]] | None,
    progress: Progress,
) -> Changes:
    """Compare the tree with what the state remembers; tasks get their pulls as counted now.

    ``changed``: look at these (owner, name) only, or at an owner's profile where the name is None,
    and at what a build began and did not end; None for the whole tree. Raises ContentError where
    the tree cannot be walked, OperatorError.
    """
    begun = state.todo("repo")
    repos_of: dict[str, list[str]] = {}
    if changed is None:
        remembered = state.marks()
        owners = content.list_owners(root)
    else:
        looked_at = {f"{owner}/{name}" for owner, name in changed if name} | begun
        remembered = dict.fromkeys(looked_at, "")
        repos_of = {owner: [] for owner, _ in changed}
        for repo_id in sorted(looked_at):
            owner, name = repo_id.split("/")
            repos_of.setdefault(owner, []).append(name)
        owners = list(repos_of)
    found = Changes([], [], set(), [])
    seen = set()
    for done, owner in enumerate(owners):
        progress("Looking", done, len(owners))
        try:
            repos = content.list_repos(root, owner) if changed is None else repos_of[owner]
        except ContentError as error:
            found.faults.extend(error.faults)
            continue
        for name in repos:
            repo_id = f"{owner}/{name}"
            mark = content.repo_mark(root, owner, name)
            if mark and mark == remembered.get(repo_id) and repo_id not in begun:
                seen.add(repo_id)
                continue
            try:
                listing = content.list_versions(root, owner, name)
            except ContentError as error:
                found.faults.extend(error.faults)
                seen.add(repo_id)
                continue
            if listing.versions:
                seen.add(repo_id)
                old = state.repo(repo_id)
                # Of what was begun, nobody knows which files are on the site.
                known = old.versions if old and repo_id not in begun else None
                found.tasks.append(Task(owner, name, mark, *listing, known, pulls.of(repo_id)))
        mark = content.owner_mark(root, owner)
        if not mark or mark != (state.owner_mark(owner) or content.NO_OWNER_MARK):
            found.owners.add(owner)
    found.removed.extend(sorted(remembered.keys() - seen))
    if changed is None:
        found.owners.update(state.owners() - set(owners))
    return found
