"""Readers of a private hub, and their sign-in."""

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builder.model.errors import RequestError
from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.people.locks import lock
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.token import PUBLISH, READ, Grant
from publisher.accounts.tokens import Accounts
from publisher.web.members import reader_check
from publisher.web.pages.frame import site_page
from tests.publisher.web.pages.conftest import PASSWORD, People
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import DEADLINE_SECONDS, serving

SECRET = "s" * 43
LONG_AGO = datetime.now(UTC) - timedelta(days=100)


@pytest.fixture
def database(accounts_place: str) -> Iterator[Database]:
    with Database(accounts_place) as database:
        Accounts(database).add_owner("ann")
        yield database


@pytest.fixture
def check(database: Database) -> Callable[[str, str], None]:
    settings = Settings(base_url="https://prompts.example.org", private=True)
    return reader_check(settings, database)


def code_of(check: Callable[[str, str], None], cookie: str, authorization: str = "") -> str:
    with pytest.raises(RequestError) as refused:
        check(cookie, authorization)
    assert refused.value.status == 401
    return refused.value.code


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize("rights", [(READ,), (PUBLISH,), (READ, PUBLISH)])
def test_every_token_reads(check: Callable, database: Database, rights: tuple[str, ...]):
    repos = ["story"] if PUBLISH in rights else []
    text, token = Accounts(database).create_token("ann", "app", Grant(repos, rights=rights))
    for authorization in (f"Bearer {text}", f"bearer  {text} ", basic(f"pk:{text}")):
        # Other parts of the request do not change who the reader is.
        assert check("x=1", authorization) == check("", f"Bearer {text}")
    job, _ = Accounts(database).create_trusted_token("ann", ["story"], "1")
    check("", f"Bearer {job}")
    other, _ = Accounts(database).create_token("ann", "other", Grant(repos, rights=rights))
    assert check("", f"Bearer {other}") != check("", f"Bearer {text}")
    Accounts(database).revoke("ann", token.id)
    assert code_of(check, "", f"Bearer {text}") == "invalid_token"


def test_a_use_is_noted_without_an_address(check: Callable, database: Database):
    text, _ = Accounts(database).create_token("ann", "app", Grant(rights=[READ]))
    check("", f"Bearer {text}")
    (token,) = Accounts(database).tokens("ann")
    assert token.last_used_at is not None
    kinds = [kind for (kind,) in database.execute("SELECT kind FROM event")]
    assert "token_new_address" not in kinds


def test_a_session_reads_until_it_ends(check: Callable, database: Database):
    cookie = f"x=1; __Secure-hub-member={SECRET}.data"
    assert code_of(check, cookie) == "missing_token"
    Sessions(database).begin("ann", SECRET, address="", agent="")
    check(cookie, "")
    check(cookie, "Bearer x")
    assert code_of(check, f"hub-member={SECRET}") == "missing_token", "a name without Secure"
    assert code_of(check, f"__Secure-hub-account={SECRET}") == "missing_token"
    lock(database, "ann")
    assert code_of(check, cookie) == "missing_token"


def test_who_is_locked_out_or_too_late_does_not_read(check: Callable, database: Database):
    accounts = Accounts(database)
    old, _ = accounts.create_token("ann", "old", now=LONG_AGO)
    assert code_of(check, "", f"Bearer {old}") == "token_expired"
    text, _ = accounts.create_token("ann", "new")
    lock(database, "ann")
    assert code_of(check, "", f"Bearer {text}") == "invalid_token"


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        ("", "missing_token"), ("Bearer", "missing_token"), ("Basic", "missing_token"),
        ("Basic é", "missing_token"), (basic("no colon"), "missing_token"),
        (basic("pk:"), "missing_token"), ("Digest x", "missing_token"),
        ("Bearer x", "invalid_token"), (f"Bearer hub_{'A' * 38}", "invalid_token"),
        (basic("pk:x"), "invalid_token"),
    ],
)  # fmt: skip
def test_what_is_no_token(check: Callable, authorization: str, code: str):
    assert code_of(check, "a=b; hub-member=x.y;;=", authorization) == code


@pytest.mark.parametrize("base_url", ["https://a.example", "https://a.example/hub"])
def test_a_sign_in_leads_to_pages_of_the_site_alone(base_url: str):
    settings = Settings(base_url=base_url)
    root = settings.base_path
    for target, page in {
        "/ann/story": "/ann/story", "/": "/", "/search?q=a%20b&page=2": "/search?q=a%20b&page=2",
        "/ann/story/1.0.0": "/ann/story/1.0.0", "/%61nn/story": "/ann/story",
        "/ann/story?x=<y>\r\nz: 1": "/ann/story", f"/ann?{'x' * 2000}": "/ann",
        "/ann/story.html": "/ann/story",
    }.items():  # fmt: skip
        assert site_page(settings, root + target) == root + page
    for target in (
        "//evil.example", "https://evil.example/", "/\\evil.example", "evil", "/account/logout",
        "/api/v1/repos", "/feed.xml", "/../x/y", "/ann//story", "/ann\r\nX: 1", "/ANN",
        "javascript:alert(1)",
    ):  # fmt: skip
        assert site_page(settings, root + target) is None


def test_people_get_in_and_back_to_their_page_and_out(tmp_path: Path):
    settings = settings_in(tmp_path)
    write_small_catalogue(settings.content)
    with serving(settings, "--private", "--trusted-proxy", "127.0.0.1") as server:
        people = People(server)
        visitor = people.visitor()
        page = visitor.get("/bob/sql?from=1.0.0")
        assert page.path == "/account/login" and "This hub is for members" in page.words
        member = sign_up(settings)
        page = visitor.submit(handle=member, password=PASSWORD)
        assert (page.status, page.path) == (200, "/bob/sql")
        assert page.response.url.endswith("?from=1.0.0")
        assert visitor.get("/api/v1/repos").status == 200, "a session reads the API, too"
        compared = "/account/compare/ann/review?to=latest"
        page = visitor.get(compared)
        assert page.status == 200 and "1.0.0 → 1.1.0" in page.words
        page = people.visitor().get(compared)
        assert page.path == "/account/login" and "1.1.0" not in page.words
        assert visitor.get("/account/login?page=//evil.example/x").path == "/account/prompts"
        visitor.get("/account/prompts")
        answer = visitor.session.post(
            f"{server.url}/account/logout", data=visitor.csrf(), allow_redirects=False,
            timeout=DEADLINE_SECONDS,
        )  # fmt: skip
        assert answer.headers["Clear-Site-Data"] == '"cache"'
        assert visitor.get("/bob/sql").path == "/account/login"


def sign_up(settings: Settings) -> str:
    """A member with a password; returns the handle."""
    with Database(settings.state) as database:
        Accounts(database).add_owner("cyd")
        Passwords(database).put("cyd", PASSWORD)
    return "cyd"
