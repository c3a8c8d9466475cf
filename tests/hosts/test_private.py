"""nginx and Caddy before the service of a private hub, which is a stand-in here.

They admit no client without the service's consent. tests/conformance checks that they admit
members.
"""

import contextlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.hosts.standing_in import Asker, Place
from tests.support.servers import free_port, in_thread

pytestmark = pytest.mark.usefixtures("installed_tools")

# Addresses of the small catalogue.
READS = ("/", "/bob", "/api/v1/repos", "/api/v1/repos?sort=new", "/api/v1/repos/bob/sql/raw",
         "/feed.xml", "/index.html.gz", "/nothing", "/bob/")  # fmt: skip


class Service(ThreadingHTTPServer):
    """Answers each request with ``status`` and the headers ``reply_headers``, and notes it.

    If ``reply_headers`` is None, it breaks the connection.
    """

    daemon_threads = True
    status = 401
    reply_headers: dict[str, str] | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str]]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        sent = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((f"{self.command} {self.path}", sent))
        if self.server.reply_headers is None:
            return
        self.send_response(self.server.status)
        for name, value in self.server.reply_headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_POST = do_GET

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    server = Service()
    with in_thread(server):
        yield server


@pytest.fixture(scope="module", params=("nginx", "caddy"))
def ask(request: pytest.FixtureRequest, place: Place, service: Service) -> Iterator[Asker]:
    with started(request.param, place, f"127.0.0.1:{service.server_port}") as ask:
        yield ask


@contextlib.contextmanager
def started(name: str, place: Place, upstream: str, **options: Any) -> Iterator[Asker]:
    folder = place.folder / f"private-{name}-{free_port()}"
    folder.mkdir()
    with place.started(name, folder, upstream=upstream, private=True, **options) as ask:
        yield ask


def check_shut(ask: Asker, path: str, *statuses: int) -> None:
    for method in ("GET", "HEAD"):
        answer = ask(path, method, Authorization="Bearer x", If_None_Match="*", Range="bytes=0-1")
        assert answer.status in statuses, (path, answer)
        assert b"Write SQL" not in answer.body and b"bob/" not in answer.body
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("status", "reply_headers", "statuses"),
    [
        (401, {"Hub-Access": "missing_token", "Cache-Control": "no-store"}, (401, 303)),
        (200, {"Hub-Access": "invalid_token"}, (303, 401, 404, 503)),
        (403, {}, (503,)),
        (404, {"Hub-Access": "read"}, (503,)),
        (302, {"Location": "/elsewhere", "Hub-Access": "read"}, (503,)),
        (500, {"Hub-Access": "read"}, (503,)),
        (503, {}, (503,)),
        (429, {}, (503,)),
        (204, None, (503,)),
    ],
)
def test_only_one_word_opens(
    ask: Asker,
    service: Service,
    status: int,
    reply_headers: dict[str, str] | None,
    statuses: tuple[int, ...],
):
    service.status, service.reply_headers = status, reply_headers
    for path in READS:
        check_shut(ask, path, *statuses)


def test_the_service_decides_each_read_and_learns_only_who_reads(ask: Asker, service: Service):
    service.status, service.reply_headers = 204, {"Hub-Access": "read"}
    for method in ("GET", "HEAD"):
        service.requests.clear()
        answer = ask(
            "/api/v1/repos/bob/sql/raw?version=1.0.0", method,
            Authorization="Bearer x", Cookie="a=b", Content_Length="0",
        )  # fmt: skip
        assert answer.status == 200 and (method == "HEAD" or answer.body)
        assert answer.headers["Cache-Control"].startswith("private, ")
        ((line, headers),) = service.requests
        assert line == f"GET {ask.parts.path}/account/access"
        assert (headers["authorization"], headers["cookie"]) == ("Bearer x", "a=b")
    service.requests.clear()
    assert ask("/assets/style.css").status == 200
    assert not service.requests, "what is open needs no word"


def test_nginx_counts_reads_by_token_or_session(place: Place, service: Service):
    upstream = f"127.0.0.1:{service.server_port}"
    with started("nginx", place, upstream, reads_per_minute=2) as ask:
        service.status = 204
        for reader in ("a", "b"):
            service.reply_headers = {"Hub-Access": "read", "Hub-Reader": reader}
            assert [ask("/api/v1/repos").status for _ in range(3)] == [200, 200, 429]


def test_refusals_say_why(ask: Asker, service: Service):
    for code in ("missing_token", "invalid_token", "token_expired"):
        service.status, service.reply_headers = (
            401,
            {"Hub-Access": code, "WWW-Authenticate": "Bearer"},
        )
        answer = ask("/api/v1/repos")
        assert answer.headers.get_all("WWW-Authenticate") == ["Bearer"]
        # Caddy passes on the service's own words, which the stand-in does not have.
        if ask.name == "nginx":
            assert json.loads(answer.body)["error"]["code"] == code


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_a_stopped_service_shuts_the_hub(place: Place, name: str):
    with started(name, place, f"127.0.0.1:{free_port()}") as ask:
        for path in READS:
            check_shut(ask, path, 503)
        answer = ask("/api/v1/repos")
        assert json.loads(answer.body)["error"]["code"] == "unavailable"
        assert answer.headers["Retry-After"] == "5"
        assert ask("/").headers["Content-Type"].startswith("text/html")
        assert ask("/assets/style.css").status == 200
