"""Bodies and failures of the endpoint, in this process, where time and memory matter."""

import asyncio
import contextlib
import gc
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
    PING,
    STATELESS,
    ask,
    call,
    check_too_large,
    error_of,
    inside,
    message,
    padded,
)
from tests.support.servers import DEADLINE_SECONDS

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
def test_a_cut_body_is_no_message(edge: Edge, parts: list[bytes]):
    runner, endpoint = edge
    assert runner.run(ask(endpoint, parts, is_cut=True)).status == 408
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
            for query in (f"x={long}", f"{long}=x"):
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


def test_a_failure_is_logged_and_not_shown(edge: Edge, caplog: pytest.LogCaptureFixture):
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
