"""Signing in, and what it must withstand: each test fails where its defence is missing."""

import base64
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import argon2
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from builder.model.service_urls import ACCOUNT_URL
from publisher.accounts.database import Database
from publisher.accounts.people.attempts import ADDRESS_LIMIT, SIGNUP_LIMIT
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.locks import lock, unlock
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from publisher.openid.provider import SignIn
from publisher.web.pages.cookie import VisitorSession, _signer
from publisher.web.pages.frame import FLASHES_MAX, PLACES, START, after_login
from tests.publisher.web.pages.conftest import PASSWORD, People, Visitor
from tests.support.hubs import Hub, MakeHub

OTHER_PASSWORD = "nine brisk otters beyond Tromsø"


@pytest.fixture
def hub(make_hub: MakeHub) -> Hub:
    """The service inside the test, with sign-up."""
    return make_hub("https://hub.example", sign_in=SignIn(open_signup=True))


@pytest.fixture
def database(hub: Hub) -> Database:
    return hub.database


@pytest.fixture
def app(hub: Hub) -> Flask:
    return hub.app


def invite(people: People, handle: str) -> str:
    return Invitations(people.database).invite(handle)


def secret_of(visitor: Visitor) -> str:
    """The secret in a visitor's cookie."""
    return visitor.session.cookies["hub-account"].partition(".")[0]


def sign_in(visitor: Visitor, handle: str, password: str):
    visitor.get("/account/login")
    return visitor.submit(handle=handle, password=password)


# The way


def test_an_invitation_then_out_and_in_again(people: People):
    code = invite(people, "mara")
    visitor = people.visitor()
    page = visitor.get("/account/invitation")
    page = visitor.submit(code=f" {people.url}/account/invitation#{code} ", password=PASSWORD)
    assert (page.status, page.path) == (200, "/account/prompts/new")
    assert "Welcome, mara" in page.words
    page = visitor.submit("/account/logout")
    assert (page.path, "You are signed out" in page.words) == ("/account/login", True)
    assert visitor.get("/account/security").path == "/account/login"
    page = visitor.submit(handle="mara", password=PASSWORD)
    assert page.path == "/account/security"  # where one wanted to go


@pytest.mark.parametrize(
    ("handle", "message"),
    [
        ("admin", "reserved"), ("adm1n", "like"), ("", "Choose"), ("<b>", "1 to 39"),
    ],
)  # fmt: skip
def test_a_handle_that_cannot_be(people: People, handle: str, message: str):
    visitor = people.visitor()
    visitor.get("/account/signup")
    page = visitor.submit(handle=handle, password=PASSWORD)
    assert page.status == 422 and message in page.words
    assert "<b>" not in page.html.partition("<main")[2]


def test_without_open_signup_there_is_none(make_hub: MakeHub):
    client = make_hub("http://127.0.0.1:8000").app.test_client()
    assert client.get("/account/signup").status_code == 404
    page = client.get("/account/login").text
    assert "signup" not in page and "invitation" in page


# CSRF


def test_no_form_is_taken_without_its_token(app: Flask, database: Database):
    """Every POST of the account settings, with a session that is signed in."""
    Invitations(database).invite("ann")
    forms = [
        re.sub(r"<\w+>", "x", rule.rule.replace("<whose>", "ann"))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith(ACCOUNT_URL) and "POST" in rule.methods
    ]
    assert len(forms) > 3
    Sessions(database).begin("ann", "s" * 43, address="", agent="")
    for path in forms:
        client = app.test_client()
        client.set_cookie("__Secure-hub-account", "s" * 43, domain="hub.example", path="/account")
        for token in (None, "", "rubbish", token_of(app, "/account/login")):
            data = {} if token is None else {"csrf_token": token}
            answer = client.post(path, data=data, base_url="https://hub.example")
            assert answer.status_code == 400, path
            assert "has expired" in answer.text
    assert Sessions(database).find("s" * 43), "nobody was signed out"


def token_of(app: Flask, path: str) -> str:
    """The CSRF token of another visitor's page."""
    page = app.test_client().get(path, base_url="https://hub.example").text
    return re.search(r'name="csrf_token" value="([^"]+)"', page)[1]


# Sessions


def test_the_cookie(app: Flask):
    answer = app.test_client().get("/account/login", base_url="https://hub.example")
    (cookie,) = answer.headers.getlist("Set-Cookie")
    name, _, rest = cookie.partition("=")
    assert name == "__Secure-hub-account"
    attributes = {part.strip().lower() for part in rest.split(";")[1:]}
    # Without a sign-in, the cookie ends with the browser's session.
    assert attributes == {"secure", "httponly", "path=/account", "samesite=lax"}


@pytest.mark.parametrize(
    ("base_url", "path"),
    [("http://127.0.0.1:8000", "/account"), ("http://localhost:80/hub", "/hub/account"),
     ("http://[::1]:8000", "/account")],
)  # fmt: skip
def test_a_cookie_on_this_machine_needs_no_tls(make_hub: MakeHub, base_url: str, path: str):
    answer = make_hub(base_url).app.test_client().get("/account/login")
    (cookie,) = answer.headers.getlist("Set-Cookie")
    assert cookie.startswith("hub-account=") and "secure" not in cookie.lower()
    assert f"Path={path};" in cookie and "HttpOnly" in cookie and "SameSite=Lax" in cookie


@pytest.mark.parametrize("sign_in", [SignIn(), SignIn(open_signup=True)])
def test_where_no_one_can_sign_in_the_page_says_how_to_begin(
    make_hub: MakeHub, sign_in: SignIn
) -> None:
    hub = make_hub("https://hub.example", sign_in=sign_in)
    is_closed = not sign_in.open_signup

    def is_said() -> bool:
        page = hub.app.test_client().get("/account/login", base_url="https://hub.example").text
        return "hubctl owner invite" in page

    assert is_said() == is_closed
    Passwords(hub.database).put("ann", PASSWORD)
    assert not is_said()
    lock(hub.database, "ann")
    assert is_said() == is_closed


def test_a_session_that_was_there_before_is_not_the_one_signed_in(people: People):
    """Fixation: who has put a cookie into a browser must not share what begins there."""
    member = people.member()
    visitor = people.visitor()
    visitor.get("/account/login")
    planted = visitor.session.cookies["hub-account"]
    visitor.submit(handle=member.handle, password=PASSWORD)
    assert secret_of(visitor) != planted.partition(".")[0]
    attacker = people.visitor()
    attacker.session.headers["Cookie"] = f"hub-account={planted}"
    assert attacker.get("/account/tokens").path == "/account/login"


def test_signing_in_again_ends_the_session_before(people: People):
    visitor = people.member()
    before = secret_of(visitor)
    sign_in_again = visitor.get("/account/login")
    assert sign_in_again.path == "/account/prompts"
    token = visitor.csrf()
    visitor.post("/account/login", [("handle", visitor.handle), ("password", PASSWORD), *token])
    assert secret_of(visitor) != before
    assert Sessions(people.database).find(before) is None
    assert len(Sessions(people.database).of(visitor.handle)) == 1


def test_a_signed_in_cookie_outlasts_the_browser(people: People):
    member = people.member()
    (cookie,) = [cookie for cookie in member.session.cookies if cookie.name == "hub-account"]
    assert cookie.expires is not None and cookie.path == "/account"


def cookie_with(data: bytes, secret: str = "s" * 43) -> str:
    """A cookie with data that its visitor has signed."""
    signed = _signer(VisitorSession(secret)).sign(data)
    return f"{secret}.{base64.urlsafe_b64encode(signed).decode()}"


def test_what_is_in_the_cookie_gives_no_rights(app: Flask, database: Database):
    """It is signed with a secret of its own, so anyone with that secret can write it."""
    Invitations(database).invite("ann")
    client = app.test_client()
    lists = b'{"_flashes":[["message","<b>"]]}', b'{"_flashes":[["a",{" m":"<b>"}]]}'
    for forged in (
        *(cookie_with(data) for data in (b"[]", b"7", b'{"csrf_token":7}', b'{"openid":[]}', b"x")),
        *(cookie_with(data) for data in (*lists, b'{"_user_id":"ann","owner":"ann"}')),
        cookie_with(zlib.compress(b" " * 1_000_000)), cookie_with(b'{"csrf_token":"a"}')[:-3],
        "s" * 43 + ".", "s" * 43 + "." + "A" * 3500, "ann", "é" * 43, "." * 100,
    ):  # fmt: skip
        client.set_cookie("__Secure-hub-account", forged, domain="hub.example", path="/account")
        answer = client.get("/account/tokens", base_url="https://hub.example")
        assert answer.status_code == 303 and "/login" in answer.headers["Location"], forged
        answer = client.get("/account/login", base_url="https://hub.example")
        assert answer.status_code == 200 and "<b>" not in answer.text


def test_messages_for_the_next_page_do_not_pile_up(people: People):
    visitor = people.member()
    visitor.get("/account/publishers")
    for number in range(20):
        sent = [("repo", "x"), ("who", ("only", "too")[number % 2]), *visitor.csrf()]
        answer = visitor.session.post(
            f"{people.url}/account/publishers/only", data=sent, allow_redirects=False
        )
        assert answer.status_code == 303
    assert visitor.get("/account/tokens").html.count('class="told"') == FLASHES_MAX


# Enumeration


def test_who_there_is_cannot_be_asked(people: People):
    member = people.member()
    Accounts(people.database).add_owner("without-password")
    visitor, answers = people.visitor(), set()
    for handle in (member.handle, "without-password", "nobody-at-all", "NO NAME", "ö\0"):
        page = sign_in(visitor, handle, OTHER_PASSWORD)
        shown = re.sub(r'(name="csrf_token"|id="handle"[^>]*) value="[^"]*"', "", page.html)
        answers.add((page.status, shown))
    assert len(answers) == 1
    assert answers.pop()[0] == 422


# Open redirect


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)",
        "/../..//evil.example", "/tokens/../../x", "\r\nX-Evil: 1", "/logout", "tokens", "",
    ],
)  # fmt: skip
def test_a_sign_in_leads_to_our_own_pages_alone(people: People, target: str):
    member, visitor = people.member(), people.visitor()
    visitor.get("/account/login", params={"next": target})
    form = visitor.form()
    answer = visitor.session.post(
        f"{people.url}/account/login", params={"next": target}, allow_redirects=False,
        data=[("handle", member.handle), ("password", PASSWORD), *visitor.csrf()],
    )  # fmt: skip
    assert form.action == "" and answer.status_code == 303
    assert answer.headers["Location"] == "/account/prompts"
    assert "X-Evil" not in answer.headers


def test_every_place_can_be_come_back_to():
    for place, _ in PLACES:
        assert after_login(f"/{place}") == f"/{place}"
    for path in ("/prompts/new", "/prompts/ann/story", "/prompts/ann/story/labels"):
        assert after_login(path) == path


@pytest.mark.parametrize("path", ["/prompts/../logout/labels", "/prompts/ann/story/labels/move"])
def test_links_lead_to_no_other_place(path: str):
    assert after_login(path) == START


# Brute force


@contextmanager
def while_a_password_is_verified(act: Callable[[], object]) -> Iterator[None]:
    """Run ``act`` before the check of the next password returns."""
    real, done = argon2.PasswordHasher.verify, []

    def verify(*args: object) -> bool:
        is_right = real(*args)
        if not done:
            done.append(is_right)
            act()
        return is_right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argon2.PasswordHasher, "verify", verify)
        yield
    assert done == [True]


def test_a_sign_in_under_way_ends_with_a_new_password(app: Flask, database: Database):
    invitations, passwords = Invitations(database), Passwords(database)
    sessions = Sessions(database)
    invitations.invite("ann")

    def change() -> None:
        passwords.put("ann", OTHER_PASSWORD)
        sessions.end_all("ann")

    def take_invitation() -> None:
        invitations.accept(invitations.invite("ann"), OTHER_PASSWORD)

    for act, status in (
        (change, 422), (take_invitation, 422), (lambda: lock(database, "ann"), 403),
        (lambda: None, 303),
    ):  # fmt: skip
        passwords.put("ann", PASSWORD)
        client = app.test_client()
        with while_a_password_is_verified(act):
            answer = post(client, "/account/login", {"handle": "ann", "password": PASSWORD})
        assert answer.status_code == status
        assert ("Wrong handle or password." in answer.text) == (status == 422)
        assert len(sessions.of("ann")) == (status == 303)
        unlock(database, "ann")
        answer = client.get("/account/security", base_url="https://hub.example")
        assert answer.status_code == (200 if status == 303 else 303)


def post(client: FlaskClient, path: str, fields: dict[str, str], page: str = "") -> TestResponse:
    """Send a form of a page, by default of the path itself."""
    html = client.get(page or path, base_url="https://hub.example").text
    token = re.search(r'name="csrf_token" value="([^"]+)"', html)[1]
    return client.post(path, data=fields | {"csrf_token": token}, base_url="https://hub.example")


def test_signing_out_leaves_nothing_of_the_session(people: People):
    visitor = people.member()
    before = visitor.session.cookies["hub-account"]
    visitor.submit("/account/logout")
    after = visitor.session.cookies["hub-account"]
    assert after.partition(".")[0] != before.partition(".")[0]
    # Cookies signed with the old secret are refused, even if a client has kept one.
    assert visitor.post("/account/login", [("handle", "x")]).status == 400
    thief = people.visitor()
    thief.session.headers["Cookie"] = f"hub-account={before}"
    assert thief.get("/account/tokens").path == "/account/login"


# Answers


def test_a_form_that_is_too_large(people: People):
    visitor = people.visitor()
    visitor.get("/account/login")
    page = visitor.post("/account/login", [("handle", "x" * 100_000), *visitor.csrf()])
    assert page.status == 413 and "too large" in page.words


def test_an_error_needs_no_database(hub: Hub, tmp_path: Path):
    client = hub.app.test_client()
    client.set_cookie("__Secure-hub-account", "s" * 43, domain="hub.example", path="/account")
    Path(hub.database.engine.path).rename(tmp_path / "away")
    for path in ("/account/login", "/account/tokens", "/account/nowhere"):
        answer = client.get(path, base_url="https://hub.example")
        is_missing = path.endswith("nowhere")
        assert answer.status_code == (404 if is_missing else 503)
        assert answer.mimetype == "text/html" and answer.headers["Cache-Control"] == "no-store"
        assert is_missing or "database" in answer.text


def test_sign_ups_that_are_refused_use_none_up(people: People):
    visitor = people.visitor()
    visitor.get("/account/signup")
    for _ in range(SIGNUP_LIMIT + 1):
        assert visitor.submit(handle="admin", password=PASSWORD).status == 422
    page = visitor.submit(handle="who-erred-often", password=PASSWORD)
    assert page.path == "/account/prompts/new"
    other = people.visitor()
    other.get("/account/signup")
    for _ in range(ADDRESS_LIMIT):
        assert other.submit(handle="admin", password=PASSWORD).status == 422
    assert other.submit(handle="admin", password=PASSWORD).status == 429


def test_a_handle_with_a_capital_is_the_same(people: People):
    member = people.member()
    page = sign_in(people.visitor(), f" {member.handle.capitalize()} ", PASSWORD)
    assert (page.status, page.path) == (200, "/account/prompts")
