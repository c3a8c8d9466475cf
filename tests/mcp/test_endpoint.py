"""The endpoint's HTTP: over the sockets of real servers, and in this process where time matters."""

import asyncio
import contextlib
import gc
import json
import logging
import tracemalloc
from collections.abc import Iterator
from typing import Any

import mcp_types as types
import pytest

from builder.model.settings import Settings
from builder.search.query_thread import QueryThread
from mcp_app import endpoint as endpoint_module
from mcp_app.app import create_app
from mcp_app.endpoint import BODY_BYTES_MAX, Endpoint
from tests.mcp.wire import (
    HANDSHAKE,
    STATELESS,
    Message,
    Reply,
    Wire,
    ask,
    built_catalogue,
    call,
    error_of,
    inside,
    message,
)
from tests.support.servers import DEADLINE_SECONDS, Server, serving

APP = "https://app.example.org"
PING = message("ping")
LIMIT = 5

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
REFUSED = -32000


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return built_catalogue(tmp_path_factory.mktemp("catalogue"))


@pytest.fixture(scope="module")
def server(catalogue: Settings) -> Iterator[Server]:
    with serving(catalogue, "--mcp-origin", APP) as server:
        yield server
        assert "failed" not in server.process.text
        assert "Traceback" not in server.process.text


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    with Wire(server) as wire:
        yield wire


def check_fixed_headers(reply: Reply) -> None:
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "mcp-session-id" not in reply.headers
    assert "server" not in reply.headers


# Where it is


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?", "/mcp?owner=ann", "/mcp/?tags=code"])
def test_it_is_exactly_there(wire: Wire, path: str):
    reply = wire.ask(*PING, path=path)
    assert reply.result == {}
    check_fixed_headers(reply)


@pytest.mark.parametrize("path", ["/mcp/x", "/MCP", "/mcp.json", "/api/mcp", "//mcp", "/mcp//"])
def test_elsewhere_are_the_reads(wire: Wire, path: str):
    reply = wire.ask(*PING, path=path)
    assert reply.status in (404, 405)
    assert "jsonrpc" not in reply.json


def test_a_base_url_with_a_path(catalogue: Settings):
    with (
        serving(catalogue, "--base-url", "https://example.org/prompts") as server,
        Wire(server) as wire,
    ):
        for path in ("/prompts/mcp", "/prompts/mcp/"):
            for host in ("example.org", "example.org:443", "localhost"):
                assert wire.ask(*PING._replace(headers={"Host": host}), path=path).result == {}
        assert wire.ask(*PING, path="/mcp").status in (404, 405)
        assert wire.ask(PING.body, {"Host": "evil.example"}, path="/prompts/mcp").status == 421
        told = wire.ask(method="GET", path="/prompts/mcp").body.decode()
        assert "https://example.org/prompts/mcp" in told
        found = wire.ask(*call("get_prompt", id="ann/review"), path="/prompts/mcp").given
        assert found["url"] == "https://example.org/prompts/ann/review/1.1.0"


# Methods


@pytest.mark.parametrize("accept", ["*/*", "text/html", "text/event-stream", None])
def test_get_says_how_to_connect_and_holds_nothing_open(
    wire: Wire, server: Server, accept: str | None
):
    reply = wire.ask(
        headers={"Accept": accept, "Content-Type": None, "Last-Event-ID": "1"}, method="GET"
    )
    assert reply.status == 405
    assert reply.headers["allow"] == "POST, OPTIONS"
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    told = reply.body.decode()
    assert f"claude mcp add --transport http hub {server.url}/mcp\n" in told
    assert len(told.splitlines()) < 10
    check_fixed_headers(reply)
    assert wire.ask(*PING).result == {}


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "PROPFIND"])
def test_other_methods(wire: Wire, method: str):
    reply = wire.ask(*PING, method=method)
    assert reply.status == 405
    assert reply.headers["allow"] == "POST, OPTIONS"
    assert wire.ask(*PING).result == {}


def test_head_is_get_without_the_body(wire: Wire):
    got, head = (wire.ask(method=method) for method in ("GET", "HEAD"))
    assert head.status == got.status
    assert head.body == b""
    without_date = [{**reply.headers, "date": ""} for reply in (got, head)]
    assert without_date[0] == without_date[1]
    assert wire.ask(*PING).result == {}


# Refusals: the status, JSON-RPC's code, what it says

REFUSALS: dict[str, tuple[bytes, dict[str, Any], int, int, str]] = {
    "no json": (b"{", {}, 400, PARSE_ERROR, "not valid JSON"),
    "nothing": (b"", {"Content-Length": "0"}, 400, PARSE_ERROR, "not valid JSON"),
    "no utf-8": (b'{"\xff": 1}', {}, 400, PARSE_ERROR, "UTF-8"),
    "utf-16": (PING.body.decode().encode("utf-16"), {}, 400, PARSE_ERROR, "UTF-8"),
    "bom": (b"\xef\xbb\xbf" + PING.body, {}, 400, PARSE_ERROR, "not valid JSON"),
    "two": (PING.body * 2, {}, 400, PARSE_ERROR, "not valid JSON"),
    "a batch": (b"[%b]" % PING.body, {}, 400, INVALID_REQUEST, "Batches are not supported"),
    "an empty batch": (b" []", {}, 400, INVALID_REQUEST, "Batches are not supported"),
    "a number": (b"1", {}, 400, INVALID_REQUEST, "JSON-RPC 2.0 message"),
    "an object": (b"{}", {}, 400, INVALID_REQUEST, "JSON-RPC 2.0 message"),
    "version 1": (PING.body.replace(b"2.0", b"1.0"), {}, 400, INVALID_REQUEST, "2.0 message"),
    "id null": (message("ping", request_id=None).body, {}, 400, INVALID_REQUEST, "2.0 message"),
    "id 1.5": (message("ping", request_id=1.5).body, {}, 400, INVALID_REQUEST, "2.0 message"),
    "params list": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', {},
        400, INVALID_REQUEST, "2.0 message",
    ),
    "a response": (b'{"jsonrpc":"2.0","id":1,"result":{}}', {}, 400, INVALID_REQUEST, "message"),
    "a form": (PING.body, {"Content-Type": "text/plain"}, 415, REFUSED, "application/json"),
    "no type": (PING.body, {"Content-Type": None}, 415, REFUSED, "application/json"),
    "html wanted": (PING.body, {"Accept": "text/html"}, 406, REFUSED, "application/json"),
    "a stream": (PING.body, {"Accept": "text/event-stream"}, 406, REFUSED, "application/json"),
    "another host": (PING.body, {"Host": "evil.example"}, 421, REFUSED, "--mcp-origin"),
    "another origin": (PING.body, {"Origin": "https://evil.example"}, 403, REFUSED, "--mcp-origin"),
    "origin null": (PING.body, {"Origin": "null"}, 403, REFUSED, "--mcp-origin"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(wire: Wire, case: str):
    body, headers, status, code, words = REFUSALS[case]
    reply = wire.ask(body, headers)
    assert reply.status == status
    assert reply.headers["content-type"] == "application/json"
    assert reply.json["id"] is None
    error = error_of(reply)
    assert error["code"] == code
    assert words in error["message"]
    assert "access-control-allow-origin" not in reply.headers
    check_fixed_headers(reply)
    # The connection is as good as before.
    assert wire.ask(*PING).result == {}


@pytest.mark.parametrize(
    "query",
    ["owner=A", "owner=", "owner=a&owner=b", "tags=", "tags=A%20B", "owner=%ff", "tags=a,,b"],
)
def test_a_part_that_cannot_be(wire: Wire, query: str):
    reply = wire.ask(*PING, path=f"/mcp?{query}")
    assert reply.status == 400
    assert "A B" not in error_of(reply)["message"]


@pytest.mark.parametrize(
    ("name", "values"),
    [("Host", ("localhost", "evil.example")), ("Origin", (APP, "https://evil.example"))],
)
def test_hosts_and_origins_that_come_twice(wire: Wire, name: str, values: tuple[str, str]):
    host = "Host: localhost\r\n" if name == "Origin" else ""
    for first, second in (values, values[::-1]):
        head = (
            f"POST /mcp HTTP/1.1\r\n{host}{name}: {first}\r\n{name}: {second}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(PING.body)}\r\n\r\n"
        )
        wire.socket.sendall(head.encode() + PING.body)
        assert wire.read().status in (400, 403, 421)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_no_host(wire: Wire, version: str):
    wire.send(*PING._replace(headers={"Host": None}), version=version)
    assert wire.read().status in (400, 421)


# CORS


@pytest.mark.parametrize("origin", [APP, "http://localhost:6274", "https://127.0.0.1"])
def test_pages_that_may_ask(wire: Wire, origin: str):
    for reply in (
        wire.ask(PING.body, {"Origin": origin}),
        wire.ask(b"{", {"Origin": origin}),
        wire.ask(PING.body, {"Origin": origin, "Accept": "text/html"}),
        wire.ask(headers={"Origin": origin}, method="GET"),
    ):
        assert reply.headers["access-control-allow-origin"] == origin
        assert reply.headers["vary"] == "Origin"
        exposed = reply.headers["access-control-expose-headers"].lower().split(", ")
        assert {"mcp-protocol-version", "mcp-session-id", "retry-after"} <= set(exposed)
        assert "access-control-allow-credentials" not in reply.headers


def test_the_hubs_own_pages_may_ask(wire: Wire, server: Server):
    reply = wire.ask(PING.body, {"Origin": server.origin})
    assert reply.headers["access-control-allow-origin"] == server.origin


@pytest.mark.parametrize("origin", [APP, "http://localhost:1"])
def test_preflight(wire: Wire, origin: str):
    wanted = "content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-session-id,last-event-id"
    headers = {
        "Origin": origin, "Access-Control-Request-Method": "POST", "Content-Type": None,
        "Access-Control-Request-Headers": wanted,
    }  # fmt: skip
    reply = wire.ask(headers=headers, method="OPTIONS")
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == origin
    assert reply.headers["access-control-allow-methods"] == "POST, OPTIONS"
    allowed = reply.headers["access-control-allow-headers"].lower().split(", ")
    assert set(wanted.split(",")) | {"authorization", "accept"} <= set(allowed)
    assert int(reply.headers["access-control-max-age"]) > 0
    assert wire.ask(*PING).result == {}


def test_preflights_of_others(wire: Wire):
    for headers, status in (
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": APP, "Host": "evil.example"}, 421),
    ):
        headers |= {"Access-Control-Request-Method": "POST", "Content-Type": None}
        reply = wire.ask(headers=headers, method="OPTIONS")
        assert reply.status == status
        assert not any(name.startswith("access-control-allow-m") for name in reply.headers)


# Bodies


def padded(size: int) -> bytes:
    return PING.body + b" " * (size - len(PING.body))


def chunked(body: bytes, size: int = 10_000) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, b""])


def test_the_largest_body(wire: Wire):
    assert wire.ask(padded(BODY_BYTES_MAX)).result == {}
    wire.send(headers={"Transfer-Encoding": "chunked"})
    wire.socket.sendall(chunked(padded(BODY_BYTES_MAX)))
    assert wire.read().result == {}
    assert wire.ask(*PING).result == {}


def check_too_large(reply: Reply) -> None:
    assert reply.status == 413
    assert "256 KiB" in error_of(reply)["message"]
    assert reply.headers["connection"] == "close"


def test_too_large_by_its_length(wire: Wire):
    # Told before the body comes, so that nobody sends it in vain.
    wire.send(headers={"Content-Length": str(BODY_BYTES_MAX + 1)})
    check_too_large(wire.read())
    assert wire.is_ended()


@pytest.mark.parametrize("length", ["9" * 30, str(2**63), "00000262145"])
def test_too_large_by_a_great_length(wire: Wire, length: str):
    wire.send(headers={"Content-Length": length})
    assert wire.read().status in (400, 413)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415), ({"Accept": "text/html"}, 406),
        ({"Origin": "null"}, 403), ({"Host": "evil.example"}, 421),
    ],
)  # fmt: skip
def test_a_large_body_after_a_refusal_is_not_the_next_request(
    wire: Wire, headers: dict[str, str], status: int
):
    # What looks like a request inside a body must never be taken for one.
    hidden = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000
    assert wire.ask(hidden, headers).status == status
    assert wire.ask(*PING).result == {}


# The two protocols


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


LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]


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
        error = error_of(reply)
        assert error["code"] == types.UNSUPPORTED_PROTOCOL_VERSION
        named = version if version.startswith("2027") else ""
        assert error["data"]["requested"] == named and f"`{named}`" in error["message"]
        for spoken in (HANDSHAKE, STATELESS):
            assert spoken in error["message"] and spoken in error["data"]["supported"]


def test_methods_that_are_not_known(wire: Wire):
    for version, status in ((HANDSHAKE, 200), (STATELESS, 404)):
        for method in ("no/such", "subscriptions/listen", "tasks/list"):
            reply = wire.ask(*message(method, {"notifications": {}}, version=version))
            assert reply.status == status
            assert reply.headers["content-type"] == "application/json"
            assert error_of(reply)["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
def test_notifications_are_taken_and_nothing_is_said(wire: Wire, version: str):
    for method in ("notifications/cancelled", "notifications/roots/list_changed", "no/such"):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}})
        reply = wire.ask(body.encode(), {"MCP-Protocol-Version": version})
        assert (reply.status, reply.body) == (202, b"")
    assert wire.ask(*PING).result == {}


@pytest.mark.parametrize(
    ("accept", "is_good"),
    [
        (None, True), ("*/*", True), ("application/json", True), ("application/*;q=0.8", True),
        ("Application/JSON", True), ("application/json, text/event-stream", True),
        ("text/event-stream", False), ("text/html, image/*", False), ("", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("valid", [PING, call("list_tags"), call("list_tags", version=STATELESS)])
def test_what_a_client_accepts(wire: Wire, valid: Message, accept: str | None, is_good: bool):
    reply = wire.ask(valid.body, valid.headers | {"Accept": accept})
    assert reply.status == (200 if is_good else 406)


@pytest.mark.parametrize(
    "content_type", ["application/json;charset=utf-8", "APPLICATION/JSON", "application/json ; x=y"]
)
@pytest.mark.parametrize("valid", [PING, call("list_tags"), call("list_tags", version=STATELESS)])
def test_what_a_client_sends(wire: Wire, valid: Message, content_type: str):
    assert wire.ask(valid.body, valid.headers | {"Content-Type": content_type}).status == 200


# The rate limit


@pytest.fixture
def limited(catalogue: Settings) -> Iterator[Server]:
    with serving(catalogue, "--trusted-proxy", "127.0.0.1", rate_limit=LIMIT) as server:
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
        # For the reads too, and for nobody else; what is no call does not count.
        assert read("192.0.2.1") == 429
        assert ask_as("192.0.2.2").result == {}
        for _ in range(2 * LIMIT):
            assert wire.ask(headers={"X-Forwarded-For": "192.0.2.3"}, method="GET").status == 405
            assert (
                wire.ask(headers={"X-Forwarded-For": "192.0.2.3"}, method="OPTIONS").status == 204
            )
        assert [ask_as("192.0.2.3").status for _ in range(LIMIT + 1)] == [200] * LIMIT + [429]


# In this process


Edge = tuple[asyncio.Runner, Endpoint]


@pytest.fixture
def edge(catalogue: Settings) -> Iterator[Edge]:
    with contextlib.closing(QueryThread(catalogue)) as queries:
        endpoint = create_app(catalogue, queries)
        with inside(endpoint) as runner:
            yield runner, endpoint


@pytest.mark.parametrize("parts", [[], [PING.body], [b"{", b'"jsonrpc"']])
def test_a_body_that_is_too_slow(edge: Edge, monkeypatch: pytest.MonkeyPatch, parts: list[bytes]):
    runner, endpoint = edge
    monkeypatch.setattr(endpoint_module, "BODY_SECONDS_MAX", 0.01)

    async def stuck(scope: Any, receive: Any, send: Any) -> None:
        """The endpoint, whose client sends no more than the parts."""
        events = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

        async def take() -> Any:
            if not events:
                await asyncio.Future()
            return events.pop(0)

        async with asyncio.timeout(DEADLINE_SECONDS):
            await endpoint(scope, take, send)

    reply = runner.run(ask(stuck))
    assert reply.status == 408
    assert reply.headers["connection"] == "close"
    assert "longer than" in error_of(reply)["message"]
    assert runner.run(ask(endpoint, *PING)).result == {}


@pytest.mark.parametrize("parts", [[b""], [b"{"], [b"{", b'"jsonrpc"'], [PING.body]])
def test_a_client_that_is_gone_gets_no_answer(edge: Edge, parts: list[bytes]):
    runner, endpoint = edge
    assert runner.run(ask(endpoint, parts, is_cut=True)) is None
    assert runner.run(ask(endpoint, *PING)).result == {}


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_body_in_parts(edge: Edge, size: int):
    runner, endpoint = edge
    for valid in (call("get_prompt", id="ann/review"), call("list_tags", version=STATELESS)):
        whole = runner.run(ask(endpoint, *valid))
        parts = [valid.body[start : start + size] for start in range(0, len(valid.body), size)]
        assert runner.run(ask(endpoint, [*parts, b""], valid.headers)) == whole


def test_too_large_at_once_and_in_parts(edge: Edge):
    runner, endpoint = edge
    body = padded(BODY_BYTES_MAX + 1)
    for parts in (body, [body[:-1], body[-1:]], [body[:1], body[1:]], [b"", body, b""]):
        check_too_large(runner.run(ask(endpoint, parts)))


def test_what_a_caller_says_at_length_is_not_kept(edge: Edge):
    """Whatever part of a request is long: memory does not grow with the number of such requests."""
    runner, endpoint = edge
    size, count = 50_000, 40

    def ask_all(turn: str) -> None:
        for number in range(count):
            long = f"{turn}{number}" + "a" * size
            for headers in (
                {"Host": long}, {"Host": f"localhost:{long}"}, {"Origin": f"http://{long}"},
                {"Accept": f"application/json, x/{long}"}, {"MCP-Protocol-Version": long},
                {"Content-Type": f"application/json; x={long}"}, {"Mcp-Name": long},
            ):  # fmt: skip
                runner.run(ask(endpoint, PING.body, headers))
            for query in (f"x={long}", f"{long}=x", f"owner={long}", f"tags={long}"):
                runner.run(ask(endpoint, PING.body, query=query.encode()))
            for valid in (
                call("list_tags", prefix=long), call("search_prompts", query=long),
                message("tools/call", {"name": "list_tags", "_meta": {"x": long}}),
                message("tools/call", {"name": long}), message(long, version=STATELESS),
            ):  # fmt: skip
                runner.run(ask(endpoint, *valid))

    ask_all("first")
    gc.collect()
    tracemalloc.start()
    try:
        ask_all("second")
        gc.collect()
        kept_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept_bytes < size * count / 2


def test_a_failure_is_logged_and_not_told(edge: Edge, caplog: pytest.LogCaptureFixture):
    runner, endpoint = edge

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        """The endpoint, whose HTTP server fails."""

        async def fail() -> Any:
            raise OSError("secret cause")

        await endpoint(scope, fail, send)

    reply = runner.run(ask(broken, PING.body, {"Origin": "http://localhost"}))
    assert reply.status == 500
    assert error_of(reply)["code"] == types.INTERNAL_ERROR
    assert "secret" not in reply.body.decode()
    assert reply.headers["access-control-allow-origin"] == "http://localhost"
    assert "secret cause" in caplog.text
    assert caplog.records[-1].levelno == logging.ERROR
