"""A stand-in for the `hubctl serve` that a Worker passes requests on to."""

import http.client
import http.server
import json


class Upstream(http.server.ThreadingHTTPServer):
    """A stand-in for an upstream. ``how`` it answers: as an echo of the request's line and headers,
    with one of Cloudflare's own pages of errors, or with the envelope of an error.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.how = "echo"
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        sent = self.rfile.read(length).decode()
        if self.server.how == "page":
            self._send(530, "text/html", "<h1>The tunnel is down</h1>")
        elif self.server.how == "envelope":
            error = {"code": "storage_unavailable", "message": "The disk is full."}
            self._send(503, "application/json", json.dumps({"error": error}))
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            echo = {"line": f"{self.command} {self.path}", "headers": headers, "body": sent}
            self._send(200, "application/json", json.dumps(echo))

    do_GET = do_HEAD = do_POST = do_DELETE = do_OPTIONS = _answer

    def _send(self, status: int, media: str, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    def log_message(self, *arguments: object) -> None:
        pass
