"""The page on which an owner writes the public profile."""

from flask import Response
from flask_wtf import FlaskForm
from msgspec import UNSET
from wtforms import StringField, TextAreaField, URLField
from wtforms.validators import DataRequired, Length

from publisher.accounts.tokens import format_time
from publisher.web.pages.frame import Frame, errors_shown, stripped
from publisher.web.pages.repos import repos_of, why_late
from publisher.write.profile import chars_max, parse_profile, read_profile, write_profile

_WHAT = "write this profile"


class ProfileForm(FlaskForm):
    name = StringField(
        "Name", [DataRequired("Enter a name. Your handle will do."), Length(max=chars_max("name"))]
    )
    bio = TextAreaField(
        "About you",
        [Length(max=chars_max("bio"))],
        filters=[stripped],
        description=f"Up to {chars_max('bio'):,} characters of plain text.",
    )
    url = URLField(
        "Link", [Length(max=chars_max("url"))], description="Starts with https:// or http://."
    )


def add_to(frame: Frame) -> None:
    """Adds this page."""
    frame.add("/profile", profile, "GET", "POST")


def profile(frame: Frame, person: str) -> Response:
    owner, root = frame.chosen(person, _WHAT).owner, frame.service.settings.content
    stored = read_profile(root, owner)
    form = ProfileForm(obj=stored) if stored else ProfileForm(name=owner)
    accounts = frame.service.accounts
    if accounts.is_team(owner):
        form.bio.label.text = "About the team"
    if form.validate_on_submit():
        joined_at = stored.joined_at if stored else format_time(accounts.created_at(owner))
        kind = "team" if accounts.is_team(owner) else UNSET
        given = (form.name.data, form.bio.data, form.url.data or "")
        with errors_shown(form, form.name):
            write_profile(frame.service.store, owner, parse_profile(*given, joined_at, kind))
            return frame.redirect(frame.owned("/profile"), _publish(frame, owner))
    has_page = stored is not None or repos_of(frame.service.settings, owner) != []
    return frame.render("profile.html", frame.status_of(form), form=form, has_page=has_page)


def _publish(frame: Frame, owner: str) -> str:
    """Waits until readers see the profile; returns the message for its owner."""
    late = why_late(frame.service.rebuilder, owner, None)
    if late:
        return f"Your profile is saved. {late} It will appear as soon as possible."
    return "Your profile is saved, and readers see it."
