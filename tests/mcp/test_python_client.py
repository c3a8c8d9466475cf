"""The Python SDK's client against a live hub, in both eras: with the handshake, and without."""

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from mcp import Client
from mcp_types import BlobResourceContents, TextResourceContents

from builder import VERSION
from builder.model.caching import max_age_seconds
from builder.model.settings import Settings
from mcp_app.server import instructions
from tests.mcp.conftest import SQL_REVIEW, TOOL, TOOL_FILES

LIST_TTL_MS = max_age_seconds("list") * 1000

# The way in which a client connects, and the resulting revision.
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}

T = TypeVar("T")
Ask = Callable[..., Any]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ask(mode: str, mcp_url: str) -> Ask:
    """Does something with a client that is connected; gives what comes of it."""

    def ask(work: Callable[[Client], Awaitable[T]], part: str = "") -> T:
        async def run() -> T:
            async with Client(mcp_url + part, mode=mode) as client:
                try:
                    return await work(client)
                except Exception as error:
                    failed = error
            # Out here, or it would come in the client's groups of errors.
            raise failed

        return asyncio.run(run())

    return ask


def test_it_connects(ask: Ask, mode: str):
    async def look(client: Client) -> tuple[Any, ...]:
        return (
            client.protocol_version, client.server_info, client.server_capabilities,
            client.instructions,
        )  # fmt: skip

    version, server, capabilities, told = ask(look)
    assert version == MODES[mode]
    if mode == "2026-07-28":
        return  # this client requests none of it, and trusts the server
    assert (server.version, server.title) == (VERSION, "Hub")
    assert server.name and server.website_url
    assert told == instructions(Settings())
    offered = {"tools", "resources", "prompts", "completions", "extensions"}
    assert capabilities.model_dump(exclude_none=True).keys() == offered
    # Nothing is ever pushed, and nothing says that it would be.
    assert not capabilities.tools.list_changed
    assert not capabilities.prompts.list_changed
    assert not capabilities.resources.list_changed and not capabilities.resources.subscribe


def test_results_are_checked_by_the_output_schema(ask: Ask):
    """The client has the schemas, which the TypeScript clients check results by, too."""

    async def spoil(client: Client) -> None:
        result = await client.call_tool("list_tags", {"limit": 1})
        result.structured_content["tags"][0]["count"] = "many"
        await client.session.validate_tool_result("list_tags", result)

    with pytest.raises(RuntimeError, match="'many' is not of type 'integer'"):
        ask(spoil)


def test_a_version_is_true_for_longer_than_the_latest(ask: Ask, mode: str):
    async def look(client: Client) -> list[int]:
        uris = (f"prompt://{SQL_REVIEW}", f"prompt://{SQL_REVIEW}/1.0.0")
        return [(await client.read_resource(uri)).ttl_ms for uri in uris]

    latest, version = ask(look)
    if mode == "legacy":
        assert latest == version == 0
    else:
        assert (latest, version) == (
            max_age_seconds("repo") * 1000, max_age_seconds("immutable") * 1000,
        )  # fmt: skip


def test_files_are_listed_and_read(ask: Ask):
    async def look(client: Client) -> dict[str, bytes]:
        listed = (await client.call_tool("get_prompt", {"id": TOOL})).structured_content["files"]
        read = {one["path"]: await client.read_resource(one["uri"]) for one in listed}
        return {path: _data(one.contents[0]) for path, one in read.items()}

    assert ask(look) == TOOL_FILES


def _data(content: TextResourceContents | BlobResourceContents) -> bytes:
    if isinstance(content, TextResourceContents):
        return content.text.encode()
    return b64decode(content.blob)
