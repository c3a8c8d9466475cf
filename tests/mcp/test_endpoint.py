"""The endpoint's HTTP, over the socket of a real server."""

from pathlib import Path
from typing import Any

import pytest

from builder.model.settings import Settings
from mcp_app.endpoint import BODY_BYTES_MAX
from tests.mcp.wire import (
    OTHER_ORIGIN,
    PING,
    Wire,
    call,
    check_fixed_headers,
    check_too_large,
    error_of,
    message,
    padded,
)
from tests.support.servers import Server, serving

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
REFUSED = -32000


# Addresses


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?", "/mcp/?x=%ff"])
def test_it_is_exactly_there(wire: Wire, path: str):
    reply = wire.ask(*PING, path=path)
    assert reply.result == {}
    check_fixed_headers(reply)


@pytest.mark.parametrize("path", ["/mcp/x", "/MCP", "/mcp.json", "/api/mcp", "//mcp", "/mcp//"])
def test_elsewhere_are_the_reads(wire: Wire, path: str):
    reply = wire.ask(*PING, path=path)
    assert reply.status in (404, 405)
    assert "jsonrpc" not in reply.json


def test_a_base_url_with_a_path(catalogue: Settings, tmp_path: Path):
    own = catalogue._replace(out=f"{tmp_path}/site", state=f"{tmp_path}/state")
    with serving(own, "--base-url", "https://example.org/prompts") as server, Wire(server) as wire:
        for path in ("/prompts/mcp", "/prompts/mcp/"):
            for host in ("example.org", "example.org:443", "localhost"):
                assert wire.ask(*PING._replace(headers={"Host": host}), path=path).result == {}
        assert wire.ask(*PING, path="/mcp").status in (404, 405)
        assert wire.ask(PING.body, {"Host": "evil.example"}, path="/prompts/mcp").status == 421
        told = wire.ask(method="GET", path="/prompts/mcp").body.decode()
        assert "https://example.org/prompts/connect" in told
        found = wire.ask(*call("get_prompt", id="ann/review"), path="/prompts/mcp").given
        assert found["url"] == "https://example.org/prompts/ann/review/1.1.0"


# Methods


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "PROPFIND"])
def test_other_methods(wire: Wire, server: Server, method: str):
    """Nothing is held open, and people learn how to connect."""
    reply = wire.ask(*PING, method=method)
    assert reply.status == 405
    assert reply.headers["allow"] == "POST, OPTIONS"
    assert f"{server.url}/connect" in error_of(reply)["message"]
    check_fixed_headers(reply)
    assert wire.ask(*PING).result == {}


def test_head_is_get_without_the_body(wire: Wire):
    got, head = (wire.ask(method=method) for method in ("GET", "HEAD"))
    assert head.status == got.status
    assert head.body == b""
    without_date = [{**reply.headers, "date": ""} for reply in (got, head)]
    assert without_date[0] == without_date[1]
    assert wire.ask(*PING).result == {}


# Refusals: the status, JSON-RPC's code, the message

REFUSALS: dict[str, tuple[bytes, dict[str, Any], int, int, str]] = {
    "no json": (b"{", {}, 400, PARSE_ERROR, "not valid JSON"),
    "nothing": (b"", {"Content-Length": "0"}, 400, PARSE_ERROR, "not valid JSON"),
    "no utf-8": (b'{"\xff": 1}', {}, 400, PARSE_ERROR, "UTF-8"),
    "utf-16": (PING.body.decode().encode("utf-16"), {}, 400, PARSE_ERROR, "UTF-8"),
    "bom": (b"\xef\xbb\xbf" + PING.body, {}, 400, PARSE_ERROR, "not valid JSON"),
    "two": (PING.body * 2, {}, 400, PARSE_ERROR, "not valid JSON"),
    "a batch": (b"[%b]" % PING.body, {}, 400, INVALID_REQUEST, "one message"),
    "an empty batch": (b" []", {}, 400, INVALID_REQUEST, "one message"),
    "a number": (b"1", {}, 400, INVALID_REQUEST, "one message"),
    "an object": (b"{}", {}, 400, INVALID_REQUEST, "one message"),
    "version 1": (PING.body.replace(b"2.0", b"1.0"), {}, 400, INVALID_REQUEST, "one message"),
    "id null": (message("ping", request_id=None).body, {}, 400, INVALID_REQUEST, "one message"),
    "id 1.5": (message("ping", request_id=1.5).body, {}, 400, INVALID_REQUEST, "one message"),
    "params list": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', {},
        400, INVALID_REQUEST, "one message",
    ),
    "a response": (b'{"jsonrpc":"2.0","id":1,"result":{}}', {}, 400, INVALID_REQUEST, "message"),
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
    ("name", "values"),
    [("Host", ("localhost", "evil.example")), ("Origin", (OTHER_ORIGIN, "https://evil.example"))],
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


@pytest.mark.parametrize("origin", [OTHER_ORIGIN, "http://localhost:6274", "https://127.0.0.1"])
def test_pages_that_may_ask(wire: Wire, origin: str):
    for reply in (
        wire.ask(PING.body, {"Origin": origin}),
        wire.ask(b"{", {"Origin": origin}),
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


@pytest.mark.parametrize("origin", [OTHER_ORIGIN, "http://localhost:1"])
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
        ({"Origin": OTHER_ORIGIN, "Host": "evil.example"}, 421),
    ):
        headers |= {"Access-Control-Request-Method": "POST", "Content-Type": None}
        reply = wire.ask(headers=headers, method="OPTIONS")
        assert reply.status == status
        assert not any(name.startswith("access-control-allow-m") for name in reply.headers)


# Bodies


def chunked(body: bytes, size: int = 10_000) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, b""])


def test_the_largest_body(wire: Wire):
    assert wire.ask(padded(BODY_BYTES_MAX)).result == {}
    wire.send(headers={"Transfer-Encoding": "chunked"})
    wire.socket.sendall(chunked(padded(BODY_BYTES_MAX)))
    assert wire.read().result == {}
    assert wire.ask(*PING).result == {}


def test_too_large_by_its_length(wire: Wire):
    # The answer comes before the body, so the client need not send it.
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
        ({"Origin": "null"}, 403), ({"Host": "evil.example"}, 421),
    ],
)  # fmt: skip
def test_a_large_body_after_a_refusal_is_not_the_next_request(
    wire: Wire, headers: dict[str, str], status: int
):
    # Text in a body that resembles a request must never be read as one.
    hidden = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000
    assert wire.ask(hidden, headers).status == status
    assert wire.ask(*PING).result == {}
