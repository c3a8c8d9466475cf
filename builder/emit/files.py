"""The files of each object of the site, in the order of writing.

Readers follow links, so a file comes after those that it links to, and a build writes objects in
this order:

1. Withdrawn versions and prompts, before all else: their texts may be secrets.
2. Each prompt (``repo``): its versions from the oldest, the archive of the latest, labels, refs for
   Langfuse's SDKs, and the prompt's own files.
3. ``withdrawn.jsonl``, owners, assets and fixed pages (``fixed``), tags, the first page of each
   list, the feed, the home page (``catalogue``). Publishers wait until then (``pipeline.visible``).
4. Further pages of lists, the search index, the sitemap, ``llms.txt``, and ``catalogue.jsonl``. At
   the end ``hub.json``, whose serial says that all else is there (``pipeline.settle``).

What nothing links to any more is removed one build later; a withdrawn text, a label and a ref at
once. The state stores the names of these files for each object (``store.state.files``).
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, structs

from builder.emit.history import StalePage
from builder.model import envelopes
from builder.model.answers import ErrorBody, LabelMove, Repo, RepoSummary, User
from builder.model.answers import Version as VersionRecord
from builder.model.labels import Labels
from builder.model.langfuse_records import LangfuseListMeta, LangfuseMeta, LangfusePrompt
from builder.model.matching import langfuse_page, list_api, list_page, version_file
from builder.model.names import LATEST
from builder.model.routes import BY_NAME, LIST_PAGES_MAX, PAGE_SIZE, SORTS
from builder.model.settings import Settings
from builder.model.withdrawn import WithdrawnParts, WithdrawnVersion, public, tell
from builder.render import derive, feeds, prompt_pages, skills
from builder.render.derive import Entries, Stored
from builder.render.file_pages import Files as FilePages
from builder.render.pages import pages_of
from builder.render.skills import Skill
from builder.store.state import State
from builder.store.state.repos import Listed
from builder.text.messages import parse_messages

# Each file has the name of its route, or its path, and its bytes.
Files = Iterator[tuple[str, bytes]]
# A prompt with this many versions has something to compare, and a list of versions.
COMPARED_MIN = 2
# An owner's page lists the latest of more prompts; the record lists all of them.
ROWS_MAX = 100


def of_version(
    version: VersionRecord, skill: Skill, page: bytes, shown: FilePages, diff: bytes | None
) -> Files:
    """The record comes last, because it links to all others."""
    at = {"owner": version.owner, "name": version.name, "version": version.version}
    yield "version_raw", version.content.encode()
    yield "version_body", version.body.encode()
    if diff is not None:
        yield "diff", diff
    yield "version_page", page
    yield "version_skill", skill.text
    if skill.files:
        yield "version_skill_archive", skill.archive
        for path, raw, _ in skill.files:
            yield version_file(**at, path=path).file, raw
        yield from shown.written(skill.files)
    yield "version", envelopes.single(version)


def of_archive(at: Mapping[str, object], skill: Skill) -> Files:
    """The plugin that the marketplace names, of the latest version, which ``at`` names."""
    route = "version_plugin" if skill.files else "version_skill_archive"
    yield BY_NAME[route].file_for(**at), skill.plugin


def of_label(moves: list[LabelMove], version: VersionRecord | None, skill: Skill | None) -> Files:
    """A label that names no version has a history alone."""
    yield "label_history", envelopes.whole_list(moves)
    if version is None or skill is None:
        return
    yield "label_raw", version.content.encode()
    yield "label_body", version.body.encode()
    yield "label_skill", skill.text
    yield "label_skill_index", skill.listed
    labelled = derive.labelled_version(version, moves[0].label, moves[0].moved_at)
    yield "label", envelopes.single(labelled)


def of_repo(
    settings: Settings, repo: Repo, skill: Skill, entries: Entries, labels: Labels, page: bytes
) -> Files:
    """The prompt's own files; ``page`` is the last for people."""
    pages = pages_of(settings)
    if labels.history:
        yield "labels", envelopes.whole_list([*labels.current.values()])
    yield "raw", repo.content.encode()
    yield "body", repo.body.encode()
    yield "versions", envelopes.whole_list(entries.listed)
    yield "repo", envelopes.single(repo)
    yield "repo_feed", feeds.repo_feed(settings, repo, entries.readable, labels)
    if entries.count >= COMPARED_MIN:
        yield "compare_page", prompt_pages.compare_page(pages, repo.owner, repo.name)
        yield "versions_page", prompt_pages.versions_page(pages, repo, entries, labels)
    yield "repo_page", page
    yield "skill", skill.text
    yield "skill_index", skill.listed


def langfuse_prompt(stored: Stored, ordinal: int, labels: list[str]) -> bytes:
    """The file of each ref of a version for Langfuse's SDKs; it changes only with the labels."""
    record = stored.record
    messages = parse_messages(stored.body)
    prompt = LangfusePrompt(
        name=f"{stored.owner}/{stored.name}",
        version=ordinal,
        type="text" if messages is None else "chat",
        prompt=stored.body if messages is None else messages,
        config=record.parameters,
        labels=labels,
        tags=record.tags,
        commit_message=record.changelog or None,
    )
    return envelopes.json_bytes(prompt)


def langfuse_row(repo: Repo, ordinals: list[int], labels: Labels) -> bytes:
    """A prompt in a list for Langfuse's SDKs; ``ordinals`` are those of its readable versions."""
    meta = LangfuseMeta(
        name=f"{repo.owner}/{repo.name}",
        type="text" if repo.messages is None else "chat",
        versions=sorted(ordinals),
        labels=[*labels.current, LATEST],
        tags=repo.tags,
        last_updated_at=repo.updated_at,
        last_config=repo.parameters,
    )
    return envelopes.json_bytes(meta)


def of_withdrawn_version(settings: Settings, one: WithdrawnVersion, owner: str, name: str) -> Files:
    """Why a version is gone."""
    url = BY_NAME["versions"].url_for(owner=owner, name=name)
    message = tell(f"{owner}/{name} {one.version}", one.withdrawal)
    given = {"withdrawal": public(one.withdrawal), "is_repo": False, "version": str(one.version)}
    yield "withdrawn_version_page", _withdrawn_page(settings, owner, name, given)
    yield "withdrawn_version", _withdrawn(f"{message} {url} lists the versions.")


def of_withdrawn_repo(settings: Settings, parts: WithdrawnParts, owner: str, name: str) -> Files:
    """Why a prompt without readable versions is gone."""
    repo = f"{owner}/{name}"
    if parts.whole:
        withdrawal, version, message = parts.whole, "", tell(repo, parts.whole)
    else:
        last = parts.versions[-1]
        withdrawal, version = last.withdrawal, str(last.version)
        message = tell(f"{repo} has no version left: {version}", withdrawal)
    given = {"withdrawal": public(withdrawal), "is_repo": True, "version": version}
    yield "withdrawn_repo_page", _withdrawn_page(settings, owner, name, given)
    yield "withdrawn_repo", _withdrawn(message)


def of_owner(settings: Settings, user: User, rows: list[Listed], found: list[bytes]) -> Files:
    """``rows``: its repos, latest updated first; ``found``: their skills, the most used first."""
    summaries = [row.summary for row in rows]
    yield "user", envelopes.single(structs.replace(user, repos=[*map(Raw, summaries)]))
    yield "owner_feed", feeds.owner_feed(settings, user, summaries)
    yield "owner_skill_index", skills.owner_index(found)
    yield "marketplace", skills.marketplace(user, found)
    cards = [row.card for row in rows[:ROWS_MAX]]
    page = pages_of(settings).render_list("owner.html", cards, user=user, listed_count=len(cards))
    yield "owner_page", page


def of_page(page: StalePage, settings: Settings, state: State) -> Files:
    """A page of a list: for programs, for Langfuse's SDKs, and unless it is too deep for people.
    The first of the list of all repos has two addresses.
    """
    tag, sort, number = page.tag, page.sort, page.number
    rows = state.repos.rows(page.keys)
    meta = envelopes.list_meta(number, page.total, sort, tag)
    summaries = [row.summary for row in rows]
    data = envelopes.envelope(summaries, meta)
    yield list_api(tag, sort, number).route.name, data
    if is_first := (tag, sort, number) == (None, SORTS[0], 1):
        yield "repos", data
    if settings.langfuse and sort == SORTS[0]:
        given = LangfuseListMeta(number, PAGE_SIZE, page.total, meta.pages)
        data = envelopes.envelope([row.langfuse for row in rows], given)
        yield langfuse_page(tag, number).route.name, data
        if is_first:
            yield "langfuse_list", data
    if number <= LIST_PAGES_MAX:
        html = pages_of(settings).render_list(
            "list.html",
            [row.card for row in rows],
            meta=meta,
            pages=min(meta.pages, LIST_PAGES_MAX),
            has_pulls=sort == SORTS[0] and _has_pulls(summaries),
        )
        yield list_page(tag, sort, number).route.name, html


def _withdrawn_page(settings: Settings, owner: str, name: str, given: dict[str, object]) -> bytes:
    return pages_of(settings).render("withdrawn.html", owner=owner, name=name, **given)


def _withdrawn(message: str) -> bytes:
    return envelopes.error_envelope(ErrorBody("withdrawn", message))


def _has_pulls(summaries: list[bytes]) -> bool:
    """True if the first repo has been read."""
    return bool(summaries and msgspec.json.decode(summaries[0], type=RepoSummary).pulls)
