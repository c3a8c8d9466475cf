"""Places for connections: of an address, of a proxy, in all, and of open files."""

import contextlib
import resource
import socket
import subprocess
import sys
from unittest.mock import Mock

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from server.connections import CONNECTIONS_MAX, ConnectionLimits, Connections, connections_max
from tests.server.running import (
    GET,
    LARGE_BYTES,
    NEVER,
    App,
    Client,
    error_of,
    in_a_loop,
    running,
    until,
)
from tests.support.servers import (
    Process,
    Server,
    clean_environment,
    read_answer,
    serve_command,
    wait_until,
)


@in_a_loop
async def test_connections_of_an_address() -> None:
    limits = NEVER._replace(per_network=3)
    async with running(App(), limits) as server:
        held = [await server.connect() for _ in range(3)]
        await until(lambda: server.connections.total == 3)
        for _ in range(5):
            assert error_of(await server.ask(b""), 429) == "rate_limited"
        assert server.connections.total == 3
        other = await server.connect("127.0.0.2")
        assert b" 200 OK" in await (await other.send(GET + b"\r\n")).read()
        held[0].close()
        await until(lambda: server.connections.total == 3)
        again = await server.connect()
        assert b" 200 OK" in await (await again.send(GET + b"\r\n")).read()


@in_a_loop
async def test_an_idle_connection_makes_way_for_a_new_one() -> None:
    async def ask(client: Client, more: bytes = b"") -> None:
        await client.send(GET + b"\r\n" + more)
        assert b" 200 OK" in await client.read()

    app = App()
    async with running(app, NEVER._replace(per_network=4)) as server:
        slow, begun, first, second = [await server.connect() for _ in range(4)]
        for client in (first, second, first):
            await ask(client)
        await ask(begun, b"GET /")
        await until(lambda: server.connections.total == 4)
        await ask(third := await server.connect())
        assert await second.read_to_end() == b""
        await ask(fourth := await server.connect())
        assert await first.read_to_end() == b""
        # Two owe a head, and two wait for an answer now.
        app.may_answer.clear()
        asked = len(app.requests)
        for client in (third, fourth):
            await client.send(GET + b"\r\n")
        await until(lambda: len(app.requests) == asked + 2)
        assert error_of(await server.ask(b""), 429) == "rate_limited"
        app.may_answer.set()
        await slow.send(GET + b"\r\n")
        await begun.send(b" HTTP/1.1\r\n\r\n")
        for client in (slow, begun, third, fourth):
            assert b" 200 OK" in await client.read()


@in_a_loop
async def test_an_idle_connection_makes_way_for_no_more_than_one() -> None:
    async with running(App()) as server:
        client = await server.connect()
        await client.send(GET + b"\r\n")
        assert b" 200 OK" in await client.read()
        (connection,) = server.server.server_state.connections
        assert connection.is_idle()
        connection.transport.close()
        # Until the loop tells its end, it counts.
        assert server.connections.total == 1 and not connection.is_idle()


@in_a_loop
async def test_an_answer_that_is_not_taken_makes_no_way() -> None:
    app = App(b"x" * LARGE_BYTES)
    limits = NEVER._replace(per_network=1)
    async with running(app, limits, send_buffer_bytes=4096) as server:
        client = await server.connect()
        await client.send(GET + b"\r\n")
        await until(lambda: sum(server.unsent_bytes()))
        assert error_of(await server.ask(b""), 429) == "rate_limited"


@pytest.mark.parametrize(
    "proxies", [("127.0.0.1", "no address"), ("127.0.0.0/24", "no address"), ("*",)]
)
@in_a_loop
async def test_connections_of_a_proxy(proxies: tuple[str, ...]) -> None:
    limits = NEVER._replace(per_network=1)
    async with running(App(), limits, 5, proxies) as server:
        for _ in range(5):
            client = await server.connect()
            assert b" 200 OK" in await (await client.send(GET + b"\r\n")).read()
        # The limit of all connections includes those of proxies.
        assert error_of(await server.ask(b""), 503) == "unavailable"


@in_a_loop
async def test_connections_in_all() -> None:
    async with running(App(), NEVER, 4) as server:
        for number in range(4):
            await server.connect(f"127.0.0.{number + 1}")
        await until(lambda: server.connections.total == 4)
        assert error_of(await server.ask(b"", "127.0.0.9"), 503) == "unavailable"


def test_networks_of_ipv6_count_as_one() -> None:
    connections = Connections(100, (), ConnectionLimits(per_network=2))
    busy = [Mock(**{"is_idle.return_value": False}) for _ in range(6)]
    assert not connections.enter(busy[0], "2001:db8::1")
    assert not connections.enter(busy[1], "2001:db8::ffff:1")
    assert connections.enter(busy[2], "2001:db8::2").code == "rate_limited"
    assert not connections.enter(busy[2], "2001:db8:0:1::1")
    assert not connections.enter(busy[3], "192.0.2.1")
    assert not connections.enter(busy[4], "::ffff:192.0.2.1")
    assert connections.enter(busy[5], "192.0.2.1").code == "rate_limited"
    connections.leave(busy[1], "2001:db8::ffff:1")
    assert not connections.enter(busy[5], "2001:db8::2")
    assert connections.total == 5
    assert sorted(map(len, connections.by_network.values())) == [1, 2, 2]


def test_soft_limit_of_open_files_is_raised() -> None:
    code = (
        "import resource; from server.connections import raise_open_files_limit;"
        "print(raise_open_files_limit(), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512)),
    )  # fmt: skip
    assert done.stdout == "512 (512, 512)\n"


@pytest.mark.parametrize(
    ("open_files", "found"),
    [(64, 32), (256, 128), (1024, 640), (4480, 4096), (1_000_000, CONNECTIONS_MAX)],
)
def test_connections_leave_files_for_the_rest(open_files: int, found: int) -> None:
    assert connections_max(open_files) == found


def test_more_half_requests_than_open_files(small: Settings) -> None:
    build(small)
    limited = ["sh", "-c", 'ulimit -S -n 128; ulimit -H -n 256; exec "$@"', "sh"]
    process = Process(*limited, *serve_command(small), env=clean_environment())
    half = []
    try:
        server = Server(process, small)
        with server.connect() as before:
            for number in range(300):
                one = socket.socket()
                one.bind((f"127.0.0.{number % 10 + 10}", 0))
                one.connect((server.host, server.port))
                with contextlib.suppress(ConnectionError):
                    one.sendall(b"GET / HTTP/1.1\r\nx: ")
                half.append(one)
            # Connected clients get answers, even from files that were never open.
            for target in (b"/api/v1/repos?q=care", b"/healthz", b"/ann/story"):
                before.sendall(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % target)
                assert read_answer(before).status == 200
            # Later clients get the reason of the refusal.
            assert server.raw(b"/").status == 503
            for one in half:
                one.close()
            wait_until(lambda: server.raw(b"/").status == 200, "an answer after the attack")
        assert "Too many open files" not in process.text
    finally:
        for one in half:
            one.close()
        status = process.stop()
    assert status == 0, process.text
