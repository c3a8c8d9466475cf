"""Tells which files of a site have lost the object that they were rendered from, or may.

The answer comes from the table of routes and the state, so it needs no list of files.
"""

from functools import cache

from builder.model.routes import (
    BY_NAME,
    HOST_FILES,
    LIST_PAGES_MAX,
    ROUTES,
    SORTS,
    Match,
    Scope,
    list_api,
    list_page,
    match_file,
)  # fmt: skip
from builder.store.state import State
from builder.store.state.repos import RepoRow
from builder.write.repo import Task, remembered_versions
from builder.write.sitemap import PARTS


class Expected:
    """Whether a file belongs on the site, by the state as it is now."""

    def __init__(self, state: State) -> None:
        self._has_owner = cache(lambda owner: state.owners.mark(owner) is not None)
        self._versions = cache(lambda repo_id: _versions(state, repo_id))
        self._pages = cache(lambda tag, sort: state.lists.pages(tag, sort))

    def __contains__(self, file: str) -> bool:
        found = match_file(file)
        return file in HOST_FILES or (found is not None and self._exists(found))

    def _exists(self, found: Match) -> bool:
        params = found.params
        if found.route.name == "sitemap_part":
            return int(params["page"]) in self._pages(None, PARTS)
        if found.route.scope == "owner":
            return self._has_owner(params["owner"])
        if found.route.scope == "list" and params:
            tag, sort = params.get("tag"), params.get("sort", SORTS[0])
            page = int(params.get("page", 1))
            made = list_api if found.route.is_api else list_page
            if page > LIST_PAGES_MAX and not found.route.is_api:
                return False
            return page in self._pages(tag, sort) and made(tag, sort, page).file == found.file
        if found.route.scope in ("repo", "version"):
            versions = self._versions(f"{params['owner']}/{params['name']}")
            if found.route.name == "diff":
                versions = versions[1:]
            return bool(versions) if found.route.scope == "repo" else params["version"] in versions
        return True


def _versions(state: State, repo_id: str) -> list[str]:
    row = state.repos.get(repo_id)
    return remembered_versions(row.versions) if row else []


def new_files(task: Task, old: RepoRow | None) -> list[str]:
    """The files that a task may put on the site and that were not there."""
    at = {"owner": task.owner, "name": task.name}
    files = [] if old else files_of("repo", **at)
    known = set(remembered_versions(old.versions)) if old else set()
    for version in map(str, task.versions):
        if version not in known:
            files += files_of("version", **at, version=version)
    return files


def lost_files(old: RepoRow, new: RepoRow | None) -> list[str]:
    """The files of a repo that have lost their object."""
    owner, name = old.id.split("/")
    before = remembered_versions(old.versions)
    after = remembered_versions(new.versions) if new else []
    files = [] if new else files_of("repo", owner=owner, name=name)
    for version in {*before} - {*after}:
        files += files_of("version", owner=owner, name=name, version=version)
    if after and after[0] != before[0]:
        # The first version has no diff, and may have had one.
        files.append(BY_NAME["diff"].file_for(owner=owner, name=name, version=after[0]))
    return files


def files_of(scope: Scope, **params: str) -> list[str]:
    return [route.file_for(**params) for route in ROUTES if route.scope == scope]
