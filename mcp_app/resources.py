"""Prompts as resources: ``prompt://{owner}/{name}`` is the latest version's published text,
``prompt://{owner}/{name}/{version}`` one version's, front matter included, and
``skill://{owner}/{name}/SKILL.md`` the latest version as an Agent Skill. The files of a version are
below ``files/`` of its URI, and beside the ``SKILL.md`` of the skill.
"""

import re
from base64 import b64encode
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from builder.model import version_files
from builder.model.answers import Repo
from builder.model.caching import max_age_seconds
from builder.model.errors import RequestError
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.text.likeness import alike
from mcp_app.prompt_text import Prompt, PromptId, find_prompt
from mcp_app.reader import Reader, list_top, not_whole
from mcp_app.unknown import did_you_mean

LATEST = "prompt://{owner}/{name}"
ONE_VERSION = "prompt://{owner}/{name}/{version}"
VERSION_FILE = ONE_VERSION + "/files/{+path}"
SKILL = "skill://{owner}/{name}/SKILL.md"
SKILL_FILE = "skill://{owner}/{name}/{+path}"
MEDIA = "text/markdown"
# Revisions up to 2025-11-25 have this code for an unknown resource.
RESOURCE_NOT_FOUND = -32002

_prompt_uri = re.compile(r"prompt://([^/]+)/([^/]+)(?:/([^/]+)(?:/files/(.+))?)?")
_skill_uri = re.compile(r"skill://([^/]+)/([^/]+)/(?:SKILL\.md|(.+))")


def file_uri(template: str, path: str, **params: str) -> str:
    """The URI of a file, by one of the templates with a path."""
    return template.format_map(params | {"+path": path})


async def list_resources(
    reader: Reader, context: ServerRequestContext, params: types.PaginatedRequestParams
) -> dict[str, Any]:
    """The top of the catalogue. ``read_resource`` reaches every prompt."""
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


async def read_resource(
    reader: Reader, context: ServerRequestContext, params: types.ReadResourceRequestParams
) -> dict[str, Any]:
    uri = str(params.uri)
    try:
        content, cache = await _find_content(reader, uri)
    except RequestError as error:
        if error.status >= 500:
            raise
        code = RESOURCE_NOT_FOUND if is_handshake(context) else types.INVALID_PARAMS
        raise MCPError(code, str(error), {"uri": uri}) from None
    return {
        "contents": [{"uri": uri, **content}],
        **freshness(reader.settings, cache),
    }


async def _find_content(reader: Reader, uri: str) -> tuple[dict[str, str], str]:
    """The media type and the text or bytes of a resource, and its key in ``CACHE_CONTROL``. Raises
    RequestError.
    """
    if uri.startswith("skill:"):
        prompt, path = await _find_skill(reader, uri)
        cache = BY_NAME["skill"].cache
        if not path:
            text = await skill_text(reader, prompt.repo)
            return {"mimeType": MEDIA, "text": text}, cache
        return await _read_file(reader, prompt, path), cache
    found = _prompt_uri.fullmatch(uri)
    if not found:
        raise _unknown_uri()
    *prompt_id, path = found.groups()
    wanted = PromptId.checked(*prompt_id)
    prompt = await find_prompt(reader, wanted)
    if path:
        return await _read_file(reader, prompt, path), BY_NAME["version_file"].cache
    cache = BY_NAME["version_raw" if wanted.version else "raw"].cache
    return {"mimeType": MEDIA, "text": prompt.record.content}, cache


async def _find_skill(reader: Reader, uri: str) -> tuple[Prompt, str | None]:
    """The latest version at the URI of a skill, and the path of a file; None for ``SKILL.md``."""
    found = _skill_uri.fullmatch(uri)
    if not found:
        raise _unknown_uri()
    owner, name, path = found.groups()
    return await find_prompt(reader, PromptId.checked(owner, name, None)), path


async def find_skill(reader: Reader, uri: str) -> Repo:
    """The repo of the skill at a URI. Raises RequestError as ``find_repo`` does, also
    ``invalid_parameter`` and ``invalid_name``.
    """
    prompt, path = await _find_skill(reader, uri)
    if path:
        raise RequestError("invalid_parameter", f"The URI of a skill is {SKILL}.")
    return prompt.repo


async def skill_text(reader: Reader, repo: Repo) -> str:
    """The ``SKILL.md`` of a repo's latest version."""
    text = await reader.skill(repo.owner, repo.name)
    if text is None:
        raise not_whole()
    return text


async def _read_file(reader: Reader, prompt: Prompt, path: str) -> dict[str, str]:
    """A file of a version: its text, or the bytes of a binary file as base64."""
    repo, files = prompt.repo, prompt.record.files or ()
    file = next((one for one in files if one.path == path), None)
    if file is None:
        if version_files.fault_of_path(path):
            raise RequestError(
                "invalid_parameter",
                "No file has this path. Pass a URI of get_prompt as it is, without % or `..`.",
            )
        advice = did_you_mean(alike(path, (one.path for one in files)))
        raise RequestError(
            "not_found",
            f"No such file of `{repo.owner}/{repo.name}` {prompt.version}. "
            + (advice or "Call get_prompt for its files."),
        )
    data = await reader.file(repo.owner, repo.name, prompt.version, path)
    if data is None or len(data) != file.size:
        raise not_whole()
    text = version_files.text_of(data)
    content = {"blob": b64encode(data).decode()} if text is None else {"text": text}
    return {"mimeType": file.media_type, **content}


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
    known = LATEST, ONE_VERSION, VERSION_FILE, SKILL, SKILL_FILE
    return RequestError("invalid_parameter", f"Unknown URI. Resources are {', '.join(known)}.")
