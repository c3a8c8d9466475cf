"""The Python SDK's client against a live hub, in both eras: with the handshake, and without."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from builder import VERSION
from builder.model.routes import PAGE_SIZE, max_age_seconds
from builder.model.settings import Settings
from mcp_app.server import instructions
from tests.mcp.conftest import MORE_PROMPTS
from tests.support.servers import Server

SQL_REVIEW = "mara-okafor/sql-review"
FILLED = {"query": "SELECT 1", "purpose": "One row", "schema": "none", "dialect": "SQLite"}
LIST_TTL_MS = max_age_seconds("list") * 1000
ONE_VERSION = types.ResourceTemplateReference(uri="prompt://{owner}/{name}/{version}")

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


@pytest.fixture
def call(ask: Ask) -> Callable[..., dict[str, Any]]:
    """Calls a tool that must succeed; the client checks the result by the tool's schema."""

    def call(tool: str, *, part: str = "", **arguments: Any) -> dict[str, Any]:
        result = ask(lambda client: client.call_tool(tool, arguments), part)
        assert not result.is_error, result
        (content,) = result.content
        assert json.loads(content.text) == result.structured_content
        return result.structured_content

    return call


async def pages(list_page: Callable[..., Awaitable[Any]]) -> list[Any]:
    """Every page of one of the protocol's lists."""
    found = [await list_page()]
    while cursor := found[-1].next_cursor:
        found.append(await list_page(cursor=cursor))
        assert found[-1].next_cursor != cursor
    return found


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


def test_tools(ask: Ask):
    tools = ask(lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == [
        "search_prompts", "get_prompt", "list_versions", "list_tags",
    ]  # fmt: skip
    for tool in tools:
        assert tool.annotations.read_only_hint and tool.annotations.idempotent_hint
        assert tool.annotations.destructive_hint is tool.annotations.open_world_hint is False
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"


def test_search_prompts(call: Callable[..., dict[str, Any]]):
    found = call("search_prompts", query="sql review", tags=["sql"], limit=1)
    assert [prompt["id"] for prompt in found["prompts"]] == [SQL_REVIEW]
    first = call("search_prompts", owner="many", limit=50)
    rest = call("search_prompts", owner="many", limit=50, cursor=first["next_cursor"])
    ids = [prompt["id"] for prompt in first["prompts"] + rest["prompts"]]
    assert len(set(ids)) == first["total"] == MORE_PROMPTS
    assert "next_cursor" not in rest


def test_get_prompt(call: Callable[..., dict[str, Any]], hub: Server):
    filled = call("get_prompt", id=SQL_REVIEW, arguments=FILLED)
    assert filled["text"].startswith("Review this SQLite query.")
    assert "missing" not in filled and "{{" not in filled["text"]
    old = call("get_prompt", id=SQL_REVIEW, version="1.0.0")
    assert old["text"] == hub.get(f"/api/v1/repos/{SQL_REVIEW}/raw?version=1.0.0").text
    assert not old["is_latest"]


def test_list_versions(call: Callable[..., dict[str, Any]], hub: Server):
    listed = call("list_versions", id=SQL_REVIEW)["versions"]
    known = hub.get(f"/api/v1/repos/{SQL_REVIEW}/versions").json()["data"]
    assert listed == [{key: one[key] for key in listed[0]} for one in known]


def test_list_tags(call: Callable[..., dict[str, Any]], hub: Server):
    assert call("list_tags", limit=500)["tags"] == hub.get("/api/v1/tags").json()["data"]


@pytest.mark.parametrize(
    "tool, arguments, says",
    [
        ("get_prompt", {"id": "mara-okafor/sql-reviw"}, SQL_REVIEW),
        ("get_prompt", {"id": f"{SQL_REVIEW}@9.9.9"}, "1.1.0"),
        ("get_prompt", {"id": SQL_REVIEW, "arguments": {"nope": 1}}, "dialect"),
        ("search_prompts", {"limit": 51}, "1 to 50"),
        ("search_prompts", {"cursor": "x"}, "without cursor"),
        ("list_versions", {}, "`id` must be"),
        ("list_tags", {"nope": 1}, "prefix, limit, cursor"),
    ],
)
def test_wrong_arguments(ask: Ask, tool: str, arguments: dict[str, Any], says: str):
    result = ask(lambda client: client.call_tool(tool, arguments))
    assert result.is_error and result.structured_content is None
    (content,) = result.content
    assert says in content.text and "\n" not in content.text


def test_an_unknown_tool_is_an_error_of_the_protocol(ask: Ask):
    with pytest.raises(MCPError, match="The tools are search_prompts") as raised:
        ask(lambda client: client.call_tool("publish", {}))
    assert raised.value.error.code == types.INVALID_PARAMS


def test_results_are_checked_by_the_output_schema(ask: Ask):
    """So the successes above were as their schemas say."""

    async def spoil(client: Client) -> None:
        result = await client.call_tool("list_tags", {"limit": 1})
        result.structured_content["tags"][0]["count"] = "many"
        await client.session.validate_tool_result("list_tags", result)

    with pytest.raises(RuntimeError, match="'many' is not of type 'integer'"):
        ask(spoil)


def test_resources(ask: Ask, hub: Server):
    async def look(client: Client) -> tuple[Any, ...]:
        return (
            await client.list_resource_templates(),
            await pages(client.list_resources),
            await client.read_resource(f"prompt://{SQL_REVIEW}"),
            await client.read_resource(f"prompt://{SQL_REVIEW}/1.0.0"),
        )

    templates, listed, latest, first = ask(look)
    assert [one.uri_template for one in templates.resource_templates] == [
        "prompt://{owner}/{name}", ONE_VERSION.uri,
    ]  # fmt: skip
    assert len(listed) > 1
    assert f"prompt://{SQL_REVIEW}" in [str(one.uri) for page in listed for one in page.resources]
    raw = f"/api/v1/repos/{SQL_REVIEW}/raw"
    assert [one.text for one in latest.contents] == [hub.get(raw).text]
    assert [one.text for one in first.contents] == [hub.get(f"{raw}?version=1.0.0").text]


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


def test_completions(ask: Ask):
    async def look(client: Client) -> list[list[str]]:
        owner, name = SQL_REVIEW.split("/")
        prompt = types.PromptReference(name=SQL_REVIEW)
        answers = [
            await client.complete(ONE_VERSION, {"name": "owner", "value": "mara"}),
            await client.complete(ONE_VERSION, {"name": "name", "value": "sql-"}, {"owner": owner}),
            await client.complete(
                ONE_VERSION, {"name": "version", "value": "1.0"}, {"owner": owner, "name": name}
            ),
            await client.complete(prompt, {"name": "dialect", "value": ""}),
        ]
        return [answer.completion.values for answer in answers]

    owners, names, versions, dialects = ask(look)
    assert owners == ["mara-okafor"]
    assert "sql-review" in names and all(name.startswith("sql-") for name in names)
    assert "1.0.0" in versions
    assert dialects


def test_prompts(ask: Ask):
    async def look(client: Client) -> tuple[Any, ...]:
        return await pages(client.list_prompts), await client.get_prompt(SQL_REVIEW, FILLED)

    listed, filled = ask(look)
    assert [len(page.prompts) for page in listed[:-1]] == [PAGE_SIZE] * (len(listed) - 1) != []
    (prompt,) = [one for page in listed for one in page.prompts if one.name == SQL_REVIEW]
    arguments = {argument.name: argument for argument in prompt.arguments}
    assert FILLED.keys() <= arguments.keys()
    assert arguments["query"].required and arguments["query"].description
    (message,) = filled.messages
    assert message.role == "user"
    assert message.content.text.startswith("Review this SQLite query.")


def test_prompts_that_cannot_be_filled_in(ask: Ask):
    for name, arguments, says in (
        (SQL_REVIEW, {}, "query"),
        (SQL_REVIEW, {**FILLED, "nope": "x"}, "dialect"),
        ("mara-okafor/sql-reviw", {}, SQL_REVIEW),
    ):
        with pytest.raises(MCPError, match=says) as raised:
            ask(lambda client, name=name, given=arguments: client.get_prompt(name, given))
        assert raised.value.error.code == types.INVALID_PARAMS


def test_a_part_of_the_catalogue(ask: Ask, call: Callable[..., dict[str, Any]]):
    owner = "?owner=many"
    assert call("search_prompts", part=owner)["total"] == MORE_PROMPTS
    listed = ask(lambda client: pages(client.list_prompts), owner)
    names = [prompt.name for page in listed for prompt in page.prompts]
    assert len(names) == MORE_PROMPTS and all(name.startswith("many/") for name in names)
    with pytest.raises(MCPError, match="No prompt"):
        ask(lambda client: client.get_prompt(SQL_REVIEW, FILLED), owner)
    tags = call("list_tags", part="?tags=sql,review")["tags"]
    total = call("search_prompts", part="?tags=sql,review")["total"]
    assert {"name": "sql", "count": total} in tags
