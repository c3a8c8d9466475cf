"""The pages of a person's teams: creates them, and changes their members."""

from flask import Response, request
from flask_wtf import FlaskForm
from wtforms import SelectField, StringField
from wtforms.validators import DataRequired

from builder.model.names import OWNER_CHARS_MAX
from builder.model.service_urls import ACCOUNT_URL
from publisher.accounts.people.signup import create_team
from publisher.accounts.teams import JOIN_URL, MAINTAINER, ROLES
from publisher.accounts.tokens import format_time
from publisher.web.pages.activity import read_activity
from publisher.web.pages.frame import Frame, errors_shown, stripped
from publisher.web.pages.repos import why_late
from publisher.write.profile import mark_team


class TeamForm(FlaskForm):
    handle = StringField(
        "Handle",
        [DataRequired("Choose a handle.")],
        filters=[stripped],
        description=f"Up to {OWNER_CHARS_MAX} characters: a-z, 0-9 and single hyphens. It is part "
        "of the address of the team's prompts and cannot be changed.",
    )


class MemberForm(FlaskForm):
    person = StringField("Handle", [DataRequired("Enter a handle.")], filters=[stripped])
    role = SelectField("Role", choices=[(role, role) for role in ROLES])


class JoinForm(FlaskForm):
    code = StringField(
        "Code",
        [DataRequired("Enter the code.")],
        description="The part of your link after #, or the whole link.",
    )


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    frame.add("/teams", teams, "GET", "POST")
    frame.add("/teams/<team>", members, "GET", "POST")
    frame.add("/teams/<team>/remove", remove, "POST")
    frame.add("/teams/<team>/link", link, "POST")
    frame.add(JOIN_URL.removeprefix(ACCOUNT_URL), join, "GET", "POST", is_open=True)


def teams(frame: Frame, person: str) -> Response:
    """Lists the teams, and creates one."""
    service, form = frame.service, TeamForm()
    if form.validate_on_submit():
        team = form.handle.data
        with errors_shown(form, form.handle):
            create_team(service.database, service.settings.content, team, person)
            mark_team(service.store, team, format_time(service.accounts.created_at(team)))
            why_late(service.rebuilder, team, None)
            service.note_members(team, person, person, MAINTAINER)
            return frame.redirect(f"/teams/{team}", f"The team {team} is created. Add its members.")
    return frame.render(
        "teams.html", frame.status_of(form), form=form, roles=service.teams.of(person)
    )


def members(frame: Frame, person: str, team: str) -> Response:
    """Shows a team, adds a member, and changes a role."""
    form = MemberForm()
    if form.validate_on_submit():
        whom, role = form.person.data, form.role.data
        with errors_shown(form, form.person):
            is_new = frame.service.teams.put(team, whom, role, by=person)
            if is_new:
                frame.service.note_members(team, person, whom, role)
            return frame.redirect(f"/teams/{team}", f"{whom} is a {role} of {team}.")
    return _show(frame, person, team, form)


def remove(frame: Frame, person: str, team: str) -> Response:
    """Removes a member, or lets one leave."""
    whom = request.form.get("person", "")
    frame.service.teams.remove(team, whom, by=person)
    frame.service.note_members(team, person, whom, "")
    if whom == person:
        return frame.redirect("/teams", f"You have left {team}.")
    return frame.redirect(f"/teams/{team}", f"{whom} is no longer a member of {team}.")


def link(frame: Frame, person: str, team: str) -> Response:
    """Shows a new link with which one person joins, this once."""
    role = request.form.get("role", "")
    code = frame.service.teams.invite(team, role if role in ROLES else ROLES[0], by=person)
    frame.act(person, team)
    url = f"{frame.service.settings.base_url}{JOIN_URL}#{code}"
    about = f"One person can join {team} with it, within a week, as long as you are a maintainer."
    links = [(f"Joins {team} as {role}", url)]
    return frame.render("links.html", 201, links=links, about=about, back=f"/teams/{team}")


def join(frame: Frame) -> Response:
    """Uses up a link. Visitors sign in first."""
    form, person = JoinForm(), frame.signed_in()
    if person and form.validate_on_submit():
        with errors_shown(form, form.code):
            team, role = frame.service.teams.join(form.code.data, person)
            frame.service.note_members(team, person, person, role)
            return frame.redirect(f"/teams/{team}", f"You are a {role} of {team} now.")
    return frame.render("join.html", frame.status_of(form), form=form)


def _show(frame: Frame, person: str, team: str, form: MemberForm) -> Response:
    frame.act(person, team)
    if person == team:
        return frame.redirect("/teams")
    return frame.render(
        "team.html",
        frame.status_of(form),
        place="teams/one",
        form=form,
        members=frame.service.teams.members(team),
        activity=read_activity(frame.service.events, team, {}),
    )
