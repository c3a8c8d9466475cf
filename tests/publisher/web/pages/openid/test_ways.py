"""Four ways to sign in with a real OpenID provider, there and back."""

from tests.publisher.web.pages.openid.conftest import START, come, cookie_of, invite, join
from tests.publisher.web.pages.openid.provider import NAME
from tests.support.servers import Server


def test_sign_up_then_sign_in(hub: Server) -> None:
    visitor = come(hub)
    page = visitor.get("/account/signup")
    assert f"Use {NAME}" in page.words
    assert 'formaction="/account/openid/signup" formnovalidate' in page.html
    before = cookie_of(visitor)
    visitor.send("/account/openid/signup", handle="lena-berg")
    assert visitor.page.response.url.startswith(f"{hub.issuer}/interaction/")
    page = visitor.sign_in_there("lena")
    assert (page.status, page.path) == (200, "/account/prompts/new")
    assert f"Welcome, lena-berg. You sign in with {NAME}." in page.words
    assert cookie_of(visitor)[:43] != before[:43], "the secret is a new one"

    page = visitor.get("/account/security")
    assert f"Connected to {NAME} as lena, since" in page.words
    assert "You have not set a password, so you cannot sign in with one." in page.words
    visitor.submit("/account/logout")
    assert visitor.owner is None
    # The provider still has a session, and shows no form.
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
    assert f"Connected to {NAME} as nora, since" in page.words

    another = come(hub)
    another.get(START)
    assert another.sign_in_there("nora").path == "/account/prompts"
    assert another.owner == "nora-dahl"

    another.get("/account/security")
    page = another.submit("/openid/remove")
    assert f"{NAME} no longer signs in to your account" in page.words
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
    assert page.path == "/account/prompts/new"
    assert f"Welcome, omar-haddad. You sign in with {NAME}." in page.words
    assert visitor.owner == "omar-haddad"

    late = come(hub)
    late.get("/account/invitation")
    page = late.send("/account/openid/invitation", code=code)
    assert page.status == 422
    assert "This invitation is not valid" in page.words
