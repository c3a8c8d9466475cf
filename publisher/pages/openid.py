"""Signing in with an OpenID provider: buttons beside the password on the pages of ``sign_in``,
and identities on the page Security.

A form that leads to another site is refused by browsers, as our Content-Security-Policy has it,
however many redirects are between. So what is sent with a form is answered by a page that goes on
by itself; where there is nothing to send, a link will do.
"""

from http import HTTPStatus
from typing import Literal

import msgspec
from flask import Response, request, session

from builder import names
from builder.errors import RequestError
from builder.routes import ACCOUNT_URL
from builder.throttle import Throttle, network
from publisher.openid import Begun, Client, Identity
from publisher.pages.fields import show_errors
from publisher.pages.frame import LOGIN, START, Frame, after_login
from publisher.pages.sign_in import (
    TOO_MANY_SIGNUPS,
    InvitationForm,
    SignUpForm,
    welcome_back,
)
from publisher.people.attempts import Attempts
from publisher.people.identities import Identities
from publisher.people.invitations import Invitations, parse_code
from publisher.people.signup import sign_up_identity
from publisher.provider import Provider

CALLBACK = "/openid/callback"
# Sign-ins that begin, and answers from the provider, a minute and address: each may make the hub
# ask the provider.
START_LIMIT = ANSWER_LIMIT = 30

_SECURITY = "/security"
_KEPT = "openid"


class _Way(msgspec.Struct):
    """What is kept in the visitor's cookie of a sign-in that is under way. It gives no rights:
    ``given``, where to go on, the code of an invitation or the handle wanted, is looked at like
    anything that a visitor sends.
    """

    begun: Begun
    to: Literal["login", "connect", "invitation", "signup"]
    given: str = ""


def add_to(
    frame: Frame, attempts: Attempts, provider: Provider | None, *, open_signup: bool
) -> None:
    """Add these pages; without a provider, only the one that removes what is left of another."""
    identities = Identities(frame.database)

    @frame.view("/openid/remove", "POST")
    def remove(owner: str) -> Response:
        issuer = request.form.get("issuer", "")
        if not identities.remove(owner, issuer, address=_address()):
            raise RequestError(
                "not_found", "You do not sign in that way. Open the page Security again."
            )
        return frame.redirect(_SECURITY, f"Removed: nobody signs in here with {issuer} as you.")

    if provider is None:
        return
    name = provider.name
    invitations = Invitations(frame.database)
    client = Client(provider, frame.settings.base_url + ACCOUNT_URL + CALLBACK)
    starts, answers = Throttle(START_LIMIT, "openid"), Throttle(ANSWER_LIMIT, "openid")

    def refusal(counted: Throttle) -> Response | None:
        wait_seconds = counted.hit(network(_address()))
        if not wait_seconds:
            return None
        return frame.refuse(wait_seconds, f"Too many sign-ins with {name} from your address")

    # There

    def begin(to: str, given: str = "") -> str:
        """Where the visitor signs in; what is needed afterwards is in the cookie then."""
        url, begun = client.begin()
        session[_KEPT] = msgspec.to_builtins(_Way(begun, to, given))
        return url

    def go_on(to: str, given: str = "") -> Response:
        return refusal(starts) or frame.render("openid_go.html", there=begin(to, given))

    @frame.view("/openid", is_open=True)
    def start() -> Response:
        onwards = after_login(request.args.get("next"))
        if frame.signed_in():
            return frame.redirect(onwards)
        refused = refusal(starts)
        if refused:
            return refused
        return Response(status=HTTPStatus.SEE_OTHER, headers={"Location": begin("login", onwards)})

    @frame.view("/openid/connect", "POST")
    def connect(owner: str) -> Response:
        return go_on("connect")

    @frame.view("/openid/invitation", "POST", is_open=True)
    def invitation() -> Response:
        form = InvitationForm()
        if form.code.validate(form):
            try:
                invitations.look(form.code.data)
            except RequestError as error:
                show_errors(form, error, form.code)
            else:
                return go_on("invitation", ".".join(parse_code(form.code.data)))
        return frame.render("invitation.html", frame.status_of(form), form=form)

    # And back

    @frame.view(CALLBACK, is_open=True)
    def callback() -> Response:
        way = _kept_way()
        if way is None or way.to not in finishes:
            raise RequestError(
                "invalid_parameter",
                f"This answers no sign-in with {name} that is under way in this browser: each is "
                "good once, and a new one ends the one before. Begin again.",
            )
        refused = refusal(answers)
        if refused:
            return refused
        identity = client.finish(way.begun, request.args)
        return finishes[way.to](identity, way.given)

    def finish_login(identity: Identity, onwards: str) -> Response:
        owner = identities.find(*identity)
        if owner is None:
            return frame.render("openid_unknown.html", HTTPStatus.FORBIDDEN)
        frame.begin_session(owner)
        return frame.redirect(after_login(onwards))

    def finish_connect(identity: Identity, _: str) -> Response:
        owner = frame.signed_in()
        if owner is None:
            return frame.redirect(LOGIN, "You were signed out meanwhile. Sign in, and begin again.")
        identities.add(owner, *identity, address=_address())
        return frame.redirect(_SECURITY, f"From now on you can sign in with {name}, too.")

    def finish_invitation(identity: Identity, code: str) -> Response:
        owner = invitations.accept_identity(code, *identity, address=_address())
        frame.begin_session(owner)
        told = f"Welcome, {owner}. You sign in with {name}."
        return welcome_back(frame, owner, told, tuple(identity))

    finishes = {
        "login": finish_login,
        "connect": finish_connect,
        "invitation": finish_invitation,
    }

    if not open_signup:
        return

    @frame.view("/openid/signup", "POST", is_open=True)
    def signup() -> Response:
        form = SignUpForm()
        if form.handle.validate(form):
            handle = form.handle.data.strip()
            try:
                names.check_new_owner(handle)
            except RequestError as error:
                show_errors(form, error, form.handle)
            else:
                return go_on("signup", handle)
        return frame.render("signup.html", frame.status_of(form), form=form)

    def finish_signup(identity: Identity, handle: str) -> Response:
        address = _address()
        wait_seconds = attempts.take_signup(address)
        if wait_seconds:
            return frame.refuse(wait_seconds, TOO_MANY_SIGNUPS)
        try:
            sign_up_identity(
                frame.database, frame.settings.content, handle, *identity, address=address
            )
        except RequestError as error:
            wait_seconds = attempts.signup_failed(address)
            if wait_seconds:
                return frame.refuse(wait_seconds, TOO_MANY_SIGNUPS)
            form = SignUpForm(handle=handle)
            show_errors(form, error, form.handle)
            return frame.render("signup.html", frame.status_of(form), form=form)
        frame.begin_session(handle)
        return frame.redirect(START, f"Welcome, {handle}. You sign in with {name}.")

    finishes["signup"] = finish_signup


def _kept_way() -> _Way | None:
    """The sign-in that this request answers, which is forgotten: an answer is good once."""
    try:
        way = msgspec.convert(session.get(_KEPT), _Way)
    except msgspec.ValidationError:
        return None  # none, or what a visitor has made up
    # Somebody else's link must not end what the visitor has begun.
    if request.args.get("state") != way.begun.state:
        return None
    del session[_KEPT]
    return way


def _address() -> str:
    return request.remote_addr or ""
