"""Prompts as Agent Skills: ``skills/list`` and ``skills/get`` of the protocol's Skills extension.

Follows the stable specification of SEP-2640, as of commit 0682b7b:
https://github.com/modelcontextprotocol/ext-skills/blob/0682b7b6e9e661fbf8538e27cbd3e7282927b45a/specification/stable/skills.mdx

A skill is one file, which ``resources/read`` returns. The specification is for the stateless
revisions of the protocol. In those with a handshake, results have no cache hints, since the base
protocol has none there.
"""

import hashlib
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from builder.model.routes import BY_NAME, PAGE_SIZE
from builder.text.core_yaml import core_values
from builder.text.prompts import parse_document
from mcp_app.reader import Reader, not_whole
from mcp_app.resources import SKILL, find_skill, freshness, is_handshake
from mcp_app.top_prompts import list_top

EXTENSION = "io.modelcontextprotocol/skills"
# The official TypeScript client refuses a list of more than 64 pages.
LISTED_MAX = 64 * PAGE_SIZE


class GetSkillParams(types.RequestParams):
    uri: str


async def list_skills(
    reader: Reader, context: ServerRequestContext, params: types.PaginatedRequestParams
) -> dict[str, Any]:
    """The top of the catalogue. ``get_skill`` finds every prompt."""
    rows, next_cursor = await list_top(reader, params.cursor, LISTED_MAX)
    texts = [(row, await reader.skill(row.owner, row.name)) for row in rows]
    # A prompt may have been removed since its list was written.
    skills = [
        _entry(SKILL.format(owner=row.owner, name=row.name), text) for row, text in texts if text
    ]
    return {"skills": skills} | next_cursor | _hints(reader, context, "list")


async def get_skill(
    reader: Reader, context: ServerRequestContext, params: GetSkillParams
) -> dict[str, Any]:
    entry = _entry(params.uri, await find_skill(reader, params.uri))
    return {"skill": entry} | _hints(reader, context, BY_NAME["skill"].cache)


def _entry(uri: str, text: str) -> dict[str, Any]:
    """A skill with the digest of its one file."""
    front = parse_document(text).front
    if front is None:
        raise not_whole()
    data = text.encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {
        "uri": uri,
        "frontmatter": core_values(front),
        "resources": [{"uri": uri, "digest": digest, "size": len(data)}],
    }


def _hints(reader: Reader, context: ServerRequestContext, cache: str) -> dict[str, Any]:
    return {} if is_handshake(context) else freshness(reader.settings, cache)
