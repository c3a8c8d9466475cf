"""A hub of a test's own, over real HTTP, and a clock that it sets."""

import contextlib
import hashlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from hub_prompts import WITHDRAWALS, Got, Hub

from tests.support.servers import in_thread

LATEST = "/api/v1/repos/ada/hello.json"
PINNED = "/api/v1/repos/ada/hello/versions/1.0.0.json"
LABELLED = "/api/v1/repos/ada/hello/labels/production.json"
HUB = "/api/v1/hub.json"
OF_A_LABEL = "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400"


def record(content: str = "Hello {{name}}.\n", **changes: Any) -> dict[str, Any]:
    """The record of a version, as the API has it."""
    return {
        "owner": "ada", "name": "hello", "version": "1.0.0", "content": content, "body": content,
        "variables": [{"name": "name", "type": "string", "required": True, "default": None}],
        "parameters": {"temperature": 0.5}, "sha256": hashlib.sha256(content.encode()).hexdigest(),
    } | changes  # fmt: skip


def answer(content: str = "Hello {{name}}.\n", **changes: Any) -> bytes:
    return json.dumps({"data": record(content, **changes)}).encode()


def refusal(code: str, message: str = "Told by the hub.") -> bytes:
    return json.dumps({"error": {"code": code, "message": message}}).encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.hub.asked.append((self.path, dict(self.headers)))
        self.server.hub.on_request(self)

    def log_message(self, *_: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    hub: "FakeHub"

    def handle_error(self, *_: object) -> None:
        """A client that is gone is no fault of ours."""


class FakeHub:
    """``answers`` has what is sent for each path: status, headers and body. ``asked`` has the path
    and headers of each request, ``on_request`` can do anything else.
    """

    def __init__(self, server: _Server) -> None:
        server.hub = self
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.on_request: Callable[[Any], None] = self.send
        self.let_go = threading.Event()

    @property
    def paths(self) -> list[str]:
        """The paths of prompts that were requested."""
        return [path for path, _ in self.asked if path != WITHDRAWALS]

    def has(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = status, named, body

    def send(self, handler: Any) -> None:
        missing = 404, {}, refusal("repo_not_found")
        status, headers, body = self.answers.get(handler.path, missing)
        etag = headers.get("ETag")
        if status == 200 and etag and handler.headers.get("If-None-Match") == etag:
            status, body = 304, b""
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def stall(self, handler: Any) -> None:
        """Send nothing until the test continues, then the answer."""
        self.let_go.wait()
        self.send(handler)

    def fails(self, status: int = 500, **headers: str) -> None:
        for path in self.answers:
            self.has(path, b"", status, **headers)


@contextlib.contextmanager
def fake_hub() -> Iterator[FakeHub]:
    server = _Server(("127.0.0.1", 0), _Handler)
    hub = FakeHub(server)
    try:
        with in_thread(server):
            try:
                yield hub
            finally:
                hub.let_go.set()
    finally:
        hub.let_go.set()


class Clock:
    """In the place of the module ``time``: real time, and what a test adds to it."""

    def __init__(self) -> None:
        self.added = 0.0
        self.sleep = time.sleep

    def pass_by(self, seconds: float) -> None:
        self.added += seconds

    def monotonic(self) -> float:
        return time.monotonic() + self.added

    def time(self) -> float:
        return time.time() + self.added


def sources(url: str | list[str], reference: str, **options: Any) -> list[str]:
    """The source from which a new Hub gets a prompt."""
    told: list[Got] = []
    Hub(url, on_get=told.append, **options).get(reference)
    return [one.source for one in told]
