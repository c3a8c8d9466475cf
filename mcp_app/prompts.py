"""Prompts as MCP's own prompts, which clients offer as a menu of commands."""

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from builder.model.answers import Message, Repo
from builder.model.errors import RequestError
from builder.model.records import Variable
from builder.text.values import as_text
from mcp_app.prompt_text import Filled, fill_in, find_prompt, parse_id
from mcp_app.reader import Reader, list_top
from mcp_app.unknown import listed

# MCP has only these two roles, so a system message becomes one of the user.
_ROLES = {"system": "user", "user": "user", "assistant": "assistant", "tool": "user"}


async def list_prompts(
    reader: Reader, context: ServerRequestContext, params: types.PaginatedRequestParams
) -> dict[str, Any]:
    """The top of the catalogue. ``get_prompt`` finds every prompt."""
    summaries, next_cursor = await list_top(reader, params.cursor)
    repos = [await reader.repo(row.owner, row.name) for row in summaries]
    # A prompt may have been removed since its list was written.
    return {"prompts": [_described(repo) for repo in repos if repo]} | next_cursor


def _described(repo: Repo) -> dict[str, Any]:
    return {
        "name": f"{repo.owner}/{repo.name}",
        "title": repo.title,
        "description": repo.description or repo.title,
        "arguments": [
            {
                "name": variable.name,
                "description": _explained(variable),
                "required": variable.required,
            }
            for variable in repo.variables
        ],
    }


def _explained(variable: Variable) -> str:
    """One line that describes a variable, since arguments of MCP have no type and no default."""
    parts = [variable.description]
    if variable.enum:
        parts.append(f"One of: {', '.join(map(as_text, variable.enum))}")
    elif variable.type != "string":
        parts.append(f"Type: {variable.type}")
    if variable.default is not None:
        parts.append(f"Default: {as_text(variable.default)}")
    elif variable.example is not None:
        parts.append(f"Example: {as_text(variable.example)}")
    return ". ".join(part.rstrip(". ") for part in parts if part)


async def get_prompt(
    reader: Reader, context: ServerRequestContext, params: types.GetPromptRequestParams
) -> dict[str, Any]:
    """The messages of a prompt, filled in; a prompt that is no chat is one message."""
    record = (await find_prompt(reader, parse_id(params.name))).record
    filled = fill_in(record, params.arguments or {})
    if filled.missing:
        raise RequestError("invalid_parameter", f"Missing arguments: {listed(filled.missing)}.")
    return {
        "description": record.description,
        "messages": [
            {"role": _ROLES[one.role], "content": {"type": "text", "text": one.content}}
            for one in _spoken(filled)
        ],
    }


def _spoken(filled: Filled) -> list[Message]:
    """The messages to send, without empty ones, which models reject."""
    if filled.messages is None:
        return [Message("user", filled.text)]
    return [one for one in filled.messages if one.content.strip()] or [Message("user", "")]
