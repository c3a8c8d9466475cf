"""The page on which an owner moves the labels of prompts, and protects them."""

from functools import partial

from flask import Response, request
from flask_wtf import FlaskForm
from wtforms import StringField
from wtforms.validators import DataRequired

from builder.model.errors import RequestError
from builder.pipeline.rebuild import Rebuilder
from publisher.accounts.protected import ProtectedLabels
from publisher.web.pages.fields import show_errors
from publisher.web.pages.frame import Frame
from publisher.web.pages.repos import OFFERED_MAX, repos_of
from publisher.write.drafts import make_label_draft, make_label_removal
from publisher.write.labels import LabelChange, change_label
from publisher.write.quotas import QuotaKeeper


class MoveForm(FlaskForm):
    """An empty ``version`` removes the label."""

    repo = StringField("Prompt name", [DataRequired("Enter the prompt name.")])
    label = StringField(
        "Label", [DataRequired("Enter the label.")], description="Such as production."
    )
    version = StringField(
        "Version",
        description="The version that the label names from now on, such as 1.2.0. To roll back, "
        "enter the older version. Empty: remove the label.",
    )
    note = StringField("Note", description="Why it moves. Everyone can read it.")


class ProtectForm(FlaskForm):
    repo = StringField(
        "Prompt name",
        id="protect-repo",
        description="It may be new. Empty: all your prompts.",
    )
    label = StringField("Label", [DataRequired("Enter the label.")], id="protect-label")


def add_to(frame: Frame, rebuilder: Rebuilder, quotas: QuotaKeeper) -> None:
    """Add this page."""
    frame.add("/labels", partial(labels, rebuilder=rebuilder, quotas=quotas), "GET", "POST")
    frame.add("/labels/protect", partial(protect, is_on=True), "POST")
    frame.add("/labels/unprotect", partial(protect, is_on=False), "POST")


def labels(frame: Frame, owner: str, rebuilder: Rebuilder, quotas: QuotaKeeper) -> Response:
    form = MoveForm()
    if form.validate_on_submit():
        try:
            done = _move(frame, owner, form, quotas)
        except RequestError as error:
            show_errors(form, error, form.label)
        else:
            return frame.redirect("/labels", _tell(rebuilder, done))
    return _show(frame, owner, form, ProtectForm(formdata=None), frame.status_of(form))


def protect(frame: Frame, owner: str, *, is_on: bool) -> Response:
    form = ProtectForm()
    if form.validate_on_submit():
        repo, label = _name(owner, form.repo.data), form.label.data.strip()
        address = request.remote_addr or ""
        try:
            ProtectedLabels(frame.database).set(owner, repo, label, is_on, address=address)
        except RequestError as error:
            show_errors(form, error, form.label)
        else:
            told = "is protected" if is_on else "is no longer protected"
            return frame.redirect("/labels", f"The label {label} of {owner}/{repo or '*'} {told}.")
    return _show(frame, owner, MoveForm(formdata=None), form, 422)


def _move(frame: Frame, owner: str, form: MoveForm, quotas: QuotaKeeper) -> LabelChange:
    """Do what a form asks for. Raises RequestError."""
    version, fields = (form.version.data or "").strip(), {"note": form.note.data or ""}
    draft = (
        make_label_draft({"version": version} | fields) if version else make_label_removal(fields)
    )
    return change_label(
        frame.settings.content, owner, _name(owner, form.repo.data), form.label.data.strip(),
        draft, by=owner, quotas=quotas,
    )  # fmt: skip


def _name(owner: str, text: str | None) -> str:
    return (text or "").strip().removeprefix(f"{owner}/")


def _tell(rebuilder: Rebuilder, done: LabelChange) -> str:
    """Have everybody see the change; returns what came of it, for the owner."""
    where = f"{done.label} of {done.owner}/{done.name}"
    told = f"{where} now names {done.version}." if done.version else f"{where} is removed."
    try:
        rebuilder.make_visible(done.owner, done.name)
    except RequestError as error:
        return f"{told} {error} Readers will see it as soon as possible."
    return told


def _show(
    frame: Frame, owner: str, move: MoveForm, protect_form: ProtectForm, status: int
) -> Response:
    mine = repos_of(frame.settings.content, owner) or []
    return frame.render(
        "labels_form.html", status, form=move, protect=protect_form,
        offered=mine if len(mine) <= OFFERED_MAX else [],
        protected=ProtectedLabels(frame.database).of(owner),
    )  # fmt: skip
