"""The Python SDK's client against a live hub, in both eras: with the handshake, and without."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from builder import VERSION
from builder.model.routes import max_age_seconds
from builder.model.settings import Settings
from mcp_app.server import instructions
from tests.mcp.conftest import SQL_REVIEW

LIST_TTL_MS = max_age_seconds("list") * 1000

# How a client connects, and the revision that it comes to.
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
        return  # this client takes the server's word for all of it, and has not asked
    assert (server.version, server.title) == (VERSION, "Hub")
    assert server.name and server.website_url
    assert told == instructions(Settings())
    offered = {"tools", "resources", "prompts", "completions"}
    assert capabilities.model_dump(exclude_none=True).keys() == offered
    # Nothing is ever pushed, and nothing says that it would be.
    assert not capabilities.tools.list_changed
    assert not capabilities.prompts.list_changed
    assert not capabilities.resources.list_changed and not capabilities.resources.subscribe


def test_discovery_says_how_long_it_is_true(mcp_url: str):
    async def discover() -> types.DiscoverResult:
        async with Client(mcp_url) as client:
            return await client.session.discover()

    found = asyncio.run(discover())
    assert (found.ttl_ms, found.cache_scope) == (LIST_TTL_MS, "public")
    assert set(MODES.values()) >= set(found.supported_versions) >= {"2026-07-28"}


def test_lists_say_how_long_they_are_true(ask: Ask, mode: str):
    async def look(client: Client) -> list[Any]:
        return [
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resources(),
            await client.list_resource_templates(),
        ]

    # The handshake's era has no such thing; this is what the client makes of that.
    expected = (0, "private") if mode == "legacy" else (LIST_TTL_MS, "public")
    for result in ask(look):
        assert (result.ttl_ms, result.cache_scope) == expected


def test_an_unknown_tool_is_an_error_of_the_protocol(ask: Ask):
    with pytest.raises(MCPError, match="The tools are search_prompts") as raised:
        ask(lambda client: client.call_tool("publish", {}))
    assert raised.value.error.code == types.INVALID_PARAMS


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


def test_an_unknown_resource(ask: Ask, mode: str):
    with pytest.raises(MCPError, match=SQL_REVIEW) as raised:
        ask(lambda client: client.read_resource("prompt://mara-okafor/sql-reviw"))
    not_found = -32002
    expected = not_found if mode == "legacy" else types.INVALID_PARAMS
    assert raised.value.error.code == expected
