"""Issuers of ID tokens: which can be named, and how their keys are got, kept and changed."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.trusted.id_tokens import FRESH_SECONDS, PAUSE_SECONDS, USABLE_SECONDS, KeyRing
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer, parse_issuer, parse_issuers
from tests.support.clock import Clock
from tests.support.issuer import DISCOVERY, KEYS, TestIssuer, issuer, make_key
from tests.support.servers import DEADLINE_SECONDS


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def github(live: TestIssuer) -> Issuer:
    return Issuer("github", live.url)


@pytest.fixture
def ring(github: Issuer, clock: Clock) -> KeyRing:
    return KeyRing([github], clock.time)


def refusal(ring: KeyRing, of: Issuer, kid: str = "rsa-1") -> RequestError:
    with pytest.raises(RequestError) as caught:
        ring.key_for(of, kid)
    return caught.value


@pytest.mark.parametrize(
    ("text", "issuer"),
    [
        ("gitlab=https://gitlab.example.org", Issuer("gitlab", "https://gitlab.example.org")),
        (" gitlab=https://gitlab.example.org/ ", Issuer("gitlab", "https://gitlab.example.org")),
        ("gitlab=https://example.org/git", Issuer("gitlab", "https://example.org/git")),
        ("github=http://127.0.0.1:8123", Issuer("github", "http://127.0.0.1:8123")),
        ("github=http://[::1]:8123", Issuer("github", "http://[::1]:8123")),
        ("github=http://localhost", Issuer("github", "http://localhost")),
        *((f"{one.kind}={one.url}", one) for one in DEFAULT_ISSUERS),
    ],
)
def test_issuers_that_can_be_named(text: str, issuer: Issuer):
    assert parse_issuer(text) == issuer


@pytest.mark.parametrize(
    "text",
    [
        "", "gitlab", "gitlab=", "https://gitlab.com", "circleci=https://circleci.example",
        "gitlab=http://gitlab.example.org", "gitlab=http://127.0.0.1.example.org",
        "gitlab=ftp://127.0.0.1", "gitlab=https://", "gitlab=https://gitlab.com?a=b",
        "gitlab=https://gitlab.com#a", "gitlab=https://me@gitlab.com", "gitlab=https://a b.example",
        "gitlab=https://[::1", "gitlab=https://gitlab.com:0", "gitlab=https://gitlab.com:99999",
        "gitlab=https://gitläb.example", "gitlab=gitlab.com", "GitLab=https://gitlab.com",
    ],
)  # fmt: skip
def test_issuers_that_cannot(text: str):
    with pytest.raises(OperatorError, match=r"gitlab=https://gitlab\.example\.org"):
        parse_issuer(text)


def test_an_issuer_is_named_once():
    assert parse_issuers(["gitlab=https://gitlab.com"]) == (DEFAULT_ISSUERS[1],)
    with pytest.raises(OperatorError, match="listed twice"):
        parse_issuers(["github=https://ci.example", "gitlab=https://ci.example/"])


def test_keys_are_fetched_once_an_hour(
    live: TestIssuer, github: Issuer, ring: KeyRing, clock: Clock
):
    assert not live.requests
    for _ in range(3):
        assert ring.key_for(github, "rsa-1").kid == "rsa-1"
        clock.now += FRESH_SECONDS / 3 - 1
    assert live.requests == {DISCOVERY: 1, KEYS: 1}
    clock.now += 3
    ring.key_for(github, "rsa-1")
    assert live.requests == {DISCOVERY: 2, KEYS: 2}


def test_a_new_key_is_fetched_when_it_is_needed(
    live: TestIssuer, github: Issuer, ring: KeyRing, clock: Clock
):
    ring.key_for(github, "rsa-1")
    key = live.rotate()
    assert refusal(ring, github, key.kid).code == "invalid_token"  # a moment after the last fetch
    clock.now += PAUSE_SECONDS
    assert ring.key_for(github, key.kid).kid == key.kid
    assert ring.key_for(github, "rsa-1").kid == "rsa-1"
    assert live.requests[KEYS] == 2


def test_a_key_that_is_withdrawn_is_good_for_an_hour_at_most(
    live: TestIssuer, github: Issuer, ring: KeyRing, clock: Clock
):
    ring.key_for(github, "rsa-1")
    live.rotate(drop=True)
    clock.now += FRESH_SECONDS - 1
    ring.key_for(github, "rsa-1")
    clock.now += 1
    assert refusal(ring, github).code == "invalid_token"


def test_strangers_cannot_make_it_hammer_the_issuer(
    live: TestIssuer, github: Issuer, ring: KeyRing, clock: Clock
):
    for number in range(50):
        error = refusal(ring, github, f"made-up-{number}")
        assert error.code == "invalid_token"
        assert f"made-up-{number}" in str(error)
    assert live.requests == {DISCOVERY: 1, KEYS: 1}
    clock.now += PAUSE_SECONDS - 1
    refusal(ring, github, "made-up")
    assert live.requests[KEYS] == 1
    clock.now += 1
    refusal(ring, github, "made-up")
    refusal(ring, github, "made-up")
    assert live.requests[KEYS] == 2
    assert ring.key_for(github, "rsa-1")


def test_an_issuer_that_is_away_is_left_alone_too(
    live: TestIssuer, github: Issuer, ring: KeyRing, clock: Clock
):
    live.fail(503)
    for kid in ("rsa-1", "made-up", "rsa-1"):
        error = refusal(ring, github, kid)
        assert error.code == "unavailable"
        assert "HTTP 503" in str(error) and live.url in str(error)
    assert live.requests == {DISCOVERY: 1}
    live.fail(None)
    clock.now += PAUSE_SECONDS
    assert ring.key_for(github, "rsa-1")


def test_keys_are_good_for_a_day_while_the_issuer_is_away(
    live: TestIssuer, github: Issuer, ring: KeyRing, clock: Clock, caplog: pytest.LogCaptureFixture
):
    ring.key_for(github, "rsa-1")
    live.fail(500)
    clock.now += FRESH_SECONDS
    with caplog.at_level(logging.WARNING, "hub.trusted"):
        assert ring.key_for(github, "rsa-1")
    (record,) = caplog.records
    assert record.fields == {"issuer": live.url}
    # The issuer may have this key by now, but the hub cannot know.
    assert refusal(ring, github, "new").code == "unavailable"
    clock.now += USABLE_SECONDS - FRESH_SECONDS - 1
    assert ring.key_for(github, "rsa-1")
    clock.now += 1
    assert refusal(ring, github).code == "unavailable"
    live.fail(None)
    clock.now += PAUSE_SECONDS
    assert ring.key_for(github, "rsa-1")
    assert refusal(ring, github, "new").code == "invalid_token"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (DISCOVERY, {"issuer": "https://evil.example"}, "another issuer"),
        (DISCOVERY, {}, "another issuer"),
        (DISCOVERY, b"<html>", "not JSON"),
        (KEYS, b"<html>", "not JSON"),
        (KEYS, {}, "no usable key"),
        (KEYS, {"keys": {}}, "no usable key"),
        (KEYS, {"keys": []}, "no usable key"),
        (KEYS, {"keys": ["x", {}, {"kid": "rsa-1", "kty": "XYZ"}]}, "no usable key"),
    ],
)
def test_documents_that_are_none(
    live: TestIssuer, github: Issuer, ring: KeyRing, path: str, body: object, message: str
):
    live.replace(path, body)
    error = refusal(ring, github)
    assert error.code == "unavailable"
    assert message in str(error)


@pytest.mark.parametrize("url", ["http://keys.example/keys", "file:///etc/passwd", "", 7, "//[::1"])
def test_keys_come_only_by_a_way_that_nobody_can_change(
    live: TestIssuer, github: Issuer, ring: KeyRing, url: object
):
    live.replace(DISCOVERY, {"issuer": live.url, "jwks_uri": url})
    assert "jwks_uri" in str(refusal(ring, github))


def test_only_keys_for_signatures_are_taken(live: TestIssuer, github: Issuer, ring: KeyRing):
    jwk = make_key("rsa-1").public_jwk()
    listed = [
        jwk,
        {**jwk, "kid": "for-encryption", "use": "enc"},
        {**jwk, "kid": "oaep", "alg": "RSA-OAEP"},
        {**jwk, "kid": "other-alg", "alg": "PS256"},
        {name: value for name, value in jwk.items() if name != "kid"},
        {"kty": "RSA", "n": jwk["n"], "e": jwk["e"], "kid": "bare"},
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        {"kty": "oct", "kid": "shared-too", "k": "c2VjcmV0", "alg": "HS256", "use": "sig"},
    ]  # fmt: skip
    live.replace(KEYS, {"keys": listed})
    for kid in ("for-encryption", "oaep", "other-alg", "shared", "shared-too", ""):
        assert refusal(ring, github, kid).code == "invalid_token"
    assert ring.key_for(github, "rsa-1") and ring.key_for(github, "bare")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kty": []}, {"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"}, {"n": 7}, {"n": "é"},
        {"n": "\ud800"}, {"n": ""}, {"n": "+/=="}, {"alg": 7}, {"alg": "ES256"}, {"use": ["sig"]},
        {"oth": []}, {"d": "AQ"},
    ],
)  # fmt: skip
def test_a_key_that_is_none_hides_no_other(
    live: TestIssuer, github: Issuer, ring: KeyRing, wrong: dict
):
    jwk = make_key("rsa-1").public_jwk()
    bare = {name: jwk[name] for name in ("kty", "n", "e")}
    live.replace(KEYS, {"keys": [bare | {"kid": "wrong"} | wrong, jwk]})
    assert refusal(ring, github, "wrong").code == "invalid_token"
    assert ring.key_for(github, "rsa-1").kid == "rsa-1"


def test_one_thread_fetches_and_the_others_wait(live: TestIssuer, github: Issuer, ring: KeyRing):
    together = threading.Barrier(8)

    def ask(_: int) -> str:
        together.wait()
        return ring.key_for(github, "rsa-1").kid

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == ["rsa-1"] * 8
    assert live.requests == {DISCOVERY: 1, KEYS: 1}


@contextlib.contextmanager
def held_fetch(live: TestIssuer, ring: KeyRing, github: Issuer) -> Iterator[Future]:
    """A fetch of keys by another thread, which gets its answer when the block has ended."""
    requested, go_on = threading.Event(), threading.Event()
    answer = live.answer

    def slowly(target: str, authorization: str | None):
        requested.set()
        assert go_on.wait(DEADLINE_SECONDS)
        return answer(target, authorization)

    live.answer = slowly
    with ThreadPoolExecutor(1) as pool:
        fetching = pool.submit(ring.key_for, github, "rsa-1")
        try:
            assert requested.wait(DEADLINE_SECONDS)
            yield fetching
        finally:
            go_on.set()


def test_a_known_key_does_not_wait_for_a_fetch(
    live: TestIssuer, github: Issuer, ring: KeyRing, clock: Clock
):
    ring.key_for(github, "rsa-1")
    clock.now += FRESH_SECONDS
    with held_fetch(live, ring, github) as fetching:
        assert ring.key_for(github, "rsa-1").kid == "rsa-1"
        assert not fetching.done()
    assert fetching.result(DEADLINE_SECONDS).kid == "rsa-1"


def test_nobody_waits_long_for_what_another_asks(live: TestIssuer, github: Issuer, ring: KeyRing):
    with held_fetch(live, ring, github) as fetching:
        error = refusal(ring, github)
        assert not fetching.done()
    assert error.code == "unavailable" and "not answered yet" in str(error)
    assert fetching.result(DEADLINE_SECONDS).kid == "rsa-1"


def test_who_may_not_make_it_ask_gets_what_is_known(live: TestIssuer, github: Issuer, clock: Clock):
    refused: list[RequestError] = []

    def refuse() -> None:
        if refused:
            raise refused[0]

    ring = KeyRing([github], clock.time, refuse)
    assert ring.key_for(github, "rsa-1")
    refused.append(RequestError("rate_limited", "Too many."))
    assert ring.key_for(github, "rsa-1")
    clock.now += FRESH_SECONDS
    # The stored key is enough, so no request waits.
    assert ring.key_for(github, "rsa-1")
    before = dict(live.requests)
    assert refusal(ring, github, "new").code == "rate_limited"
    clock.now += USABLE_SECONDS
    assert refusal(ring, github).code == "rate_limited"
    assert live.requests == before


def test_issuers_are_apart(live: TestIssuer, clock: Clock):
    with issuer() as other:
        key = other.rotate()
        one, two = Issuer("github", live.url), Issuer("gitlab", other.url)
        ring = KeyRing([one, two], clock.time)
        assert ring.key_for(two, key.kid)
        assert refusal(ring, one, key.kid).code == "invalid_token"
        other.fail(500)
        clock.now += USABLE_SECONDS
        assert refusal(ring, two, key.kid).code == "unavailable"
        assert ring.key_for(one, "rsa-1")
