"""The account settings and the exchange of tokens behind nginx, Caddy and the Worker.

Behind them is a stand-in that reports each request, and answers as the request says. The real
service is tested by tests/conformance.
"""

import contextlib
import gzip
import http.client
import itertools
import json
from collections.abc import Callable, Iterator
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

from builder.hosts.rules import HostedSite
from builder.model.messages import ACCOUNT_TOO_LARGE
from builder.model.routes import TRUSTED_URL
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.conformance.caddy import started_caddy
from tests.conformance.hosts import BASE_URL, BELOW_PATH
from tests.conformance.nginx import started_nginx
from tests.conformance.worker import started_worker
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import DEADLINE_SECONDS, free_port, in_thread

COOKIES = ["hub_session=abc; HttpOnly; Path=/; SameSite=Lax; Secure", "other=1; Path=/account"]
# Large enough for every server to compress it.
PADDING = "<p>The same words again and again.</p>\n" * 200

pytestmark = pytest.mark.usefixtures("installed_tools")


class Answer(NamedTuple):
    """An answer of a host. ``report`` is the stand-in's report of the request."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.body.partition(b"\n")[0])

    @property
    def code(self) -> str:
        assert self.headers["Content-Type"] == "application/json"
        return json.loads(self.body)["error"]["code"]


class StandIn(ThreadingHTTPServer):
    """Numbers the requests, and answers each with what it was, as a page with cookies. In a query,
    ``status``, ``cache`` and ``location`` say what else the answer is to have.
    """

    daemon_threads = True
    requests = 0


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
        page = f"{json.dumps(report)}\n{PADDING}".encode()
        self.send_response(int(query.get("status", "200")))
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", query.get("cache", "no-store"))
        for cookie in COOKIES:
            self.send_header("Set-Cookie", cookie)
        if "location" in query:
            self.send_header("Location", query["location"])
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def log_message(self, *_: object) -> None: ...


class Asker:
    """Requests paths below a host's base URL, exactly as they are given."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.parts = urlsplit(url)

    def __call__(
        self, target: str, method: str = "GET", body: bytes | None = None, **headers: str
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
# Each where tests/conformance has it not: below a path, or at the root of its address.
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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    sites = {}
    for base_url in (BASE_URL, BELOW_PATH):
        sites[base_url] = settings_in(tmp_path_factory.mktemp("site"), base_url, queries=True)
        write_small_catalogue(sites[base_url].content)
        build(sites[base_url], index=False)
    return Place(tmp_path_factory.mktemp("hosts"), sites)


@pytest.fixture(scope="module")
def stand_in() -> Iterator[str]:
    """The address of the stand-in."""
    server = StandIn(("127.0.0.1", 0), _Handler)
    with in_thread(server):
        yield f"127.0.0.1:{server.server_port}"


@pytest.fixture(scope="module", params=STARTED)
def ask(request: pytest.FixtureRequest, place: Place, stand_in: str) -> Iterator[Asker]:
    """Each host before the stand-in; one read a minute is allowed where a limit exists."""
    folder = place.folder / request.param
    folder.mkdir()
    with place.started(request.param, folder, upstream=stand_in, reads_per_minute=1) as ask:
        yield ask


@pytest.fixture(scope="module", params=STARTED)
def down(request: pytest.FixtureRequest, place: Place) -> Iterator[Asker]:
    """Each host while the service is down."""
    folder = place.folder / f"{request.param}-alone"
    folder.mkdir()
    with place.started(request.param, folder, upstream=f"127.0.0.1:{free_port()}") as ask:
        yield ask


# The account settings


TARGETS = [
    "/account", "/account/", "/account?x=1", "/account/login?next=%2Fa%252Fb&x=a+b&x=%2e%2e",
    "/account//login", "/account/a%2Fb", "/account/%61", "/account/a%20b;c=d", "/account/x%0ay",
    "/account/%E8%AA%9E%F0%9F%8E%89", "/account/%ff%fe", "/account/%25zz",
    "/account/invitation?" + "x" * 3000, "/account/" + "x" * 3000,
    # Only the service can interpret these addresses.
    "/%61ccount/login", "/account%2flogin",
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[:40])
def test_all_below_account_is_passed_on_as_it_came(ask: Asker, target: str):
    form = b"csrf_token=%41&password=a+b%26\xff"
    # The local stand-in for Cloudflare compresses for all clients that accept it.
    accepted = "identity" if ask.name == "worker" else "gzip, br"
    for method in ("GET", "POST"):
        sent = form if method == "POST" else None
        answer = ask(
            target, method, sent, Cookie="hub_session=abc; x=1", Accept_Encoding=accepted,
            Origin="https://elsewhere.example", Referer="https://x.example/",
            Content_Type="application/x-www-form-urlencoded",
        )  # fmt: skip
        report = answer.report
        assert report["line"] == f"{method} {ask.parts.path}{target}"
        assert report["body"].encode("latin-1") == (sent or b"")
        for name, value in {
            "cookie": "hub_session=abc; x=1", "origin": "https://elsewhere.example",
            "referer": "https://x.example/", "content-type": "application/x-www-form-urlencoded",
        }.items():  # fmt: skip
            assert report["headers"][name] == value
        check_untouched(answer)


def test_the_service_is_asked_for_plain_pages(ask: Asker):
    answer = ask("/account/login", Accept_Encoding="gzip")
    is_packed = answer.headers["Content-Encoding"] == "gzip"
    plain = answer._replace(body=gzip.decompress(answer.body)) if is_packed else answer
    assert plain.report["headers"].get("accept-encoding") in (None, "identity")


def check_untouched(answer: Answer) -> None:
    """Check that an answer is unchanged: not compressed, and for no other site."""
    assert answer.headers.get_all("Set-Cookie") == COOKIES
    assert answer.headers["Cache-Control"].split(", ")[0] == "no-store"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.body.endswith(PADDING.encode())
    added = {"Content-Encoding", "X-Cache", "RateLimit-Policy"} & set(answer.headers)
    assert not added
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("method", ["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_is_passed_on(ask: Asker, method: str):
    before = ask("/account/x").report["number"]
    for target in ("/account", "/account/tokens"):
        answer = ask(target, method)
        assert answer.status == 200
        if method != "HEAD":
            assert answer.report["line"] == f"{method} {ask.parts.path}{target}"
            check_untouched(answer)
    assert ask("/account/x").report["number"] == before + 3


def test_nothing_is_kept_and_no_limit_of_reads_counts(ask: Asker):
    for target in ("/account/tokens?cache=public,+max-age=600", "/account/site.css", TRUSTED_URL):
        numbers = [ask(target).report["number"] for _ in range(4)]
        assert numbers == list(range(numbers[0], numbers[0] + 4))


@pytest.mark.parametrize(
    "location", ["/account/login", "https://sign-in.example/?state=" + "x" * 6000]
)
def test_a_redirect_is_passed_on_as_it_came(ask: Asker, location: str):
    answer = ask(f"/account/openid?status=303&location={location.replace('?', '%3F')}")
    assert (answer.status, answer.headers["Location"]) == (303, location)
    check_untouched(answer)


@pytest.mark.parametrize("status", [400, 403, 404, 405, 413, 429, 500, 503])
def test_a_page_that_tells_of_an_error_is_the_services_own(ask: Asker, status: int):
    answer = ask(f"/account/x?status={status}", "POST", b"x")
    assert answer.status == status
    check_untouched(answer)


def test_the_service_learns_who_signs_in(ask: Asker):
    given = {"X_Forwarded_For": "198.51.100.1", "X_Forwarded_Proto": "ftp"}
    # This is how Cloudflare says it to a Worker; to the others it is any header.
    for target, method in (("/account/login", "POST"), (TRUSTED_URL, "POST"), ("/account", "GET")):
        report = ask(target, method, CF_Connecting_IP="127.0.0.1", **given).report["headers"]
        assert report["x-forwarded-for"] == "127.0.0.1"
        assert report["x-forwarded-proto"] == "http"
        assert report["host"]


@pytest.mark.parametrize("target", ["/account/login", "/mcp"])
def test_the_service_learns_which_host_was_asked(ask: Asker, stand_in: str, target: str):
    for host in ("hub.example", "hub.example:8443", "evil.example"):
        report = ask(target, Host=host).report["headers"]
        # A Worker can only send the name of the upstream.
        assert report["host"] == (stand_in if ask.name == "worker" else host)


@pytest.mark.parametrize(
    "target", ["/accounts", "/accountx/login", "/Account/login", "/x/account", "//account/login"]
)
def test_what_only_looks_like_it_is_not_passed_on(ask: Asker, target: str):
    answer = ask(target)
    assert answer.status == 404
    assert "Set-Cookie" not in answer.headers


# The exchange of tokens


# nginx counts reads of all addresses of repos.
@pytest.mark.parametrize(
    ("url", "method"),
    [
        *itertools.product([TRUSTED_URL], ["GET", "HEAD", "POST", "PUT", "DELETE"]),
        *itertools.product(["/api/v1/repos/ann/Any.thing/check"], ["GET", "POST", "DELETE"]),
    ],
)
def test_what_takes_only_post_is_passed_on(ask: Asker, url: str, method: str):
    target = f"{url}?status=405"
    answer = ask(target, method, b'{"token": "x"}' if method == "POST" else None)
    assert answer.status == 405
    if method != "HEAD":
        assert answer.report["line"] == f"{method} {ask.parts.path}{target}"
        assert answer.report["body"] == ('{"token": "x"}' if method == "POST" else "")


def test_a_browser_may_ask_for_the_exchange(ask: Asker):
    publish = "/api/v1/repos/ann/review/versions"
    answers = [
        ask(target, "OPTIONS", Origin="https://x.example", Access_Control_Request_Method="POST")
        for target in (TRUSTED_URL, publish)
    ]
    assert [answer.status for answer in answers] == [204, 204]
    assert answers[0].headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in answers[0].headers["Access-Control-Allow-Methods"]
    one, other = (sorted(answer.headers.items()) for answer in answers)
    assert [row for row in one if row[0] != "Date"] == [row for row in other if row[0] != "Date"]


# While the service is down


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
def test_people_get_a_page_of_the_site(down: Asker, place: Place, method: str):
    page = Path(place.sites[BASE_URLS[down.name]].out, "503.html").read_bytes()
    assert b"Your account is temporarily unavailable" in page and b"Try again in a minute" in page
    for target in ("/account", "/account/login?next=%2f", "/account/a/b%0a"):
        answer = down(target, method, b"a=b" if method == "POST" else None)
        assert answer.status == 503
        assert answer.body == (b"" if method == "HEAD" else page)
        check_unavailable(answer)
    assert down("/").status == 200


def check_unavailable(answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_no_condition_and_no_range_makes_less_of_that_page(down: Asker):
    page = down("/account").body
    conditions = {"If_None_Match": "*", "If_Modified_Since": "Fri, 01 Jan 2100 00:00:00 GMT"}
    for headers in (conditions, {"Range": "bytes=0-9"}, {"If_Match": '"x"'}):
        answer = down("/account", **headers)
        assert (answer.status, answer.body) == (503, page)
        check_unavailable(answer)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_jobs_are_told_to_come_back(down: Asker, method: str):
    answer = down(TRUSTED_URL, method, b"{}" if method == "POST" else None)
    assert (answer.status, answer.code) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("status", [502, 504, 522, 530])
def test_what_a_tunnel_says_before_the_worker_is_no_page_of_the_service(ask: Asker, status: int):
    answer = ask(f"/account/x?status={status}")
    if ask.name == "worker":
        assert answer.status == 503 and b"temporarily unavailable" in answer.body
        assert "Set-Cookie" not in answer.headers
    else:
        assert answer.status == status


# Behaviour of single hosts


def test_cloudflare_is_told_not_to_compress(ask: Asker):
    wanted = "no-store, no-transform" if ask.name == "worker" else "no-store"
    assert ask("/account/tokens").headers["Cache-Control"] == wanted


def test_nginx_takes_no_more_than_elsewhere(place: Place, stand_in: str, tmp_path: Path):
    with place.started("nginx", tmp_path, upstream=stand_in) as ask:
        number = ask("/account").report["number"]
        answer = ask("/account/profile", "POST", b"x" * (4 << 20))
        assert (answer.status, answer.body.decode()) == (413, ACCOUNT_TOO_LARGE)
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert ask(TRUSTED_URL, "POST", b"x" * (4 << 20)).code == "content_too_large"
        large = b"x" * (2 << 20)
        assert len(ask("/account/profile", "POST", large).report["body"]) == len(large)
        assert ask("/account").report["number"] == number + 2


@pytest.mark.parametrize(("name", "expected"), [("nginx", "192.0.2.1"), ("caddy", None)])
def test_behind_another_proxy_the_service_still_learns_it(
    place: Place, stand_in: str, tmp_path: Path, name: str, expected: str | None
):
    changes = {"upstream": stand_in, "trusted_proxies": ("127.0.0.0/8",)}
    with place.started(name, tmp_path, **changes) as ask:
        given = "203.0.113.9, 192.0.2.1"
        report = ask("/account/login", "POST", X_Forwarded_For=given).report["headers"]
        # Behind a Caddy that trusts both proxies, the client stays the same.
        assert report["x-forwarded-for"] == (expected or f"{given}, 127.0.0.1")


@pytest.mark.parametrize("name", ["nginx", "worker"])
def test_without_a_service_there_is_nothing_there(place: Place, tmp_path: Path, name: str):
    changes = {"upstream": "", "reads_per_minute": 0}
    with place.started(name, tmp_path, **changes) as ask:
        for target in ("/account", "/account/login", "/account/"):
            page = ask(target)
            assert page.status == 404
            assert page.headers["Content-Type"] == "text/html; charset=utf-8"
            assert page.body == ask("/404").body
            assert (ask(target, "POST", b"a=b").status, ask(target, "POST").code) == (
                405, "method_not_allowed",
            )  # fmt: skip
        assert (ask(TRUSTED_URL).status, ask(TRUSTED_URL).code) == (404, "not_found")
        refused = ask(TRUSTED_URL, "POST", b"{}")
        assert (refused.status, refused.code) == (405, "method_not_allowed")
        assert "POST" not in refused.headers["Allow"]
