"""The Inspector's command line, which knows both eras and checks schemas for portability."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.mcp.conftest import SQL_REVIEW, TOOLS, Run
from tests.support.servers import Server

FILLED = {"query": "SELECT 1", "purpose": "One row", "schema": "none", "dialect": "SQLite"}

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=["legacy", "modern"])
def ask(request: pytest.FixtureRequest, run: Run, mcp_url: str) -> Ask:
    """Asks the hub with one method, in one era; gives the result."""

    def ask(method: str, *options: str) -> dict[str, Any]:
        done = run(
            "mcp-inspector", "--cli", mcp_url, "--transport", "http",
            "--protocol-era", request.param, "--format", "json", "--method", method, *options,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)["result"]

    return ask


@pytest.fixture
def call(ask: Ask) -> Ask:
    """Calls a tool; gives its structured content, which its text must be too."""

    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        options = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        result = ask("tools/call", *options)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    return call


def test_the_schemas_are_portable(ask: Ask):
    # Whatever is wrong, or only not wise, is told on stderr.
    assert {tool["name"] for tool in ask("tools/list", "--strict")["tools"]} == TOOLS


def test_search_prompts(call: Ask):
    found = call("search_prompts", query="sql review", tags=["sql"], limit=1)
    assert [prompt["id"] for prompt in found["prompts"]] == [SQL_REVIEW]
    assert found["total"] >= 1


def test_get_prompt(call: Ask, hub: Server):
    filled = call("get_prompt", id=SQL_REVIEW, arguments=FILLED)
    assert filled["text"].startswith("Review this SQLite query.")
    assert "{{" not in filled["text"]
    plain = call("get_prompt", id=f"{SQL_REVIEW}@1.0.0")
    assert plain["text"] == hub.get(f"/api/v1/repos/{SQL_REVIEW}/raw?version=1.0.0").text
    assert not plain["is_latest"]


def test_list_versions(call: Ask, hub: Server):
    listed = call("list_versions", id=SQL_REVIEW)
    known = hub.get(f"/api/v1/repos/{SQL_REVIEW}/versions").json()["data"]
    assert [one["version"] for one in listed["versions"]] == [one["version"] for one in known]


def test_list_tags(call: Ask, hub: Server):
    assert call("list_tags", limit=500)["tags"] == hub.get("/api/v1/tags").json()["data"]


def test_resources(ask: Ask, hub: Server):
    templates = [one["uriTemplate"] for one in ask("resources/templates/list")["resourceTemplates"]]
    assert templates == ["prompt://{owner}/{name}", "prompt://{owner}/{name}/{version}"]
    uri = f"prompt://{SQL_REVIEW}"
    assert uri in [one["uri"] for one in ask("resources/list")["resources"]]
    (contents,) = ask("resources/read", "--uri", uri)["contents"]
    assert contents["text"] == hub.get(f"/api/v1/repos/{SQL_REVIEW}/raw").text


def test_prompts(ask: Ask):
    (listed,) = [one for one in ask("prompts/list")["prompts"] if one["name"] == SQL_REVIEW]
    assert FILLED.keys() < {argument["name"] for argument in listed["arguments"]}
    pairs = [f"{name}={value}" for name, value in FILLED.items()]
    prompt = ask("prompts/get", "--prompt-name", SQL_REVIEW, "--prompt-args", *pairs)
    (message,) = prompt["messages"]
    assert message["role"] == "user"
    assert message["content"]["text"].startswith("Review this SQLite query.")
