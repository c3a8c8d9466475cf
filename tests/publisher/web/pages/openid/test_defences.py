"""Attacks that the defences of sign-in with an OpenID provider stop."""

from urllib.parse import parse_qs, urlencode, urlsplit

from publisher.accounts.database import Database
from tests.publisher.web.pages.conftest import PASSWORD
from tests.publisher.web.pages.openid.conftest import (
    BACK,
    START,
    come,
    cookie_of,
    forge,
    invite,
    join,
    join_elsewhere,
)
from tests.support.servers import DEADLINE_SECONDS, Server


def test_an_unknown_identity_learns_what_to_do(hub: Server, closed_hub: Server) -> None:
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
    page = visitor.submit("/account/password", password=PASSWORD)
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


def test_a_handle_that_is_not_free_is_reported_on_the_form(hub: Server) -> None:
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
    assert (page.path, visitor.owner) == ("/account/prompts/new", "tarik-bulut")


def test_the_answer_for_another_user_signs_in_no_one(hub: Server) -> None:
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
    # The sign-in that the victim has begun still works.
    victim.go(waiting)
    assert victim.sign_in_there("unknown-victim").status == 403
    # It does not connect the attacker's identity to an account either.
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
    # The same holds for an answer that signed in no user.
    stranger = come(hub)
    stranger.get(START)
    unknown = stranger.answer_of("ugo-s-cousin")
    assert [stranger.go(unknown).status for _ in range(2)] == [403, 400]
    # Even with the browser's old cookie, the provider refuses the code.
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
        answer = visitor.session.get(
            hub.url + START, allow_redirects=False, timeout=DEADLINE_SECONDS
        )
        (state,) = parse_qs(urlsplit(answer.headers["Location"]).query)["state"]
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
