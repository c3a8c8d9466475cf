"""Guessed passwords: their limit, what the answers reveal, and the events that the owner sees."""

import re

from publisher.accounts.database import Database
from publisher.accounts.people.attempts import VISITOR_LIMIT
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.locks import lock, unlock
from publisher.accounts.tokens import LOCKED, Accounts
from tests.publisher.web.pages.conftest import PASSWORD, People
from tests.publisher.web.pages.test_sign_in import OTHER_PASSWORD, sign_in
from tests.support.events import latest
from tests.support.servers import wait_until


def test_an_account_is_guessed_at_only_so_often(people: People):
    member, visitor = people.member(), people.visitor()
    for number in range(VISITOR_LIMIT):
        page = sign_in(visitor, member.handle, f"{OTHER_PASSWORD} {number}")
        assert page.status == 422
    page = sign_in(visitor, member.handle, PASSWORD)
    assert page.status == 429, "the right password does not help a guesser either"
    assert 1 <= int(page.response.headers["Retry-After"]) <= 15 * 60
    assert page.words.count("Try again") == 1, "no button while it is refused"
    # Other addresses are not locked out, least of all the owner's.
    assert sign_in(people.visitor(), member.handle, PASSWORD).path == "/account/prompts"
    # Unknown handles are refused as well.
    for _ in range(VISITOR_LIMIT):
        page = sign_in(visitor, "nobody-here", OTHER_PASSWORD)
        assert page.status == 422
    assert sign_in(visitor, "nobody-here", OTHER_PASSWORD).status == 429


def test_a_known_handle_is_answered_as_soon_as_an_unknown_one(people: People):
    """Only a known one has a log; it must not be written before the answer."""
    member, visitor = people.member(), people.visitor()
    visitor.get("/account/login")
    with Database(people.settings.state) as database:
        before = len(latest(database, member.handle, 9))
        # Until it ends no other connection can write: attempts are refused after a while.
        database.execute("BEGIN IMMEDIATE")
        try:
            for handle in ("nobody-at-all", member.handle):
                page = visitor.submit(handle=handle, password=OTHER_PASSWORD)
                assert page.status == 422 and "Wrong handle or password" in page.words
        finally:
            database.execute("ROLLBACK")
        wait_until(lambda: len(latest(database, member.handle, 9)) == before + 1, "the event")


def test_one_who_is_locked_out_gets_the_answer_of_a_wrong_password(people: People):
    member, visitor, pages = people.member(), people.visitor(), []
    pages.append(sign_in(visitor, member.handle, OTHER_PASSWORD))
    text, _ = Accounts(people.database).create_token(member.handle, "ci")
    lock(people.database, member.handle)
    refused = people.publish(text, member.handle, "story")
    assert refused.status_code == 401 and refused.json()["error"] == {
        "code": "invalid_token", "message": LOCKED,
    }  # fmt: skip
    assert member.get("/account/tokens").path == "/account/login"
    pages.append(sign_in(visitor, member.handle, PASSWORD))
    shown = {
        (page.status, page.words, re.sub(r'name="csrf_token" value="[^"]*"', "", page.html))
        for page in pages
    }
    assert len(shown) == 1
    unlock(people.database, member.handle)
    assert people.publish(text, member.handle, "story").status_code == 201
    assert sign_in(visitor, member.handle, PASSWORD).path == "/account/prompts"
    words = visitor.get("/account/security").words
    assert "Account locked." in words and "Account unlocked." in words


def test_after_a_lost_password_the_page_says_what_an_intruder_may_have_left(people: People):
    member = people.member()
    Accounts(people.database).create_token(member.handle, "of-an-intruder")
    _, gone = Accounts(people.database).create_token(member.handle, "revoked")
    Accounts(people.database).revoke(member.handle, gone.id)
    Identities(people.database).add(member.handle, "https://id.example", member.handle)
    code = Invitations(people.database).invite(member.handle)
    visitor = people.visitor()
    visitor.get("/account/invitation")
    page = visitor.submit(code=code, password=OTHER_PASSWORD)
    assert page.path == "/account/security" and page.response.url.endswith("#recovery")
    message = "These still work: tokens (1), accounts at sign-in providers (1). Check them"
    assert message in page.words
    recovery = page.html.partition('id="recovery"')[2].partition("</p>")[0]
    links = re.findall(r'href="([^"]+)"', recovery)
    assert links == ["/account/tokens", "/account/publishers", "#identities"]
    assert 'id="identities"' in page.html
