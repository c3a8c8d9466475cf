"""Tool calls answered with the SDK's types and checks, without its transport.

The SDK's transport answers every other request, and refuses the calls that fail a check here.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import mcp_types as types
import msgspec
from cachetools import LRUCache
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request
from mcp_types.methods import parse_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from builder.store.site import Mark, mark_of
from mcp_app.reader import Catalogue, Reader
from mcp_app.server import tool_result
from mcp_app.tools import TOOLS, call, search_prompts

KEPT_BYTES_MAX = 64 * 1024 * 1024
# Approximate size of an entry's objects. Each entry counts at least this, which bounds their
# number.
ENTRY_BYTES = 1000

Kept = tuple[bytes, dict[str, Mark], int]


class Calls:
    """Answers tool calls over a catalogue, and keeps answers while their sources are the same."""

    def __init__(
        self, catalogue: Catalogue, server_info: dict[str, Any], bytes_max: int = KEPT_BYTES_MAX
    ) -> None:
        self._catalogue = catalogue
        self.kept: LRUCache[Any, Kept] = LRUCache(bytes_max, getsizeof=lambda kept: kept[2])
        self._modern = {
            "resultType": "complete",
            "_meta": {types.SERVER_INFO_META_KEY: server_info},
        }

    async def answer(self, headers: Mapping[str, str], message: dict[str, Any]) -> bytes | None:
        """The result of ``tools/call`` as JSON; None if the SDK's transport must answer."""
        version = headers.get("mcp-protocol-version", types.DEFAULT_NEGOTIATED_VERSION)
        params = _read_params(version, headers, message)
        if params is None or params.name not in TOOLS:
            return None
        tool, arguments = TOOLS[params.name], params.arguments or {}
        build = self._catalogue.queries.version() if tool.work is search_prompts else None
        encoded = json.dumps(arguments)
        key = (version, tool.name, encoded, build)
        kept = self.kept.get(key)
        if kept and _are_same(kept[1]):
            return kept[0]
        self.kept.pop(key, None)
        reader = Reader(self._catalogue, build)
        outcome = await call(tool, reader, arguments)
        result = tool_result(outcome, msgspec.Raw(outcome.text.encode()))
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            result |= self._modern
        answer = msgspec.json.encode(result)
        size = len(answer) + len(encoded) + ENTRY_BYTES
        is_fixed = reader.sources or (build and reader.sources is not None)
        # A larger answer is not kept, since it would replace many others.
        if is_fixed and size <= self.kept.maxsize // 16:
            self.kept[key] = answer, reader.sources, size
        return answer


def _read_params(
    version: str, headers: Mapping[str, str], message: dict[str, Any]
) -> types.CallToolRequestParams | None:
    """The parameters of a call; None if the SDK must refuse them, or see more than a tool does."""
    if not message["params"].keys() <= {"name", "arguments", "_meta"}:
        return None
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        route = classify_inbound_request(message, headers=headers)
        if not isinstance(route, InboundModernRoute):
            return None
    try:
        return parse_client_request("tools/call", version, message["params"]).params
    except (ValueError, KeyError):  # pydantic's errors are ValueErrors
        return None


def _are_same(sources: dict[str, Mark]) -> bool:
    try:
        return all(mark_of(os.stat(path)) == mark for path, mark in sources.items())
    except OSError:
        return False
