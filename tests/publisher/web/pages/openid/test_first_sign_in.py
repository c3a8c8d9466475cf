"""--openid-signup: whom the provider lets in has an account from the first sign-in."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from publisher.accounts.database import Database
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import PROVIDER_SECONDS, Sessions
from publisher.accounts.teams import Teams
from publisher.accounts.tokens import Accounts
from tests.publisher.web.pages.conftest import PASSWORD, Page
from tests.publisher.web.pages.openid.conftest import BACK, START, Traveller, come, serving
from tests.publisher.web.pages.openid.provider import NAME, FakeProvider
from tests.support.servers import Server, free_port


@pytest.fixture(scope="module")
def company(fake: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("company")
    with (
        serving(folder, fake.url, free_port(), "--openid-signup") as server,
        Database(server.settings.state) as server.database,
    ):
        fake.status = None
        yield server


def come_back(visitor: Traveller, fake: FakeProvider, there: str, **claims: str) -> Page:
    """Come back from the provider with an ID token of these claims."""
    asked = {name: values[0] for name, values in parse_qs(urlsplit(there).query).items()}
    fake.say(asked["nonce"], **claims)
    return visitor.get(f"{BACK}?state={asked['state']}&code=a-code&iss={fake.url}")


def enter(visitor: Traveller, fake: FakeProvider, **claims: str) -> Page:
    """Press the button of the sign-in page."""
    sent = visitor.session.get(visitor.url + START, allow_redirects=False, timeout=30)
    return come_back(visitor, fake, sent.headers["Location"], **claims)


def confirm(visitor: Traveller, fake: FakeProvider, handle: str, **claims: str) -> Page:
    """Confirm the handle, which goes by the provider once more."""
    visitor.post("/account/openid/signup", [*visitor.csrf(), ("handle", handle)])
    there = visitor.page.html.partition("0; url=")[2].partition('"')[0].replace("&amp;", "&")
    return come_back(visitor, fake, there, **claims)


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("Grace.Hopper@example.org", "grace-hopper"),
        ("grace-hopper", "grace-hopper-2"),
        ("Grace Hopper", "grace-hopper-3"),
        ("support", "support-2"),
        ("admin", "admin-2"),
        ("con", "con-2"),
        ("", ""),
        ("\u202e\0<script>", "script"),
        ("x" * 5000, "x" * 36),
        ("漢字", "hanzi"),
    ],
)
def test_the_handle_is_proposed_and_confirmed_once(
    company: Server, fake: FakeProvider, name: str, proposed: str
) -> None:
    if not Accounts(company.database).is_known("support"):
        Accounts(company.database).add_owner("boss")
        Teams(company.database).create("support", "boss")
    visitor, subject = come(company), f"subject-{proposed}-{len(name)}"
    claims = {"sub": subject, "preferred_username": name}
    page = enter(visitor, fake, **claims)
    assert page.status == 200 and f"{NAME} lets you in." in page.words
    (field,) = [value for form in page.forms for name, value in form.fields if name == "handle"]
    assert field == proposed
    if not proposed:
        return
    page = confirm(visitor, fake, proposed, **claims)
    assert f"Welcome, {proposed}." in page.words and visitor.owner == proposed
    again = come(company)
    enter(again, fake, **claims)
    assert again.owner == proposed


def test_the_same_name_is_not_the_same_person(company: Server, fake: FakeProvider) -> None:
    first = come(company)
    enter(first, fake, sub="first-ada", preferred_username="ada-l")
    confirm(first, fake, "ada-l", sub="first-ada", preferred_username="ada-l")
    other = come(company)
    enter(other, fake, sub="other-ada", preferred_username="ada-l")
    assert other.owner is None
    page = confirm(other, fake, "ada-l", sub="other-ada", preferred_username="ada-l")
    assert page.status == 422 and "is taken" in page.words and other.owner is None
    assert Identities(company.database).find(fake.url, "other-ada") is None


def test_a_locked_person_gets_no_second_account(company: Server, fake: FakeProvider) -> None:
    visitor = come(company)
    enter(visitor, fake, sub="left", preferred_username="left-us")
    confirm(visitor, fake, "left-us", sub="left", preferred_username="left-us")
    Accounts(company.database).set_locked("left-us", True)
    again = come(company)
    page = enter(again, fake, sub="left", preferred_username="left-us")
    assert page.status == 403 and again.owner is None


def test_who_came_by_the_provider_signs_in_there_again_after_a_day(
    company: Server, fake: FakeProvider
) -> None:
    visitor = come(company)
    enter(visitor, fake, sub="daily", preferred_username="daily")
    confirm(visitor, fake, "daily", sub="daily", preferred_username="daily")
    visitor.get("/account/security")
    assert visitor.submit("/account/password", password=PASSWORD).status == 200
    now = datetime.now(UTC)
    sessions = Sessions(company.database)
    assert sessions.of("daily", now)
    assert not sessions.of("daily", now + timedelta(seconds=PROVIDER_SECONDS))


def test_many_first_sign_ins_at_one_address(company: Server, fake: FakeProvider) -> None:
    office = [Traveller(company.url, "127.61.0.1", "Firefox") for _ in range(40)]
    for number, visitor in enumerate(office):
        claims = {"sub": f"office-{number}", "preferred_username": f"clerk-{number}"}
        enter(visitor, fake, **claims)
        confirm(visitor, fake, f"clerk-{number}", **claims)
        assert visitor.owner == f"clerk-{number}"


def test_people_asks_the_provider_for_the_password_again(
    company: Server, fake: FakeProvider
) -> None:
    visitor = come(company)
    enter(visitor, fake, sub="chief", preferred_username="chief")
    confirm(visitor, fake, "chief", sub="chief", preferred_username="chief")
    Accounts(company.database).set_operator("chief", True)
    assert visitor.get("/account/people").status == 200
    company.database.execute("UPDATE session SET began_at = began_at - 3600 WHERE owner = 'chief'")
    assert visitor.get("/account/people").path == "/account/login"
    sent = visitor.session.get(
        f"{company.url}{START}?next=/people", allow_redirects=False, timeout=30
    )
    there = sent.headers["Location"]
    assert "prompt=login" in there
    page = come_back(visitor, fake, there, sub="chief", preferred_username="chief")
    assert page.path == "/account/people" and page.status == 200


@pytest.mark.parametrize("form", ["/account/password", "/account/openid/connect"])
def test_a_way_to_sign_in_is_added_after_a_sign_in_alone(
    company: Server, fake: FakeProvider, form: str
) -> None:
    handle = f"old-{form.rpartition('/')[2]}"
    visitor = come(company)
    enter(visitor, fake, sub=handle, preferred_username=handle)
    confirm(visitor, fake, handle, sub=handle, preferred_username=handle)
    visitor.get("/account/security")
    aged = "UPDATE session SET began_at = began_at - 3600 WHERE owner = ?"
    company.database.execute(aged, (handle,))
    page = visitor.post(form, [*visitor.csrf(), ("password", PASSWORD)])
    assert page.path == "/account/login" and "Sign in again to" in page.words
    assert "next=/security" in page.response.url
    assert not Passwords(company.database).has(handle)
