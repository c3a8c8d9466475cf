"""The page of who is signed in, and what was done to the account."""

from flask import Response, request
from wtforms import PasswordField
from wtforms.validators import InputRequired

from builder.errors import RequestError
from publisher.pages.fields import show_errors
from publisher.pages.frame import LOGIN, Frame
from publisher.pages.log_words import browser_name, tell
from publisher.pages.sign_in import NewPasswordForm
from publisher.people.attempts import Attempts
from publisher.people.identities import Identities
from publisher.people.passwords import Passwords, hash_new

EVENTS_SHOWN = 100


class ChangePasswordForm(NewPasswordForm):
    current = PasswordField("Current password", [InputRequired("Give your current password.")])


def add_to(frame: Frame, attempts: Attempts) -> None:
    """Add these pages."""
    passwords = Passwords(frame.database)
    identities = Identities(frame.database)

    def new_form(owner: str, **options: None) -> NewPasswordForm:
        """Who signs in elsewhere, and has no password, needs none to set the first."""
        return (ChangePasswordForm if passwords.has(owner) else NewPasswordForm)(**options)

    def show(owner: str, form: NewPasswordForm, status: int) -> Response:
        session = frame.session()
        return frame.render(
            "security.html",
            status,
            form=form,
            password_set_at=passwords.set_at(owner),
            identities=identities.of(owner),
            sessions=[
                (one, browser_name(one.agent), session is not None and one.id == session.id)
                for one in frame.sessions.of(owner)
            ],
            events=[(event, tell(event)) for event in frame.events.latest(owner, EVENTS_SHOWN)],
            events_shown=EVENTS_SHOWN,
        )

    @frame.view("/security")
    def security(owner: str) -> Response:
        return show(owner, new_form(owner, formdata=None), 200)

    @frame.view("/password", "POST")
    def password(owner: str) -> Response:
        form = new_form(owner)
        if not form.validate_on_submit():
            return show(owner, form, 422)
        address = request.remote_addr or ""
        had_one = isinstance(form, ChangePasswordForm)
        if had_one:
            wait_seconds = attempts.take(owner, address)
            if wait_seconds:
                return frame.refuse(wait_seconds, "Too many wrong passwords")
            if not passwords.verify(owner, form.current.data):
                frame.events.note(owner, "sign_in_failed", address=address)
                form.current.errors = ["This is not your password."]
                return show(owner, form, 422)
            attempts.succeeded(owner, address)
        try:
            # Before the transaction, in which everybody else would wait for the hash.
            password_hash = hash_new(owner, form.password.data)
        except RequestError as error:
            show_errors(form, error, form.password)
            return show(owner, form, 422)
        with frame.database.transaction():
            passwords.put_hash(owner, password_hash)
            kind = "password_changed" if had_one else "password_set"
            frame.events.note(owner, kind, address=address)
            frame.sessions.end_all(owner)
            frame.begin_session(owner)
        told = "Your password is changed. Wherever else you were signed in, you are not any more."
        return frame.redirect("/security", told)

    @frame.view("/sign-out-everywhere", "POST")
    def sign_out_everywhere(owner: str) -> Response:
        frame.sessions.end_all(owner, address=request.remote_addr or "", note=True)
        frame.end_session()
        return frame.redirect(LOGIN, "You are signed out everywhere.")
