"""Signing in with an OpenID provider: buttons beside the password on the pages of ``sign_in``, and
identities on the page Security.

Our Content-Security-Policy (``form-action``) makes browsers refuse a form that leads to another
site, through any number of redirects. So the answer to a form is a page that continues by itself;
where there is nothing to send, a link is enough.
"""

from http import HTTPStatus
from typing import Literal

import msgspec
from flask import Response, request, session

from builder.model import names
from builder.model.errors import RequestError
from builder.model.service_urls import ACCOUNT_URL
from publisher.accounts.people.attempts import FAILED_SIGN_INS
from publisher.accounts.people.invitations import parse_code
from publisher.accounts.people.sessions import PROVIDER_SECONDS
from publisher.accounts.people.signup import propose_handle, sign_up_identity
from publisher.openid.client import Begun, Client, Identity
from publisher.openid.provider import Provider
from publisher.web.pages.frame import LOGIN, Frame, errors_shown, show_errors
from publisher.web.pages.sign_in import (
    TOO_MANY_SIGNUPS,
    InvitationForm,
    SignUpForm,
    welcome,
    welcome_back,
)
from server.throttle import Throttle, network

CALLBACK = "/openid/callback"
# Sign-ins that begin, and answers from the provider, a minute and address: each may make the hub
# send a request to the provider. Beyond that, the visitor has to wait. Colleagues share an address.
START_LIMIT = ANSWER_LIMIT = 100

_SECURITY = "/security"
_KEPT = "openid"


class _Way(msgspec.Struct):
    """The sign-in that is under way, in the visitor's cookie. It gives no rights: ``given`` (the
    target, the code of an invitation or the handle wanted) is checked like anything that a visitor
    sends.
    """

    begun: Begun
    to: Literal["login", "connect", "invitation", "signup"]
    given: str = ""


def add_to(frame: Frame, provider: Provider) -> None:
    """Adds these pages."""
    views = _OpenID(frame, provider)
    frame.add("/openid", views.start, is_open=True)
    frame.add("/openid/connect", views.connect, "POST")
    frame.add("/openid/invitation", views.invitation, "POST", is_open=True)
    frame.add(CALLBACK, views.callback, is_open=True)
    if _may_sign_up(frame):
        frame.add("/openid/signup", views.signup, "POST", is_open=True)


def _may_sign_up(frame: Frame) -> bool:
    return frame.service.sign_in.open_signup or frame.service.sign_in.openid_signup


class _OpenID:
    """The views that use a provider."""

    def __init__(self, frame: Frame, provider: Provider) -> None:
        self._name = provider.name
        wants_names = frame.service.sign_in.openid_signup
        url = frame.service.settings.base_url + ACCOUNT_URL + CALLBACK
        self._client = Client(provider, url, wants_names=wants_names)
        self._starts = Throttle(START_LIMIT, "openid")
        self._answers = Throttle(ANSWER_LIMIT, "openid")
        self._finishes = {
            "login": self._finish_login,
            "connect": self._finish_connect,
            "invitation": self._finish_invitation,
        }
        if _may_sign_up(frame):
            self._finishes["signup"] = self._finish_signup

    # To the provider

    def start(self, frame: Frame) -> Response:
        target = frame.requested_target()
        if frame.may_skip_login(target):
            return frame.open_target(target)
        self._limit(frame, self._starts)
        there = self._begin("login", target, again=frame.signed_in() is not None)
        return Response(status=HTTPStatus.SEE_OTHER, headers={"Location": there})

    def connect(self, frame: Frame, owner: str) -> Response:
        frame.check_is_fresh(f"connect {self._name}", _SECURITY)
        return self._continue(frame, "connect")

    def invitation(self, frame: Frame) -> Response:
        form = InvitationForm()
        if form.code.validate(form):
            with errors_shown(form, form.code):
                frame.service.invitations.look(form.code.data)
                return self._continue(frame, "invitation", ".".join(parse_code(form.code.data)))
        return frame.render("invitation.html", frame.status_of(form), form=form)

    def signup(self, frame: Frame) -> Response:
        form = SignUpForm()
        if form.handle.validate(form):
            handle = form.handle.data
            with errors_shown(form, form.handle):
                names.check_new_owner(handle)
                return self._continue(frame, "signup", handle)
        return _show_handle(frame, form)

    def _continue(self, frame: Frame, to: str, given: str = "") -> Response:
        self._limit(frame, self._starts)
        return frame.render("openid_go.html", there=self._begin(to, given))

    def _begin(self, to: str, given: str = "", *, again: bool = False) -> str:
        """Returns the URL at which the visitor signs in; keeps in the cookie what the answer
        needs. ``again``: the provider asks for the password once more.
        """
        url, begun = self._client.begin(again=again)
        session[_KEPT] = msgspec.to_builtins(_Way(begun, to, given))
        return url

    def _limit(self, frame: Frame, throttle: Throttle) -> None:
        wait_seconds = throttle.hit(network(frame.address))
        frame.limit(wait_seconds, f"Too many sign-ins with {self._name} from your address")

    # Back from the provider

    def callback(self, frame: Frame) -> Response:
        way = _kept_way()
        if way is None or way.to not in self._finishes:
            raise RequestError(
                "invalid_parameter",
                f"This does not belong to a sign-in with {self._name} in this browser. Each "
                "sign-in works once, and a new one ends the one before. Start again.",
            )
        self._limit(frame, self._answers)
        try:
            identity, name = self._client.finish(way.begun, request.args)
        except RequestError:
            FAILED_SIGN_INS.count("openid")
            raise
        is_new = frame.service.identities.find(*identity) is None
        if way.to == "login" and frame.service.sign_in.openid_signup and is_new:
            return self._ask_handle(frame, name)
        return self._finishes[way.to](frame, identity, way.given)

    def _ask_handle(self, frame: Frame, name: str) -> Response:
        """Proposes a handle to a person who has no account yet. The answer goes by the provider
        once more: nothing that the browser keeps says who the person is.
        """
        service = frame.service
        handle = propose_handle(service.database, service.settings.content, name)
        return _show_handle(frame, SignUpForm(formdata=None, handle=handle))

    def _finish_login(self, frame: Frame, identity: Identity, target: str) -> Response:
        owner = frame.service.identities.find(*identity)
        if owner is None:
            FAILED_SIGN_INS.count("openid")
            return frame.render("openid_unknown.html", HTTPStatus.FORBIDDEN)
        frame.begin_session(owner, PROVIDER_SECONDS)
        return frame.open_target(target)

    def _finish_connect(self, frame: Frame, identity: Identity, _: str) -> Response:
        owner = frame.signed_in()
        if owner is None:
            return frame.redirect(LOGIN, "You were signed out. Sign in and start again.")
        frame.service.identities.add(owner, *identity)
        return frame.redirect(_SECURITY, f"You can now sign in with {self._name}, too.")

    def _finish_invitation(self, frame: Frame, identity: Identity, code: str) -> Response:
        owner = frame.service.invitations.accept_identity(code, *identity)
        frame.begin_session(owner, PROVIDER_SECONDS)
        message = f"Welcome, {owner}. You sign in with {self._name}."
        return welcome_back(frame, owner, message, tuple(identity))

    def _finish_signup(self, frame: Frame, identity: Identity, handle: str) -> Response:
        address, is_counted = frame.address, not frame.service.sign_in.openid_signup
        if is_counted:
            frame.limit(frame.service.attempts.take_signup(address), TOO_MANY_SIGNUPS)
        try:
            sign_up_identity(
                frame.service.database, frame.service.settings.content, handle, *identity
            )
        except RequestError as error:
            if is_counted:
                frame.limit(frame.service.attempts.signup_failed(address), TOO_MANY_SIGNUPS)
            form = SignUpForm(handle=handle)
            show_errors(form, error, form.handle)
            return _show_handle(frame, form)
        frame.begin_session(handle, PROVIDER_SECONDS)
        return welcome(frame, handle, f"Welcome, {handle}. You sign in with {self._name}.")


def _show_handle(frame: Frame, form: SignUpForm) -> Response:
    """Shows the form for the handle of a new account."""
    template = "signup.html" if frame.service.sign_in.open_signup else "openid_signup.html"
    return frame.render(template, frame.status_of(form), form=form)


def _kept_way() -> _Way | None:
    """Returns the sign-in that this request answers, and forgets it: an answer is good once."""
    try:
        way = msgspec.convert(session.get(_KEPT), _Way)
    except msgspec.ValidationError:
        return None  # none, or one that the visitor has made up
    # Another person's link must not end a sign-in that the visitor has begun.
    if request.args.get("state") != way.begun.state:
        return None
    del session[_KEPT]
    return way
