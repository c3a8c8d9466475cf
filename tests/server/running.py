"""The real server inside the test, over real sockets, with an application that notes what came."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any

import uvicorn
import uvloop

from builder.model.settings import Settings
from builder.search.query_thread import QueryThread
from server.app import ReadApp, Receive, Scope, Send
from server.connections import ConnectionLimits, Connections
from tests.support.servers import DEADLINE_SECONDS

GET = b"GET /api/v1/hub.json HTTP/1.1\r\nHost: x\r\n"
# Ticks that end soon, and ticks that no test lives to see.
SOON = ConnectionLimits(
    tick_seconds=0.01, head_ticks=5, idle_ticks=5, proxy_idle_ticks=100_000, blocked_ticks=5
)
NEVER = ConnectionLimits(tick_seconds=600)
LARGE_BYTES = 20_000_000


def reads_of(settings: Settings) -> ReadApp:
    """The reads of a site. A thread starts with the first query, and ends with the process."""
    return ReadApp(settings, QueryThread(settings))


class App:
    """Answers each request with ``answer``; notes what came, and what went out."""

    def __init__(self, answer: bytes = b"ok") -> None:
        self.answer = answer
        self.requests: list[Scope] = []
        self.messages: list[dict] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(scope)
        if scope["method"] == "POST":
            while not self.messages or self.messages[-1].get("more_body"):
                self.messages.append(await receive())
        await self.may_answer.wait()
        length = (b"content-length", b"%d" % len(self.answer))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": self.answer})


class Client:
    """A connection from an address of this machine."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self.socket = socket.socket()
        # Small, so that little is enough to fill it.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setblocking(False)
        self.socket.bind((address, 0))
        self._target = ("127.0.0.1", port)

    async def connect(self) -> "Client":
        await asyncio.get_running_loop().sock_connect(self.socket, self._target)
        return self

    async def send(self, data: bytes) -> "Client":
        await asyncio.get_running_loop().sock_sendall(self.socket, data)
        return self

    async def read(self, bytes_max: int = 65536) -> bytes:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await asyncio.get_running_loop().sock_recv(self.socket, bytes_max)

    async def read_to_end(self) -> bytes:
        """All until the server closes."""
        read = b""
        with contextlib.suppress(ConnectionResetError):
            while part := await self.read():
                read += part
        return read

    def close(self) -> None:
        self.socket.close()


class Running:
    """A server on a free port. Its clients are closed at the end."""

    def __init__(self, server: uvicorn.Server, port: int, connections: Connections) -> None:
        self.server = server
        self.port = port
        self.connections = connections
        self.clients: list[Client] = []

    async def connect(self, address: str = "127.0.0.1") -> Client:
        self.clients.append(Client(self.port, address))
        return await self.clients[-1].connect()

    async def ask(self, request: bytes, address: str = "127.0.0.1") -> bytes:
        """The whole answer to a request, after which the server closes."""
        client = await self.connect(address)
        await client.send(request)
        return await client.read_to_end()

    def unsent_bytes(self) -> list[int]:
        """For each connection, the bytes that the server keeps until its client reads them."""
        return [
            one.transport.get_write_buffer_size() for one in self.server.server_state.connections
        ]


@contextlib.asynccontextmanager
async def running(
    app: Callable, limits: ConnectionLimits = NEVER, total_max: int = 100,
    proxies: tuple[str, ...] = (), send_buffer_bytes: int | None = None,
) -> AsyncIterator[Running]:  # fmt: skip
    connections = Connections(total_max, proxies, limits)
    config = uvicorn.Config(
        app,
        http=connections.protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=0,  # is to have no effect
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    if send_buffer_bytes:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    serving = asyncio.create_task(server.serve([listener]))
    run = Running(server, listener.getsockname()[1], connections)
    try:
        await until(lambda: server.started)
        yield run
    finally:
        for client in run.clients:
            client.close()
        server.should_exit = True
        await serving
    assert connections.total == 0
    assert not connections.by_network


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop as that of the server."""

    @wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        uvloop.run(test(*args, **fixtures))

    return run


def error_of(answer: bytes, status: int) -> str:
    """The code in the envelope of an answer with this status."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert b"\r\ncontent-type: application/json" in head
    assert b"\r\nconnection: close" in head
    return json.loads(body)["error"]["code"]
