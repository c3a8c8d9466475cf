"""Decides which files of a site are no longer needed, or may become so.

The answer comes from the table of routes and the state, so it needs no list of files.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from builder.model.langfuse_records import NO_REF
from builder.model.matching import Match, list_api, list_page, match_file, version_file
from builder.model.routes import BY_NAME, HOST_FILES, LIST_PAGES_MAX, ROUTES, SORTS, Route
from builder.store.site import Site
from builder.store.state import State
from builder.store.state.repos import RepoRow
from builder.write import langfuse_files
from builder.write.history import (
    LabelNames,
    Task,
    remembered_files,
    remembered_labels,
    remembered_refs,
    remembered_versions,
    remembered_withdrawn,
)
from builder.write.repo import COMPARED_MIN
from builder.write.sitemap import PARTS
from builder.write.withdrawn import files_of, files_of_version, folders_left, labels_left


class Expected:
    """The files that belong on the site, by the current state. ``has_langfuse``: the site also
    serves Langfuse's SDKs.
    """

    def __init__(self, state: State, *, has_langfuse: bool = False) -> None:
        self._has_langfuse = has_langfuse
        self._has_owner = cache(lambda owner: state.owners.mark(owner) is not None)

        def remembered(read: Callable[[RepoRow | None], Any]) -> Callable[[str], Any]:
            return cache(lambda repo_id: read(state.repos.get(repo_id)))

        self._versions = remembered(remembered_versions)
        self._files = remembered(remembered_files)
        self._count = remembered(_count)
        self._labels = remembered(remembered_labels)
        self._refs = remembered(remembered_refs)
        self._withdrawn = remembered(remembered_withdrawn)
        self._is_withdrawn = cache(state.withdrawn.has)
        self._pages = cache(lambda tag, sort: state.lists.pages(tag, sort))

    def __contains__(self, file: str) -> bool:
        found = match_file(file)
        return file in HOST_FILES or (found is not None and self._exists(found))

    def _exists(self, found: Match) -> bool:
        params = found.params
        if found.route.name == "sitemap_part":
            return int(params["page"]) in self._pages(None, PARTS)
        if found.route.scope == "langfuse" and "name" not in params:
            pages = self._pages(params.get("tag"), SORTS[0])
            return self._has_langfuse and int(params.get("page", 1)) in pages
        if found.route.scope == "owner":
            return self._has_owner(params["owner"])
        if found.route.scope == "list" and params:
            tag, sort = params.get("tag"), params.get("sort", SORTS[0])
            page = int(params.get("page", 1))
            made = list_api if found.route.is_api else list_page
            if page > LIST_PAGES_MAX and not found.route.is_api:
                return False
            return page in self._pages(tag, sort) and made(tag, sort, page).file == found.file
        if "name" in params:
            return self._exists_of_repo(found.route, "{owner}/{name}".format_map(params), params)
        return True

    def _exists_of_repo(self, route: Route, repo_id: str, params: dict[str, str]) -> bool:
        version = params.get("version")
        if route.scope == "label":
            return _has_file(self._labels(repo_id), route.name, params.get("label"))
        if route.scope == "langfuse":
            return params.get("ref", NO_REF) in self._refs(repo_id)
        if route.scope == "withdrawn":
            return version in self._withdrawn(repo_id) if version else self._is_withdrawn(repo_id)
        if route.scope == "files":
            paths = self._files(repo_id).get(version, [])
            path = params.get("text_path") or params.get("file_path")
            if path is None:
                return bool(paths)  # the plugin
            at = params["owner"], params["name"], version
            return path in paths and version_file(*at, path).route == route
        if route.scope == "versions":
            return self._count(repo_id) >= COMPARED_MIN
        versions = self._versions(repo_id)
        if route.name == "diff":
            versions = versions[1:]
        if route.name == "version_skill_archive" and version not in self._files(repo_id):
            versions = versions[-1:]
        return version in versions if route.scope == "version" else bool(versions)


def _count(row: RepoRow | None) -> int:
    """The number of versions that a repo lists, including withdrawn ones."""
    return row.versions_count if row else 0


def _has_file(labels: LabelNames, route: str, label: str | None) -> bool:
    """True if a repo with these labels has the file of a route of their scope."""
    if label is None:
        return bool(labels.history)
    return label in (labels.history if route == "label_history" else labels.current)


def new_files(task: Task, old: RepoRow | None) -> list[str]:
    """The files that a task may add to the site. Without files of labels and for Langfuse's SDKs,
    which are known only once the records are read (see ``files_left``).
    """
    at = {"owner": task.owner, "name": task.name}
    if not task.versions:
        return files_of("withdrawn", **at)
    files = [] if old else files_of("repo", **at)
    for version in task.withdrawn.versions - remembered_withdrawn(old):
        files += files_of("withdrawn", **at, version=version)
    known = {*remembered_versions(old)}
    if _count(old) < COMPARED_MIN <= len(task.versions) + len(task.withdrawn.versions):
        files += files_of("versions", **at)
    for version in map(str, task.versions):
        if version not in known:
            files += files_of("version", **at, version=version)
    return files


def lost_files(old: RepoRow, new: RepoRow | None) -> list[str]:
    """The files of a repo that are no longer needed."""
    owner, name = old.id.split("/")
    before = remembered_versions(old)
    after = remembered_versions(new)
    files = [] if new else files_of("repo", owner=owner, name=name)
    if _count(new) < COMPARED_MIN <= _count(old):
        files += files_of("versions", owner=owner, name=name)
    for version in {*before} - {*after}:
        files += files_of("version", owner=owner, name=name, version=version)
    files += lost_archives(old, new)
    files += {*_folder_files(old)} - {*_folder_files(new)}
    for version in remembered_withdrawn(old) - remembered_withdrawn(new):
        files += files_of("withdrawn", owner=owner, name=name, version=version)
    if after and after[0] != before[0]:
        # The first version has no diff, but may have had one.
        files.append(BY_NAME["diff"].file_for(owner=owner, name=name, version=after[0]))
    files += langfuse_files.lost_files(old, new)
    kept = {*_label_files(new)} if new else set()
    return files + [file for file in _label_files(old) if file not in kept]


def lost_archives(old: RepoRow, new: RepoRow | None) -> list[str]:
    """The archive of a version that is no longer the latest, unless it has files."""
    before, after = remembered_versions(old)[-1], remembered_versions(new)[-1:]
    if not after or after == [before] or before in remembered_files(new):
        return []
    owner, name = old.id.split("/")
    return [BY_NAME["version_skill_archive"].file_for(owner=owner, name=name, version=before)]


def _folder_files(row: RepoRow | None) -> Iterator[str]:
    """The files on the site for the files of a repo's versions."""
    for version, paths in remembered_files(row).items():
        yield from files_of_version(row.id, version, paths)


def _label_files(row: RepoRow) -> list[str]:
    """The files of labels that a repo has."""
    labels = remembered_labels(row)
    owner, name = row.id.split("/")
    return [
        route.file_for(owner=owner, name=name, label=label)
        for route in ROUTES
        if route.scope == "label"
        for label in (labels.history if "{label}" in route.file else [""])
        if _has_file(labels, route.name, label or None)
    ]


def files_left(site: Site, repo_id: str) -> list[str]:
    """The files on the site for a repo's labels, for Langfuse's SDKs and for the files of its
    versions, even those that the state does not have.
    """
    owner, name = repo_id.split("/")
    files = [*labels_left(site, owner, name), *folders_left(site, owner, name)]
    return [*files, *langfuse_files.files_left(site, owner, name)]
