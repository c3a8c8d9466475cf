"""Finds out what has changed in the content since the last build, without opening a file."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from builder import content
from builder.errors import ContentError, Fault
from builder.repos import Task
from builder.state import State

Progress = Callable[[str, int, int], None]


class Changes(NamedTuple):
    """``tasks``: repos to render. ``removed``: ids of repos that are gone. ``owners``: handles
    whose profile is not as remembered, or gone.
    """

    tasks: list[Task]
    removed: list[str]
    owners: set[str]


def find_changes(
    root: str, state: State, changed: Iterable[tuple[str, str]] | None, progress: Progress
) -> Changes:
    """Compare the tree with what the state remembers.

    ``changed``: look at these (owner, name) only; None for the whole tree.
    Raises ContentError with all faults found, OperatorError.
    """
    if changed is None:
        remembered = state.marks()
        owners = content.list_owners(root)
        repos_of = None
    else:
        changed = set(changed)
        remembered = dict.fromkeys((f"{owner}/{name}" for owner, name in changed), "")
        repos_of = {}
        for owner, name in sorted(changed):
            repos_of.setdefault(owner, []).append(name)
        owners = list(repos_of)
    remembered_owners = state.owners()
    found = Changes([], [], set())
    faults: list[Fault] = []
    seen = set()
    for done, owner in enumerate(owners):
        progress("Looking", done, len(owners))
        try:
            repos = repos_of[owner] if repos_of else content.list_repos(root, owner)
        except ContentError as error:
            faults += error.faults
            continue
        for name in repos:
            repo_id = f"{owner}/{name}"
            mark = content.repo_mark(root, owner, name)
            if mark and mark == remembered.get(repo_id):
                seen.add(repo_id)
                continue
            try:
                listing = content.list_versions(root, owner, name)
            except ContentError as error:
                faults += error.faults
                continue
            if listing.versions:
                seen.add(repo_id)
                old = state.repo(repo_id)
                found.tasks.append(Task(owner, name, mark, *listing, old and old.versions))
        mark = content.owner_mark(root, owner)
        if not mark or mark != remembered_owners.get(owner, content.NO_OWNER_MARK):
            found.owners.add(owner)
    if faults:
        raise ContentError(faults)
    found.removed.extend(sorted(remembered.keys() - seen))
    if changed is None:
        found.owners.update(remembered_owners.keys() - set(owners))
    return found
