"""The page of an account's sessions and ways to sign in, and its security log."""

from flask import Response, request
from flask import session as visitor
from wtforms import PasswordField
from wtforms.validators import InputRequired

from builder.model.errors import RequestError
from publisher.accounts.people.passwords import hash_new
from publisher.web.pages.activity import browser_name, read_activity
from publisher.web.pages.frame import LOGIN, Frame, show_errors
from publisher.web.pages.sign_in import NewPasswordForm, verify


class ChangePasswordForm(NewPasswordForm):
    current = PasswordField("Current password", [InputRequired("Enter your current password.")])


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    frame.add("/security", security)
    frame.add("/password", password, "POST")
    frame.add("/sign-out-everywhere", sign_out_everywhere, "POST")
    # For the hub's present provider, and for earlier ones.
    frame.add("/openid/remove", remove_identity, "POST")


def security(frame: Frame, owner: str) -> Response:
    return _show(frame, owner, _new_form(frame, owner, formdata=None), 200)


def password(frame: Frame, owner: str) -> Response:
    form = _new_form(frame, owner)
    if not form.validate_on_submit():
        return _show(frame, owner, form, 422)
    address, verified = frame.address, None
    had_one = isinstance(form, ChangePasswordForm)
    if had_one:
        verified = verify(frame, owner, form.current.data, "Too many wrong passwords")
        if not verified:
            frame.service.events.note(owner, "sign_in_failed")
            form.current.errors = ["Wrong password. Enter your current password."]
            return _show(frame, owner, form, 422)
        frame.service.attempts.succeeded(owner, address)
    else:
        frame.check_is_fresh("set a password", "/security")
    try:
        # Hashed before the transaction: all other writers would wait for it.
        password_hash = hash_new(owner, form.password.data)
    except RequestError as error:
        show_errors(form, error, form.password)
        return _show(frame, owner, form, 422)
    with frame.service.database.transaction():
        # The hash took long: meanwhile the owner may have ended the session of this request.
        is_in = frame.service.sessions.find(visitor.sent_secret) is not None
        if not is_in or not frame.service.passwords.is_still(owner, verified):
            frame.end_session()
            return frame.redirect(LOGIN, "You were signed out. Sign in again.")
        frame.service.passwords.put_hash(owner, password_hash)
        frame.service.invitations.end(owner)
        kind = "password_changed" if had_one else "password_set"
        frame.service.events.note(owner, kind)
        # Without the old password, the session ends when the sign-in that began it says.
        frame.service.sessions.end_all(owner, but=None if had_one else visitor.sent_secret)
        if had_one:
            frame.begin_session(owner)
    message = "Your password is changed, and you are signed out everywhere else."
    return frame.redirect("/security", message)


def sign_out_everywhere(frame: Frame, owner: str) -> Response:
    with frame.service.database.transaction():
        frame.service.invitations.end(owner)
        frame.service.sessions.end_all(owner, note=True)
    frame.end_session()
    return frame.redirect(LOGIN, "You are signed out everywhere.")


def remove_identity(frame: Frame, owner: str) -> Response:
    issuer = request.form.get("issuer", "")
    if not frame.service.identities.remove(owner, issuer):
        raise RequestError(
            "not_found", "You do not sign in this way. Open the Security page again."
        )
    name = frame.service.sign_in.issuer_names.get(issuer, issuer)
    return frame.redirect("/security", f"Removed: {name} no longer signs in to your account.")


def _new_form(frame: Frame, owner: str, **options: None) -> NewPasswordForm:
    """Returns the form for a new password. An owner who has none and signs in elsewhere needs no
    old one.
    """
    return (ChangePasswordForm if frame.service.passwords.has(owner) else NewPasswordForm)(
        **options
    )


def _show(frame: Frame, owner: str, form: NewPasswordForm, status: int) -> Response:
    session = frame.session()
    issuer_names = frame.service.sign_in.issuer_names
    return frame.render(
        "security.html",
        status,
        form=form,
        password_set_at=frame.service.passwords.set_at(owner),
        identities=frame.service.identities.of(owner),
        sessions=frame.service.sessions.of(owner),
        this=session and session.id,
        issuer_names=issuer_names,
        browser_name=browser_name,
        activity=read_activity(frame.service.events, owner, issuer_names),
    )
