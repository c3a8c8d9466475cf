"""Services of a process beside reads: MCP, and its health."""

import json
from typing import Any

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.routes import JSON
from builder.model.service_urls import HEALTH_URL, MCP_URL, READY_URL
from tests.conformance.catalogue import Catalogue, file_of
from tests.conformance.checks import Check, spread
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area

pytestmark = pytest.mark.level("full")

MCP_VERSION = "2025-06-18"
WHO = {"name": "conformance", "version": "1"}
TOOLS = {"search_prompts", "get_prompt", "list_versions", "list_tags"}


@area("MCP")
@pytest.mark.needs("mcp")
def test_mcp(check: Check, client: Client, catalogue: Catalogue) -> None:
    """The host passes on what tests/mcp tests of the endpoint."""
    hello = {"protocolVersion": MCP_VERSION, "capabilities": {}, "clientInfo": WHO}
    answer = speak(client, "initialize", hello)
    spoken = result_of(check, answer).get("protocolVersion")
    check.that(answer, spoken == MCP_VERSION, f"protocol {MCP_VERSION}", f"{spoken}")
    browser = client.ask("GET", MCP_URL, {"Accept": "text/event-stream"})
    check.that(browser, browser.status in (200, 405), "a stream, or 405")
    answer = speak(client, "tools/list")
    tools = {tool["name"] for tool in result_of(check, answer).get("tools", [])}
    check.that(answer, tools == TOOLS, f"the tools {', '.join(sorted(TOOLS))}", f"{sorted(tools)}")
    answer, given = use(check, client, "search_prompts")
    total = len(catalogue.ids)
    check.that(answer, given.get("total") == total, f"total {total}", f"{given.get('total')}")
    for owner, name in spread(catalogue.repos, 4):
        repo = client.get(file_of("repo", owner=owner, name=name)).json["data"]
        answer, given = use(check, client, "get_prompt", id=f"{owner}/{name}")
        facts = ("version", "sha256", "text")
        came = tuple(given.get(key) for key in facts)
        wanted = (repo["latest_version"], repo["sha256"], repo["body"])
        check.that(answer, came == wanted, f"{facts} {wanted}", f"{came}")
    answer = speak(client, "no/such/method")
    check.that(answer, answer.status < 500 and "error" in (answer.json or ()), "JSON-RPC's error")


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
    """The result in an answer; empty without one."""
    found = answer.json
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
