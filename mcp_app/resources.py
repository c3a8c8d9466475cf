"""Prompts as resources: ``prompt://{owner}/{name}`` is the latest version's published text,
``prompt://{owner}/{name}/{version}`` one version's, front matter included.
"""

import re
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from builder.model import names
from builder.model.errors import RequestError
from builder.model.routes import BY_NAME, max_age_seconds
from builder.model.settings import Settings
from mcp_app.cursors import refuse_cursor
from mcp_app.prompt_text import PromptId, find_prompt
from mcp_app.reader import Reader
from mcp_app.top_prompts import list_top

LATEST = "prompt://{owner}/{name}"
ONE_VERSION = "prompt://{owner}/{name}/{version}"
MEDIA = "text/markdown"
# Until 2025-11-25 a code of its own said that there is no such resource.
RESOURCE_NOT_FOUND = -32002
# What the protocol allows in one answer.
COMPLETIONS_MAX = 100

_uri = re.compile(r"prompt://([^/]+)/([^/]+)(?:/([^/]+))?")


async def list_resources(
    reader: Reader, context: ServerRequestContext, params: types.PaginatedRequestParams
) -> dict[str, Any]:
    """The top of the catalogue; the templates lead to all of it."""
    repos, next_cursor = await list_top(reader, params.cursor)
    resources = [
        {
            "uri": LATEST.format(owner=repo.owner, name=repo.name),
            "name": f"{repo.owner}/{repo.name}",
            "title": repo.title,
            "description": repo.description or repo.title,
            "mimeType": MEDIA,
            "annotations": {"lastModified": repo.updated_at},
        }
        for repo in repos
    ]
    return {"resources": resources} | next_cursor


async def list_templates(
    reader: Reader, context: ServerRequestContext, params: types.PaginatedRequestParams
) -> dict[str, Any]:
    refuse_cursor(params.cursor)
    templates = (
        (LATEST, "prompt", "A prompt", "The published text of a prompt's latest version."),
        (
            ONE_VERSION, "prompt-version", "One version of a prompt",
            "The published text of one version, for example 1.2.0. It never changes.",
        ),
    )  # fmt: skip
    return {
        "resourceTemplates": [
            {
                "uriTemplate": uri, "name": name, "title": title, "description": description,
                "mimeType": MEDIA,
            }
            for uri, name, title, description in templates
        ]
    }  # fmt: skip


async def read_resource(
    reader: Reader, context: ServerRequestContext, params: types.ReadResourceRequestParams
) -> dict[str, Any]:
    uri = str(params.uri)
    try:
        wanted = _parse(uri)
        prompt = await find_prompt(reader, wanted)
    except RequestError as error:
        if error.status >= 500:
            raise
        is_old = context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        code = RESOURCE_NOT_FOUND if is_old else types.INVALID_PARAMS
        raise MCPError(code, str(error), {"uri": uri}) from None
    cache = BY_NAME["version_raw" if wanted.version else "raw"].cache
    return {
        "contents": [{"uri": uri, "mimeType": MEDIA, "text": prompt.content}],
        "ttlMs": max_age_seconds(cache) * 1000,
        "cacheScope": cache_scope(reader.settings),
    }


def cache_scope(settings: Settings) -> Literal["public", "private"]:
    """The readers for whom a client may keep an answer."""
    return "private" if settings.private else "public"


def _parse(uri: str) -> PromptId:
    found = _uri.fullmatch(uri)
    if not found:
        raise _unknown_uri()
    return PromptId.checked(*found.groups())


def _unknown_uri() -> RequestError:
    return RequestError(
        "invalid_parameter", f"Unknown URI. Resources are {LATEST} and {ONE_VERSION}."
    )


async def complete(
    reader: Reader, uri: str, argument: str, value: str, given: dict[str, str]
) -> list[str]:
    """What a parameter of a template could be, beginning with ``value``: all of them, or at least
    one more than COMPLETIONS_MAX. Raises RequestError ``invalid_parameter``.
    """
    if uri not in (LATEST, ONE_VERSION):
        raise _unknown_uri()
    owner, name = given.get("owner", ""), given.get("name", "")
    if argument == "owner" and names.is_name(value.rstrip("-") or "a", names.OWNER_CHARS_MAX):
        if reader.selection.owner:
            return [reader.selection.owner] if reader.selection.owner.startswith(value) else []
        return await reader.owners_beginning(value, COMPLETIONS_MAX + 1)
    found: list[str] = []
    if argument == "name" and names.is_name(owner, names.OWNER_CHARS_MAX):
        user = await reader.user(owner)
        found = (
            sorted(repo.name for repo in user.repos if reader.selection.has(repo)) if user else []
        )
    elif (
        argument == "version"
        and names.is_name(owner, names.OWNER_CHARS_MAX)
        and names.is_name(name, names.REPO_CHARS_MAX)
        and await reader.repo(owner, name)
    ):
        found = [entry.version for entry in await reader.versions(owner, name)]
    return [one for one in found if one.startswith(value)]
