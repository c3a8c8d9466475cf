"""A hub with account settings, and people who visit it with browsers that have no window.

visitor = people.member()                       # signed up and signed in
visitor.get("/account/prompts")
page = visitor.submit(name="ci", expires="30")  # the form of that page with these fields
"""

import itertools
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import pytest
import requests
from playwright.sync_api import Browser

from builder.model.service_urls import ACCOUNT_URL, PUBLISH_URL
from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import DEFAULT_ISSUERS
from tests.site.browser import chromium
from tests.support import cheap_hashes
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.issuer import TestIssuer, issuer
from tests.support.servers import DEADLINE_SECONDS, Server, new_session, running, serve_command

PASSWORD = "seven quiet herons over Bergen"
# No two handles made of these look alike.
_LETTERS = "aehkptxy"
_LOGOUT = "/account/logout"
# Elements that separate their text from the words before.
_APART = frozenset(("br", "button", "dd", "dt", "input", "label", "li", "option", "td", "th"))


# The field of an uploaded file, its name and its bytes.
Upload = tuple[str, tuple[str, bytes]]


class Form(NamedTuple):
    """A form as the page has it: ``fields`` are the names and values that a browser would send."""

    action: str
    names: frozenset[str]
    fields: list[tuple[str, str]]


class Page(NamedTuple):
    """An answer. ``path`` is where redirects have led; ``words`` is what one reads in its main
    part, with single spaces; ``html`` all of it.
    """

    status: int
    path: str
    html: str
    words: str
    forms: list[Form]
    response: requests.Response
    cookies: dict[str, str]


class Visitor:
    """A browser with cookies. ``page`` is what it shows; ``handle`` and ``password`` are those of
    its owner, where it has one.
    """

    page: Page

    def __init__(self, url: str, address: str, agent: str) -> None:
        self.url = url
        self.address = address
        self.handle = ""
        self.password = PASSWORD
        self.session = new_session()
        self.session.headers.update({"X-Forwarded-For": address, "User-Agent": agent})

    def get(self, path: str, **options) -> Page:
        """Open a page; redirects are followed."""
        return self._show(
            self.session.get(self.url + path, **{"timeout": DEADLINE_SECONDS} | options)
        )

    def form(self, action: str = "", *names: str) -> Form:
        """The one form of the page whose action ends with ``action``, with fields of ``names``."""
        found = [
            form
            for form in self.page.forms
            if form.action.endswith(action)
            and (action == _LOGOUT or not form.action.endswith(_LOGOUT))
            and form.names.issuperset(names)
        ]
        assert len(found) == 1, f"{len(found)} such forms in:\n{self.page.words}"
        return found[0]

    def submit(self, action: str = "", /, **fields: str | list[str] | None) -> Page:
        """Fill in the form of the page that has these fields, and send it; redirects are followed.

        A field may have several values; None leaves it out. What the form has of itself, as its
        CSRF token, is sent as well.
        """
        form = self.form(action, *fields)
        sent = [(name, value) for name, value in form.fields if name not in fields]
        for name, value in fields.items():
            values = [value] if isinstance(value, str) else value or []
            sent += [(name, one) for one in values]
        return self.post(form.action or self.page.response.url, sent)

    def post(
        self, path: str, fields: list[tuple[str, str]], uploads: Sequence[Upload] = ()
    ) -> Page:
        """Send fields that need not be a form's, and files."""
        url = urljoin(f"{self.url}/", path)
        sent = self.session.post(url, data=fields, files=uploads, timeout=DEADLINE_SECONDS)
        return self._show(sent)

    def csrf(self) -> list[tuple[str, str]]:
        """The CSRF token of the page, as a field to send."""
        found = re.search(r'name="csrf_token" value="([^"]+)"', self.page.html)
        assert found, self.page.words
        return [("csrf_token", found[1])]

    def _show(self, response: requests.Response) -> Page:
        reader = _Reader()
        reader.feed(response.text)
        self.page = Page(
            response.status_code,
            urlsplit(response.url).path,
            response.text,
            " ".join("".join(reader.words).split()),
            [Form(action, frozenset(names), fields) for action, names, fields in reader.forms],
            response,
            self.session.cookies.get_dict(),
        )
        return self.page


class People:
    """A running hub with sign-up, and its visitors, each from an address of their own.

    ``github`` and ``gitlab`` are the issuers whose jobs it may trust, if it trusts any.
    """

    def __init__(
        self, server: Server, github: TestIssuer | None = None, gitlab: TestIssuer | None = None
    ) -> None:
        self.server = server
        self.github = github
        self.gitlab = gitlab
        self.settings: Settings = server.settings
        self.url = server.url
        self._numbers = itertools.count(1)
        self._handles = map("".join, itertools.product(_LETTERS, repeat=3))

    @cached_property
    def database(self) -> Database:
        """The hub's accounts, for as long as the hub runs."""
        return Database(self.settings.state)

    def visitor(self, agent: str = "Mozilla/5.0 (X11; Linux x86_64) Firefox/146.0") -> Visitor:
        """A browser that has never been here."""
        number = next(self._numbers)
        return Visitor(self.url, f"127.51.{number // 250}.{number % 250 + 1}", agent)

    def member(self, handle: str = "", **options: str) -> Visitor:
        """The browser of a user who has just signed up."""
        visitor = self.visitor(**options)
        visitor.handle = handle or f"writer-{next(self._handles)}"
        visitor.get("/account/signup")
        page = visitor.submit(handle=visitor.handle, password=PASSWORD)
        assert (page.status, page.path) == (200, "/account/prompts/new"), page.words
        return visitor

    def guest(self, **options: str) -> Visitor:
        """A browser in which a new owner is signed in, who has no password: it takes no time."""
        visitor = self.visitor(**options)
        visitor.handle = f"writer-{next(self._handles)}"
        secret, now = secrets.token_urlsafe(32), datetime.now(UTC)
        Accounts(self.database).add_owner(visitor.handle, now)
        agent = visitor.session.headers["User-Agent"]
        sessions = Sessions(self.database)
        sessions.begin(visitor.handle, secret, address=visitor.address, agent=agent, now=now)
        visitor.session.cookies.set(
            "hub-account", secret, domain=self.server.host.rpartition("/")[2], path=ACCOUNT_URL
        )
        return visitor

    def publish_story(self, writer: Visitor, *texts: str, **fields: object) -> None:
        """Publish versions of a user's prompt ``story`` over the API."""
        token, _ = Accounts(self.database).create_token(writer.handle, secrets.token_hex(4))
        for text in texts:
            answer = self.publish(token, writer.handle, "story", text, **fields)
            assert answer.status_code == 201, answer.text

    def publish(
        self, token: str, owner: str, name: str, text: str = "Hi.", **fields: object
    ) -> requests.Response:
        """Publish over the API."""
        return self.server.request(
            "POST",
            PUBLISH_URL.format(owner=owner, name=name),
            json={"content": text} | fields,
            headers={"Authorization": f"Bearer {token}"},
        )


@pytest.fixture(autouse=True)
def _hashes(cheap_hashes: None) -> None:
    """Hashes are not the subject of pages: test_whole_way and tests/publisher/accounts have real
    ones.
    """


@pytest.fixture
def writer(people: People) -> Visitor:
    """A signed-in user with the editor open."""
    visitor = people.guest()
    visitor.get("/account/prompts/new")
    return visitor


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """One hub for all tests: each makes the accounts that it needs."""
    with people_in(tmp_path_factory.mktemp("people"), "--open-signup") as people:
        yield people


@contextmanager
def people_in(folder: Path, *more: str) -> Iterator[People]:
    settings = settings_in(folder)
    write_small_catalogue(settings.content)
    # Limits count by address, and the proxy's header has the address.
    with issuer() as github, issuer() as gitlab:
        options = (
            "--trusted-proxy", "127.0.0.1", "--rate-limit", "0",
            "--trusted-issuer", f"github={github.url}", "--trusted-issuer", f"gitlab={gitlab.url}",
            "--trusted-issuer", f"github={DEFAULT_ISSUERS[0].url}",
        )  # fmt: skip
        command = serve_command(settings, *options, *more)[1:]
        with running([sys.executable, cheap_hashes.__file__, *command], settings) as server:
            people = People(server, github, gitlab)
            with people.database:
                yield people


class _Reader(HTMLParser):
    """Reads the forms and the words of a page's main part."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.forms: list[tuple[str, set[str], list[tuple[str, str]]]] = []
        self._is_main = self._is_form = False
        self._select: str | None = None
        self._options: list[tuple[str, bool]] = []
        self._textarea: str | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attributes}
        if tag in _APART:
            self.handle_data(" ")
        if tag == "main":
            self._is_main = True
        elif tag == "form" and self._is_main:
            self._is_form = True
            self.forms.append((of.get("action", ""), set(), []))
        elif tag == "input" and self._is_form:
            is_box = of.get("type") in ("checkbox", "radio")
            value = of.get("value", "on" if is_box else "")
            self._add(of.get("name", ""), value, is_sent=not is_box or "checked" in of)
        elif tag == "textarea" and self._is_form:
            self._textarea, self._text = of.get("name"), ""
        elif tag == "select" and self._is_form:
            self._select, self._options = of.get("name"), []
        elif tag == "option" and self._select is not None:
            self._options.append((of.get("value", ""), "selected" in of))

    def handle_endtag(self, tag: str) -> None:
        if tag == "main":
            self._is_main = False
        elif tag == "form":
            self._is_form = False
        elif tag == "textarea" and self._textarea is not None:
            # Browsers drop the line end that stands at the start.
            self._add(self._textarea, self._text.replace("\r\n", "\n").removeprefix("\n"))
            self._textarea = None
        elif tag == "select" and self._select is not None:
            chosen = [value for value, is_selected in self._options if is_selected]
            chosen = chosen or [value for value, _ in self._options[:1]]
            for value in chosen or [""]:
                self._add(self._select, value, is_sent=bool(chosen))
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self._text += data
        if self._is_main:
            self.words.append(data)

    def _add(self, name: str, value: str, *, is_sent: bool = True) -> None:
        if name:
            _, names, fields = self.forms[-1]
            names.add(name)
            if is_sent:
                fields.append((name, value))


@pytest.fixture
def owner(people: People) -> Visitor:
    """A user who has just signed up; modules put one of their own in their place."""
    return people.guest()


@pytest.fixture(scope="package")
def browser(installed_tools: None) -> Iterator[Browser]:
    with chromium() as running:
        yield running
