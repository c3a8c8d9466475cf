"""The pages on which operators invite people, lock them, and end what they can do.

They ask for a sign-in of the last half hour, so an operator signs in again to open them.
"""

from flask import Response, g, request
from flask_wtf import FlaskForm
from wtforms import SelectField, TextAreaField
from wtforms.validators import DataRequired

from builder.model.errors import Detail, OperatorError, RequestError, validation_failed
from builder.model.plural import counted
from builder.model.records import DAY_SECONDS
from publisher.accounts.owners import ways_to_sign_in
from publisher.accounts.people import locks
from publisher.accounts.people.invitations import INVITATION_DAYS_MAX, invitation_link
from publisher.web.pages.frame import Frame, errors_shown

# The people on a page, and the most that are invited at once.
SHOWN_MAX = INVITED_MAX = 100
_DAYS = (1, 7, INVITATION_DAYS_MAX)


class InviteForm(FlaskForm):
    handles = TextAreaField(
        "Handles",
        [DataRequired("Enter at least one handle.")],
        description="Separate handles with spaces, commas or lines. A person who has an account "
        "gets a link that sets a new password.",
    )
    days = SelectField(
        "Links work for", coerce=int, choices=[(n, counted(n, "day")) for n in _DAYS]
    )


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    frame.add("/people", people, "GET", "POST")
    frame.add("/people/<whom>", one, "GET", "POST")


def people(frame: Frame, person: str) -> Response:
    """Lists people by handle, and invites several."""
    _check(frame)
    form = InviteForm()
    if form.validate_on_submit():
        with errors_shown(form, form.handles):
            return _invite(frame, form)
    after, words = request.args.get("after", ""), request.args.get("q", "").strip()
    everyone = [one for one in frame.service.accounts.owners() if one.kind == "person"]
    found = [one for one in everyone if one.handle > after and words in one.handle]
    return frame.render(
        "people.html",
        frame.status_of(form),
        form=form,
        people=found[:SHOWN_MAX],
        more=found[SHOWN_MAX - 1].handle if len(found) > SHOWN_MAX else "",
        total=len(everyone),
        ways=ways_to_sign_in(frame.service.database),
        q=words,
    )


def one(frame: Frame, person: str, whom: str) -> Response:
    """Shows what a person can do; locks, unlocks, or ends it."""
    _check(frame)
    service, action = frame.service, request.form.get("action", "")
    if not service.accounts.is_known(whom) or service.accounts.is_team(whom):
        raise RequestError("not_found", f"No account named {whom}. Go back to People.")
    if request.method == "POST":
        if whom == person:
            raise RequestError(
                "validation_failed", "You cannot lock yourself out. Another operator can."
            )
        return frame.redirect(f"/people/{whom}", _do(frame, whom, action))
    return frame.render(
        "person.html",
        place="people/one",
        whom=whom,
        locked_at=service.accounts.locked_at(whom),
        is_operator=service.accounts.is_operator(whom),
        is_self=whom == person,
        roles=service.teams.of(whom),
        tokens=sorted(
            (token for token in service.accounts.tokens(whom) if token.state() == "active"),
            key=lambda token: -(token.last_used_at or 0),
        ),
        identities=service.identities.of(whom),
        issuer_names=service.sign_in.issuer_names,
        ways=ways_to_sign_in(service.database).get(whom, []),
        sessions=len(service.sessions.of(whom)),
    )


def _do(frame: Frame, whom: str, action: str) -> str:
    database = frame.service.database
    g.event = "person"
    g.fields |= {"person": whom, "action": action if action in ("end", "lock") else "unlock"}
    if action == "lock":
        locks.lock(database, whom)
        return f"{whom} is locked: no sign-in, no token."
    if action != "end":
        locks.unlock(database, whom)
        return f"{whom} is unlocked."
    done = f"{whom} is locked, and has no password, identity or token any more."
    if kept := locks.end_access(database, whom):
        done += (
            f" {whom} is still the only maintainer of {', '.join(kept)}: add another with "
            f"`hubctl team add {kept[0]} PERSON --role maintainer`, then end it again."
        )
    return done


def _invite(frame: Frame, form: InviteForm) -> Response:
    """Shows the links of new invitations, this once; all or none. Raises RequestError."""
    handles = list(dict.fromkeys(form.handles.data.replace(",", " ").split()))
    if not 1 <= len(handles) <= INVITED_MAX:
        raise validation_failed(Detail("handles", f"enter 1 to {INVITED_MAX} handles at once"))
    service, links = frame.service, []
    with service.database.transaction():
        for handle in handles:
            try:
                code = service.invitations.invite(handle, seconds=form.days.data * DAY_SECONDS)
            except OperatorError as error:
                raise validation_failed(Detail("handles", str(error))) from error
            except RequestError as error:
                raise validation_failed(Detail("handles", f"{handle[:50]!r}: {error}")) from error
            links.append((handle, invitation_link(service.settings.base_url, code)))
    about = "Send each link only to its person: anyone who has it can sign in as them, once."
    return frame.render("links.html", 201, links=links, about=about, back="/people")


def _check(frame: Frame) -> None:
    """Admits an operator who has just signed in; others sign in again. Raises RequestError."""
    session = frame.session()
    if not session or not session.is_operator:
        raise RequestError("insufficient_scope", "Only operators of this hub manage people.")
    frame.check_is_fresh("manage people")
