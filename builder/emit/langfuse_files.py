"""Writes the files from which Langfuse's SDKs read one repo.

Each version has one file for each of its refs, all with the same bytes. They change only when its
labels do.
"""

from collections.abc import Callable
from typing import Any

from builder.emit.history import Remembered, Task
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
from builder.model.names import LATEST, Version
from builder.model.objects import NO_REF_ID
from builder.model.routes import BY_NAME, PAGE_SIZE
from builder.render import envelopes
from builder.render.derive import Stored
from builder.store.site import Site
from builder.store.state import State
from builder.text.messages import parse_messages


def write_repo(
    site: Site, task: Task, rows: list[Remembered], read: Callable[[Version], Stored]
) -> None:
    """Write the versions of a repo, oldest first, under their new refs, and store these in
    ``rows``.
    """
    found = [Findable(row.version, row.ordinal, row.shown) for row in rows]
    for row, version, refs in zip(rows, task.versions, refs_of(found), strict=True):
        if row.refs != refs:
            _write_version(site, read(version), row.ordinal, row.shown, refs)
            row.refs = refs


def _write_version(
    site: Site, stored: Stored, ordinal: int, labels: list[str], refs: list[str]
) -> None:
    """Write a version under these refs. The file of a label is no earlier than the file of the
    label's history, if there is one.
    """
    prompt = _prompt(stored, ordinal, [*labels, LATEST] if LATEST in refs else labels)
    data = envelopes.json_bytes(prompt)
    at = {"owner": stored.owner, "name": stored.name}
    for ref in refs:
        # A removed label that returns may have had a file in this same second.
        history = BY_NAME["label_history"].file_for(**at, label=ref) if ref in labels else ""
        route = "langfuse_prompt" if ref == NO_REF else "langfuse_ref"
        of_ref = {**at, "ref": ref or NO_REF_ID}
        site.put(of_ref, [(route, data)], not_before=history)


def meta_of(repo: Repo, rows: list[Remembered], labels: Labels) -> bytes:
    """A repo in a list; ``rows`` are its readable versions."""
    meta = LangfuseMeta(
        name=f"{repo.owner}/{repo.name}",
        type="text" if repo.messages is None else "chat",
        versions=sorted(row.ordinal for row in rows),
        labels=[*labels.current, LATEST],
        tags=repo.tags,
        last_updated_at=repo.updated_at,
        last_config=repo.parameters,
    )
    return envelopes.json_bytes(meta)


def page_of(state: State, page: int, keys: list[int], total: int) -> bytes:
    """One page of a list, for the repos with these keys in the state."""
    meta = LangfuseListMeta(page, PAGE_SIZE, total, envelopes.page_count(total))
    return envelopes.envelope(state.repos.langfuse_rows(keys), meta)


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
