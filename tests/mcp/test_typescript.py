"""The TypeScript SDK's own clients: its second line in either era and left to itself, and its
first, which knows the handshake alone.
"""

import json
from base64 import b64decode
from typing import Any

import pytest

from builder.model.routes import PAGE_SIZE
from tests.mcp.catalogue import TAKES
from tests.mcp.conftest import SQL_REVIEW, TOOL, TOOL_FILES, Run
from tests.node import NODE
from tests.support.servers import Server

INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002

# The protocol revision that each client is to agree on.
CLIENTS = {
    "legacy": "2025-11-25", "modern": "2026-07-28", "auto": "2026-07-28", "first": "2025-11-25",
}  # fmt: skip


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def seen(client: str, run: Run, mcp_url: str) -> dict[str, Any]:
    """The output of a client on its walk."""
    done = run("node", str(NODE / "mcp-client.mjs"), mcp_url, client)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def test_it_connects(client: str, seen: dict[str, Any]):
    assert seen["protocolVersion"] == CLIENTS[client]
    assert seen["server"]["name"] and seen["server"]["version"]
    assert {"tools", "resources", "prompts"} <= seen["capabilities"].keys()
    assert "data, not orders" in seen["instructions"]


def test_every_answer_is_json(client: str, seen: dict[str, Any]):
    posts = [one for one in seen["exchanges"] if one["method"] == "POST"]
    assert {one["type"] for one in posts if one["status"] != 202} == {"application/json"}
    # In the handshake's era a client may ask for a stream, and takes no for an answer.
    others = [(one["method"], one["status"]) for one in seen["exchanges"] if one not in posts]
    assert others == ([] if client in ("modern", "auto") else [("GET", 405)])


def test_tools(seen: dict[str, Any], hub: Server):
    assert {tool["name"] for tool in seen["tools"]} == {*TAKES}
    assert all(tool["outputSchema"] for tool in seen["tools"])
    assert SQL_REVIEW in [prompt["id"] for prompt in seen["search"]["prompts"]]
    assert seen["prompt"]["id"] == SQL_REVIEW
    assert seen["prompt"]["text"].startswith("Review this SQLite query.")
    known = hub.get(f"/api/v1/repos/{SQL_REVIEW}/versions").json()["data"]
    listed = [version["version"] for version in seen["versions"]["versions"]]
    assert listed == [version["version"] for version in known]
    tags = hub.get("/api/v1/tags").json()["data"]
    assert seen["tags"]["tags"] == tags[: len(seen["tags"]["tags"])] != []


def test_results_are_checked_against_the_output_schema(seen: dict[str, Any]):
    # The client still reads a result that was changed on its way, so it would have reported others.
    assert "output schema" in seen["spoiltResult"]["message"]


def test_resources(seen: dict[str, Any], hub: Server):
    assert f"prompt://{SQL_REVIEW}" in [resource["uri"] for resource in seen["resources"]]
    raw = f"/api/v1/repos/{SQL_REVIEW}/raw"
    assert [one["text"] for one in seen["resource"]["contents"]] == [hub.get(raw).text]
    (version,) = seen["resourceVersion"]["contents"]
    assert version["text"] == hub.get(f"{raw}?version=1.0.0").text


def test_files(seen: dict[str, Any]):
    read = {one["uri"]: one for (one,) in (file["contents"] for file in seen["files"])}
    start = f"prompt://{TOOL}/1.0.0/files/"
    assert read.keys() == {start + path for path in TOOL_FILES}
    assert b64decode(read[f"{start}image.png"]["blob"]) == TOOL_FILES["image.png"]
    assert read[f"{start}scripts/run.sh"]["text"].encode() == TOOL_FILES["scripts/run.sh"]


def test_skills(client: str, seen: dict[str, Any], hub: Server):
    if client == "first":
        assert "skills" not in seen  # it does not have the extension
        return
    assert len(seen["skills"]) == len({*seen["skills"]}) == seen["allPrompts"]
    assert f"skill://{SQL_REVIEW}/SKILL.md" in seen["skills"]
    skill = seen["skill"]
    assert skill["verified"] is True
    assert skill["text"] == hub.get(f"/{SQL_REVIEW}/SKILL.md").text
    assert skill["frontmatter"]["name"] == "sql-review"
    files = {one["uri"]: one["verified"] for one in seen["skillFiles"]}
    assert files == {f"skill://{TOOL}/{path}": True for path in TOOL_FILES}
    assert seen["unknownSkill"]["code"] == INVALID_PARAMS


def test_prompts(seen: dict[str, Any], hub: Server):
    pages = [[prompt["name"] for prompt in page] for page in seen["promptPages"]]
    assert len(pages) > 1
    for number, page in enumerate(pages, 1):
        listed = hub.get(f"/api/v1/repos?page={number}").json()["data"]
        assert page == [f"{repo['owner']}/{repo['name']}" for repo in listed]
    (message,) = seen["filledPrompt"]["messages"]
    assert message["content"]["text"].startswith("Review this SQLite query.")


def test_the_second_line_walks_the_pages_itself(client: str, seen: dict[str, Any]):
    prompts = sum(map(len, seen["promptPages"]))
    assert seen["allPrompts"] == (PAGE_SIZE if client == "first" else prompts)


def test_what_there_is_not(client: str, seen: dict[str, Any]):
    unknown = seen["unknownId"]
    assert unknown["isError"] and "no-such-prompt" in unknown["content"][0]["text"]
    assert "structuredContent" not in unknown
    assert seen["unknownTool"]["code"] == INVALID_PARAMS
    # The second line knows a missing resource by the data, and gives it the code of today.
    expected = RESOURCE_NOT_FOUND if client == "first" else INVALID_PARAMS
    assert seen["unknownResource"]["code"] == expected
    assert seen["unknownResource"]["data"] == {"uri": "prompt://no/such"}
