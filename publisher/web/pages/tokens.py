"""The page of an owner's tokens: creates, lists and revokes them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from flask import Response
from flask_wtf import FlaskForm
from wtforms import (
    RadioField,
    SelectField,
    SelectMultipleField,
    StringField,
    ValidationError,
    widgets,
)
from wtforms.fields.choices import SelectChoice
from wtforms.validators import DataRequired, InputRequired, Length

from builder.model import names
from builder.model.errors import Detail, RequestError, validation_failed
from publisher.accounts.token import ANY, LABEL, PUBLISH, READ, RIGHTS, Grant, Token, find_token
from publisher.accounts.tokens import EXPIRES_DAYS_DEFAULT, TOKEN_NAME_CHARS_MAX
from publisher.trusted.publishers import parse_labels
from publisher.web.pages import snippets
from publisher.web.pages.frame import Frame, errors_shown, stripped
from publisher.web.pages.repos import OFFERED_MAX, offered, repos_of

# The most active tokens of an owner, and the most others that the page shows.
ACTIVE_MAX, ENDED_SHOWN = 100, 100
EXPIRES_DAYS = (7, 30, 90, 180, 365)
ALL, TEAMS, SOME = "all", "teams", "some"


class TokenForm(FlaskForm):
    name = StringField(
        "Name",
        [DataRequired("Enter a name for the token."), Length(max=TOKEN_NAME_CHARS_MAX)],
        filters=[stripped],
        description="What will use it, such as laptop or ci. It helps you to revoke the right one "
        "later.",
    )
    scope = RadioField(
        "Where it may publish",
        # Without this, a missing choice would be the default, which is more than the owner may have
        # meant.
        [InputRequired("Choose one.")],
        choices=[
            SelectChoice(ALL, "All my prompts, including future ones"),
            SelectChoice(TEAMS, "All my prompts, and all of my teams, also of future ones"),
            SelectChoice(SOME, "Only these:"),
        ],
        default=ALL,
    )
    repos = SelectMultipleField(
        "Repos",
        choices=[],
        widget=widgets.ListWidget(prefix_label=False),
        option_widget=widgets.CheckboxInput(),
    )
    more = StringField(
        "Prompt names",
        description="Separate names with spaces or commas. A prompt may be new. Those of a team "
        "have its handle: support/triage, or support/* for all.",
    )
    rights = SelectField(
        "What it may do",
        choices=[
            SelectChoice(" ".join(RIGHTS), "Publish, and move labels"),
            SelectChoice(PUBLISH, "Only publish"),
            SelectChoice(LABEL, "Only move labels"),
            SelectChoice(READ, "Only read (for a private hub)"),
        ],
        default=" ".join(RIGHTS),
    )
    labels = StringField(
        "Labels",
        description="Separate labels with spaces or commas. It moves only these, even if they are "
        "protected. Empty: all labels that are not protected.",
    )
    expires = SelectField(
        "Expires",
        coerce=int,
        choices=[SelectChoice(str(days), f"in {days} days") for days in EXPIRES_DAYS],
        default=EXPIRES_DAYS_DEFAULT,
    )

    def validate_name(self, field: StringField) -> None:
        if not field.data.isprintable():
            raise ValidationError("Use printable characters only.")
        if find_token(field.data):
            raise ValidationError(
                "This is a token, not a name for one. Revoke it: anyone who has seen it could "
                "publish."
            )


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    frame.add("/tokens", tokens, "GET", "POST")
    frame.add("/tokens/<token_id>/revoke", revoke, "POST")


def tokens(frame: Frame, owner: str) -> Response:
    mine, form = repos_of(frame.service.settings, owner), TokenForm()
    teams = [one for one in frame.owners() if one != owner]
    if not teams:
        form.scope.choices = [one for one in form.scope.choices if one.value != TEAMS]
    form.repos.choices = [*offered(mine), *(f"{team}/*" for team in teams)]
    if form.validate_on_submit():
        with errors_shown(form, form.more):
            return _show(frame, *_create(frame, owner, form))
    now, newest_first = datetime.now(UTC), frame.service.accounts.tokens(owner)[::-1]
    active = [token for token in newest_first if token.state(now) == "active"]
    ended = [token for token in newest_first if token.state(now) != "active"]
    return frame.render(
        "tokens.html",
        frame.status_of(form),
        form=form,
        mine=mine,
        active=active,
        ended=ended[:ENDED_SHOWN],
        ended_count=len(ended),
    )


def revoke(frame: Frame, owner: str, token_id: str) -> Response:
    # By its id alone: several tokens may have had the same name, one after the other.
    if not any(token.id == token_id for token in frame.service.accounts.tokens(owner)):
        raise RequestError("not_found", "You have no such token. Reload the list.")
    token, is_new = frame.service.accounts.revoke(owner, token_id)
    message = "is revoked and cannot be used any more." if is_new else "was already revoked."
    return frame.redirect("/tokens", f"The token {token.name} {message}")


def _create(frame: Frame, owner: str, form: TokenForm) -> tuple[str, Token]:
    """Returns the token that a form describes, and its text. Raises RequestError."""
    name, repos = form.name.data, _chosen(frame.owners(), form)
    rights, labels = form.rights.data.split(), _chosen_labels(form)
    if rights == [READ] and form.scope.data != ALL:
        message = "a token that only reads reads the whole hub. Choose all prompts"
        raise validation_failed(Detail("scope", message))
    # One transaction: of two concurrent forms with the same name, one creates a token.
    with frame.service.database.transaction():
        tokens = frame.service.accounts.tokens(owner)
        active = [token for token in tokens if token.state() == "active"]
        if any(token.name == name for token in active):
            message = (
                "you already have a token of this name, whose text cannot be shown again. "
                "Choose another name, or revoke that one first"
            )
            raise validation_failed(Detail("name", message))
        if len(active) >= ACTIVE_MAX:
            message = f"you have {ACTIVE_MAX} tokens, which is the limit. Revoke one first"
            raise validation_failed(Detail("name", message))
        # An expired token keeps its name until it is revoked.
        for token in tokens:
            if token.name == name and token.state() == "expired":
                frame.service.accounts.revoke(owner, token.id)
        return frame.service.accounts.create_token(
            owner, name, Grant(repos, rights, labels), form.expires.data
        )


def _chosen(owners: Sequence[str], form: TokenForm) -> list[str]:
    """Returns the repos that a form names; none for all of the first of the owners. Raises
    RequestError ``validation_failed``.
    """
    typed = [repo for repo in re.split(r"[\s,]+", form.more.data or "") if repo]
    repos = [
        *dict.fromkeys([*form.repos.data, *(name.removeprefix(f"{owners[0]}/") for name in typed)])
    ]
    if form.scope.data != SOME and repos:
        message = "you named prompts but chose all. Choose “Only these”, or remove the names"
        raise validation_failed(Detail("scope", message))
    if form.scope.data == SOME and not repos:
        raise validation_failed(Detail("more", "name at least one prompt"))
    if len(repos) > OFFERED_MAX:
        message = f"a token is for all prompts, or for {OFFERED_MAX} at most, not {len(repos):,}"
        raise validation_failed(Detail("more", message))
    for repo in repos:
        whose, _, name = repo.rpartition("/")
        if names.is_name(whose, names.OWNER_CHARS_MAX) and whose not in owners:
            message = f"you are not a member of a team {whose!r}"
            raise validation_failed(Detail("more", message))
        try:
            names.check_repo(repo if whose not in owners else whose if name == ANY else name)
        except RequestError as error:
            shown = repo[: names.REPO_CHARS_MAX]
            message = f"{shown!r} cannot be the name of a prompt. {error}".removesuffix(".")
            raise validation_failed(Detail("more", message)) from None
    return [f"{ANY}/{ANY}"] if form.scope.data == TEAMS else repos


def _chosen_labels(form: TokenForm) -> list[str]:
    """Returns the labels that a form names. Raises RequestError ``validation_failed``."""
    labels, faults = parse_labels(form.labels.data or "")
    if labels and LABEL not in form.rights.data.split():
        message = "you named labels, but the token moves none. Let it move labels, or remove them"
        raise validation_failed(Detail("labels", message))
    if faults:
        raise validation_failed(*faults)
    return labels.split()


def _show(frame: Frame, text: str, token: Token) -> Response:
    """Shows a new token, this once."""
    whose, repo = token.scopes[0]
    whose, repo = whose.replace(ANY, token.owner), repo.replace(ANY, snippets.ANY_NAME)
    return frame.render(
        "token_made.html",
        201,
        token=token,
        text=text,
        secret_command=snippets.SECRET_COMMAND,
        step=snippets.github_step(frame.service.settings, whose, repo),
        line=snippets.shell_line(whose, repo),
    )
