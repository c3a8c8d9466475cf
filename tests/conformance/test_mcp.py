"""Services of a process beside reads: MCP, and its health."""

import contextlib
import json
from typing import Any

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.routes import JSON
from builder.model.service_urls import HEALTH_URL, MCP_URL, READY_URL
from tests.conformance.catalogue import NOBODY, Catalogue, file_of
from tests.conformance.checks import Check, spread
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area

pytestmark = pytest.mark.level("full")

MCP_VERSION = "2025-06-18"
TOOLS = {"search_prompts", "get_prompt", "list_versions", "list_tags"}


@area("MCP")
@pytest.mark.needs("mcp")
def test_mcp_begins(check: Check, client: Client) -> None:
    answer = speak(
        client, "initialize",
        {
            "protocolVersion": MCP_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "conformance", "version": "1"},
        },
    )  # fmt: skip
    result = result_of(check, answer)
    check.that(answer, result.get("protocolVersion") == MCP_VERSION, f"protocol {MCP_VERSION}")
    check.that(answer, "tools" in result.get("capabilities", {}), "the capability tools")
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = {"Content-Type": JSON, "Accept": "application/json, text/event-stream"}
    session = answer.headers.get("MCP-Session-Id")
    headers |= {"MCP-Session-Id": session} if session else {}
    check.status(client.ask("POST", MCP_URL, headers, json.dumps(note).encode()), 202)
    browser = client.ask("GET", MCP_URL, {"Accept": "text/event-stream"})
    check.that(browser, browser.status in (200, 405), "a stream, or 405")


@area("MCP")
@pytest.mark.needs("mcp")
def test_mcp_tools(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = speak(client, "tools/list")
    tools = {tool["name"] for tool in result_of(check, answer).get("tools", [])}
    check.that(answer, tools == TOOLS, f"the tools {', '.join(sorted(TOOLS))}", f"{sorted(tools)}")

    answer, given = use(check, client, "list_tags", limit=500)
    came = {tag["name"]: tag["count"] for tag in given.get("tags", [])}
    wanted = dict(sorted(catalogue.tag_counts.items(), key=lambda one: (-one[1], one[0]))[:500])
    check.that(answer, came == wanted, "the tags of /api/v1/tags", f"{len(came)} tags")

    answer, given = use(check, client, "search_prompts")
    total = len(catalogue.ids)
    check.that(answer, given.get("total") == total, f"total {total}", f"{given.get('total')}")

    for owner, name in spread(catalogue.repos, 4):
        repo = client.get(file_of("repo", owner=owner, name=name)).json["data"]
        answer, given = use(check, client, "get_prompt", id=f"{owner}/{name}")
        facts = ("id", "version", "sha256", "title")
        came = tuple(given.get(key) for key in facts)
        wanted = (f"{owner}/{name}", repo["latest_version"], repo["sha256"], repo["title"])
        check.that(answer, came == wanted, f"{facts} {wanted}", f"{came}")
        text = given.get("text", "")
        check.that(answer, text and text in repo["content"], "the prompt's text, or a part of it")

        answer, given = use(check, client, "list_versions", id=f"{owner}/{name}", limit=100)
        came = [version["version"] for version in given.get("versions", [])]
        rows = client.get(file_of("versions", owner=owner, name=name)).json["data"]
        wanted = [row["version"] for row in rows][:100]
        check.that(answer, came == wanted, f"the versions {wanted[:4]}", f"{came[:4]}")

        answer, given = use(check, client, "search_prompts", owner=owner, query=name[:100])
        ids = [prompt["id"] for prompt in given.get("prompts", [])]
        check.that(answer, f"{owner}/{name}" in ids, f"{owner}/{name}", f"{ids}")


@area("MCP")
@pytest.mark.needs("mcp")
def test_mcp_errors(check: Check, client: Client) -> None:
    answer = speak(client, "tools/call", {"name": "get_prompt", "arguments": {"id": f"{NOBODY}/x"}})
    check.that(answer, result_of(check, answer).get("isError") is True, "an error of the tool")
    answer = speak(client, "no/such/method")
    check.that(
        answer, isinstance(answer.json, dict) and "error" in answer.json, "an error of JSON-RPC"
    )
    check.that(answer, answer.status < 500, "no failure of the server")


def speak(client: Client, method: str, params: dict[str, Any] | None = None) -> Answer:
    """A request to the MCP endpoint."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    headers = {
        "Content-Type": JSON,
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MCP_VERSION,
    }
    return client.ask("POST", MCP_URL, headers, json.dumps(body).encode())


def result_of(check: Check, answer: Answer) -> dict[str, Any]:
    """The result in an answer, which may be an event of a stream; empty without one."""
    found = answer.json
    if answer.headers.get_content_type() == "text/event-stream":
        lines = answer.body.decode("utf-8", "replace").splitlines()
        events = [line[5:] for line in lines if line.startswith("data:")]
        with contextlib.suppress(ValueError):
            found = json.loads(events[-1] if events else "")
    result = found.get("result") if isinstance(found, dict) else None
    check.that(answer, answer.status == 200 and isinstance(result, dict), "a result of JSON-RPC")
    return result if isinstance(result, dict) else {}


def use(check: Check, client: Client, tool: str, **arguments: Any) -> tuple[Answer, dict[str, Any]]:
    """The structured content that a tool returns."""
    answer = speak(client, "tools/call", {"name": tool, "arguments": arguments})
    result = result_of(check, answer)
    check.that(answer, not result.get("isError"), f"that {tool} succeeds")
    given = result.get("structuredContent")
    check.that(answer, isinstance(given, dict), "structured content")
    return answer, given if isinstance(given, dict) else {}


# Health


@area("health")
def test_health(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = client.ask("GET", HEALTH_URL)
    check.status(answer, 200)
    check.header(answer, "Content-Type", JSON)
    check.header(answer, "Cache-Control", CACHE_CONTROL["none"])
    status = answer.json.get("status") if isinstance(answer.json, dict) else None
    check.that(answer, status in ("ok", "behind", "failing"), "a status")
    check.that(answer, status != "failing", "builds that succeed")
    answer = client.ask("GET", READY_URL)
    check.status(answer, 200)
    check.header(answer, "Content-Type", JSON)
    check.header(answer, "Cache-Control", CACHE_CONTROL["none"])
    reasons = answer.json.get("reasons") if isinstance(answer.json, dict) else None
    check.that(answer, reasons == [], "no reasons against it")
