"""Signing in with an OpenID provider: four ways there and back, with a real provider and in a real
browser; what each defence keeps out.
"""

import contextlib
import html
import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from builder.model.routes import ACCOUNT_URL
from publisher.accounts.database import Database
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.web.pages.openid import ANSWER_LIMIT, CALLBACK, START_LIMIT
from tests.publisher.web.pages.conftest import PASSWORD, Visitor
from tests.publisher.web.pages.conftest import Page as Shown
from tests.publisher.web.pages.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    NAME,
    FakeProvider,
    fake_provider,
    real_provider,
)
from tests.publisher.web.pages.test_sign_in import cookie_with
from tests.site.browser import TIMEOUT_MS, chromium
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import (
    DEADLINE_SECONDS,
    Server,
    free_port,
    running,
    serve_command,
    wait_until,
)

START = f"{ACCOUNT_URL}/openid"
BACK = ACCOUNT_URL + CALLBACK

_numbers = count(1)
_refresh = re.compile(r'<meta http-equiv="refresh" content="0; url=([^"]+)">')


class Traveller(Visitor):
    """A browser that goes to other sites, too, and follows what a page says by itself."""

    def go(self, url: str, **options: bool) -> Shown:
        return self._show(self.session.get(url, timeout=DEADLINE_SECONDS, **options))

    def send(self, path: str, **fields: str) -> Shown:
        """Send a form of the page with one of its other buttons, and follow what comes then."""
        self.post(path, [*self.csrf(), *fields.items()])
        return self.follow()

    def follow(self) -> Shown:
        found = _refresh.search(self.page.html)
        return self.go(html.unescape(found[1])) if found else self.page

    def sign_in_there(self, name: str) -> Shown:
        assert self.page.words.startswith("Who are you?"), self.page.words
        return self.submit(user=name)

    def answer_of(self, name: str) -> str:
        """Sign in at the provider; the URL to come back with, where nobody has been yet."""
        asked = self.session.post(
            self.page.response.url,
            data={"user": name},
            timeout=DEADLINE_SECONDS,
            allow_redirects=False,
        )
        while not asked.headers["Location"].startswith(self.url + BACK):
            asked = self.session.get(
                asked.headers["Location"], timeout=DEADLINE_SECONDS, allow_redirects=False
            )
        return asked.headers["Location"]

    def forget_provider(self) -> None:
        self.session.cookies.clear(domain="localhost.local")

    @property
    def owner(self) -> str | None:
        """Who is signed in."""
        page = self.session.get(f"{self.url}{ACCOUNT_URL}/security", timeout=DEADLINE_SECONDS)
        found = re.search(r"<strong>(.*)</strong>", page.text)
        return found and found[1]


@contextlib.contextmanager
def serving(folder: Path, issuer: str, port: int, *options: str) -> Iterator[Server]:
    settings = settings_in(folder)
    write_small_catalogue(settings.content)
    command = serve_command(
        settings, "--port", str(port), "--openid-issuer", issuer, "--openid-client-id", CLIENT_ID,
        "--openid-name", NAME, "--trusted-proxy", "127.0.0.1", *options,
    )  # fmt: skip
    with running(["env", f"HUB_OPENID_CLIENT_SECRET={CLIENT_SECRET}", *command], settings) as hub:
        yield hub


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, installed_tools: None) -> Iterator[Server]:
    """A hub with sign-up, and a real provider."""
    port = free_port()
    with (
        real_provider(f"http://127.0.0.1:{port}{BACK}") as issuer,
        serving(tmp_path_factory.mktemp("openid"), issuer, port, "--open-signup") as server,
    ):
        server.issuer = issuer
        yield server


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeProvider]:
    with fake_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def closed_hub(fake: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A hub without sign-up, and a provider that says what it is told to."""
    fake.status = 503
    with serving(tmp_path_factory.mktemp("closed"), fake.url, free_port()) as server:
        yield server


def come(hub: Server) -> Traveller:
    number = next(_numbers)
    return Traveller(
        hub.url, f"127.60.{number // 250}.{number % 250}", "Mozilla/5.0 (X11; Linux) Firefox/146.0"
    )


def join(hub: Server, handle: str) -> Traveller:
    """Somebody who has signed up with a password."""
    visitor = come(hub)
    visitor.get("/account/signup")
    page = visitor.submit("/signup", handle=handle, password=PASSWORD, again=PASSWORD)
    assert page.path == "/account/prompts", page.words
    return visitor


def join_elsewhere(hub: Server, handle: str, name: str) -> Traveller:
    """Somebody who has signed up as ``name`` at the provider."""
    visitor = come(hub)
    visitor.get("/account/signup")
    visitor.send("/account/openid/signup", handle=handle)
    page = visitor.sign_in_there(name)
    assert page.path == "/account/prompts", page.words
    return visitor


def invite(hub: Server, handle: str) -> str:
    with Database(hub.settings.state) as database:
        return Invitations(database).invite(handle)


def cookie_of(visitor: Visitor) -> str:
    return visitor.session.cookies.get("hub-account", path="/account")


# The four ways


def test_sign_up_then_sign_in(hub: Server) -> None:
    visitor = come(hub)
    page = visitor.get("/account/signup")
    assert f"Use {NAME}" in page.words
    assert 'formaction="/account/openid/signup" formnovalidate' in page.html
    before = cookie_of(visitor)
    visitor.send("/account/openid/signup", handle="lena-berg")
    assert visitor.page.response.url.startswith(f"{hub.issuer}/interaction/")
    page = visitor.sign_in_there("lena")
    assert (page.status, page.path) == (200, "/account/prompts")
    assert f"Welcome, lena-berg. You sign in with {NAME}." in page.words
    assert cookie_of(visitor)[:43] != before[:43], "the secret is a new one"

    page = visitor.get("/account/security")
    assert f"Connected to {hub.issuer} as lena, since" in page.words
    assert "You have not set a password, so you cannot sign in with one." in page.words
    visitor.submit("/account/logout")
    assert visitor.owner is None
    # The provider still knows who it is, and asks no more.
    page = visitor.get("/account/login?next=/security")
    assert f"Sign in with {NAME}" in page.words
    assert 'href="/account/openid?next=/security"' in page.html
    page = visitor.get(f"{START}?next=/security")
    assert (page.path, visitor.owner) == ("/account/security", "lena-berg")
    assert visitor.get(START).path == "/account/prompts", "who is signed in is not sent there"


def test_connect_then_sign_in_then_remove(hub: Server) -> None:
    visitor = join(hub, "nora-dahl")
    page = visitor.get("/account/security")
    assert f"No other account is connected. Connect {NAME}" in page.words
    page = visitor.submit("/openid/connect")
    assert f"Continue to {NAME}" in page.words
    visitor.follow()
    page = visitor.sign_in_there("nora")
    assert page.path == "/account/security"
    assert f"You can now sign in with {NAME}, too." in page.words
    assert f"Connected to {hub.issuer} as nora, since" in page.words

    another = come(hub)
    another.get(START)
    assert another.sign_in_there("nora").path == "/account/prompts"
    assert another.owner == "nora-dahl"

    another.get("/account/security")
    page = another.submit("/openid/remove")
    assert f"{hub.issuer} no longer signs in to your account" in page.words
    assert f"No other account is connected. Connect {NAME}" in page.words
    third = come(hub)
    third.get(START)
    assert third.sign_in_there("nora").status == 403


def test_an_invitation_is_taken_with_an_identity(hub: Server) -> None:
    code = invite(hub, "omar-haddad")
    visitor = come(hub)
    page = visitor.get("/account/invitation")
    assert 'formaction="/account/openid/invitation" formnovalidate' in page.html
    # The whole link is what one has to paste.
    visitor.send("/account/openid/invitation", code=f" {hub.url}/account/invitation#{code}\n")
    page = visitor.sign_in_there("omar")
    assert page.path == "/account/prompts"
    assert f"Welcome, omar-haddad. You sign in with {NAME}." in page.words
    assert visitor.owner == "omar-haddad"

    late = come(hub)
    late.get("/account/invitation")
    page = late.send("/account/openid/invitation", code=code)
    assert page.status == 422
    assert "This invitation is not valid" in page.words


# What they keep out


def test_an_unknown_identity_is_told_what_to_do(hub: Server, closed_hub: Server) -> None:
    visitor = come(hub)
    visitor.get(START)
    page = visitor.sign_in_there("nobody-yet")
    assert (page.status, visitor.owner) == (403, None)
    assert "sign in with your password" in page.words
    assert "Otherwise sign up" in page.words


def test_the_only_way_in_is_not_removed(hub: Server) -> None:
    visitor = join_elsewhere(hub, "ines-kolb", "ines")
    visitor.get("/account/security")
    page = visitor.submit("/openid/remove")
    assert page.status == 422
    assert "Set a password first" in page.words
    visitor.get("/account/security")
    assert visitor.submit("/openid/remove", issuer="https://login.example.org").status == 404
    visitor.get("/account/security")
    page = visitor.submit("/account/password", password=PASSWORD, again=PASSWORD)
    assert page.status == 200, page.words
    page = visitor.submit("/openid/remove")
    assert "no longer signs in to your account" in page.words


def test_an_identity_is_one_account_s(hub: Server) -> None:
    join_elsewhere(hub, "paula-weiss", "paula")

    visitor = join(hub, "quentin-roy")
    visitor.get("/account/security")
    visitor.submit("/openid/connect")
    visitor.follow()
    page = visitor.sign_in_there("paula")
    assert (page.status, visitor.owner) == (422, "quentin-roy")
    assert "already signs in to another account" in page.words

    code = invite(hub, "rosa-lindt")
    visitor = come(hub)
    visitor.get("/account/invitation")
    visitor.send("/account/openid/invitation", code=code)
    assert visitor.sign_in_there("paula").status == 422
    assert visitor.owner is None
    visitor.get("/account/invitation")
    visitor.forget_provider()
    visitor.send("/account/openid/invitation", code=code)
    assert visitor.sign_in_there("rosa").status == 200
    assert visitor.owner == "rosa-lindt", "the invitation was still good"

    visitor = come(hub)
    visitor.get("/account/signup")
    visitor.send("/account/openid/signup", handle="second-account")
    page = visitor.sign_in_there("paula")
    assert (page.status, visitor.owner) == (422, None)
    assert "already signs in to another account" in page.words


def test_a_handle_that_cannot_be_had_is_told_on_the_form(hub: Server) -> None:
    join(hub, "tarik-aydin")
    visitor = come(hub)
    visitor.get("/account/signup")
    for handle in ("", "No Handle!", "admin", "x" * 200):
        page = visitor.send("/account/openid/signup", handle=handle)
        assert (page.status, page.path) == (422, "/account/openid/signup"), handle
        assert 'aria-invalid="true"' in page.html
    visitor.send("/account/openid/signup", handle="tarik-aydin")
    page = visitor.sign_in_there("tarik")
    assert page.status == 422
    assert "arik-aydin is taken. Choose another handle" in page.words
    # The form of this page is good for another try.
    page = visitor.send("/account/openid/signup", handle="tarik-bulut")
    assert (page.path, visitor.owner) == ("/account/prompts", "tarik-bulut")


def test_somebody_else_s_answer_signs_nobody_in(hub: Server) -> None:
    """Login CSRF: a link that would have the visitor work in the attacker's account."""
    attacker = join_elsewhere(hub, "mallory-grey", "mallory")
    attacker.submit("/account/logout")
    attacker.forget_provider()
    attacker.get(START)
    answer = attacker.answer_of("mallory")

    victim = come(hub)
    victim.get(START)
    waiting = victim.page.response.url
    page = victim.go(answer)
    assert (page.status, victim.owner) == (400, None)
    assert "in this browser" in page.words
    # What the victim has begun goes on.
    victim.go(waiting)
    assert victim.sign_in_there("unknown-victim").status == 403
    # Nor does it connect the attacker's identity to an account.
    member = join(hub, "unsuspecting")
    assert member.go(answer).status == 400
    assert "No other account is connected" in member.get("/account/security").words


def test_an_answer_is_good_once(hub: Server) -> None:
    join_elsewhere(hub, "ugo-ferri", "ugo")
    visitor = come(hub)
    visitor.get(START)
    answer = visitor.answer_of("ugo")
    kept = cookie_of(visitor)
    assert visitor.go(answer).path == "/account/prompts"
    assert visitor.go(answer).status == 400
    # Nor one that signed nobody in.
    stranger = come(hub)
    stranger.get(START)
    unknown = stranger.answer_of("ugo-s-cousin")
    assert [stranger.go(unknown).status for _ in range(2)] == [403, 400]
    # With what the browser had before, the provider refuses the code.
    copy = come(hub)
    copy.session.headers["Cookie"] = f"hub-account={kept}"
    page = copy.go(answer)
    assert page.status == 401
    assert "was used already" in page.words
    del copy.session.headers["Cookie"]
    assert copy.owner is None


def test_what_the_provider_says_is_text(hub: Server) -> None:
    visitor = come(hub)
    for error in ("access_denied", "<b>bold</b>"):
        asked = visitor.session.get(
            hub.url + START, allow_redirects=False, timeout=DEADLINE_SECONDS
        )
        (state,) = parse_qs(urlsplit(asked.headers["Location"]).query)["state"]
        said = {"error": error, "error_description": "<script>alert(1)</script>"}
        page = visitor.get(f"{BACK}?{urlencode(said | {'state': state})}")
        assert page.status == 401
        assert "<script>alert" not in page.html and "<b>bold" not in page.html
        assert "<script>alert(1)</script>" in page.words
        # A link from anywhere puts no words into the page.
        assert "alert" not in visitor.get(f"{BACK}?{urlencode(said | {'state': 'x'})}").html
        assert "alert" not in visitor.get(f"{BACK}?{urlencode(said)}").html


def test_a_form_of_another_site_connects_nothing(hub: Server) -> None:
    visitor = join(hub, "wanda-kral")
    for path in ("/openid/connect", "/openid/remove", "/openid/signup", "/openid/invitation"):
        assert visitor.post(f"/account{path}", []).status == 400
        assert visitor.get(f"/account{path}").status == 405
    assert "No other account is connected" in visitor.get("/account/security").words
    visitor.submit("/account/logout")
    visitor.get("/account/login")
    assert visitor.post("/account/openid/connect", visitor.csrf()).path == "/account/login"


def test_a_made_up_cookie_gives_nothing(hub: Server) -> None:
    """A visitor can sign anything with the secret that he has himself."""
    join_elsewhere(hub, "xenia-popov", "xenia")
    begun = ["a-state", "a-nonce", "a-verifier"]
    for kept in (
        5, "x", {}, {"begun": begun}, {"begun": ["a-state"], "to": "login"},
        {"begun": begun, "to": "elsewhere"}, {"begun": [1, 2, 3], "to": "login"},
        {"begun": begun, "to": "login", "given": 5},
    ):  # fmt: skip
        visitor = forge(hub, kept)
        assert visitor.get(f"{BACK}?state=a-state&code=a-code").status == 400
    for to in ("login", "connect", "invitation", "signup"):
        visitor = forge(hub, {"begun": begun, "to": to, "given": "xenia-popov"})
        assert visitor.get(f"{BACK}?state=a-state&code=a-code").status == 401
        assert visitor.owner is None


def forge(hub: Server, kept: object) -> Traveller:
    data = json.dumps({"openid": kept}).encode()
    visitor = come(hub)
    visitor.session.headers["Cookie"] = f"hub-account={cookie_with(data)}"
    return visitor


def test_connecting_needs_an_account_until_the_end(hub: Server) -> None:
    visitor = join(hub, "yusuf-demir")
    visitor.get("/account/security")
    visitor.submit("/openid/connect")
    visitor.follow()
    answer = visitor.answer_of("yusuf")
    with Database(hub.settings.state) as database:
        database.execute("DELETE FROM session WHERE owner = 'yusuf-demir'")
    page = visitor.go(answer)
    assert (page.path, visitor.owner) == ("/account/login", None)
    assert "You were signed out" in page.words


# A provider that is not well, and a hub without sign-up


def begin_at(fake: FakeProvider, hub: Server, visitor: Traveller) -> tuple[str, str]:
    """State and nonce of a sign-in that the visitor begins."""
    asked = visitor.session.get(hub.url + START, allow_redirects=False, timeout=DEADLINE_SECONDS)
    assert asked.headers["Location"].startswith(f"{fake.url}/auth?"), asked.text
    query = parse_qs(urlsplit(asked.headers["Location"]).query)
    return query["state"][0], query["nonce"][0]


def test_passwords_work_while_the_provider_is_down(fake: FakeProvider, closed_hub: Server) -> None:
    fake.status = 503
    visitor = come(closed_hub)
    page = visitor.get(START)
    assert page.status == 503
    assert f"{NAME} cannot be reached. Sign in with your password" in page.words
    visitor.get("/account/invitation")
    code = invite(closed_hub, "anna-stein")
    page = visitor.submit("/invitation", code=code, password=PASSWORD, again=PASSWORD)
    assert (page.path, visitor.owner) == ("/account/prompts", "anna-stein")
    visitor.get("/account/security")
    assert visitor.submit("/openid/connect").status == 503
    fake.status = None
    wait_until_back(closed_hub)


def wait_until_back(hub: Server) -> None:
    def is_back() -> bool:
        # Each address may ask only so often.
        number = next(_numbers)
        asked = {"X-Forwarded-For": f"127.61.{number // 250}.{number % 250}"}
        return hub.get(START, headers=asked).status_code == 303

    wait_until(is_back, "the hub to find its provider again")


def test_a_hub_without_sign_up_has_none_elsewhere(fake: FakeProvider, closed_hub: Server) -> None:
    fake.status = None
    wait_until_back(closed_hub)
    visitor = come(closed_hub)
    visitor.get("/account/login")
    assert visitor.post("/account/openid/signup", visitor.csrf()).status == 404
    state, nonce = begin_at(fake, closed_hub, visitor)
    fake.say(nonce, sub="a-stranger")
    page = visitor.get(f"{BACK}?state={state}&code=a-code")
    assert page.status == 403
    assert "ask the operator of this hub for an invitation" in page.words
    assert "sign up" not in page.words
    # Nor with a cookie that says so.
    visitor = forge(closed_hub, {"begun": ["a-state", nonce, "a"], "to": "signup", "given": "bert"})
    assert visitor.get(f"{BACK}?state=a-state&code=a-code").status == 400
    assert "bert" not in closed_hub.process.text


def test_what_cannot_be_trusted_lets_nobody_in(fake: FakeProvider, closed_hub: Server) -> None:
    fake.status = None
    wait_until_back(closed_hub)
    visitor = come(closed_hub)
    state, nonce = begin_at(fake, closed_hub, visitor)
    tokens = [fake.say("another nonce")]
    page = visitor.get(f"{BACK}?state={state}&code=a-code-of-once")
    assert (page.status, visitor.owner) == (401, None)
    assert "cannot be trusted, so you were not signed in: invalid_claim (nonce)" in page.words
    fake.reply = 401, {"error": "invalid_client"}
    state, nonce = begin_at(fake, closed_hub, visitor)
    page = visitor.get(f"{BACK}?state={state}&code=a-code-of-once")
    assert page.status == 503
    assert "only its operator can fix" in page.words
    closed_hub.process.wait_for_line("rejects this hub with 'invalid_client'")
    log = closed_hub.process.text
    assert '"reason": "invalid_claim (nonce)"' in log
    for secret in (CLIENT_SECRET, nonce, state, "opaque-access-token", "a-code-of-once", *tokens):
        assert secret not in log
        for path in Path(closed_hub.settings.state).rglob("*"):
            assert path.is_dir() or secret.encode() not in path.read_bytes(), path


def test_a_made_up_cookie_leads_nowhere_else(fake: FakeProvider, closed_hub: Server) -> None:
    fake.status = None
    wait_until_back(closed_hub)
    invite(closed_hub, "carla-voss")
    with Database(closed_hub.settings.state) as database:
        Identities(database).add("carla-voss", fake.url, "carla", address="")
    begun = ["a-state", "a-nonce", "a-verifier"]
    visitor = forge(closed_hub, {"begun": begun, "to": "login", "given": "/logout"})
    fake.say("a-nonce", sub="carla")
    back = f"{closed_hub.url}{BACK}?state=a-state&code=a-code"
    answer = visitor.session.get(back, allow_redirects=False, timeout=DEADLINE_SECONDS)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/account/prompts")


def test_answers_are_limited_by_address(fake: FakeProvider, closed_hub: Server) -> None:
    fake.status = None
    fake.reply = 400, {"error": "invalid_grant"}
    wait_until_back(closed_hub)
    visitor = forge(closed_hub, {"begun": ["a-state", "a", "b"], "to": "login"})
    asked = [visitor.get(f"{BACK}?state=a-state&code=x") for _ in range(ANSWER_LIMIT + 1)]
    assert [page.status for page in asked] == [401] * ANSWER_LIMIT + [429]
    assert int(asked[-1].response.headers["Retry-After"]) <= 60
    assert "Too many sign-ins" in asked[-1].words


def test_starts_are_limited_by_address(fake: FakeProvider, closed_hub: Server) -> None:
    fake.status = None
    wait_until_back(closed_hub)
    visitor = come(closed_hub)
    asked = [visitor.go(closed_hub.url + START, allow_redirects=False) for _ in range(START_LIMIT)]
    assert [page.status for page in asked] == [303] * START_LIMIT
    refused = visitor.get(START)
    assert refused.status == 429 and "Too many sign-ins" in refused.words
    assert int(refused.response.headers["Retry-After"]) <= 60
    # The ways with a form are counted as well.
    visitor.get("/account/invitation")
    code = invite(closed_hub, "lena-ohm")
    refused = visitor.post("/account/openid/invitation", [*visitor.csrf(), ("code", code)])
    assert refused.status == 429
    assert come(closed_hub).go(closed_hub.url + START, allow_redirects=False).status == 303


# In a browser, which keeps to what the pages' policy says


@pytest.fixture(scope="module")
def browser(installed_tools: None) -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_four_ways_in_a_browser(hub: Server, browser: Browser, scripts: bool) -> None:
    kind = "scripted" if scripts else "plain"
    context = browser.new_context(java_script_enabled=scripts)
    context.set_default_timeout(TIMEOUT_MS)
    told: list[str] = []
    # The provider has no icon, which is no fault of the hub's.
    context.on(
        "console",
        lambda message: message.location["url"].startswith(hub.url) and told.append(message.text),
    )
    page = context.new_page()

    page.goto(f"{hub.url}/account/signup")
    page.get_by_label("Handle").fill(f"{kind}-one")
    page.get_by_role("button", name=f"Use {NAME}").click()
    sign_in_there(hub, page, f"{kind}-1")
    expect(page.locator(".told")).to_contain_text(f"Welcome, {kind}-one.")

    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_role("link", name=f"Sign in with {NAME}").click()
    # The provider is asked, and knows who it is.
    expect(page).to_have_url(f"{hub.url}/account/prompts")
    page.get_by_role("link", name="Security").click()
    page.context.clear_cookies(domain="localhost")
    page.get_by_role("button", name=f"Connect {NAME}").click()
    sign_in_there(hub, page, f"{kind}-2")
    expect(page.locator(".told")).to_contain_text("You can now sign in")
    page.get_by_role("button", name="Sign out", exact=True).click()

    page.context.clear_cookies(domain="localhost")
    code = invite(hub, f"{kind}-two")
    page.goto(f"{hub.url}/account/invitation#{code}")
    if not scripts:
        page.get_by_label("Invitation code").fill(code)
    page.get_by_role("button", name=f"Use {NAME}").click()
    sign_in_there(hub, page, f"{kind}-3")
    expect(page.locator(".told")).to_contain_text(f"Welcome, {kind}-two.")
    assert not told
    context.close()


def sign_in_there(hub: Server, page: Page, name: str) -> None:
    expect(page).to_have_url(re.compile(rf"{re.escape(hub.issuer)}/interaction/"))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Continue").click()
