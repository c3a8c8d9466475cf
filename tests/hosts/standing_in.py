"""Hosts before a stand-in for the service, which reports each request and answers as it says."""

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from builder.hosts.rules import HostedSite
from builder.model.caching import CACHE_CONTROL
from builder.model.settings import Settings
from tests.conformance.caddy import started_caddy
from tests.conformance.hosts import BASE_URL, BELOW_PATH
from tests.conformance.nginx import started_nginx
from tests.conformance.worker import started_worker
from tests.support.servers import DEADLINE_SECONDS, free_port

COOKIES = ["hub_session=abc; HttpOnly; Path=/; SameSite=Lax; Secure", "other=1; Path=/account"]
# Large enough for every server to compress it.
PADDING = "<p>The same words again and again.</p>\n" * 200


class Answer(NamedTuple):
    """An answer of a host. ``report`` is the stand-in's report of the request."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.body.partition(b"\n")[0])

    @property
    def error(self) -> str:
        """The code of an error's envelope, which has what every error of a public hub has."""
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Access-Control-Allow-Origin"] == "*"
        cache = CACHE_CONTROL["not_found" if self.status == 404 else "none"]
        assert self.headers["Cache-Control"] == cache
        error = json.loads(self.body)["error"]
        assert error["message"] and "{" not in error["message"]
        return error["code"]


class StandIn(ThreadingHTTPServer):
    """Numbers the requests, and answers each with what it was, as a page with cookies. In a query,
    ``status``, ``cache`` and ``location`` say what else the answer is to have. With a ``reply``,
    it has this status, media type and text instead.
    """

    daemon_threads = True
    requests = 0
    reply: tuple[int, str, str] | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # else its second packet waits for the first

    def _answer(self) -> None:
        self.server.requests += 1
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        report = {
            "line": f"{self.command} {self.path}", "body": body.decode("latin-1"),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "number": self.server.requests,
        }  # fmt: skip
        page = f"{json.dumps(report)}\n{PADDING}"
        reply = int(query.get("status", "200")), "text/html; charset=utf-8", page
        status, media, text = self.server.reply or reply
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(text.encode())))
        self.send_header("Cache-Control", query.get("cache", "no-store"))
        for cookie in COOKIES:
            self.send_header("Set-Cookie", cookie)
        if "location" in query:
            self.send_header("Location", query["location"])
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def log_message(self, *_: object) -> None: ...


class Asker:
    """Requests paths below a host's base URL, exactly as they are given."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.parts = urlsplit(url)

    def __call__(
        self, target: str, method: str = "GET", body: bytes | str | None = None, **headers: str
    ) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.parts.netloc, timeout=DEADLINE_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, self.parts.path + target, body, sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())


Started = Callable[..., contextlib.AbstractContextManager[str]]


def _worker(site: HostedSite, folder: Path) -> contextlib.AbstractContextManager[str]:
    options: dict[str, Any] = {"files": "assets"}
    if site.upstream:
        options["variables"] = {"UPSTREAM": f"http://{site.upstream}"}
    if site.reads_per_minute:
        options["reads"] = site.reads_per_minute
    # The configuration for Cloudflare needs an upstream with a public name.
    public = site._replace(upstream="hub-origin.example.org")
    return started_worker(public, folder, **options)


STARTED: dict[str, Started] = {"nginx": started_nginx, "caddy": started_caddy, "worker": _worker}
# The suite of tests/conformance has each of them at another place: the root, or below a path.
BASE_URLS = {"nginx": BELOW_PATH, "caddy": BASE_URL, "worker": BELOW_PATH}


class Place(NamedTuple):
    """A folder with a site in it for each base URL."""

    folder: Path
    sites: dict[str, Settings]

    @contextlib.contextmanager
    def started(self, name: str, folder: Path, **changes: Any) -> Iterator[Asker]:
        """The host of that name; its own files are in ``folder``."""
        site = self.sites[BASE_URLS[name]]
        given = {"base_url": site.base_url, "listen": f"127.0.0.1:{free_port()}"} | changes
        with STARTED[name](HostedSite(site.out, str(folder), **given), folder) as url:
            yield Asker(name, url)
