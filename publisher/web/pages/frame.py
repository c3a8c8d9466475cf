"""What all account pages have in common: who is signed in, safety, the look, errors.

Nothing of these pages may be kept by caches, put into frames or read by other origins. A form is
taken only with the token that the visitor got with the page (Flask-WTF).
"""

import contextlib
import re
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from flask import Flask, Response, abort, flash, g, get_flashed_messages, request, session
from flask_wtf import FlaskForm
from flask_wtf.csrf import CSRFError, CSRFProtect, generate_csrf
from markupsafe import Markup

from builder.model import names
from builder.model.answer_headers import PAGE_SAFETY, SAFETY, WINDOW_SECONDS
from builder.model.errors import OperatorError, RequestError
from builder.model.names import NAME_PATTERN
from builder.model.routes import (
    ACCOUNT_URL,
    CACHE_CONTROL,
    HTML,
    LOGIN_URL,
    is_account_url,
    match_url,
)
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from builder.render.pages import Pages
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.people.attempts import Attempts
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Session, Sessions
from publisher.accounts.tokens import Accounts, format_time
from publisher.limits import Limits
from publisher.openid.provider import SignIn
from publisher.outside.private_way import is_loopback, is_private_way
from publisher.trusted.publishers import TrustedPublishers
from publisher.write.idempotency import KEPT_SECONDS, IdempotencyKey
from publisher.write.quotas import QuotaKeeper
from publisher.write.store_protocol import Store
from server.access import ANY, Access
from server.bodies import PUBLICATION_BYTES_MAX, VISITOR_BYTES_MAX
from server.throttle import Throttle

# Forms that an owner sends a minute: each may write to the disk, and build pages.
CHANGE_LIMIT = 30
# For the next page; those of pages that nobody looked at are dropped.
FLASHES_MAX = 5
# Where to go on after a sign-in is kept in a cookie.
ONWARDS_CHARS_MAX = 1600
# The places of the account settings, in the order in which they are shown.
PLACES = (
    ("prompts", "My prompts"),
    ("tokens", "Tokens"),
    ("publishers", "Trusted publishers"),
    ("labels", "Labels"),
    ("profile", "Profile"),
    ("security", "Security"),
)
LOGIN, START = LOGIN_URL.removeprefix(ACCOUNT_URL), f"/{PLACES[0][0]}"

# Other pages that a sign-in may lead to: those of one prompt, and of a saved draft.
_own_page = re.compile(
    rf"/prompts/(?:new|{NAME_PATTERN}/{NAME_PATTERN}(?:/[a-z]+)?)(?:\?draft=[0-9a-f]{{16}})?"
)

_page_query = re.compile(r"[A-Za-z0-9%=&+:@!$'()*,;~._/-]{1,1000}")

_HEADERS = {name.decode().title(): value.decode() for name, value in SAFETY + PAGE_SAFETY} | {
    "Cache-Control": CACHE_CONTROL["none"],
    "Cross-Origin-Opener-Policy": "same-origin",
    # Also of this site's own pages: an address may name what is nobody else's business.
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}

View = Callable[..., Response]


class Frame:
    """Adds views to an application, holds what they work on, and renders their pages.

    ``quotas`` and ``publications`` are the limits of owners; ``publications`` is None without one.
    """

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        rebuilder: Rebuilder,
        database: Database,
        store: Store,
        limits: Limits,
        sign_in: SignIn,
    ) -> None:
        self.settings = settings
        self.rebuilder = rebuilder
        self.database = database
        self.store = store
        self.limits = limits
        self.sign_in = sign_in
        self.quotas = QuotaKeeper(settings.content, limits.quotas)
        self.publications = (
            Throttle(limits.publications, "publish", shared=limits.shared)
            if limits.publications
            else None
        )
        self.accounts = Accounts(database)
        self.events = Events(database)
        self.sessions = Sessions(database)
        self.passwords = Passwords(database)
        self.invitations = Invitations(database)
        self.identities = Identities(database)
        self.trusted = TrustedPublishers(database)
        self.issuers = {issuer.url: issuer for issuer in sign_in.issuers}
        self.attempts = Attempts(shared=limits.shared)
        self._changes = Throttle(CHANGE_LIMIT, "account", shared=limits.shared)
        self._access = Access(
            settings.base_url, tuple(origin for origin in sign_in.origins if origin != ANY)
        )
        self._app = app
        self._pages = Pages(settings, f"{app.root_path}/pages/templates")
        # A form is good as long as its visitor's secret. Where the page came from is not looked at,
        # as browsers are told not to say it: the token tells.
        app.config |= {
            "WTF_CSRF_CHECK_DEFAULT": False,
            "WTF_CSRF_TIME_LIMIT": None,
            "WTF_CSRF_SSL_STRICT": False,
        }
        self._csrf = CSRFProtect(app)
        app.before_request(self._check_host)
        app.after_request(self._add_headers)

    def idempotency_key(self, owner: str, key: str, mark: bytes) -> IdempotencyKey:
        """The key of a publication. More are kept than the limit lets an owner publish in the time
        that answers are kept: a window that began before, and one that ends after, add one.
        """
        kept_max = self.limits.publications * (KEPT_SECONDS // WINDOW_SECONDS + 1)
        return IdempotencyKey(self.database, owner, key, mark, kept_max)

    # Views

    def add(self, path: str, view: View, *methods: str, is_open: bool = False) -> None:
        """Answer requests to a path below the account settings with a view; by default GET.

        It is called with this frame and the owner's handle by those who are signed in; others are
        sent to sign in. One that ``is_open`` is for everybody, and gets no handle.
        """

        def guarded(**params: str) -> Response:
            self._check_is_safe()
            request.max_content_length = VISITOR_BYTES_MAX
            self._csrf.protect()
            if is_open:
                return view(self, **params)
            owner = self.signed_in()
            if owner is None:
                return self._send_to_login()
            if request.method == "POST":
                self.limit(self._changes.hit(owner), "Too many changes to this account")
            return view(self, owner, **params)

        self._add_rule(path, guarded, methods)

    def add_writing(self, path: str, view: View, signed_out: View) -> None:
        """As ``add``, for a page whose form may be as large as a publication. What was sent must
        not be lost: so the view looks at ``is_form_ours`` and ``changes_wait_seconds`` itself, and
        of those who are signed out, ``signed_out`` gets a form that is as small as others.
        """

        def guarded(**params: str) -> Response:
            self._check_is_safe()
            # Before the body is read: a stranger's is not waited for.
            owner = self.signed_in()
            bytes_max = VISITOR_BYTES_MAX if owner is None else PUBLICATION_BYTES_MAX
            request.max_content_length = request.max_form_memory_size = bytes_max
            if owner is not None:
                return view(self, owner, **params)
            return signed_out(self) if request.method == "POST" else self._send_to_login()

        self._add_rule(path, guarded, ("GET", "POST"))

    def _add_rule(self, path: str, guarded: View, methods: Sequence[str]) -> None:
        rule, endpoint = ACCOUNT_URL + path, f"account {path}"
        self._app.add_url_rule(rule, endpoint, guarded, methods=methods or ("GET",))

    def is_form_ours(self) -> bool:
        """Whether a form was sent from a page that this visitor got from us in this session."""
        try:
            self._csrf.protect()
        except CSRFError:
            return False
        return True

    def changes_wait_seconds(self, owner: str) -> int:
        """Count one more change of an owner; how long that one has to wait, or 0."""
        return self._changes.hit(owner)

    @property
    def address(self) -> str:
        """The address of the client; empty at a Unix socket."""
        return request.remote_addr or ""

    def signed_in(self) -> str | None:
        """The handle of the owner who is signed in."""
        found = self.session()
        return found and found.owner

    def session(self) -> Session | None:
        """The visitor's session, if there is one; looked up once a request."""
        if "account_session" not in g:
            secret = session.sent_secret
            g.account_session = self.sessions.find(secret) if secret else None
            session.is_signed_in = g.account_session is not None
        return g.account_session

    def begin_session(self, owner: str) -> None:
        """Sign a visitor in, with a secret that nobody has seen before."""
        self._forget_session()
        agent = request.headers.get("User-Agent", "")
        self.sessions.begin(owner, session.renew(), address=self.address, agent=agent)
        session.is_signed_in = True

    def end_session(self) -> None:
        """Sign the visitor out, if signed in."""
        self._forget_session()
        session.renew()

    def _forget_session(self) -> None:
        if session.sent_secret:
            self.sessions.end(session.sent_secret)
        g.account_session = None

    def _check_host(self) -> None:
        host = request.headers.get("Host", "").encode("latin-1", "replace")
        if is_account_url(request.path) and not self._access.serves(host):
            raise RequestError(
                "insufficient_scope",
                "Your account is not available under this host name. Open "
                f"{self.settings.base_url}{ACCOUNT_URL} instead. The operator can allow this "
                "name with --mcp-origin.",
            )

    def _check_is_safe(self) -> None:
        base_url = self.settings.base_url
        # With http, what is private is this machine's own: not what others send to it.
        is_here = is_loopback(self.address)
        if not is_private_way(base_url) or not (base_url.startswith("https:") or is_here):
            raise RequestError(
                "insufficient_scope",
                f"Accounts are closed: at {base_url}, passwords would travel in clear text. "
                "The operator must serve this hub over https and pass that address with "
                "--base-url.",
            )

    # Answers

    def url(self, path: str = "") -> str:
        """The URL, without host, of a path below the account settings."""
        return self.settings.base_path + ACCOUNT_URL + path

    def redirect(self, path: str, told: str = "") -> Response:
        """To another page, which says what was done."""
        if told:
            flash(told)
            session["_flashes"] = session["_flashes"][-FLASHES_MAX:]
        return _go_to(self.url(path))

    def asked_onwards(self) -> str:
        """What the address of a sign-in says about where to go on; see ``go_on``."""
        query = request.query_string.decode("latin-1")
        is_known = query.startswith(("page=", "next=")) and len(query) <= ONWARDS_CHARS_MAX
        return query if is_known else ""

    def go_on(self, asked: str) -> Response:
        """To where a sign-in leads: a page of the site (``page=`` and all that follows), or one of
        our own places (``next=``), whatever a link asks for.
        """
        page = site_page(self.settings, asked.removeprefix("page="))
        if asked.startswith("page=") and page:
            return _go_to(page)
        return self.redirect(after_login(unquote(asked.removeprefix("next="))))

    def render(self, template: str, status: int = HTTPStatus.OK, **values: Any) -> Response:
        """A page from a template of this package. ``place``: below which of PLACES it stands, where
        its address does not tell.
        """
        return self._render(template, status, owner=self.signed_in(), **values)

    def _render(self, template: str, status: int, **values: Any) -> Response:
        common = {
            "account": self.url,
            "places": PLACES,
            "place": request.path.removeprefix(ACCOUNT_URL).strip("/"),
            "here": self.here(),
            "told": get_flashed_messages(),
            "csrf": _csrf_field,
            "time": format_time,
            "has_signup": self.sign_in.open_signup,
            "openid": self.sign_in.openid and self.sign_in.openid.name,
        }
        body = self._pages.render(template, **(common | values))
        return Response(body, status, content_type=HTML)

    def status_of(self, form: FlaskForm) -> int:
        """The status of a page with a form that was sent, or not yet."""
        return HTTPStatus.UNPROCESSABLE_ENTITY if form.errors else HTTPStatus.OK

    def limit(self, wait_seconds: int, reason: str) -> None:
        """Answer those who have to wait with a page that says so; 0: nobody has to."""
        if not wait_seconds:
            return
        minutes = -(-wait_seconds // 60)
        wait = f"{minutes} minutes" if minutes > 1 else "a minute"
        response = self.error(RequestError("rate_limited", f"{reason}. Try again in {wait}."))
        response.headers["Retry-After"] = str(wait_seconds)
        abort(response)

    def error(self, error: RequestError) -> Response:
        """The page that tells what went wrong."""
        owner = None
        # Whose session it is may be just what cannot be found out.
        with contextlib.suppress(RequestError, OperatorError):
            owner = self.signed_in()
        title = HTTPStatus(error.status).phrase
        return self._render(
            "error.html", error.status, owner=owner, title=title, message=str(error)
        )

    def _send_to_login(self) -> Response:
        path = f"{LOGIN}?next={quote(self.here())}"
        return self.redirect(LOGIN if after_login(self.here()) == START else path)

    def here(self) -> str:
        """The page that was asked for, below the account settings, with its draft."""
        draft = request.args.get("draft")
        path = request.path.removeprefix(ACCOUNT_URL)
        return f"{path}?draft={draft}" if draft else path

    def _add_headers(self, response: Response) -> Response:
        if is_account_url(request.path):
            response.headers.update(_HEADERS)
        return response


def after_login(path: str | None) -> str:
    """Where to go on after a sign-in: one of our own places, whatever a link asks for."""
    known = {f"/{place}" for place, _ in PLACES}
    return path if path and (path in known or _own_page.fullmatch(path)) else START


def site_page(settings: Settings, asked: str) -> str | None:
    """The URL, without host, of a page of the site, by a path and query as they stand in a URL;
    None where the table has no such page. Made anew from the table, so it leads nowhere else.
    """
    path, _, query = asked.partition("?")
    found = match_url(unquote(path).removeprefix(settings.base_path) or "/")
    if found is None or found.route.media != HTML:
        return None
    url = settings.base_path + found.url
    return f"{url}?{query}" if _page_query.fullmatch(query) else url


def _go_to(url: str) -> Response:
    return Response(status=HTTPStatus.SEE_OTHER, headers={"Location": url})


def check_owner(owner: str, whose: str) -> None:
    """Raises RequestError ``not_owner`` for pages of somebody else's prompt, ``invalid_name``."""
    if whose != owner:
        names.check_owner(whose)
        raise RequestError(
            "not_owner",
            f"This prompt belongs to {whose}, and you are signed in as {owner}. You can change "
            "your own prompts only: open one under My prompts.",
        )


def _csrf_field() -> Markup:
    """What every form has in it."""
    return Markup('<input type="hidden" name="csrf_token" value="{}">').format(generate_csrf())
