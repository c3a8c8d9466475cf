"""Writes the files from which Langfuse's SDKs read one repo, and removes those that mean nothing
any more.

Each version has one file for each of its refs, all with the same bytes. They change when its labels
do, and nothing else is in them that can.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from builder.model.langfuse import NO_REF, LangfuseListMeta, LangfuseMeta, LangfusePrompt
from builder.model.names import LATEST
from builder.model.records import Repo
from builder.model.routes import BY_NAME, PAGE_SIZE
from builder.render import envelopes
from builder.render.derive import Stored
from builder.render.envelopes import page_count
from builder.store.site import Site
from builder.text.messages import parse_messages


def file_of(owner: str, name: str, ref: str) -> str:
    """The file of what ``owner/name@ref`` names; of ``owner/name``, if the ref is NO_REF."""
    route = BY_NAME["langfuse_prompt" if ref == NO_REF else "langfuse_ref"]
    return route.file_for(owner=owner, name=name, ref=ref)


def files_left(site: Site, owner: str, name: str) -> Iterator[str]:
    """The files of a repo that are on the site, whatever is remembered of them. Looks through the
    files of all the owner's repos.
    """
    own = file_of(owner, name, NO_REF)
    for file in site.files(os.path.dirname(own)):
        if file == own or file.startswith(f"{own}@"):
            yield file


def write_version(
    site: Site, stored: Stored, ordinal: int, labels: list[str], refs: Iterable[str]
) -> None:
    """Write a version under these refs; under that of a label no earlier than the file of the
    label's history, if there is one.
    """
    prompt = _prompt(stored, ordinal, [*labels, LATEST] if LATEST in refs else labels)
    data = envelopes.json_bytes(prompt)
    for ref in refs:
        # A label that is back may have been there in this very second.
        history = ""
        if ref in labels:
            at = {"owner": stored.owner, "name": stored.name, "label": ref}
            history = BY_NAME["label_history"].file_for(**at)
        site.write(file_of(stored.owner, stored.name, ref), data, not_before=history)


def meta_of(repo: Repo, ordinals: list[int], labels: list[str]) -> LangfuseMeta:
    """A repo in a list; ``ordinals`` are those of the versions that can be read."""
    return LangfuseMeta(
        name=f"{repo.owner}/{repo.name}",
        type="text" if repo.messages is None else "chat",
        versions=sorted(ordinals),
        labels=[*labels, LATEST],
        tags=repo.tags,
        last_updated_at=repo.updated_at,
        last_config=repo.parameters,
    )


def page_of(rows: list[bytes], page: int, total: int) -> bytes:
    """One page of a list, of the JSON of its rows."""
    return envelopes.envelope(rows, LangfuseListMeta(page, PAGE_SIZE, total, page_count(total)))


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
