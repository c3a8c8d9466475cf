"""The frame of all account pages: places, sessions, safety, layout, errors, also those of forms.

No cache, frame or other origin may get these pages. A form is accepted only with the token that the
visitor got with the page (Flask-WTF).
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from flask import Flask, Response, abort, flash, g, get_flashed_messages, request, session
from flask_wtf import FlaskForm
from flask_wtf.csrf import CSRFError, CSRFProtect, generate_csrf
from markupsafe import Markup
from wtforms import Field

from builder.model import names
from builder.model.caching import CACHE_CONTROL
from builder.model.errors import OperatorError, RequestError
from builder.model.matching import match_url
from builder.model.request_bodies import publication_bytes_max
from builder.model.routes import HTML
from builder.model.service_urls import ACCOUNT_URL, LOGIN_URL, is_account_url
from builder.model.settings import Settings
from builder.render.pages import Pages
from publisher.accounts.events import written_by
from publisher.accounts.people.sessions import Session
from publisher.accounts.teams import MAINTAINER, Actor
from publisher.accounts.tokens import format_time
from publisher.outside.private_way import is_loopback, is_private_way
from publisher.service.parts import Service
from server.access import ANY, Access
from server.answer_headers import PAGE_SAFETY, SAFETY
from server.bodies import VISITOR_BYTES_MAX
from server.throttle import Throttle, network

# The places of the account settings, in the order in which they are shown.
PLACES = (
    ("prompts", "My prompts"),
    ("tokens", "Tokens"),
    ("publishers", "Publishers"),
    ("labels", "Labels"),
    ("teams", "Teams"),
    ("profile", "Profile"),
    ("security", "Security"),
)
# Only operators see this one.
PEOPLE = ("people", "People")
LOGIN, START = LOGIN_URL.removeprefix(ACCOUNT_URL), f"/{PLACES[0][0]}"

# Other pages that a sign-in may lead to: those of one prompt, team or person, and of a draft.
_own_page = re.compile(
    rf"/prompts/(?:new|{names.NAME_PATTERN}/{names.NAME_PATTERN}(?:/[a-z]+)?)(?:\?draft=[0-9a-f]{{16}})?"
    rf"|/join|/teams/{names.NAME_PATTERN}|/people(?:/{names.NAME_PATTERN})?"
)

_page_query = re.compile(r"[A-Za-z0-9%=&+:@!$'()*,;~._/-]{1,1000}")

# By status.
HEADINGS = {
    400: "That did not work",
    403: "Not allowed",
    404: "Page not found",
    413: "Too large",
    429: "Wait a moment",
    500: "The hub failed",
    503: "Temporarily unavailable",
}
# Failures of the hub in words for its writers, who see the error itself as the operator's detail.
FAILURES = {
    "internal_error": "The hub could not do this. Wait a moment, then reload the page.",
    "storage_unavailable": (
        "Nothing is saved, because the hub cannot store anything right now. Your text is kept on "
        "the page before this one: go back, and save it later."
    ),
}


# Forms that a person may send a minute: each may write to the disk, and build pages.
CHANGE_LIMIT = 30
# Previews that the editor's script may request a minute. They write nothing.
PREVIEW_LIMIT = 60
# The most parts of an editor's form: seven for each of 200 variables, five for each of 400 files,
# uploads, and its other fields. A larger form is refused.
PARTS_MAX = 4000
# Pages of operators ask for a sign-in that is not older than this.
FRESH_SECONDS = 30 * 60
# At most this many messages wait for the next page; older ones are dropped.
FLASHES_MAX = 5
# The target after a sign-in is kept in a cookie; a longer one is dropped.
TARGET_CHARS_MAX = 1600
_HEADERS = {name.decode().title(): value.decode() for name, value in SAFETY + PAGE_SAFETY} | {
    "Cache-Control": CACHE_CONTROL["none"],
    "Cross-Origin-Opener-Policy": "same-origin",
    # Also for this site's own pages: their addresses may name private things.
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
# Pages to open again after an error.
_RETRIED = {place for place, _ in PLACES} | {"login", "signup", "invitation"}

View = Callable[..., Response]


class Frame:
    """Adds views to an application, and renders their pages. The views work on ``service``."""

    def __init__(self, app: Flask, service: Service) -> None:
        self.service = service
        settings, sign_in = service.settings, service.sign_in
        self._changes = Throttle(CHANGE_LIMIT, "account")
        self._previews = Throttle(PREVIEW_LIMIT, "preview")
        self._access = Access(
            settings.base_url, tuple(origin for origin in sign_in.origins if origin != ANY)
        )
        self._app = app
        self._pages = Pages(settings, f"{app.root_path}/pages/templates")
        # A form is good as long as its visitor's secret. The referrer is not checked, as browsers
        # are asked not to send it: the token is enough.
        app.config |= {
            "WTF_CSRF_CHECK_DEFAULT": False,
            "WTF_CSRF_TIME_LIMIT": None,
            "WTF_CSRF_SSL_STRICT": False,
        }
        self._csrf = CSRFProtect(app)
        app.before_request(self._check_host)
        app.after_request(self._add_headers)

    # Views

    def add(self, path: str, view: View, *methods: str, is_open: bool = False) -> None:
        """Adds a view for a path below the account settings; by default GET.

        The view is called with this frame and the handle of the person who is signed in; other
        visitors are sent to sign in. One that ``is_open`` is for everyone, and gets no handle.
        """

        def guarded(**params: str) -> Response:
            self._check_is_safe()
            request.max_content_length = VISITOR_BYTES_MAX
            self._csrf.protect()
            if is_open:
                with written_by("", self.address):
                    return view(self, **params)
            person = self.signed_in()
            if person is None:
                return self.send_to_login()
            if request.method == "POST":
                self.limit(self._changes.hit(person), "Too many changes to this account")
            with written_by(person, self.address):
                return view(self, person, **params)

        self._add_rule(path, guarded, methods)

    def add_writing(self, path: str, view: View, signed_out: View) -> None:
        """As ``add``, for a page whose form may be as large as a publication.

        No sent form may be lost. So the view itself uses ``is_form_ours`` and
        ``changes_wait_seconds``, and ``signed_out`` gets the forms of signed-out visitors, up to
        the usual size.
        """

        def guarded(**params: str) -> Response:
            self._check_is_safe()
            # Before the body is read: the service does not wait for a stranger's.
            person = self.signed_in()
            bytes_max = publication_bytes_max(self.service.settings.file_bytes)
            bytes_max = VISITOR_BYTES_MAX if person is None else bytes_max
            request.max_content_length = request.max_form_memory_size = bytes_max
            request.max_form_parts = PARTS_MAX
            if person is not None:
                with written_by(person, self.address):
                    return view(self, person, **params)
            return signed_out(self) if request.method == "POST" else self.send_to_login()

        self._add_rule(path, guarded, ("GET", "POST"))

    def add_for_readers(
        self, url: str, view: View, per_minute: int, limit: str, reason: str
    ) -> None:
        """Adds a view for all readers, to which the site's own files lead. It changes nothing, and
        has no form. ``limit`` counts each address, and ``reason`` explains a refusal.
        """
        path = url.removeprefix(ACCOUNT_URL).replace("{", "<").replace("}", ">")
        throttle = Throttle(per_minute, limit)

        def guarded(**params: str) -> Response:
            client = network(self.address)
            self.limit(throttle.hit(client), reason)
            with self.service.work.turn(client, partial(self.limit, reason=reason)):
                return view(self, **params)

        self._add_rule(path, guarded, ("GET",))

    def _add_rule(self, path: str, guarded: View, methods: Sequence[str]) -> None:
        rule, endpoint = ACCOUNT_URL + path, f"account {path}"
        self._app.add_url_rule(rule, endpoint, guarded, methods=methods or ("GET",))

    def is_form_ours(self) -> bool:
        """True if a form was sent from a page that this visitor got in this session."""
        try:
            self._csrf.protect()
        except CSRFError:
            return False
        return True

    def changes_wait_seconds(self, person: str, *, is_preview: bool = False) -> int:
        """Counts one more change of a person, or preview. Returns 0, or the seconds to wait."""
        return (self._previews if is_preview else self._changes).hit(person)

    def act(self, person: str, owner: str, maintains: str = "") -> Actor:
        """Returns the person as the actor for an owner, for this request alone; its page shows the
        owner. ``maintains``: the words for what only maintainers do.

        Raises RequestError ``invalid_name``, ``not_owner``, ``insufficient_scope``.
        """
        actor = self.service.accounts.acting(person, names.check_owner(owner))
        if maintains:
            self.service.rights.check_maintains(actor, maintains)
        self.service.rights.check_has_role(actor)
        g.actor = actor
        return actor

    def chosen(self, person: str, maintains: str = "") -> Actor:
        """As ``act``, for the owner that the query or the form names; by default the person."""
        return self.act(person, request.values.get("owner") or person, maintains)

    def owners(self, *, maintained: bool = False) -> list[str]:
        """Returns the owners for whom the person who is signed in may act, or may do everything;
        the person first.
        """
        person = self.signed_in() or ""
        roles = self.service.teams.of(person)
        return [person, *(team for team in roles if not maintained or roles[team] == MAINTAINER)]

    @property
    def address(self) -> str:
        """The address of the client; empty at a Unix socket."""
        return request.remote_addr or ""

    def signed_in(self) -> str | None:
        """Returns the handle of the owner who is signed in; None without one."""
        found = self.session()
        return found and found.owner

    def session(self) -> Session | None:
        """The visitor's session, if there is one; looked up once a request."""
        if "account_session" not in g:
            secret = session.sent_secret
            g.account_session = self.service.sessions.find(secret) if secret else None
            session.is_signed_in = g.account_session is not None
        return g.account_session

    def is_fresh(self) -> bool:
        """True if the visitor has signed in within FRESH_SECONDS."""
        found = self.session()
        return found is not None and time.time() - found.began_at < FRESH_SECONDS

    def check_is_fresh(self, what: str, path: str = "") -> None:
        """Sends a visitor to sign in again, unless that was within FRESH_SECONDS; from there to
        ``path``, by default the requested page. ``what``: the reason, in words.
        """
        if not self.is_fresh():
            abort(self.send_to_login(f"Sign in again to {what}.", path))

    def may_skip_login(self, target: str) -> bool:
        """True for a visitor who is signed in, and need not sign in again for this target."""
        is_again = unquote(target).startswith((f"next=/{PEOPLE[0]}", "next=/security"))
        return self.signed_in() is not None and (self.is_fresh() or not is_again)

    def begin_session(self, owner: str, seconds: int | None = None) -> None:
        """Signs a visitor in, for ``seconds`` at most, with a new secret that no one has seen
        before.
        """
        self._forget_session()
        agent = request.headers.get("User-Agent", "")
        self.service.sessions.begin(
            owner, session.renew(), address=self.address, agent=agent, seconds=seconds
        )
        self.service.attempts.note_person(owner, self.address)
        session.is_signed_in = True

    def end_session(self) -> None:
        """Signs the visitor out, if signed in."""
        self._forget_session()
        session.renew()

    def _forget_session(self) -> None:
        if session.sent_secret:
            self.service.sessions.end(session.sent_secret)
        g.account_session = None

    def _check_host(self) -> None:
        host = request.headers.get("Host", "").encode("latin-1", "replace")
        if is_account_url(request.path) and not self._access.serves(host):
            raise RequestError(
                "insufficient_scope",
                "Your account is not available under this host name. Open "
                f"{self.service.settings.base_url}{ACCOUNT_URL} instead. The operator can allow "
                "this name with --mcp-origin.",
            )

    def _check_is_safe(self) -> None:
        base_url = self.service.settings.base_url
        # With http, only requests from this machine itself are private.
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
        """Returns the URL, without host, of a path below the account settings."""
        return self.service.settings.base_path + ACCOUNT_URL + path

    def owned(self, path: str) -> str:
        """Returns a path below the account settings for the chosen owner, whom it names."""
        actor = g.get("actor")
        if not actor or actor.owner == actor.name:
            return path
        path, mark, fragment = path.partition("#")
        joint = "&" if "?" in path else "?"
        return f"{path}{joint}owner={actor.owner}{mark}{fragment}"

    def redirect(self, path: str, message: str = "") -> Response:
        """Redirects to another page, which shows the message ``message``."""
        if message:
            flash(message)
            session["_flashes"] = session["_flashes"][-FLASHES_MAX:]
        return go_to(self.url(path))

    def requested_target(self) -> str:
        """Returns the target that the URL of a sign-in names; see ``open_target``."""
        query = request.query_string.decode("latin-1")
        is_known = query.startswith(("page=", "next=")) and len(query) <= TARGET_CHARS_MAX
        return query if is_known else ""

    def open_target(self, target: str) -> Response:
        """Redirects to the target of a sign-in: a page of the site (``page=`` and all that
        follows), or an account page (``next=``). Nowhere else, whatever a link names.
        """
        page = site_page(self.service.settings, target.removeprefix("page="))
        if target.startswith("page=") and page:
            return go_to(page)
        return self.redirect(after_login(unquote(target.removeprefix("next="))))

    def render(self, template: str, status: int = HTTPStatus.OK, **values: Any) -> Response:
        """Returns a page from a template of this package. ``place``: the one of PLACES to which the
        page belongs, where its URL does not say so. Focuses the first field with an error.
        """
        for form in values.values():
            if isinstance(form, FlaskForm) and form.errors:
                wrong = next(field for field in form if field.errors)
                wrong.render_kw = {"autofocus": True}
        return self._render(template, status, person=self.signed_in(), **values)

    def _render(self, template: str, status: int, **values: Any) -> Response:
        actor, found = g.get("actor"), g.get("account_session")
        common = {
            "owner": actor.owner if actor else values["person"],
            "actor": actor,
            "maintains": not actor or actor.role == MAINTAINER,
            "only_maintainers": self._only_maintainers,
            "owners": self.owners,
            "owned": lambda path: self.url(self.owned(path)),
            "account": self.url,
            "places": (*PLACES, PEOPLE) if found and found.is_operator else PLACES,
            "place": request.path.removeprefix(ACCOUNT_URL).strip("/"),
            "here": self.here(),
            "messages": get_flashed_messages(),
            "csrf": _csrf_field,
            "time": format_time,
            "has_signup": self.service.sign_in.open_signup,
            "openid_signup": self.service.sign_in.openid_signup,
            "openid": self.service.sign_in.openid and self.service.sign_in.openid.name,
        }
        body = self._pages.render(template, **(common | values))
        return Response(body, status, content_type=HTML)

    def _only_maintainers(self, do: str) -> str:
        """Returns a sentence on what only the maintainers of the chosen owner do."""
        return f"Only maintainers {do}: {', '.join(self.service.teams.maintainers(g.actor.owner))}."

    def status_of(self, form: FlaskForm) -> int:
        """Returns the status of a page with a form that was sent, or not yet."""
        return HTTPStatus.UNPROCESSABLE_ENTITY if form.errors else HTTPStatus.OK

    def limit(self, wait_seconds: int, reason: str) -> None:
        """Raises an answer that says how long to wait; 0: does nothing."""
        if not wait_seconds:
            return
        minutes = -(-wait_seconds // 60)
        wait = f"{minutes} minutes" if minutes > 1 else "a minute"
        response = self.error(RequestError("rate_limited", f"{reason}. Try again in {wait}."))
        response.headers["Retry-After"] = str(wait_seconds)
        abort(response)

    def error(self, error: RequestError) -> Response:
        """Returns the page that shows an error."""
        person = None
        # The lookup of the session may be just what failed.
        with contextlib.suppress(RequestError, OperatorError):
            person = self.signed_in()
        title = HEADINGS.get(error.status, HTTPStatus(error.status).phrase)
        first, _, _ = request.path.removeprefix(f"{ACCOUNT_URL}/").partition("/")
        # The page of the form that failed; its own address may accept only POST.
        is_retry = error.status not in (403, 404) and first in _RETRIED
        is_ours = error.code in FAILURES
        is_later = is_ours or error.status == HTTPStatus.TOO_MANY_REQUESTS
        return self._render(
            "error.html",
            error.status,
            person=person,
            title=title,
            message=FAILURES.get(error.code, str(error)),
            detail=f"{error} Request {g.request_id}." if is_ours else "",
            retry=None if is_later else f"/{first}" if is_retry else "",
        )

    def send_to_login(self, message: str = "", path: str = "") -> Response:
        """Redirects to the sign-in, which leads to ``path``, by default the requested page."""
        path = path or self.here()
        query = "" if after_login(path) == START else f"?next={quote(path)}"
        return self.redirect(LOGIN + query, message)

    def here(self) -> str:
        """Returns the requested path below the account settings, with its draft."""
        draft = request.args.get("draft")
        path = request.path.removeprefix(ACCOUNT_URL)
        return f"{path}?draft={draft}" if draft else path

    def _add_headers(self, response: Response) -> Response:
        if is_account_url(request.path):
            response.headers.update(_HEADERS)
        return response


def go_to(url: str) -> Response:
    """Returns a redirect."""
    return Response(status=HTTPStatus.SEE_OTHER, headers={"Location": url})


def _csrf_field() -> Markup:
    """Returns the hidden field that every form has."""
    return Markup('<input type="hidden" name="csrf_token" value="{}">').format(generate_csrf())


def after_login(path: str | None) -> str:
    """Returns the path to open after a sign-in: an account page, whatever a link names."""
    known = {f"/{place}" for place, _ in PLACES}
    return path if path and (path in known or _own_page.fullmatch(path)) else START


def site_page(settings: Settings, target: str) -> str | None:
    """Returns the URL, without host, of a page of the site, from a path and query as in a URL; None
    if the table of pages has no such page. It is rebuilt from the table, so it leads nowhere else.
    """
    path, _, query = target.partition("?")
    found = match_url(unquote(path).removeprefix(settings.base_path) or "/")
    if found is None or found.route.media != HTML:
        return None
    url = settings.base_path + found.url
    return f"{url}?{query}" if _page_query.fullmatch(query) else url


def stripped(text: str | None) -> str:
    """Returns the text of a field without the white space at its ends; a filter of fields.

    A browser sends a line break as two characters.
    """
    return (text or "").replace("\r\n", "\n").strip()


@contextlib.contextmanager
def errors_shown(form: FlaskForm, otherwise: Field) -> Iterator[None]:
    """Shows a RequestError that the block raises, as ``show_errors`` does, and continues after
    it.
    """
    try:
        yield
    except RequestError as error:
        show_errors(form, error, otherwise)


def show_errors(form: FlaskForm, error: RequestError, otherwise: Field) -> None:
    """Shows an error at the fields that it names; at ``otherwise`` where it names none of these.

    An error that is not a fault of the form is raised again.
    """
    if error.status >= 500:
        raise error
    named = [detail for detail in error.details if detail.field in form]
    for detail in named:
        field = form[detail.field]
        field.errors = [*field.errors, _sentence(detail.message)]
    if not named:
        otherwise.errors = [*otherwise.errors, str(error)]


def _sentence(message: str) -> str:
    """Returns a detail's message, which is written for programs, as a sentence for people."""
    return message if message.endswith(".") else f"{message[:1].upper()}{message[1:]}."
