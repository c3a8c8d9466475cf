"""An HTTP proxy before the S3 server that takes note of requests, and can make trouble."""

import hashlib
import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from tests.support.servers import DEADLINE_SECONDS


class Seen(NamedTuple):
    """A request as it came: ``number`` of its method. ``key`` is empty for a listing."""

    method: str
    key: str
    number: int


class Proxy:
    """``before`` is called for each request, from several threads. It may return the status and
    the code of an error, ``"cut"`` (the connection, without an answer), or None.
    """

    def __init__(self, url: str) -> None:
        self.upstream = urlsplit(url).netloc
        self.seen: list[Seen] = []
        self.before: Callable[[Seen], tuple[int, str] | str | None] = lambda seen: None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def count(self, method: str) -> int:
        return sum(seen.method == method for seen in self.seen)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def note(self, method: str, path: str) -> Seen:
        with self._lock:
            key = unquote(urlsplit(path).path).removeprefix("/").partition("/")[2]
            seen = Seen(method, key, self.count(method) + 1)
            self.seen.append(seen)
        return seen

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def handle_expect_100(self) -> bool:
                super().handle_expect_100()
                self.wfile.flush()
                return True

            def do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                trouble = proxy.before(proxy.note(self.command, self.path))
                if trouble == "cut":
                    self.close_connection = True
                    return
                sha256 = hashlib.sha256(body).hexdigest()
                if self.command == "PUT" and self.headers["x-amz-content-sha256"] != sha256:
                    trouble = 400, "XAmzContentSHA256Mismatch"
                if isinstance(trouble, tuple):
                    status, code = trouble
                    error = f"<Error><Code>{code}</Code><Message>A &amp; B.</Message></Error>"
                    self.answer(status, {"Content-Type": "application/xml"}, error.encode())
                    return
                self.forward(body)

            do_GET = do_HEAD = do_PUT = do_DELETE = do

            def forward(self, body: bytes) -> None:
                upstream = http.client.HTTPConnection(proxy.upstream, timeout=DEADLINE_SECONDS)
                try:
                    upstream.putrequest(
                        self.command, self.path, skip_host=True, skip_accept_encoding=True
                    )
                    for key, value in self.headers.items():
                        if key.lower() not in ("content-length", "expect"):
                            upstream.putheader(key, value)
                    if body:
                        upstream.putheader("Content-Length", str(len(body)))
                    upstream.endheaders(body or None)
                    answer = upstream.getresponse()
                    self.answer(answer.status, dict(answer.getheaders()), answer.read())
                finally:
                    upstream.close()

            def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response_only(status)
                for key, value in headers.items():
                    if key.lower() not in ("connection", "transfer-encoding", "content-length"):
                        self.send_header(key, value)
                length = headers.get("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
