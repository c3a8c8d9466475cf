"""LangSmith: the commits of prompts as its API answers them, or LangChain's manifests in files.

Follows the published API (``RepoWithLookups``, ``CommitWithLookups``, ``CommitGetResponse`` and the
tags of a repo's commits). A document is one of these:

- a prompt as ``download`` writes it: ``{"repo": …, "commits": […], "tags": […]}``. The manifest of
  a commit is in it, or in a document of its own,
- a commit with its ``manifest``, as ``GET /commits/{owner}/{repo}/{commit}`` answers, or as
  ``pull_prompt_commit`` of the SDK returns,
- a manifest alone, as ``langchain_core.load.dumps`` writes.

``langchain_manifests`` reads the manifests. Not taken: who wrote a commit (``full_name``),
``readme``, examples, counts of likes, views and downloads, archived prompts, agents and skills.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moving.importers.items import Document, History, Rejection, Revision
from moving.importers.times import read_time
from moving.vendors.api import Api
from moving.vendors.langchain_manifests import Template, is_manifest, read_manifest
from moving.vendors.paging import list_entries, path_part
from moving.vendors.reading import (
    COMMIT_CHARS,
    get_text,
    list_names,
    name_from_place,
    shorten,
    write_changelog,
)
from publisher.write.fields import parse_loosely

TITLE = "LangSmith"
API_URL = "https://api.smith.langchain.com"
KEYS = ("LANGSMITH_API_KEY",)
# The workspace, if a key has several.
OPTIONAL_KEYS = ("LANGSMITH_WORKSPACE_ID",)

# The most entries that the API returns in one page of a list.
PAGE_ENTRIES = 100

# Stands for the owner of the API key.
_WORKSPACE = "-"


def headers(keys: Mapping[str, str]) -> dict[str, str]:
    """The headers that authenticate a request, and name the workspace."""
    workspace = keys.get("LANGSMITH_WORKSPACE_ID")
    return {"x-api-key": keys["LANGSMITH_API_KEY"]} | (
        {"X-Tenant-Id": workspace} if workspace else {}
    )


def download(api: Api) -> Iterator[Document]:
    """Each commit of each prompt of the workspace, private and public. Raises ApiError."""
    handles = _list_prompts(api)
    for done, (handle, repo) in enumerate(handles.items()):
        api.count(done, len(handles))
        where, path = shorten(handle), f"{_WORKSPACE}/{path_part(handle)}"
        commits = list(_list(api, f"/commits/{path}", "commits", "commit_hash"))
        tags = api.get(f"/repos/{path}/tags")
        tags = tags.get("tags") if isinstance(tags, dict) else tags
        yield Document(where, {"repo": repo, "commits": commits, "tags": tags})
        for commit in commits:
            found = commit["commit_hash"]
            # Without this parameter, the manifest lacks the model.
            manifest = api.get(f"/commits/{path}/{path_part(found)}", {"include_model": "true"})
            yield Document(f"{where}, commit {shorten(found[:COMMIT_CHARS])}", manifest)
    api.count(len(handles), len(handles))


def _list_prompts(api: Api) -> dict[str, dict[str, Any]]:
    """The workspace's prompts that have commits, by handle. Raises ApiError."""
    queries = [{"is_public": "false"}]
    # Public prompts are listed under the workspace's handle, if it has one.
    if handle := get_text(api.get("/settings"), "tenant_handle"):
        queries.append({"is_public": "true", "tenant_handle": handle})
    return {
        repo["repo_handle"]: repo
        for params in queries
        for repo in _list(api, "/repos", "repos", "repo_handle", is_archived="false", **params)
        if repo.get("repo_type", "prompt") == "prompt" and repo.get("num_commits") != 0
    }


def _list(api: Api, path: str, key: str, name: str, **params: str) -> Iterator[dict[str, Any]]:
    return list_entries(
        lambda page, count: api.get(path, {**params, "limit": PAGE_ENTRIES, "offset": count}),
        key,
        name,
        path,
    )


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    """The prompts of an export, each with its commits, parents first."""
    export = _Export()
    for document in documents:
        yield from export.take(document)
    for prompt in export.list_prompts():
        yield from _read_prompt(prompt, export.manifests)


class _Commit(NamedTuple):
    where: str
    hash: str
    parent: str
    created_at: str | None
    description: str
    warnings: list[str]


@dataclass
class _Prompt:
    """The data of one prompt from all documents. ``labels``: by the commits' hashes."""

    where: str
    owner: str
    name: str
    repo: dict[str, Any] = field(default_factory=dict)
    commits: dict[str, _Commit] = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)


class _Export:
    """Collects documents. ``manifests``: by the hashes of their commits, which are derived from
    their content; None for an unreadable one, which has been reported.
    """

    def __init__(self) -> None:
        self.manifests: dict[str, Template | None] = {}
        self._prompts: dict[tuple[str, str], _Prompt] = {}
        self._unnamed: list[_Commit] = []

    def take(self, document: Document) -> Iterator[Rejection]:
        where, value = document
        if isinstance(value, dict) and isinstance(value.get("commits"), list):
            yield from self._take_prompt(where, value)
        elif is_manifest(value):
            yield from self._take_commit(where, {"manifest": value})
        elif isinstance(value, dict) and "manifest" in value:
            yield from self._take_commit(where, value)
        else:
            reason = "is not a LangSmith prompt: it has no manifest and no list of commits"
            yield Rejection(where, reason)

    def list_prompts(self) -> Iterator[_Prompt]:
        """All prompts, in the order of the documents."""
        listed = {found for prompt in self._prompts.values() for found in prompt.commits}
        yield from self._prompts.values()
        for commit in self._unnamed:
            if commit.hash not in listed:
                name = name_from_place(commit.where)
                yield _Prompt(commit.where, "", name, commits={commit.hash: commit})

    def _take_commit(self, where: str, value: dict[str, Any]) -> Iterator[Rejection]:
        template = yield from _try_manifest(where, value["manifest"])
        if template and not get_text(value, "commit_hash"):
            # Fields that the SDK adds to a pulled prompt. In a commit, they describe what the
            # commit was made from.
            noted = {
                key: get_text(template.metadata, f"lc_hub_{key}")
                for key in ("owner", "repo", "commit_hash")
            }
            value = noted | {key: said for key, said in value.items() if said}
        commit = _make_commit(where, value)
        self.manifests[commit.hash] = template or self.manifests.get(commit.hash)
        if name := get_text(value, "repo"):
            owner = get_text(value, "owner")
            owner = "" if owner == _WORKSPACE else owner
            self._prompt(where, owner, name).commits.setdefault(commit.hash, commit)
        else:
            self._unnamed.append(commit)

    def _take_prompt(self, where: str, value: dict[str, Any]) -> Iterator[Rejection]:
        name = get_text(value.get("repo"), "repo_handle")
        if not name:
            yield Rejection(where, "has commits, but no repo with a repo_handle")
            return
        prompt = self._prompt(where, "", name)
        if prompt.repo:
            yield Rejection(where, f"has the same prompt as {prompt.where}")
            return
        prompt.where, prompt.repo = where, value["repo"]
        # The API lists the newest first.
        for number, entry in reversed(list(enumerate(value["commits"], start=1))):
            place = f"{where}, commit {number:,}"
            if not get_text(entry, "commit_hash"):
                yield Rejection(place, "has no commit_hash")
                continue
            commit = _make_commit(place, entry)
            # A listed commit has more data than a document with its manifest alone.
            prompt.commits[commit.hash] = commit
            if entry.get("manifest") and not self.manifests.get(commit.hash):
                template = yield from _try_manifest(place, entry["manifest"])
                self.manifests[commit.hash] = template
        tags = value.get("tags")
        for tag in tags if isinstance(tags, list) else []:
            if label := get_text(tag, "tag_name"):
                prompt.labels.setdefault(get_text(tag, "commit_hash"), []).append(label)

    def _prompt(self, where: str, owner: str, name: str) -> _Prompt:
        return self._prompts.setdefault((owner, name), _Prompt(where, owner, name))


def _try_manifest(where: str, value: Any) -> Generator[Rejection, None, Template | None]:
    try:
        return read_manifest(value)
    except ValueError as error:
        yield Rejection(where, str(error))
        return None


def _make_commit(where: str, value: dict[str, Any]) -> _Commit:
    warnings: list[str] = []
    return _Commit(
        where,
        # Without a hash, its place identifies it.
        get_text(value, "commit_hash") or where,
        get_text(value, "parent_commit_hash"),
        read_time(value.get("created_at"), warnings),
        get_text(value, "description"),
        warnings,
    )


def _read_prompt(
    prompt: _Prompt, manifests: Mapping[str, Template | None]
) -> Iterator[History | Rejection]:
    revisions = []
    for commit in _order(prompt.commits):
        if commit.hash not in manifests:
            yield Rejection(commit.where, "has no manifest. Download the prompt again")
        elif template := manifests[commit.hash]:
            labels = prompt.labels.pop(commit.hash, [])
            revisions.append(_make_revision(prompt, commit, template, tuple(labels)))
    if not prompt.commits:
        yield Rejection(prompt.where, "has no commits")
    if revisions:
        if lost := list_names(label for labels in prompt.labels.values() for label in labels):
            revisions[-1].warnings.append(
                f"Left out tags of commits that are not in the export: {lost}."
            )
        if not prompt.repo and len(revisions) > 1:
            note = "Its versions come in the order of their times and their files."
            revisions[-1].warnings.append(note)
        yield History(prompt.where, prompt.owner, prompt.name, revisions)


def _make_revision(
    prompt: _Prompt, commit: _Commit, template: Template, labels: tuple[str, ...]
) -> Revision:
    fields, notes = parse_loosely(
        {
            "description": prompt.repo.get("description") or None,
            "tags": prompt.repo.get("tags") or None,
            "variables": template.variables or None,
            "parameters": template.parameters or None,
        }
    )
    found = commit.hash if commit.hash != commit.where else ""
    return Revision(
        where=commit.where,
        prompt=template.prompt,
        fields=fields,
        warnings=[*dict.fromkeys(template.warnings + commit.warnings + notes)],
        convention=template.convention,
        changelog=write_changelog(commit.description, found, TITLE),
        published_at=commit.created_at,
        labels=labels,
    )


def _order(commits: Mapping[str, _Commit]) -> list[_Commit]:
    """The commits in order of their times, but each after its parent."""
    ordered: dict[str, _Commit] = {}
    for commit in sorted(commits.values(), key=lambda one: one.created_at or ""):
        line: dict[str, _Commit] = {}
        one: _Commit | None = commit
        while one and one.hash not in ordered and one.hash not in line:
            line[one.hash] = one
            one = commits.get(one.parent)
        ordered.update(reversed(line.items()))
    return list(ordered.values())
