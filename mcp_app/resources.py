"""Prompts as resources: ``prompt://{owner}/{name}`` is the latest version's published text,
``prompt://{owner}/{name}/{version}`` one version's, front matter included, and
``skill://{owner}/{name}/SKILL.md`` the latest version as an Agent Skill.
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
from mcp_app.prompt_text import PromptId, find_prompt, find_repo
from mcp_app.reader import Reader, not_whole
from mcp_app.top_prompts import list_top

LATEST = "prompt://{owner}/{name}"
ONE_VERSION = "prompt://{owner}/{name}/{version}"
SKILL = "skill://{owner}/{name}/SKILL.md"
MEDIA = "text/markdown"
# Revisions up to 2025-11-25 have this code for an unknown resource.
RESOURCE_NOT_FOUND = -32002
# The most that MCP allows in one answer (``completion/complete``).
COMPLETIONS_MAX = 100

_prompt_uri = re.compile(r"prompt://([^/]+)/([^/]+)(?:/([^/]+))?")
_skill_uri = re.compile(r"skill://([^/]+)/([^/]+)/SKILL\.md")


async def list_resources(
    reader: Reader, context: ServerRequestContext, params: types.PaginatedRequestParams
) -> dict[str, Any]:
    """The top of the catalogue. The templates reach every prompt."""
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
            ONE_VERSION,
            "prompt-version",
            "One version of a prompt",
            "The published text of one version, for example 1.2.0. It never changes.",
        ),
        (SKILL, "skill", "A prompt as a skill", "A prompt's latest version as an Agent Skill."),
    )
    return {
        "resourceTemplates": [
            {
                "uriTemplate": uri,
                "name": name,
                "title": title,
                "description": description,
                "mimeType": MEDIA,
            }
            for uri, name, title, description in templates
        ]
    }


async def read_resource(
    reader: Reader, context: ServerRequestContext, params: types.ReadResourceRequestParams
) -> dict[str, Any]:
    uri = str(params.uri)
    try:
        text, cache = await _find_text(reader, uri)
    except RequestError as error:
        if error.status >= 500:
            raise
        code = RESOURCE_NOT_FOUND if is_handshake(context) else types.INVALID_PARAMS
        raise MCPError(code, str(error), {"uri": uri}) from None
    return {
        "contents": [{"uri": uri, "mimeType": MEDIA, "text": text}],
        **freshness(reader.settings, cache),
    }


async def _find_text(reader: Reader, uri: str) -> tuple[str, str]:
    """The text of a resource, and its class of ``CACHE_CONTROL``. Raises RequestError."""
    if uri.startswith("skill:"):
        return await find_skill(reader, uri), BY_NAME["skill"].cache
    found = _prompt_uri.fullmatch(uri)
    if not found:
        raise _unknown_uri()
    wanted = PromptId.checked(*found.groups())
    prompt = await find_prompt(reader, wanted)
    return prompt.record.content, BY_NAME["version_raw" if wanted.version else "raw"].cache


async def find_skill(reader: Reader, uri: str) -> str:
    """The ``SKILL.md`` at a URI. Raises RequestError as ``find_repo`` does, also
    ``invalid_parameter`` and ``invalid_name``.
    """
    found = _skill_uri.fullmatch(uri)
    if not found:
        raise _unknown_uri()
    wanted = PromptId.checked(*found.groups(), None)
    await find_repo(reader, wanted.owner, wanted.name)
    text = await reader.skill(wanted.owner, wanted.name)
    if text is None:
        raise not_whole()
    return text


def is_handshake(context: ServerRequestContext) -> bool:
    """True if a client speaks a revision that begins with a handshake."""
    return context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS


def freshness(settings: Settings, cache: str) -> dict[str, Any]:
    """The time for which a client may cache a result of a class of ``CACHE_CONTROL``, and its
    scope.
    """
    return {"ttlMs": max_age_seconds(cache) * 1000, "cacheScope": cache_scope(settings)}


def cache_scope(settings: Settings) -> Literal["public", "private"]:
    """``private`` if only the client itself may cache an answer, else ``public``."""
    return "private" if settings.private else "public"


def _unknown_uri() -> RequestError:
    return RequestError(
        "invalid_parameter", f"Unknown URI. Resources are {LATEST}, {ONE_VERSION} and {SKILL}."
    )


async def complete(
    reader: Reader, uri: str, argument: str, value: str, given: dict[str, str]
) -> list[str]:
    """Values for a parameter of a template that begin with ``value``: all, or at least one more
    than COMPLETIONS_MAX. Raises RequestError ``invalid_parameter``.
    """
    if uri not in (LATEST, ONE_VERSION, SKILL):
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
