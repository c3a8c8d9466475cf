"""The page of sessions and passwords, and the log of the account in plain words."""

import json
import re
from datetime import UTC, datetime

import pytest
from markupsafe import escape

from builder.model.errors import RequestError
from publisher.accounts.events import TEXTS, Event, Events
from publisher.accounts.people.attempts import VISITOR_LIMIT
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.locks import lock, unlock
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from publisher.web.pages.activity import EVENTS_SHOWN, tell
from publisher.web.pages.frame import CHANGE_LIMIT
from tests.publisher.web.pages.conftest import PASSWORD, Page, People, Visitor
from tests.publisher.web.pages.test_sign_in import post, sign_in, while_a_password_is_verified
from tests.support.events import latest
from tests.support.hubs import MakeHub
from tests.support.servers import wait_until

SECURITY = "/account/security"
NEW_PASSWORD = "eleven small foxes near Turku"


@pytest.fixture
def owner(people: People) -> Visitor:
    return people.member()


def change(visitor: Visitor, current: str | None, password: str | None = NEW_PASSWORD) -> Page:
    visitor.get(SECURITY)
    return visitor.submit("/password", current=current, password=password)


def cookie_of(visitor: Visitor) -> str:
    return visitor.session.cookies["hub-account"]


def kinds_of(people: People, owner: str) -> list[str]:
    return [event.kind for event in latest(people.database, owner, 1000)]


def test_where_one_is_signed_in(people: People, owner: Visitor) -> None:
    other = people.visitor("Mozilla/5.0 (iPhone) Safari/604.1")
    sign_in(other, owner.handle, PASSWORD)
    page = owner.get(SECURITY)
    assert f"Safari on iOS {other.address}" in page.words
    assert f"Firefox on Linux this browser {owner.address}" in page.words
    assert f"Firefox on Linux {owner.address}" in other.get(SECURITY).words
    assert "Safari on iOS this browser" in other.page.words
    stranger = people.guest()
    assert owner.address not in stranger.get(SECURITY).words


def test_signing_out_everywhere(people: People, owner: Visitor) -> None:
    other = people.visitor()
    sign_in(other, owner.handle, PASSWORD)
    stranger = people.guest()
    owner.get(SECURITY)
    page = owner.submit("/sign-out-everywhere")
    assert page.path == "/account/login" and "You are signed out everywhere." in page.words
    for visitor in (owner, other):
        assert visitor.get(SECURITY).path == "/account/login"
    assert stranger.get(SECURITY).path == SECURITY
    sign_in(owner, owner.handle, PASSWORD)
    assert "Signed out everywhere." in owner.get(SECURITY).words


def test_a_new_password_signs_out_elsewhere(people: People, owner: Visitor) -> None:
    other = people.visitor()
    sign_in(other, owner.handle, PASSWORD)
    thief = people.visitor()
    thief.session.cookies.update(owner.session.cookies)
    assert thief.get(SECURITY).path == SECURITY
    before = cookie_of(owner).partition(".")[0]
    page = change(owner, PASSWORD)
    assert (page.status, page.path) == (200, SECURITY)
    assert "Your password is changed," in page.words and "Password changed." in page.words
    assert cookie_of(owner).partition(".")[0] != before
    for visitor in (other, thief):
        assert visitor.get(SECURITY).path == "/account/login"
    assert sign_in(other, owner.handle, PASSWORD).path == "/account/login"
    assert sign_in(other, owner.handle, NEW_PASSWORD).path == "/account/prompts"


@pytest.mark.parametrize(
    ("current", "password", "message"),
    [
        ("not my password", NEW_PASSWORD, "Wrong password."),
        (None, NEW_PASSWORD, "Enter your current password."),
        (PASSWORD, "short", "at least 15 characters"),
        (PASSWORD, "password12345678", "easy to guess"),
        (PASSWORD, None, "Choose a password."),
        (PASSWORD, "x" * 10_000, "256 characters"),
        ("x" * 10_000, NEW_PASSWORD, "Wrong password."),
        ("<b>", NEW_PASSWORD, "Wrong password."),
    ],
)
def test_what_changes_no_password(
    people: People, security_owner: Visitor, current: str | None, password: str | None, message: str
) -> None:
    page = change(security_owner, current, password)
    assert page.status == 422 and message in page.words, page.words
    assert "<details open>" in page.html, "where the error is"
    assert message != "at least 15 characters" or "At least" not in page.words, "said once"
    assert NEW_PASSWORD not in page.html and PASSWORD not in page.html
    assert "password_changed" not in kinds_of(people, security_owner.handle)
    assert security_owner.get(SECURITY).path == SECURITY


@pytest.fixture(scope="module")
def security_owner(people: People) -> Visitor:
    return people.member()


def test_guessing_the_current_password_is_limited(people: People, owner: Visitor) -> None:
    for _ in range(VISITOR_LIMIT):
        assert change(owner, "a wrong password").status == 422
    page = change(owner, PASSWORD)
    assert page.status == 429 and "Too many wrong passwords" in page.words
    assert int(page.response.headers["Retry-After"]) > 0
    # The same count as that of signing in.
    again = people.visitor()
    again.session.headers["X-Forwarded-For"] = owner.address
    assert sign_in(again, owner.handle, PASSWORD).status == 429
    assert kinds_of(people, owner.handle).count("sign_in_failed") == VISITOR_LIMIT
    assert "Wrong password entered." in owner.get(SECURITY).words


def test_one_who_has_no_password_sets_one(people: People) -> None:
    owner = people.guest()
    Identities(people.database).add(owner.handle, "https://id.example", "1")
    page = owner.get(SECURITY)
    assert "You have not set a password" in page.words and "Current password" not in page.words
    page = owner.submit("/password", password=NEW_PASSWORD)
    assert page.path == SECURITY and "Password set." in page.words
    assert "Current password" in page.words
    assert sign_in(people.visitor(), owner.handle, NEW_PASSWORD).path == "/account/prompts"
    assert f"{owner.handle} Signed in with" in owner.get(SECURITY).words


@pytest.mark.parametrize("kind", TEXTS)
def test_every_event_is_reported(kind: str) -> None:
    sentence = tell(Event(0, kind, "subject", "192.0.2.1", "note {browser}"), {})
    assert sentence.endswith(".") and len(sentence.split()) > 1
    about = {"token", "publisher", "trusted", "identity", "label", "withdrawn", "restored"}
    about |= {"published", "team", "member"}
    has_note = kind.partition("_")[0] in about
    assert ("note {browser}" in sentence) == has_note
    assert kind != "signed_in" or sentence == "Signed in with note."


def test_an_invitation_ends_with_what_it_would_undo(people: People, owner: Visitor) -> None:
    def invite() -> str:
        return Invitations(people.database).invite(owner.handle)

    def is_good(code: str) -> bool:
        try:
            return Invitations(people.database).look(code) == owner.handle
        except RequestError:
            return False

    code = invite()
    assert change(owner, "a wrong password").status == 422 and is_good(code)
    assert change(owner, PASSWORD).status == 200 and not is_good(code)
    code = invite()
    owner.get(SECURITY)
    owner.submit("/sign-out-everywhere")
    assert not is_good(code)


def test_a_new_password_is_not_set_by_who_was_shut_out_meanwhile(make_hub: MakeHub) -> None:
    """During the change, the user ends all sessions, sets another password, or is locked."""
    secret, own = "t" * 43, "the very own one of a thief"
    hub = make_hub("https://hub.example")
    passwords, sessions = Passwords(hub.database), Sessions(hub.database)
    for act in (
        lambda: sessions.end_all("ann"),
        lambda: passwords.put("ann", NEW_PASSWORD),
        lambda: lock(hub.database, "ann"),
    ):
        unlock(hub.database, "ann")
        passwords.put("ann", PASSWORD)
        sessions.begin("ann", secret, address="", agent="")
        client = hub.app.test_client()
        client.set_cookie("__Secure-hub-account", secret, domain="hub.example", path="/account")
        sent = {"current": PASSWORD, "password": own}
        with while_a_password_is_verified(act):
            answer = post(client, "/account/password", sent, page=SECURITY)
        assert answer.status_code == 303 and answer.headers["Location"] == "/account/login"
        assert not passwords.verify("ann", own) and sessions.of("ann") == []


def test_a_flood_hides_nothing_in_the_log(people: People) -> None:
    owner = people.guest()
    with people.database.transaction():
        events = Events(people.database)
        events.note(owner.handle, "token_made", subject="1", note="of-an-intruder")
        for number in range(97):
            events.note(owner.handle, "sign_in_failed", address=f"198.18.0.{number}")
        for number in range(EVENTS_SHOWN - 11):
            events.note(owner.handle, "token_made", subject=f"{number}", note=f"nr-{number}-")
    page = owner.get(SECURITY)
    assert "Wrong password entered. 198.18.0.96" in page.words
    assert "Wrong password entered. 198.18.0.87 … and 87 similar events" in page.words
    assert "198.18.0.86" not in page.words and "Newest" not in page.words
    assert "of-an-intruder" in page.words, "100 lines"
    assert "Signed in with" not in page.words
    (older,) = re.findall(r'href="([^"]+)#log">Older', page.html)
    page = owner.get(older)
    assert "Signed in with Firefox on Linux." in page.words and "Newest" in page.words
    assert f'<time datetime="{datetime.now(UTC):%Y-%m-%dT%H:}' in page.html
    assert "token made" not in page.words.lower() and "Older" not in page.words
    assert "No activity yet." in owner.get(f"{SECURITY}?before=0").words
    for rubbish in ("", "x", "-1", "9" * 30, "1%00", "%ff", "²"):
        page = owner.get(f"{SECURITY}?before={rubbish}")
        assert page.status == 400 and "This part of the activity does not exist" in page.words
    stranger = people.guest()
    assert owner.address not in stranger.get(older).words


def test_an_owner_changes_only_so_much_a_minute(people: People) -> None:
    owner, other = people.guest(), people.guest()
    for visitor in (owner, other):
        visitor.get("/account/publishers")
    sent = [("repo", "x"), ("who", "never"), *owner.csrf()]
    statuses = [
        owner.session.post(f"{people.url}/account/publishers/only", data=sent).status_code
        for _ in range(CHANGE_LIMIT + 1)
    ]
    assert statuses == [422] * CHANGE_LIMIT + [429]
    page = owner.post("/account/profile", owner.csrf())
    assert page.status == 429 and "Too many changes to this account" in page.words
    assert int(page.response.headers["Retry-After"]) > 0
    # Views and sign-outs do not count, and other users are not limited.
    assert owner.get(SECURITY).status == 200
    assert other.post("/account/publishers/only", other.csrf()).status == 422
    owner.submit("/account/logout")
    assert owner.get(SECURITY).path == "/account/login"


@pytest.mark.parametrize(
    "agent", ["<script>alert(1)</script>", "{{ 7*7 }}", "", "x" * 5000, '"><img src=x>', "{note}"]
)
def test_any_browser_is_shown_as_text(people: People, agent: str) -> None:
    page = people.guest(agent=agent).get(SECURITY)
    shown = agent[:200].partition(" ")[0] or "an unknown browser"
    assert page.status == 200 and page.words.count(shown) == 2
    assert f'title="{escape(agent[:200])}"' in page.html
    assert "<script>alert" not in page.html and "<img src=x" not in page.html and "49" not in shown


def test_what_was_done_to_tokens_is_reported(people: People) -> None:
    owner = people.guest()
    text, token = Accounts(people.database).create_token(owner.handle, "at-a-shell")
    assert people.publish(text, owner.handle, "any").status_code == 201
    owner.get("/account/tokens")
    owner.submit(f"/{token.id}/revoke")
    words = owner.get(SECURITY).words
    assert "operator’s shell Token created: at-a-shell." in words
    assert "Token used from a new address: at-a-shell. 127.0.0.1" in words
    assert f"Token revoked: at-a-shell. {owner.address}" in words


def test_the_log_says_who_asked_for_which_page(people: People) -> None:
    writer = people.guest()
    writer.get("/account/tokens?owner=nobody-else")

    def find() -> dict | None:
        lines = [line for line in people.server.process.lines if f'"{writer.handle}"' in line]
        return json.loads(lines[-1]) if lines else None

    line = wait_until(find, "the line of the request")
    assert (line["event"], line["status"], line["account"]) == ("request", 200, writer.handle)
    assert (line["path"], line["route"]) == ("/account/tokens", "/account/tokens")
