"""Limits of publications by owner, and of wrong tokens by address."""

import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from werkzeug.test import TestResponse

from builder.model.service_urls import TRUSTED_URL
from publisher.accounts.token import make_token
from publisher.limits import Limits
from publisher.openid.provider import SignIn
from publisher.trusted.issuers import Issuer
from publisher.trusted.publishers import Entered, TrustedPublishers
from publisher.web import app, token_check
from server import throttle
from server.throttle import Throttle
from tests.support.clock import Clock, StopClock
from tests.support.hubs import Hub, MakeHub, code_of
from tests.support.issuer import KEYS, TestIssuer


@pytest.fixture
def clock(stop_clock: StopClock) -> Clock:
    return stop_clock(throttle)


def test_the_limit_of_an_owner(make_hub: MakeHub, clock: Clock):
    hub = make_hub(publications=3)
    other, _ = hub.make_token("ann", "other")
    trusted, _ = hub.accounts.create_trusted_token("ann", [], "publisher")
    bobs, _ = hub.make_token("bob")
    wrong_body = {"headers": {"Content-Type": None}}
    found = [hub.post(), hub.post(b"rubbish", **wrong_body), hub.post()]
    assert [answer.status_code for answer in found] == [201, 415, 200]
    assert all(answer.headers["RateLimit-Policy"] == '"publish";q=3;w=60' for answer in found)
    clock.now += 20
    refused = hub.post(b"rubbish", **wrong_body)
    assert code_of(refused) == "rate_limited"
    assert refused.headers["RateLimit-Policy"] == '"publish";q=3;w=60'
    assert refused.headers["RateLimit"] == '"publish";r=0;t=40'
    assert refused.headers["Retry-After"] == "40"
    assert "40 s" in refused.json["error"]["message"]
    for token in (other, trusted):
        assert code_of(hub.post(token=token)) == "rate_limited"
    assert hub.post(path="/api/v1/repos/bob/tale/versions", token=bobs).status_code == 201
    forbidden = hub.post(path="/api/v1/repos/bob/tale/versions")
    assert code_of(forbidden) == "not_owner"
    assert forbidden.headers["RateLimit-Policy"] == '"publish";q=3;w=60'
    clock.now += 40
    assert hub.post().status_code == 200
    assert "RateLimit-Policy" not in hub.post(token=None).headers


class SlowBody:
    """A body during which something happens."""

    def __init__(self, raw: bytes, happening: Callable[[], object]) -> None:
        self._raw = io.BytesIO(raw)
        self._happening = happening

    def read(self, size: int = -1) -> bytes:
        if self._raw.tell() == 0:
            self._happening()
        return self._raw.read(size)


def test_no_body_is_read_of_who_is_over_the_limit(make_hub: MakeHub, clock: Clock):
    hub = make_hub(publications=1)
    read: list[bool] = []
    raw = json.dumps({"content": "One."}).encode()
    for status in (201, 429):
        read.clear()
        slow = SlowBody(raw, lambda: read.append(True))
        assert hub.post(raw, environ_overrides={"wsgi.input": slow}).status_code == status
        assert read == [True] * (status == 201)


@pytest.mark.parametrize(
    ("happening", "code"),
    [
        (lambda hub: hub.accounts.revoke("ann", hub.token_id), "invalid_token"),
        (lambda hub: hub.accounts.set_trusted_only("ann", "story", True), "insufficient_scope"),
    ],
)
def test_what_is_revoked_while_the_body_comes_publishes_nothing(
    make_hub: MakeHub, stop_clock: StopClock, happening: Callable[[Hub], object], code: str
):
    clock = stop_clock(app, token_check)
    hub = make_hub(publications=2)

    def happen() -> None:
        clock.now += token_check.STILL_GOOD_SECONDS
        happening(hub)

    raw = json.dumps({"content": "One."}).encode()
    assert hub.post(raw, environ_overrides={"wsgi.input": SlowBody(raw, int)}).status_code == 201
    hub.rebuilder.requested.clear()
    raw = raw.replace(b"One", b"Two")
    slow = SlowBody(raw, happen)
    refused = hub.post(raw, environ_overrides={"wsgi.input": slow})
    assert code_of(refused) == code
    assert hub.versions() == ["1.0.0"] and not hub.rebuilder.requested


@pytest.mark.parametrize(
    ("base_url", "address", "is_open"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", True),
        ("http://127.0.0.1:8000", "::1", True),
        ("http://127.0.0.1:8000", "::ffff:127.0.0.1", True),
        ("http://localhost:8000", "127.0.0.2", True),
        ("http://127.0.0.1:8000", "192.168.0.7", False),
        ("http://127.0.0.1:8000", "::ffff:192.168.0.7", False),
        ("http://[::1]:8000", "2001:db8::1", False),
        ("http://127.0.0.1:8000", "", False),
        ("http://hub.example", "127.0.0.1", False),
        ("https://hub.example", "192.168.0.7", True),
        ("https://127.0.0.1:8000", "192.168.0.7", True),
    ],
)
def test_no_password_travels_in_clear_text(
    make_hub: MakeHub, base_url: str, address: str, is_open: bool
):
    hub = make_hub(base_url, sign_in=SignIn(open_signup=True))
    for path in ("login", "signup", "tokens", "invitation"):
        answer = hub.app.test_client().get(
            f"/account/{path}", environ_overrides={"REMOTE_ADDR": address}
        )
        assert (answer.status_code != 403) == is_open, answer.text
        assert ("clear text" in answer.text) != is_open


def test_no_limit(make_hub: MakeHub):
    hub = make_hub(publications=0, wrong_tokens=0)
    found = [hub.post(b"{}") for _ in range(40)]
    assert {answer.status_code for answer in found} == {422}
    assert "RateLimit-Policy" not in found[0].headers
    assert {hub.post(token="x").status_code for _ in range(40)} == {401}


def test_the_limit_on_wrong_tokens(make_hub: MakeHub, clock: Clock):
    hub = make_hub(wrong_tokens=3)

    def try_token(token: str | None, address: str = "198.51.100.1") -> TestResponse:
        return hub.post(token=token, environ_overrides={"REMOTE_ADDR": address})

    found = [code_of(try_token(token)) for token in (None, "x", make_token())]
    assert found == ["missing_token", "invalid_token", "invalid_token"]
    refused = try_token("x")
    assert code_of(refused) == "rate_limited" and refused.headers["Retry-After"] == "60"
    # The limit affects neither right tokens from this address, nor other addresses.
    assert try_token("").status_code == 201
    assert code_of(try_token("x", "198.51.100.2")) == "invalid_token"
    # A network of IPv6 counts as one address.
    assert [code_of(try_token("x", f"2001:db8::{host}")) for host in range(1, 5)][3:] == [
        "rate_limited"
    ]
    clock.now += 60
    assert code_of(try_token("x")) == "invalid_token"


def exchange(hub: Hub, id_token: str) -> TestResponse:
    return hub.app.test_client().post(TRUSTED_URL, json={"token": id_token, "repo": "ann/story"})


def test_who_has_failed_too_often_makes_no_issuer_be_asked(make_hub: MakeHub, live: TestIssuer):
    github = Issuer("github", live.url)
    hub = make_hub(wrong_tokens=1, sign_in=SignIn(issuers=[github]))
    added = TrustedPublishers(hub.database).add(
        "ann", github, Entered("octo/prompts", "publish.yml", "story")
    )
    assert code_of(hub.post(token="x")) == "invalid_token"
    refused = exchange(hub, live.token())
    assert code_of(refused) == "rate_limited" and refused.headers["Retry-After"]
    assert not live.requests
    # A success is no failure, even if it caused a request to the issuer.
    hub.restart()
    assert exchange(hub, live.token()).status_code == 200
    assert live.requests[KEYS] == 1
    assert code_of(hub.post(token="x")) == "invalid_token"
    # One failure counts once.
    hub.limits = Limits(wrong_tokens=2)
    hub.restart()
    TrustedPublishers(hub.database).remove("ann", added.id)
    assert code_of(exchange(hub, live.token())) == "insufficient_scope"
    assert code_of(exchange(hub, live.token())) == "insufficient_scope"
    assert code_of(exchange(hub, live.token())) == "rate_limited"


def test_an_issuer_that_is_away_is_not_asked_for_ever(make_hub: MakeHub, live: TestIssuer):
    live.fail(503)
    hub = make_hub(wrong_tokens=2, sign_in=SignIn(issuers=[Issuer("github", live.url)]))
    for _ in range(2):
        refused = exchange(hub, live.token())
        assert code_of(refused) == "unavailable" and refused.headers["Retry-After"]
    assert code_of(exchange(hub, live.token())) == "rate_limited"


def test_a_limit_holds_between_threads():
    limited = Throttle(500, "publish")
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda _: limited.hit("a"), range(1000)))
    assert waits.count(0) == 500
