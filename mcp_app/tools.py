"""The four tools: ``search_prompts``, ``get_prompt``, ``list_versions`` and ``list_tags``."""

import traceback
from collections.abc import Awaitable, Callable
from itertools import zip_longest
from logging import getLogger
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from builder.model import names
from builder.model.answers import RepoSummary
from builder.model.errors import RequestError
from builder.model.names import Version
from builder.model.records import Variable
from builder.model.routes import BY_NAME
from builder.model.search_records import SearchMatch
from builder.search.queries import REACHED_MAX, ListQuery
from builder.text.likeness import COMPARED_MAX, alike
from builder.text.sources import built_from
from mcp_app.cursors import make_cursor, read_cursor, stale
from mcp_app.prompt_text import Prompt, PromptId, fill_in, find_prompt, find_repo, parse_id
from mcp_app.reader import Reader, not_whole
from mcp_app.resources import VERSION_FILE, file_uri
from mcp_app.schemas import read_arguments
from mcp_app.shapes import (
    FoundPrompt,
    GetPrompt,
    ListedTag,
    ListedVersion,
    ListTags,
    ListVersions,
    PromptFile,
    PromptResult,
    PromptVariable,
    SearchPrompts,
    SearchResult,
    TagsResult,
    VersionsResult,
)
from mcp_app.unknown import did_you_mean

T = TypeVar("T")

log = getLogger("hub.mcp")


async def search_prompts(reader: Reader, request: SearchPrompts) -> SearchResult:
    owner = names.check_owner(request.owner) if request.owner else None
    if not all(names.is_name(tag, names.TAG_CHARS_MAX) for tag in request.tags):
        raise RequestError(
            "invalid_parameter",
            "A tag has only a-z, 0-9 and single hyphens. Call list_tags to see all tags.",
        )
    tags = tuple(dict.fromkeys(request.tags))
    sort = None if request.sort is UNSET else request.sort
    words = request.query.strip()
    list_key = (words, tags, owner, sort)
    start = read_cursor(request.cursor, *list_key) if request.cursor else 0
    if owner and not reader.has_owner(owner):
        raise await _unknown_owner(reader, owner)
    query = ListQuery(sort=sort, tags=tags, q=words or None, owner=owner, explain=bool(words))
    try:
        rows, found = await reader.find(query, start, request.limit)
    except RequestError as error:
        if error.code == "invalid_parameter" and start < REACHED_MAX:
            raise RequestError(
                "invalid_parameter",
                "The query has no letter or digit. Add a word, or leave query out to browse.",
            ) from None
        unknown = await _unknown_tag(reader, tags)
        if unknown:
            raise unknown from None
        raise
    if start and start >= found.total:
        raise stale()
    end = start + len(rows)
    reached = min(found.total, REACHED_MAX) if words else found.total
    return SearchResult(
        prompts=[_found(row, match) for row, match in zip_longest(rows, found.matches or ())],
        total=found.total,
        match=found.match if found.match and rows else UNSET,
        corrected=found.corrected or UNSET,
        next_cursor=make_cursor(end, *list_key) if rows and end < reached else UNSET,
    )


def _found(row: RepoSummary, match: SearchMatch | None) -> FoundPrompt:
    return FoundPrompt(
        f"{row.owner}/{row.name}",
        row.title,
        row.description,
        row.latest_version,
        row.tags,
        row.updated_at,
        row.url,
        (match and match.line) or UNSET,
    )


async def _unknown_owner(reader: Reader, owner: str) -> RequestError:
    if await reader.owners_beginning(owner, 1) == [owner]:
        return not_whole()
    begin_alike = await reader.owners_beginning(owner[:2], COMPARED_MAX)
    advice = did_you_mean(alike(owner, begin_alike)) or "Leave owner out to search all prompts."
    return RequestError("user_not_found", f"No owner `{owner}` here. {advice}")


async def _unknown_tag(reader: Reader, tags: tuple[str, ...]) -> RequestError | None:
    """The error for the first of these tags that no prompt has; None if all exist."""
    known = dict.fromkeys(tag.name for tag in await reader.tags())
    unknown = next((tag for tag in tags if tag not in known), None)
    if unknown is None:
        return None
    # Compares only the first of these: tags with the same first letter, then the most used.
    near = alike(unknown, sorted(known, key=lambda tag: tag[0] != unknown[0]))
    advice = did_you_mean(near) or "Call list_tags to see all tags."
    return RequestError("tag_not_found", f"No prompt here has the tag `{unknown}`. {advice}")


async def get_prompt(reader: Reader, request: GetPrompt) -> PromptResult:
    if bool(request.id) == bool(request.owner or request.name):
        raise RequestError("invalid_parameter", "Pass id as owner/name, or pass owner and name.")
    wanted = parse_id(request.id or f"{request.owner}/{request.name}")
    if request.version:
        version = Version.parse(request.version)
        if wanted.version not in (None, version):
            raise RequestError("invalid_parameter", "id and version differ. Pass one version.")
        if wanted.label:
            raise RequestError("invalid_parameter", "id has a label. Leave version out.")
        wanted = wanted._replace(version=version)
    if request.label:
        wanted = _at_label(wanted, names.check_label(request.label))
    prompt = await find_prompt(reader, wanted)
    filled = fill_in(prompt.record, None if request.arguments is UNSET else request.arguments)
    repo, record = prompt.repo, prompt.record
    url = BY_NAME["version_page"].url_for(owner=repo.owner, name=repo.name, version=prompt.version)
    return PromptResult(
        id=wanted.repo_id,
        version=prompt.version,
        label=wanted.label or UNSET,
        is_latest=prompt.version == repo.latest_version,
        text=filled.text,
        messages=UNSET if filled.messages is None else filled.messages,
        variables=[_present(variable) for variable in record.variables],
        parameters=record.parameters,
        title=record.title,
        description=record.description,
        tags=record.tags,
        published_at=prompt.published_at,
        sha256=record.sha256,
        url=reader.settings.base_url + url,
        missing=filled.missing or UNSET,
        files=_files(prompt) or UNSET,
    )


def _files(prompt: Prompt) -> list[PromptFile]:
    """The files of a version, each with the URI of its resource."""
    at = {"owner": prompt.repo.owner, "name": prompt.repo.name, "version": prompt.version}
    return [
        PromptFile(
            one.path,
            one.size,
            one.media_type,
            one.executable,
            file_uri(VERSION_FILE, one.path, **at),
        )
        for one in prompt.record.files or ()
    ]


def _at_label(wanted: PromptId, label: str) -> PromptId:
    """The id with a label. Raises RequestError if the id names another version or label."""
    named = PromptId(wanted.owner, wanted.name, None).at(label)
    if named.version or wanted not in (named, named._replace(label=None)):
        raise RequestError(
            "invalid_parameter",
            "Pass a label like production as label, or a version as version, or one of them in id.",
        )
    return named


def _present(variable: Variable) -> PromptVariable:
    """A variable, without fields that its author left out."""
    return PromptVariable(
        variable.name,
        variable.type,
        variable.required,
        variable.description or UNSET,
        *(UNSET if value is None else value for value in (variable.default, variable.example)),
        variable.enum or UNSET,
    )


async def list_versions(reader: Reader, request: ListVersions) -> VersionsResult:
    owner, name, version, label = parse_id(request.id)
    if version or label:
        raise RequestError(
            "invalid_parameter", "Pass id without a version or a label, as owner/name."
        )
    await find_repo(reader, owner, name)
    entries = await reader.versions(owner, name)
    shown, next_cursor = _page(entries, request, "versions", owner, name)
    return VersionsResult(
        versions=[
            ListedVersion(
                entry.version,
                entry.published_at,
                entry.changelog,
                entry.size,
                entry.sha256,
                entry.withdrawn.reason if entry.withdrawn else UNSET,
                entry.labels,
                built_from(entry.source) or UNSET,
            )
            for entry in shown
        ],
        next_cursor=next_cursor,
    )


async def list_tags(reader: Reader, request: ListTags) -> TagsResult:
    tags = [tag for tag in await reader.tags() if tag.name.startswith(request.prefix)]
    shown, next_cursor = _page(tags, request, "tags", request.prefix)
    return TagsResult([ListedTag(tag.name, tag.count) for tag in shown], next_cursor)


def _page(
    rows: list[T], request: ListVersions | ListTags, *list_key: str
) -> tuple[list[T], str | UnsetType]:
    """The rows that a request wants, and the cursor to the next ones."""
    start = read_cursor(request.cursor, *list_key) if request.cursor else 0
    end = start + request.limit
    return rows[start:end], make_cursor(end, *list_key) if end < len(rows) else UNSET


class Tool(NamedTuple):
    """A tool; its name is the function's. ``takes`` and ``gives`` are records."""

    title: str
    description: str
    takes: type[Struct]
    gives: type[Struct]
    work: Callable[[Reader, Any], Awaitable[Struct]]

    @property
    def name(self) -> str:
        return self.work.__name__


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "Search prompts",
            "Find prompts in this catalogue by words, tags or owner, or browse them all. Returns "
            "ids, titles and descriptions, not the texts: pass an id to get_prompt.",
            SearchPrompts,
            SearchResult,
            search_prompts,
        ),
        Tool(
            "Get a prompt",
            "Get the text of one prompt, ready to use, with its {{variables}} filled in from "
            "arguments. Returns the version too: pass it next time to get the same text.",
            GetPrompt,
            PromptResult,
            get_prompt,
        ),
        Tool(
            "List versions",
            "List the versions of one prompt with what changed in each and the labels that name "
            "it, newest first.",
            ListVersions,
            VersionsResult,
            list_versions,
        ),
        Tool(
            "List tags",
            "List the tags of prompts, most used first. Use them to narrow search_prompts.",
            ListTags,
            TagsResult,
            list_tags,
        ),
    )
}


class Outcome(NamedTuple):
    """The outcome of a call: the result as JSON, or one line that says what to do next."""

    text: str
    is_error: bool = False


_encode = msgspec.json.encode


async def call(tool: Tool, reader: Reader, arguments: dict[str, Any]) -> Outcome:
    """Run a tool. Never raises; errors that the client did not cause are logged."""
    try:
        result = await tool.work(reader, read_arguments(arguments, tool.takes))
        return Outcome(_encode(result).decode())
    except RequestError as error:
        reader.sources = None
        return Outcome(str(error), is_error=True)
    except Exception:
        log.error("%s failed\n%s", tool.name, traceback.format_exc())
        reader.sources = None
        return Outcome("The server failed. Try again in a moment.", is_error=True)
