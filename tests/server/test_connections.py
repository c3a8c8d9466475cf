"""Connections that take places, memory or time: over real sockets, against the real server."""

import asyncio
import contextlib
import socket

import pytest

from server.connections import ConnectionLimits
from tests.server.running import (
    GET,
    LARGE_BYTES,
    NEVER,
    SOON,
    App,
    error_of,
    in_a_loop,
    running,
    until,
)

# Heads


def headers(count: int) -> bytes:
    return b"".join(b"x:a\r\n" for _ in range(count))


TOO_LARGE = {
    "headers": GET + headers(101),
    "400,000 headers": GET + headers(400_000),
    "bytes": GET + (b"x: %b\r\n" % (b"a" * 700)) * 95,
    "a line": GET + b"x: " + b"a" * 66_000 + b"\r\nx:a\r\n",
    "a line without an end": GET + b"x: " + b"a" * 2_000_000,
    "a name without an end": GET + b"x" * 2_000_000,
    "an address": b"GET /api/" + b"a" * 66_000 + b" HTTP/1.1\r\n",
    "an address without an end": b"GET /api/" + b"a" * 2_000_000,
    "empty lines": b"\r\n" * 1_000_000,
}


@pytest.mark.parametrize("is_whole", [False, True], ids=["going on", "whole"])
@pytest.mark.parametrize("case", TOO_LARGE)
@in_a_loop
async def test_head_that_is_too_large(case: str, is_whole: bool) -> None:
    request = TOO_LARGE[case] + (b"\r\n" if is_whole else b"")

    app = App()
    async with running(app) as server:
        client = await server.connect()
        # All that is sent is read, so that the answer is not lost.
        await client.send(request)
        client.socket.shutdown(socket.SHUT_WR)
        assert error_of(await client.read_to_end(), 431) == "headers_too_large"
    assert app.requests == []


@in_a_loop
async def test_largest_head() -> None:
    app = App()
    async with running(app) as server:
        client = await server.connect()
        for sent in (
            GET + headers(99),
            GET + b"x: " + b"a" * (NEVER.head_bytes - 30) + b"\r\n",
            b"GET /" + b"a" * (NEVER.head_bytes - 30) + b" HTTP/1.1\r\nHost: x\r\n",
        ):
            # In pieces, and one after the other on the same connection.
            await client.send(sent[:1000])
            await client.send(sent[1000:] + b"\r\n")
            assert (await client.read()).startswith(b"HTTP/1.1 200 ")
    assert [len(scope["headers"]) for scope in app.requests] == [100, 2, 1]


@in_a_loop
async def test_no_part_of_a_body_counts_as_head() -> None:
    app = App()
    async with running(app) as server:
        body = b"x" * 1_000_000
        client = await server.connect()
        await client.send(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert (await client.read()).startswith(b"HTTP/1.1 200 ")
    assert b"".join(message["body"] for message in app.messages) == body


@pytest.mark.parametrize(
    "trailer",
    [b"x: " + b"a" * 2_000_000, headers(150), b"1;" + b"a" * 2_000_000],
    ids=["a line", "headers", "a chunk's extension"],
)
@in_a_loop
async def test_trailers_that_are_too_large(trailer: bytes) -> None:
    start = b"" if trailer.startswith(b"1;") else b"0\r\n"

    app = App()
    async with running(app) as server:
        client = await server.connect()
        with contextlib.suppress(ConnectionError):
            await client.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + start)
            await until(lambda: app.requests)
            await client.send(trailer)
        assert await client.read_to_end() == b""
        await until(lambda: not server.server.server_state.tasks)
    assert app.messages[-1] == {"type": "http.disconnect"}
    assert len(app.requests[0]["headers"]) <= NEVER.headers


@in_a_loop
async def test_requests_that_do_not_wait_for_answers() -> None:
    app = App()
    app.may_answer.clear()
    async with running(app) as server:
        client = await server.connect()
        await client.send((GET + b"\r\n") * 100)
        await until(lambda: app.requests)
        app.may_answer.set()
        answers = b""
        while answers.count(b"\r\n\r\nok") < 100:
            answers += await client.read()
        app.may_answer.clear()
        await client.send((GET + b"\r\n") * 10_000)
        assert await client.read_to_end() == b""
        app.may_answer.set()
    assert len(app.requests) == 101


# Waiting


@pytest.mark.parametrize("before", [b"", GET + b"\r\n"], ids=["at first", "after an answer"])
@pytest.mark.parametrize(
    ("sent", "again"),
    [(b"", b""), (b"GET / HTTP/1.1\r\nx: ", b""), (b"GET / HTTP/1.1\r\nx: ", b"a"), (b"", b"\r\n")],
    ids=["nothing", "half a head", "a head in bytes", "empty lines"],
)
@in_a_loop
async def test_head_that_does_not_come(before: bytes, sent: bytes, again: bytes) -> None:
    async with running(App(), SOON) as server:
        clients = []
        for _ in range(10):
            client = await server.connect()
            clients.append(client)
            await client.send(before)
            if before:
                assert (await client.read()).startswith(b"HTTP/1.1 200 ")
            await client.send(sent)
        with contextlib.suppress(ConnectionError):
            while again and server.connections.total:
                for client in clients:
                    await client.send(again)
                await asyncio.sleep(0)
        await until(lambda: not server.connections.total)


@pytest.mark.parametrize(
    ("limits", "proxies"),
    [(SOON._replace(idle_ticks=100_000), ()), (SOON, ("127.0.0.1",))],
    ids=["a reader's", "a proxy's"],
)
@in_a_loop
async def test_an_idle_connection_is_kept_longer_than_a_slow_one(
    limits: ConnectionLimits, proxies: tuple[str, ...]
) -> None:
    async with running(App(), limits, proxies=proxies) as server:
        idle, slow = await server.connect(), await server.connect()
        for client in (idle, slow):
            await client.send(GET + b"\r\n")
            assert (await client.read()).startswith(b"HTTP/1.1 200 ")
        await slow.send(GET)
        new = await server.connect()
        for client in (slow, new):
            assert await client.read_to_end() == b""
        await idle.send(GET + b"\r\n")
        assert (await idle.read()).startswith(b"HTTP/1.1 200 ")


@in_a_loop
async def test_body_after_its_answer() -> None:
    async with running(App(), SOON) as server:
        client = await server.connect()
        await client.send(GET + b"Content-Length: 1000000000\r\n\r\n")
        assert (await client.read()).startswith(b"HTTP/1.1 200 ")
        with contextlib.suppress(ConnectionError):
            while server.connections.total:
                await client.send(b"x")
                await asyncio.sleep(0)
        await until(lambda: not server.connections.total)


@in_a_loop
async def test_an_answer_may_take_longer_than_a_head() -> None:
    app = App()
    app.may_answer.clear()
    async with running(app, SOON) as server:
        client = await server.connect()
        await client.send(GET + b"\r\n")
        await until(lambda: app.requests)
        # Later clients with half a head are closed meanwhile, so the time for a head is over.
        for _ in range(3):
            await (await server.connect()).send(b"GET")
            await until(lambda: server.connections.total == 1)
        app.may_answer.set()
        assert (await client.read()).endswith(b"ok")


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "closed after it"])
@in_a_loop
async def test_answer_that_nobody_takes(is_kept: bool) -> None:
    app = App(b"x" * LARGE_BYTES)
    async with running(app, SOON) as server:
        for _ in range(10):
            client = await server.connect()
            await client.send(GET + (b"\r\n" if is_kept else b"Connection: close\r\n\r\n"))
        await until(lambda: len(app.requests) == 10)
        await until(lambda: not server.connections.total)
        assert server.unsent_bytes() == []


@in_a_loop
async def test_answer_that_is_taken_slowly() -> None:
    app = App(b"x" * LARGE_BYTES)
    # Small, so that the server soon notices what its clients read.
    async with running(app, SOON, send_buffer_bytes=4096) as server:
        slow, blocked = [await server.connect() for _ in range(2)]
        for client in (slow, blocked):
            await client.send(GET + b"Connection: close\r\n\r\n")
        await until(lambda: len(app.requests) == 2)
        answer = b""
        while server.connections.total == 2:
            answer += await slow.read()
        parts = [answer]
        while part := await slow.read():
            parts.append(part)
        assert b"".join(parts).endswith(b"\r\n\r\n" + app.answer)
