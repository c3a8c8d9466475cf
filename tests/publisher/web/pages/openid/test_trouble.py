"""Signing in with an OpenID provider that is not well, and at a hub without sign-up."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from publisher.accounts.database import Database
from publisher.accounts.people.identities import Identities
from publisher.web.pages.openid import ANSWER_LIMIT, START_LIMIT
from tests.publisher.web.pages.conftest import PASSWORD
from tests.publisher.web.pages.openid.conftest import (
    BACK,
    START,
    Traveller,
    come,
    forge,
    invite,
    numbers,
)
from tests.publisher.web.pages.openid.provider import CLIENT_SECRET, NAME, FakeProvider
from tests.support.servers import DEADLINE_SECONDS, Server, wait_until


def begin_at(fake: FakeProvider, hub: Server, visitor: Traveller) -> tuple[str, str]:
    """State and nonce of a sign-in that the visitor begins."""
    answer = visitor.session.get(hub.url + START, allow_redirects=False, timeout=DEADLINE_SECONDS)
    assert answer.headers["Location"].startswith(f"{fake.url}/auth?"), answer.text
    query = parse_qs(urlsplit(answer.headers["Location"]).query)
    return query["state"][0], query["nonce"][0]


def test_passwords_work_while_the_provider_is_down(fake: FakeProvider, closed_hub: Server) -> None:
    fake.status = 503
    visitor = come(closed_hub)
    page = visitor.get(START)
    assert page.status == 503
    assert f"{NAME} cannot be reached. Sign in with your password" in page.words
    visitor.get("/account/invitation")
    code = invite(closed_hub, "anna-stein")
    page = visitor.submit("/invitation", code=code, password=PASSWORD)
    assert (page.path, visitor.owner) == ("/account/prompts/new", "anna-stein")
    visitor.get("/account/security")
    assert visitor.submit("/openid/connect").status == 503
    fake.status = None
    wait_until_back(closed_hub)


def wait_until_back(hub: Server) -> None:
    def is_back() -> bool:
        # Requests of each address are limited, so each comes from another one.
        number = next(numbers)
        headers = {"X-Forwarded-For": f"127.61.{number // 250}.{number % 250}"}
        return hub.get(START, headers=headers).status_code == 303

    wait_until(is_back, "the hub to find its provider again")


@pytest.fixture
def well(fake: FakeProvider, closed_hub: Server) -> Server:
    """The hub, with a provider that works again."""
    fake.status = None
    wait_until_back(closed_hub)
    return closed_hub


def test_a_hub_without_sign_up_has_none_elsewhere(fake: FakeProvider, well: Server) -> None:
    visitor = come(well)
    visitor.get("/account/login")
    assert visitor.post("/account/openid/signup", visitor.csrf()).status == 404
    state, nonce = begin_at(fake, well, visitor)
    fake.say(nonce, sub="a-stranger")
    page = visitor.get(f"{BACK}?state={state}&code=a-code")
    assert page.status == 403
    assert "ask the operator of this hub for an invitation" in page.words
    assert "sign up" not in page.words
    # A cookie that claims a sign-up changes nothing.
    visitor = forge(well, {"begun": ["a-state", nonce, "a"], "to": "signup", "given": "bert"})
    assert visitor.get(f"{BACK}?state=a-state&code=a-code").status == 400
    assert "bert" not in well.process.text


def test_what_cannot_be_trusted_lets_nobody_in(fake: FakeProvider, well: Server) -> None:
    visitor = come(well)
    state, nonce = begin_at(fake, well, visitor)
    tokens = [fake.say("another nonce")]
    page = visitor.get(f"{BACK}?state={state}&code=a-code-of-once")
    assert (page.status, visitor.owner) == (401, None)
    assert "cannot be trusted, so you were not signed in: invalid_claim (nonce)" in page.words
    fake.reply = 401, {"error": "invalid_client"}
    state, nonce = begin_at(fake, well, visitor)
    page = visitor.get(f"{BACK}?state={state}&code=a-code-of-once")
    assert page.status == 503
    assert "only its operator can fix" in page.words
    well.process.wait_for_line("rejects this hub with 'invalid_client'")
    log = well.process.text
    assert '"reason": "invalid_claim (nonce)"' in log
    for secret in (CLIENT_SECRET, nonce, state, "opaque-access-token", "a-code-of-once", *tokens):
        assert secret not in log
        for path in Path(well.settings.state).rglob("*"):
            assert path.is_dir() or secret.encode() not in path.read_bytes(), path


def test_a_made_up_cookie_leads_nowhere_else(fake: FakeProvider, well: Server) -> None:
    invite(well, "carla-voss")
    with Database(well.settings.state) as database:
        Identities(database).add("carla-voss", fake.url, "carla")
    begun = ["a-state", "a-nonce", "a-verifier"]
    visitor = forge(well, {"begun": begun, "to": "login", "given": "/logout"})
    fake.say("a-nonce", sub="carla")
    back = f"{well.url}{BACK}?state=a-state&code=a-code"
    answer = visitor.session.get(back, allow_redirects=False, timeout=DEADLINE_SECONDS)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/account/prompts")


def test_answers_are_limited_by_address(fake: FakeProvider, well: Server) -> None:
    fake.reply = 400, {"error": "invalid_grant"}
    visitor = forge(well, {"begun": ["a-state", "a", "b"], "to": "login"})
    pages = [visitor.get(f"{BACK}?state=a-state&code=x") for _ in range(ANSWER_LIMIT + 1)]
    assert [page.status for page in pages] == [401] * ANSWER_LIMIT + [429]
    assert int(pages[-1].response.headers["Retry-After"]) <= 60
    assert "Too many sign-ins" in pages[-1].words


def test_starts_are_limited_by_address(fake: FakeProvider, well: Server) -> None:
    visitor = come(well)
    pages = [visitor.go(well.url + START, allow_redirects=False) for _ in range(START_LIMIT)]
    assert [page.status for page in pages] == [303] * START_LIMIT
    refused = visitor.get(START)
    assert refused.status == 429 and "Too many sign-ins" in refused.words
    assert int(refused.response.headers["Retry-After"]) <= 60
    # The ways with a form are counted as well.
    visitor.get("/account/invitation")
    code = invite(well, "lena-ohm")
    refused = visitor.post("/account/openid/invitation", [*visitor.csrf(), ("code", code)])
    assert refused.status == 429
    assert come(well).go(well.url + START, allow_redirects=False).status == 303
