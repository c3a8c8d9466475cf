"""Prompts as Agent Skills: ``skills/list`` and ``skills/get`` of the protocol's Skills extension.

Follows the stable specification of SEP-2640, as of commit 0682b7b:
https://github.com/modelcontextprotocol/ext-skills/blob/0682b7b6e9e661fbf8538e27cbd3e7282927b45a/specification/stable/skills.mdx

``resources/read`` returns the files of a skill. The specification is for the stateless
revisions of the protocol. In those with a handshake, results have no cache hints, since the base
protocol has none there.
"""

import hashlib
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from builder.model.answers import Repo
from builder.model.routes import BY_NAME, PAGE_SIZE
from builder.text.core_yaml import core_values
from builder.text.prompts import parse_document
from mcp_app.reader import Reader, list_top, not_whole
from mcp_app.resources import (
    SKILL,
    SKILL_FILE,
    file_uri,
    find_skill,
    freshness,
    is_handshake,
    skill_text,
)

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
    repos = [await reader.repo(row.owner, row.name) for row in rows]
    texts = [(repo, await reader.skill(repo.owner, repo.name)) for repo in repos if repo]
    # A prompt may have been removed since its list was written.
    skills = [_entry(repo, text) for repo, text in texts if text]
    return {"skills": skills} | next_cursor | _hints(reader, context, "list")


async def get_skill(
    reader: Reader, context: ServerRequestContext, params: GetSkillParams
) -> dict[str, Any]:
    repo = await find_skill(reader, params.uri)
    entry = _entry(repo, await skill_text(reader, repo))
    return {"skill": entry} | _hints(reader, context, BY_NAME["skill"].cache)


def _entry(repo: Repo, text: str) -> dict[str, Any]:
    """A skill with the digests of all its files."""
    front = parse_document(text).front
    if front is None:
        raise not_whole()
    data = text.encode()
    at = {"owner": repo.owner, "name": repo.name}
    uri = SKILL.format_map(at)
    files = [(uri, hashlib.sha256(data).hexdigest(), len(data))] + [
        (file_uri(SKILL_FILE, one.path, **at), one.sha256, one.size) for one in repo.files or ()
    ]
    return {
        "uri": uri,
        "frontmatter": core_values(front),
        "resources": [
            {"uri": uri, "digest": f"sha256:{sha256}", "size": size} for uri, sha256, size in files
        ],
    }


def _hints(reader: Reader, context: ServerRequestContext, cache: str) -> dict[str, Any]:
    return {} if is_handshake(context) else freshness(reader.settings, cache)
