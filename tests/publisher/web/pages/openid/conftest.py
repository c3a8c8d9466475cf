"""Hubs with sign-in by an OpenID provider, and users who sign in there."""

import contextlib
import html
import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from builder.model.service_urls import ACCOUNT_URL
from publisher.accounts.database import Database
from publisher.accounts.people.invitations import Invitations
from publisher.web.pages.openid import CALLBACK
from tests.publisher.web.pages.conftest import PASSWORD, Visitor
from tests.publisher.web.pages.conftest import Page as Shown
from tests.publisher.web.pages.openid.provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    NAME,
    FakeProvider,
    fake_provider,
    real_provider,
)
from tests.publisher.web.pages.test_sign_in import cookie_with
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import DEADLINE_SECONDS, Server, free_port, running, serve_command

START = f"{ACCOUNT_URL}/openid"
BACK = ACCOUNT_URL + CALLBACK

numbers = count(1)
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
        """Sign in at the provider; returns the URL back to the hub, which is not opened yet."""
        answer = self.session.post(
            self.page.response.url,
            data={"user": name},
            timeout=DEADLINE_SECONDS,
            allow_redirects=False,
        )
        while not answer.headers["Location"].startswith(self.url + BACK):
            answer = self.session.get(
                answer.headers["Location"], timeout=DEADLINE_SECONDS, allow_redirects=False
            )
        return answer.headers["Location"]

    def forget_provider(self) -> None:
        self.session.cookies.clear(domain="localhost.local")

    @property
    def owner(self) -> str | None:
        """The handle of the signed-in user; None without one."""
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
    """A hub without sign-up, and a provider whose answers a test sets."""
    fake.status = 503
    with serving(tmp_path_factory.mktemp("closed"), fake.url, free_port()) as server:
        yield server


def come(hub: Server) -> Traveller:
    number = next(numbers)
    return Traveller(
        hub.url, f"127.60.{number // 250}.{number % 250}", "Mozilla/5.0 (X11; Linux) Firefox/146.0"
    )


def join(hub: Server, handle: str) -> Traveller:
    """A user who has signed up with a password."""
    visitor = come(hub)
    visitor.get("/account/signup")
    page = visitor.submit("/signup", handle=handle, password=PASSWORD)
    assert page.path == "/account/prompts/new", page.words
    return visitor


def join_elsewhere(hub: Server, handle: str, name: str) -> Traveller:
    """A user who has signed up as ``name`` at the provider."""
    visitor = come(hub)
    visitor.get("/account/signup")
    visitor.send("/account/openid/signup", handle=handle)
    page = visitor.sign_in_there(name)
    assert page.path == "/account/prompts/new", page.words
    return visitor


def invite(hub: Server, handle: str) -> str:
    with Database(hub.settings.state) as database:
        return Invitations(database).invite(handle)


def cookie_of(visitor: Visitor) -> str:
    return visitor.session.cookies.get("hub-account", path="/account")


def forge(hub: Server, kept: object) -> Traveller:
    data = json.dumps({"openid": kept}).encode()
    visitor = come(hub)
    visitor.session.headers["Cookie"] = f"hub-account={cookie_with(data)}"
    return visitor
