"""A vendor's API on this machine, for downloads."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.support.servers import in_thread


class Request(NamedTuple):
    """A request; ``body`` is its JSON, ``client`` the other end of its connection."""

    client: tuple[str, int]
    method: str
    path: str
    params: dict[str, str]
    headers: Mapping[str, str]
    body: Any


class Said(NamedTuple):
    """An answer; ``body`` is sent as it is, or as JSON. Status 0: none, the connection ends."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


class FakeApi:
    """A running fake API: its ``url``, and the requests that it received."""

    def __init__(self, url: str, answer: Callable[[Request], Said]) -> None:
        self.url = url
        self.requests: list[Request] = []
        self._answer = answer

    def answer(self, request: Request) -> Said:
        self.requests.append(request)
        return self._answer(request)


@contextlib.contextmanager
def fake_api(answer: Callable[[Request], Said]) -> Iterator[FakeApi]:
    """An API at a free port of 127.0.0.1, in threads of this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.api = FakeApi(f"http://127.0.0.1:{server.server_port}", answer)
    with in_thread(server):
        yield server.api


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body in one write: two would wait for the client's delayed acknowledgement.
    wbufsize = -1

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = self.server.api.answer(
            Request(
                self.client_address, self.command, parts.path, dict(parse_qsl(parts.query)),
                self.headers, json.loads(sent) if sent else None,
            )
        )  # fmt: skip
        if not said.status:
            self.close_connection = True
            return
        body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        self.send_response(said.status)
        for name, value in {"Content-Type": "application/json", **said.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Keep the output of the tests clean."""
