"""The page of an owner's labels: the prompts that have some, and the protected labels."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from flask import Response, request
from flask_wtf import FlaskForm
from wtforms import StringField
from wtforms.validators import DataRequired

from builder.model import names
from builder.model.answers import LabelMove
from publisher.accounts.rights import ProtectedLabels
from publisher.web.pages.frame import Frame, errors_shown, stripped
from publisher.web.pages.release import Waiting, board_path, waiting_in
from publisher.web.pages.repos import (
    OFFERED_MAX,
    labels_of,
    latest_versions,
    offered,
    repo_in,
    repos_of,
)


class OpenForm(FlaskForm):
    repo = StringField("Prompt name", [DataRequired("Enter the prompt name.")])


class ProtectForm(FlaskForm):
    repo = StringField(
        "Prompt name", id="protect-repo", description="It may be new. Empty: all your prompts."
    )
    label = StringField(
        "Label", [DataRequired("Enter the label.")], filters=[stripped], id="protect-label"
    )


class _Row(NamedTuple):
    """A prompt; ``versions`` are the versions of its labels, by label. ``latest``: its latest
    version as readers see it; None before the site is built.
    """

    name: str
    versions: dict[str, str | None]
    latest: str | None
    protected: set[str]
    waiting: list[Waiting]


def add_to(frame: Frame) -> None:
    """Adds this page."""
    frame.add("/labels", labels)
    frame.add("/labels/protect", partial(protect, is_on=True), "POST")
    frame.add("/labels/unprotect", partial(protect, is_on=False), "POST")


def labels(frame: Frame, person: str) -> Response:
    """Shows the page; with a ``repo`` in the URL, redirects to its release board."""
    owner = frame.act(person, request.args.get("owner") or _first(frame)).owner
    form = OpenForm(request.args if "repo" in request.args else None, meta={"csrf": False})
    if "repo" in request.args and form.validate():
        with errors_shown(form, form.repo):
            name = names.check_repo(repo_in(form.repo.data, owner))
            return frame.redirect(board_path(owner, name))
    return _show(frame, owner, form, ProtectForm(formdata=None), frame.status_of(form))


def _first(frame: Frame) -> str:
    """The first owner of the person who is signed in that has prompts; the person if none has."""
    owners = frame.owners()
    has_some = (one for one in owners if repos_of(frame.service.settings, one))
    return next(has_some, owners[0])


def protect(frame: Frame, person: str, *, is_on: bool) -> Response:
    owner = frame.chosen(person, "protect labels").owner
    form = ProtectForm()
    if form.validate_on_submit():
        repo, label = repo_in(form.repo.data, owner), form.label.data
        with errors_shown(form, form.label):
            protected = ProtectedLabels(frame.service.database)
            protected.set(owner, repo, label, is_on)
            state = "is protected" if is_on else "is no longer protected"
            message = f"The label {label} of {owner}/{repo or '*'} {state}."
            return frame.redirect(frame.owned("/labels"), message)
    return _show(frame, owner, OpenForm(None, meta={"csrf": False}), form, 422)


def _show(
    frame: Frame, owner: str, form: OpenForm, protect_form: ProtectForm, status: int
) -> Response:
    mine = repos_of(frame.service.settings, owner)
    labels = {name: labels_of(frame.service.settings, owner, name) for name in mine or ()}
    listed = sorted(labels, key=lambda name: not labels[name])[:OFFERED_MAX]
    protected = ProtectedLabels(frame.service.database).of(owner)
    latest = latest_versions(frame.service.settings, owner, listed)
    return frame.render(
        "labels_form.html",
        status,
        form=form,
        protect=protect_form,
        board_path=board_path,
        is_readable=mine is not None,
        rows=[_row(name, labels[name], latest.get(name), protected) for name in listed],
        more=len(labels) - len(listed),
        offered=offered(mine),
        protected=protected,
    )


def _row(
    name: str,
    moves: Mapping[str, LabelMove],
    latest: str | None,
    protected: Collection[tuple[str, str]],
) -> _Row:
    here = {label for repo, label in protected if repo in ("", name)}
    current = {label: move for label, move in moves.items() if move.version}
    versions = {label: move.version for label, move in moves.items()}
    return _Row(name, versions, latest, here, waiting_in(current, here))
