"""Speaks to the MCP endpoint byte by byte: in this process, or over a socket."""

import asyncio
import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mcp_types as types

from builder.model.settings import Settings
from builder.pipeline.build import build
from server.mount import App, RunningApp
from tests.support.catalogues import settings_in, write_small_catalogue, write_version
from tests.support.servers import Server, read_answer

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
# The origins that the tests' server admits beside its own.
OTHER_ORIGIN = "https://app.example.org"

# The metadata that a client of the stateless revision sends with each request.
ENVELOPE = {
    types.PROTOCOL_VERSION_META_KEY: STATELESS,
    types.CLIENT_CAPABILITIES_META_KEY: {},
    types.CLIENT_INFO_META_KEY: {"name": "wire", "version": "1.0"},
}

Headers = dict[str, str | bytes | None]

# Methods whose Mcp-Name header repeats a member of the parameters.
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Message(NamedTuple):
    """A request as it goes over the wire: the body, and the headers that belong to it."""

    body: bytes
    headers: Headers


def message(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    request_id: Any = 1,
    version: str | None = None,
) -> Message:
    """A request of either era; without ``version``, of a client that does not name it."""
    headers: Headers = {}
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    if version == STATELESS:
        params = {**(params or {}), "_meta": ENVELOPE | (params or {}).get("_meta", {})}
        headers["Mcp-Method"] = method
        named_by = _NAMED_BY.get(method)
        if named_by in params:
            headers["Mcp-Name"] = params[named_by]
    whole = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        whole["params"] = params
    return Message(json.dumps(whole, ensure_ascii=False).encode(), headers)


def call(
    tool: str, *, request_id: Any = 1, version: str | None = None, **arguments: Any
) -> Message:
    """A call of a tool."""
    params = {"name": tool, "arguments": arguments}
    return message("tools/call", params, request_id=request_id, version=version)


PING = message("ping")


def padded(size: int) -> bytes:
    """The message of a ping with this many bytes."""
    return PING.body + b" " * (size - len(PING.body))


class Reply(NamedTuple):
    """The answer to a request. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        assert self.status == 200, self
        return self.json["result"]

    @property
    def given(self) -> Any:
        """The structured content of a tool's result, which is no error."""
        assert self.result["isError"] is False, self.result
        return self.result["structuredContent"]


Parts = bytes | Iterable[bytes]


async def ask(
    app: App, body: Parts = b"", headers: Headers | Iterable[tuple[bytes, bytes]] = (), *,
    method: str = "POST", query: bytes = b"", path: str = "/mcp", client: str = "192.0.2.1",
    is_cut: bool = False,
) -> Reply:  # fmt: skip
    """The answer of an ASGI application; fails unless it is one whole answer. ``headers`` as pairs
    are sent as they are; else they are added to those of a usual client, or replace them; None
    leaves one out. ``is_cut``: the client disconnects after these parts of the body, with more
    announced.
    """
    parts = [body] if isinstance(body, bytes) else list(body)
    pairs = headers_of(headers) if isinstance(headers, dict) or not headers else list(headers)
    events = [
        {"type": "http.request", "body": part, "more_body": is_cut or number < len(parts)}
        for number, part in enumerate(parts, 1)
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if events:
            return events.pop(0)
        if not is_cut:
            await asyncio.Future()  # a client that waits for its answer
        return {"type": "http.disconnect"}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": query, "root_path": "", "headers": pairs,
        "client": (client, 50000), "server": ("127.0.0.1", 80), "asgi": {"version": "3.0"},
    }  # fmt: skip
    await app(scope, receive, send)
    return _whole(method, sent)


def headers_of(changes: Headers | Iterable[Any] = ()) -> list[tuple[bytes, bytes]]:
    """The headers of a usual client, with ``changes``."""
    usual: Headers = {
        "Host": "127.0.0.1:8000",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    lower = {name.lower(): value for name, value in (usual | dict(changes)).items()}
    return [
        (name.encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in lower.items()
        if value is not None
    ]


def _whole(method: str, sent: list[dict[str, Any]]) -> Reply:
    """The events of one answer, which HTTP could send as they are."""
    start, *rest = sent
    assert start["type"] == "http.response.start"
    assert [event["type"] for event in rest] == ["http.response.body"] * len(rest) != []
    assert [event.get("more_body", False) for event in rest] == [True] * (len(rest) - 1) + [False]
    names = [name for name, _ in start["headers"]]
    assert names == [name.lower() for name in names]
    assert len(names) == len(set(names)), f"a header comes twice: {names}"
    assert not any(b"\r" in text or b"\n" in text for pair in start["headers"] for text in pair)
    headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    body = b"".join(event.get("body", b"") for event in rest)
    if method != "HEAD" and start["status"] != 204:
        assert headers["content-length"] == str(len(body))
    return Reply(start["status"], headers, body)


@contextlib.contextmanager
def inside(*apps: RunningApp) -> Iterator[asyncio.Runner]:
    """A loop in which these applications run."""

    async def live(is_ready: asyncio.Event, is_over: asyncio.Event) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for app in apps:
                await stack.enter_async_context(app.running())
            is_ready.set()
            await is_over.wait()

    async def start(is_over: asyncio.Event) -> asyncio.Task[None]:
        is_ready = asyncio.Event()
        task = asyncio.create_task(live(is_ready, is_over))
        await is_ready.wait()
        return task

    async def end(task: asyncio.Task[None]) -> None:
        is_over.set()
        await task

    with asyncio.Runner() as runner:
        is_over = asyncio.Event()
        task = runner.run(start(is_over))
        try:
            yield runner
        finally:
            runner.run(end(task))


class Wire:
    """One connection to a server, on which the next answer is read and no more."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.socket = server.connect()
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self.socket.close()

    def send(
        self, body: bytes = b"", headers: Headers | None = None, *, method: str = "POST",
        path: str = "/mcp", version: str = "1.1",
    ) -> None:  # fmt: skip
        """Send a request; ``headers`` as for ``ask``. Fails if the server no longer reads."""
        usual: Headers = {"Host": f"{self._server.host}:{self._server.port}"}
        if body:
            usual["Content-Length"] = str(len(body))
        pairs = headers_of(usual | (headers or {}))
        lines = [
            f"{method} {path} HTTP/{version}".encode(),
            *(name + b": " + value for name, value in pairs),
        ]
        self.socket.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    def read(self, method: str = "POST") -> Reply:
        return Reply(*read_answer(self, method))

    def ask(self, body: bytes = b"", headers: Headers | None = None, **options: Any) -> Reply:
        """Send a request and read its answer."""
        self.send(body, headers, **options)
        return self.read(options.get("method", "POST"))

    def is_ended(self) -> bool:
        """True if the server has closed the connection without further data."""
        return self._file.read(1) == b""

    def makefile(self, mode: str) -> "_Open":
        """For ``http.client``, which would close the file after an answer."""
        return _Open(self._file)


class _Open:
    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        """The next answer is in it."""


def built_catalogue(folder: str | Path) -> Settings:
    """A small catalogue, built: versions, tags, typed variables, and a text of several parts."""
    settings = settings_in(folder, queries=True)
    write_small_catalogue(settings.content)
    write_version(
        settings.content, "ann", "typed", "1.0.0", "Write {{language}} in {{lines}} lines.\n",
        variables=[
            {"name": "language", "enum": ["Go", "C"]},
            {"name": "lines", "type": "integer", "default": 3},
        ],
    )  # fmt: skip
    write_version(settings.content, "ann", "long", "1.0.0", "ä" * 80_000 + "\n")
    for version, title in (("1.0.0", "Old"), ("1.1.0", "New")):
        write_version(
            settings.content, "ann", "chat", version,
            '{{role "system"}}\nBe kind.\n{{role "user"}}\nHello {{name}}\n',
            title=title, description=f"{title} words.",
        )  # fmt: skip
    build(settings)
    return settings


def error_of(reply: Reply) -> dict[str, Any]:
    """The error of an answer that JSON-RPC allows, and nothing but that."""
    answer = reply.json
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["jsonrpc"] == "2.0"
    error = answer["error"]
    assert {"code", "message"} <= error.keys() <= {"code", "message", "data"}
    assert type(error["code"]) is int
    assert error["message"]
    return error


def check_fixed_headers(reply: Reply) -> None:
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "mcp-session-id" not in reply.headers
    assert "server" not in reply.headers


def check_too_large(reply: Reply) -> None:
    assert reply.status == 413
    assert "256 KiB" in error_of(reply)["message"]
    assert reply.headers["connection"] == "close"
