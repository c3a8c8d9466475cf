"""Signing in and out, signing up, and accepting an invitation."""

from flask import Response, request
from flask_wtf import FlaskForm
from wtforms import PasswordField, StringField
from wtforms.validators import InputRequired, Length

from builder.model.errors import RequestError
from builder.model.names import OWNER_CHARS_MAX
from builder.model.service_urls import ACCOUNT_URL
from publisher.accounts.people.attempts import FAILED_SIGN_INS
from publisher.accounts.people.invitations import INVITATION_URL
from publisher.accounts.people.passwords import PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN
from publisher.accounts.people.signup import sign_up
from publisher.web.pages.frame import LOGIN, START, Frame, errors_shown, show_errors, stripped
from publisher.web.pages.repos import repos_of

WRONG = (
    "Wrong handle or password. Try again, or ask the operator for an invitation to set a new "
    "password."
)
TOO_MANY_SIGNUPS = "Too many sign-ups from your address"


class LoginForm(FlaskForm):
    handle = StringField(
        "Handle",
        [InputRequired("Enter your handle.")],
        description="The first part of your prompts' addresses, such as ada.",
    )
    password = PasswordField("Password", [InputRequired("Enter your password.")])


class NewPasswordForm(FlaskForm):
    password = PasswordField(
        "Password",
        [InputRequired("Choose a password."), Length(max=PASSWORD_CHARS_MAX)],
        description=f"At least {PASSWORD_CHARS_MIN} characters. Use a few unusual words, or a "
        "password manager.",
    )


class InvitationForm(NewPasswordForm):
    code = StringField(
        "Invitation code",
        [InputRequired("Enter the code.")],
        description="The part of your link after #, or the whole link.",
    )


class SignUpForm(NewPasswordForm):
    handle = StringField(
        "Handle",
        [InputRequired("Choose a handle.")],
        filters=[stripped],
        description=f"Up to {OWNER_CHARS_MAX} characters: a-z, 0-9 and single hyphens. It is part "
        "of the address of your prompts and cannot be changed.",
    )


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    frame.add("", account)
    frame.add("/", with_slash, is_open=True)
    frame.add(LOGIN, login, "GET", "POST", is_open=True)
    frame.add("/logout", logout, "POST", is_open=True)
    frame.add(INVITATION_URL.removeprefix(ACCOUNT_URL), invitation, "GET", "POST", is_open=True)
    if frame.service.sign_in.open_signup:
        frame.add("/signup", signup, "GET", "POST", is_open=True)


def account(frame: Frame, owner: str) -> Response:
    return frame.redirect(START)


def with_slash(frame: Frame) -> Response:
    return frame.redirect("")


def login(frame: Frame) -> Response:
    target = frame.requested_target()
    if request.method == "GET" and frame.may_skip_login(target):
        return frame.open_target(target)
    form = LoginForm()
    if not form.validate_on_submit():
        return _show_login(frame, form, target)
    # Handles have no capitals, but phones capitalise the first letter.
    handle, address = form.handle.data.strip().lower(), frame.address
    verified = verify(frame, handle, form.password.data, "Too many failed sign-ins")
    if verified and _begin_if_still(frame, handle, verified):
        frame.service.attempts.succeeded(handle, address)
        return frame.open_target(target)
    form.password.errors = [WRONG]
    response = _show_login(frame, form, target)
    # Written after the answer: only known handles have a log, so the time of the answer would
    # reveal them.
    response.call_on_close(lambda: _note_failure(frame, handle, address))
    return response


def _show_login(frame: Frame, form: LoginForm, target: str) -> Response:
    has_people = frame.service.accounts.has_people()
    status = frame.status_of(form)
    return frame.render("login.html", status, form=form, target=target, has_people=has_people)


def verify(frame: Frame, handle: str, password: str, reason: str) -> str | None:
    """As ``Passwords.verify``, counted as one more attempt. ``reason`` goes to a client with too
    many.

    Raises RequestError; an attempt whose password was not checked does not count.
    """
    address = frame.address
    frame.limit(frame.service.attempts.take(handle, address), reason)
    try:
        verified = frame.service.passwords.verify(handle, password)
    except RequestError:
        frame.service.attempts.give_back(handle, address)
        raise
    if not verified:
        FAILED_SIGN_INS.count("password")
    return verified


def _begin_if_still(frame: Frame, handle: str, verified: str) -> bool:
    """Signs in, unless the password changed while it was verified: that ended all sessions, and
    this one would outlive it.
    """
    with frame.service.database.transaction():
        is_still = frame.service.passwords.is_still(handle, verified)
        if is_still:
            frame.begin_session(handle)
    return is_still


def _note_failure(frame: Frame, handle: str, address: str) -> None:
    if frame.service.accounts.is_known(handle):
        frame.service.events.note(handle, "sign_in_failed", address=address)


def logout(frame: Frame) -> Response:
    frame.end_session()
    response = frame.redirect(LOGIN, "You are signed out.")
    if frame.service.settings.private:
        # The next user of this browser must not find pages that only members read.
        response.headers["Clear-Site-Data"] = '"cache"'
    return response


def invitation(frame: Frame) -> Response:
    form = InvitationForm()
    if form.validate_on_submit():
        code, password = form.code.data, form.password.data
        with errors_shown(form, form.code):
            owner = frame.service.invitations.accept(code, password)
            frame.begin_session(owner)
            return welcome_back(frame, owner, f"Welcome, {owner}. Your password is set.")
    return frame.render("invitation.html", frame.status_of(form), form=form)


def signup(frame: Frame) -> Response:
    form = SignUpForm()
    if form.validate_on_submit():
        address = frame.address
        handle = form.handle.data
        frame.limit(frame.service.attempts.take_signup(address), TOO_MANY_SIGNUPS)
        try:
            sign_up(
                frame.service.database, frame.service.settings.content, handle, form.password.data
            )
        except RequestError as error:
            frame.limit(frame.service.attempts.signup_failed(address), TOO_MANY_SIGNUPS)
            show_errors(form, error, form.handle)
        else:
            frame.begin_session(handle)
            return welcome(frame, handle, f"Welcome, {handle}.")
    return frame.render("signup.html", frame.status_of(form), form=form)


def welcome(frame: Frame, owner: str, message: str) -> Response:
    """Redirects an owner without prompts to the editor. Members of a private hub may have come to
    read.
    """
    if frame.service.settings.private or repos_of(frame.service.settings, owner):
        return frame.redirect(START, message)
    first = "Write your first prompt: a title and a text are enough."
    return frame.redirect("/prompts/new", f"{message} {first}")


def welcome_back(frame: Frame, owner: str, message: str, new: tuple[str, ...] = ()) -> Response:
    """Redirects to the target of an invitation. An owner who returns to an account is sent to what
    an intruder may have left there. ``new``: the identity (issuer, subject) that the invitation
    added.
    """
    service = frame.service
    left = (
        ("tokens", [one for one in service.accounts.tokens(owner) if one.state() == "active"]),
        ("trusted publishers", service.trusted.of(owner)),
        (
            "accounts at sign-in providers",
            [one for one in service.identities.of(owner) if one[:2] != new],
        ),
    )
    counts = ", ".join(f"{name} ({len(found)})" for name, found in left if found)
    if not counts:
        return welcome(frame, owner, message)
    return frame.redirect(
        "/security#recovery",
        f"{message} These still work: {counts}. Check them, and revoke or remove what you do not "
        "recognize.",
    )
