"""The account settings and the exchange of tokens behind nginx, Caddy and the Worker.

Behind them is a stand-in that reports each request, and answers as the request says. The real
service is tested by tests/conformance.
"""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.model.messages import ACCOUNT_TOO_LARGE
from builder.model.service_urls import TRUSTED_URL
from tests.hosts.standing_in import COOKIES, PADDING, STARTED, Answer, Asker, Place, StandIn

pytestmark = pytest.mark.usefixtures("installed_tools")


@pytest.fixture(scope="module", params=STARTED)
def ask(request: pytest.FixtureRequest, place: Place, stand_in: StandIn) -> Iterator[Asker]:
    """Each host before the stand-in; one read a minute is allowed where a limit exists."""
    folder = place.folder / request.param
    folder.mkdir()
    with place.started(request.param, folder, upstream=stand_in.address, reads_per_minute=1) as ask:
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
def test_the_service_learns_which_host_was_asked(ask: Asker, stand_in: StandIn, target: str):
    for host in ("hub.example", "hub.example:8443", "evil.example"):
        report = ask(target, Host=host).report["headers"]
        # A Worker can only send the name of the upstream.
        assert report["host"] == (stand_in.address if ask.name == "worker" else host)


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


@pytest.mark.parametrize("status", [502, 504, 522, 530])
def test_what_a_tunnel_says_before_the_worker_is_no_page_of_the_service(ask: Asker, status: int):
    answer = ask(f"/account/x?status={status}")
    if ask.name == "worker":
        assert answer.status == 503 and b"temporarily unavailable" in answer.body
        assert "Set-Cookie" not in answer.headers
    else:
        assert answer.status == status


# Behaviour of single hosts


def test_only_cloudflare_is_asked_not_to_compress(ask: Asker):
    wanted = "no-store, no-transform" if ask.name == "worker" else "no-store"
    assert ask("/account/tokens").headers["Cache-Control"] == wanted


def test_nginx_takes_no_more_than_elsewhere(place: Place, stand_in: StandIn, tmp_path: Path):
    with place.started("nginx", tmp_path, upstream=stand_in.address) as ask:
        number = ask("/account").report["number"]
        answer = ask("/account/profile", "POST", b"x" * (4 << 20))
        assert (answer.status, answer.body.decode()) == (413, ACCOUNT_TOO_LARGE)
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert ask(TRUSTED_URL, "POST", b"x" * (4 << 20)).error == "content_too_large"
        large = b"x" * (2 << 20)
        assert len(ask("/account/profile", "POST", large).report["body"]) == len(large)
        assert ask("/account").report["number"] == number + 2


@pytest.mark.parametrize(("name", "expected"), [("nginx", "192.0.2.1"), ("caddy", None)])
def test_behind_another_proxy_the_service_still_learns_it(
    place: Place, stand_in: StandIn, tmp_path: Path, name: str, expected: str | None
):
    changes = {"upstream": stand_in.address, "trusted_proxies": ("127.0.0.0/8",)}
    with place.started(name, tmp_path, **changes) as ask:
        given = "203.0.113.9, 192.0.2.1"
        report = ask("/account/login", "POST", X_Forwarded_For=given).report["headers"]
        # Behind a Caddy that trusts both proxies, the client stays the same.
        assert report["x-forwarded-for"] == (expected or f"{given}, 127.0.0.1")
