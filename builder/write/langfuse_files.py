"""Writes the files from which Langfuse's SDKs read one repo, and removes outdated ones.

Each version has one file for each of its refs, all with the same bytes. They change only when its
labels do.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

from builder.model.answers import Repo
from builder.model.labels import Labels
from builder.model.langfuse_records import (
    NO_REF,
    Findable,
    LangfuseListMeta,
    LangfuseMeta,
    LangfusePrompt,
    refs_of,
)
from builder.model.matching import langfuse_page
from builder.model.names import LATEST, Version
from builder.model.routes import BY_NAME, PAGE_SIZE
from builder.render import envelopes
from builder.render.derive import Stored
from builder.store.site import Site
from builder.store.state import State
from builder.store.state.repos import RepoRow
from builder.text.messages import parse_messages
from builder.write.history import History, Remembered, Task, remembered_refs


def write_repo(
    site: Site,
    task: Task,
    rows: list[Remembered],
    history: History,
    read: Callable[[Version], Stored],
) -> None:
    """Write the versions of a repo, oldest first, under their new refs, and store these in
    ``rows``. Remove the files of refs that no version has any more.
    """
    # Before the rows change, because they may be the known ones.
    before = {ref for row in history.known.values() for ref in row.refs}
    wanted: set[str] = set()
    found = [Findable(row.version, row.entry.ordinal, row.shown) for row in rows]
    for row, version, refs in zip(rows, task.versions, refs_of(found), strict=True):
        if row.refs != refs:
            _write_version(site, read(version), row.entry.ordinal, row.shown, refs)
            row.refs = refs
        wanted.update(refs)
    at = task.owner, task.name
    files = {file_of(*at, ref) for ref in before - wanted}
    if history.gone.versions and not task.old:
        files = {*files_left(site, *at)} - {file_of(*at, ref) for ref in wanted}
    site.remove(*files)


def files_of_version(row: Remembered, owner: str, name: str) -> list[str]:
    """The files of a version without labels: those of its version and its number."""
    return [file_of(owner, name, ref) for ref in row.refs[:2]]


def lost_files(old: RepoRow, new: RepoRow | None) -> list[str]:
    """The files of a repo's refs that no longer exist."""
    owner, name = old.id.split("/")
    lost = remembered_refs(old) - remembered_refs(new)
    return [file_of(owner, name, ref) for ref in lost]


def file_of(owner: str, name: str, ref: str) -> str:
    """The file for ``owner/name@ref``; for ``owner/name`` if the ref is NO_REF."""
    route = BY_NAME["langfuse_prompt" if ref == NO_REF else "langfuse_ref"]
    return route.file_for(owner=owner, name=name, ref=ref)


def files_left(site: Site, owner: str, name: str) -> Iterator[str]:
    """The files of a repo that are on the site, whatever the state has of them. Walks through the
    files of all the owner's repos.
    """
    own = file_of(owner, name, NO_REF)
    for file in site.files(os.path.dirname(own)):
        if file == own or file.startswith(f"{own}@"):
            yield file


def _write_version(
    site: Site, stored: Stored, ordinal: int, labels: list[str], refs: list[str]
) -> None:
    """Write a version under these refs. The file of a label is no earlier than the file of the
    label's history, if there is one.
    """
    prompt = _prompt(stored, ordinal, [*labels, LATEST] if LATEST in refs else labels)
    data = envelopes.json_bytes(prompt)
    for ref in refs:
        # A removed label that returns may have had a file in this same second.
        history = ""
        if ref in labels:
            at = {"owner": stored.owner, "name": stored.name, "label": ref}
            history = BY_NAME["label_history"].file_for(**at)
        site.write(file_of(stored.owner, stored.name, ref), data, not_before=history)


def meta_of(repo: Repo, rows: list[Remembered], labels: Labels) -> bytes:
    """A repo in a list; ``rows`` are its readable versions."""
    meta = LangfuseMeta(
        name=f"{repo.owner}/{repo.name}",
        type="text" if repo.messages is None else "chat",
        versions=sorted(row.entry.ordinal for row in rows),
        labels=[*labels.current, LATEST],
        tags=repo.tags,
        last_updated_at=repo.updated_at,
        last_config=repo.parameters,
    )
    return envelopes.json_bytes(meta)


def write_page(
    state: State, site: Site, tag: str | None, page: int, keys: list[int], total: int
) -> None:
    """Write one page of a list, for the repos with these keys in the state."""
    meta = LangfuseListMeta(page, PAGE_SIZE, total, envelopes.page_count(total))
    data = envelopes.envelope(state.repos.langfuse_rows(keys), meta)
    site.write(langfuse_page(tag, page).file, data)
    if (tag, page) == (None, 1):
        site.write(BY_NAME["langfuse_list"].file, data)


def _prompt(stored: Stored, ordinal: int, labels: list[str]) -> LangfusePrompt:
    record = stored.record
    messages = parse_messages(stored.body)
    prompt: Any = stored.body if messages is None else messages
    return LangfusePrompt(
        name=f"{stored.owner}/{stored.name}",
        version=ordinal,
        type="text" if messages is None else "chat",
        prompt=prompt,
        config=record.parameters,
        labels=labels,
        tags=record.tags,
        commit_message=record.changelog or None,
    )
