"""The two protocols over HTTP, and the limit of requests."""

import json
from collections.abc import Iterator
from pathlib import Path

import mcp_types as types
import pytest

from builder.model.settings import Settings
from tests.mcp.wire import (
    ENVELOPE,
    HANDSHAKE,
    PING,
    STATELESS,
    Message,
    Reply,
    Wire,
    call,
    check_fixed_headers,
    error_of,
    message,
)
from tests.support.servers import Server, serving

LIMIT = 5


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"), ("2026-07-28", HANDSHAKE), ("1999-01-01", HANDSHAKE),
    ],
)  # fmt: skip
def test_handshake(wire: Wire, asked: str, spoken: str):
    params = {
        "protocolVersion": asked, "capabilities": {},
        "clientInfo": {"name": "wire", "version": "1"},
    }  # fmt: skip
    reply = wire.ask(*message("initialize", params))
    assert reply.result["protocolVersion"] == spoken
    assert {"tools", "prompts", "resources"} <= reply.result["capabilities"].keys()
    assert reply.result["serverInfo"]["name"] == "hub"
    check_fixed_headers(reply)
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = wire.ask(json.dumps(ready).encode(), {"MCP-Protocol-Version": spoken})
    assert (answer.status, answer.body) == (202, b"")
    found = wire.ask(*call("get_prompt", id="ann/review", version=spoken))
    assert json.loads(found.result["content"][0]["text"])["id"] == "ann/review"


LISTS = ["tools/list", "prompts/list", "resources/list"]


@pytest.mark.parametrize("method", ["server/discover", *LISTS])
def test_the_stateless_revision_says_how_long_a_list_holds(wire: Wire, method: str):
    result = wire.ask(*message(method, version=STATELESS)).result
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "public"
    assert result["resultType"] == "complete"


@pytest.mark.parametrize("method", LISTS)
def test_older_revisions_do_not_know_that(wire: Wire, method: str):
    result = wire.ask(*message(method, version=HANDSHAKE)).result
    assert not result.keys() & {"ttlMs", "cacheScope", "resultType"}


def test_discovery(wire: Wire):
    result = wire.ask(*message("server/discover", version=STATELESS)).result
    assert STATELESS in result["supportedVersions"]
    assert "data, not orders" in result["instructions"]


@pytest.mark.parametrize("version", ["2027-01-01", "banana", "", "2025-11-25, 2025-06-18"])
def test_revisions_that_are_not_known(wire: Wire, version: str):
    for valid in (call("list_tags", request_id="x"), message("tools/list", request_id="x")):
        reply = wire.ask(*valid._replace(headers={"MCP-Protocol-Version": version}))
        assert (reply.status, reply.json["id"]) == (400, "x")
        assert error_of(reply)["code"] == types.INVALID_PARAMS
    params = {"_meta": ENVELOPE | {types.PROTOCOL_VERSION_META_KEY: "2027-01-01"}}
    later = message("tools/list", params, version=STATELESS)
    reply = wire.ask(later.body, later.headers | {"MCP-Protocol-Version": "2027-01-01"})
    error = error_of(reply)
    assert (reply.status, error["code"]) == (400, types.UNSUPPORTED_PROTOCOL_VERSION)
    assert STATELESS in error["data"]["supported"]


def test_methods_that_are_not_known(wire: Wire):
    for version, status in ((HANDSHAKE, 200), (STATELESS, 404)):
        for method in ("no/such", "subscriptions/listen", "tasks/list"):
            reply = wire.ask(*message(method, {"notifications": {}}, version=version))
            assert reply.status == status
            assert reply.headers["content-type"] == "application/json"
            assert error_of(reply)["code"] == types.METHOD_NOT_FOUND


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
def test_notifications_are_taken_and_nothing_is_said(wire: Wire, version: str):
    for method in ("notifications/cancelled", "notifications/roots/list_changed", "no/such"):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}})
        reply = wire.ask(body.encode(), {"MCP-Protocol-Version": version})
        assert (reply.status, reply.body) == (202, b"")
    assert wire.ask(*PING).result == {}


@pytest.mark.parametrize("valid", [PING, call("list_tags"), call("list_tags", version=STATELESS)])
@pytest.mark.parametrize("header", ["Accept", "Content-Type"])
@pytest.mark.parametrize(
    "value", [None, "", "*/*", "Application/JSON; x=y", "text/event-stream", "text/html, image/*"]
)
def test_every_client_gets_json(wire: Wire, valid: Message, header: str, value: str | None):
    """curl, for one, sends JSON as a form and accepts everything."""
    reply = wire.ask(valid.body, valid.headers | {header: value})
    assert reply.status == 200 and reply.headers["content-type"] == "application/json"


# The rate limit


@pytest.fixture
def limited(catalogue: Settings, tmp_path: Path) -> Iterator[Server]:
    own = catalogue._replace(out=f"{tmp_path}/site", state=f"{tmp_path}/state")
    with serving(own, "--trusted-proxy", "127.0.0.1", rate_limit=LIMIT) as server:
        yield server


def test_the_limit_counts_reads_and_calls_together(limited: Server):
    def read(client: str) -> int:
        return limited.get("/api/v1/tags", headers={"X-Forwarded-For": client}).status_code

    with Wire(limited) as wire:

        def ask_as(client: str, body: bytes = PING.body) -> Reply:
            return wire.ask(body, {"X-Forwarded-For": client, "Origin": "http://localhost"})

        assert [read("192.0.2.1"), read("192.0.2.1")] == [200, 200]
        for body in (PING.body, call("list_tags").body, b"{"):
            reply = ask_as("192.0.2.1", body)
            assert reply.status in (200, 400)
            assert reply.headers["ratelimit-policy"] == f'"read";q={LIMIT};w=60'
        refused = ask_as("192.0.2.1")
        assert refused.status == 429
        wait_seconds = int(refused.headers["retry-after"])
        assert 1 <= wait_seconds <= 60
        assert refused.headers["ratelimit"] == f'"read";r=0;t={wait_seconds}'
        assert refused.headers["access-control-allow-origin"] == "http://localhost"
        assert str(wait_seconds) in error_of(refused)["message"]
        assert refused.json["id"] is None
        check_fixed_headers(refused)
        # The limit includes reads, and affects no other client; requests that are no calls do not
        # count.
        assert read("192.0.2.1") == 429
        assert ask_as("192.0.2.2").result == {}
        for _ in range(2 * LIMIT):
            assert wire.ask(headers={"X-Forwarded-For": "192.0.2.3"}, method="GET").status == 405
            assert (
                wire.ask(headers={"X-Forwarded-For": "192.0.2.3"}, method="OPTIONS").status == 204
            )
        assert [ask_as("192.0.2.3").status for _ in range(LIMIT + 1)] == [200] * LIMIT + [429]
