"""The page on which an owner withdraws a version of a prompt, or the whole prompt, in three steps:
the choice, the consequences, the withdrawal.
"""

from flask import Response, g, request
from flask_wtf import FlaskForm
from wtforms import HiddenField, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired

from builder.model import names
from builder.model.content_tree import WHOLE
from builder.model.errors import RequestError
from builder.model.plural import day
from builder.model.request_bodies import WithdrawalDraft
from builder.model.withdrawn import BECAUSE
from builder.store import content
from publisher.web.pages.frame import Frame, errors_shown, stripped
from publisher.web.pages.repos import OFFERED_MAX, why_late
from publisher.write.drafts import make_change
from publisher.write.withdraw import Withdrawn, preview, withdraw

_WHAT = "withdraw this prompt"
_REASONS = {
    "secret": "It contains a secret",
    "error": "It is wrong",
    "legal": "Legal reasons",
    "owner": "Another reason of mine",
}


class WithdrawForm(FlaskForm):
    version = StringField(
        "What to withdraw",
        [DataRequired("Choose a version, or the whole prompt.")],
        filters=[stripped],
        description=f"A version such as 1.2.0, or {WHOLE}: the whole prompt.",
    )
    reason = SelectField(
        "Reason",
        [DataRequired("Choose a reason.")],
        choices=[("", "Choose…"), *_REASONS.items()],
    )
    move_labels = StringField(
        "Move its labels to",
        filters=[stripped],
        description="A version that stays, such as 1.1.0. Otherwise, its labels name no version, "
        "and programs that read them fail.",
    )
    note = TextAreaField(
        "Note",
        filters=[stripped],
        description="For readers: what they should do now. Do not repeat what you withdraw.",
    )


class ConfirmForm(FlaskForm):
    """The fields of the first form, and ``seen``: the consequences that the page showed."""

    version = HiddenField(filters=[stripped])
    reason = HiddenField(validators=[DataRequired()])
    move_labels = HiddenField(filters=[stripped])
    note = HiddenField(filters=[stripped])
    seen = HiddenField()


def add_to(frame: Frame) -> None:
    """Adds this page."""
    path = "/prompts/<whose>/<name>/withdraw"
    frame.add(path, choose, "GET", "POST")
    frame.add(f"{path}/confirm", confirm, "POST")


def choose(frame: Frame, person: str, whose: str, name: str) -> Response:
    """Shows the form for the choice and the reason; then the consequences."""
    owner = frame.act(person, whose, _WHAT).owner
    names.check_repo(name)
    form = WithdrawForm(version=request.args.get("version", "") if request.method == "GET" else "")
    if form.validate_on_submit():
        with errors_shown(form, form.version):
            draft = _draft(form)
            version = "" if form.version.data == WHOLE else form.version.data
            return _review(frame, _preview(frame, owner, name, version, draft), draft)
    return _show(frame, owner, name, form)


def confirm(frame: Frame, person: str, whose: str, name: str) -> Response:
    """Withdraws it, if the consequences are still those that the owner has seen."""
    actor = frame.act(person, whose, _WHAT)
    names.check_repo(name)
    form = ConfirmForm()
    draft = _draft(form)
    planned = _preview(frame, whose, name, form.version.data, draft)
    if not form.validate() or form.seen.data != _consequences(planned):
        return _review(frame, planned, draft, has_changed=True)
    g.publication = "withdrawal"
    version = form.version.data or None
    done = withdraw(frame.service.store, whose, name, version, draft, by=actor.name)
    frame.service.note_change(actor, "withdrawn", done)
    return frame.redirect(f"/prompts/{whose}/{name}/withdraw", _tell(frame, done))


def _draft(form: FlaskForm) -> WithdrawalDraft:
    fields = {"reason": form.reason.data, "note": form.note.data}
    target = form.move_labels.data
    return make_change(WithdrawalDraft, fields | ({"move_labels": target} if target else {}))


def _preview(
    frame: Frame, owner: str, name: str, version: str, draft: WithdrawalDraft
) -> Withdrawn:
    return preview(frame.service.settings.content, owner, name, version or None, draft, by=owner)


def _consequences(planned: Withdrawn) -> str:
    """Returns a text that differs where a withdrawal has other consequences."""
    return " ".join(
        [str(planned.unchanged), str(planned.latest), *planned.versions, planned.about_labels]
    )


def _tell(frame: Frame, done: Withdrawn) -> str:
    """Waits until it is off the site; returns the message for its owner."""
    if done.unchanged:
        message = f"{done.what} was withdrawn before, on {day(done.at)}."
    else:
        message = f"{done.what} is withdrawn."
    late = why_late(frame.service.rebuilder, done.owner, done.name)
    if late:
        still = f"It is deleted, but still on the site: {late} It is taken off as soon as possible."
        return f"{message} {still}"
    labels = "" if done.unchanged else done.about_labels
    return f"{message} It is deleted and off the site. {labels}".rstrip()


def _review(
    frame: Frame, planned: Withdrawn, draft: WithdrawalDraft, *, has_changed: bool = False
) -> Response:
    form = ConfirmForm(
        formdata=None,
        version=planned.version or "",
        reason=draft.reason,
        note=draft.note,
        move_labels=draft.move_labels or "",
        seen=_consequences(planned),
    )
    return frame.render(
        "withdraw_confirm.html",
        form=form,
        planned=planned,
        what=planned.what,
        because=BECAUSE[planned.reason],
        has_changed=has_changed,
    )


def _show(frame: Frame, owner: str, name: str, form: WithdrawForm) -> Response:
    listing = content.list_versions(frame.service.settings.content, owner, name)
    if not listing.versions and not listing.withdrawn.files:
        raise RequestError("repo_not_found", f"No prompt {owner}/{name}.")
    offered = [str(version) for version in listing.versions[: -OFFERED_MAX - 1 : -1]]
    choices = [("", "Choose…"), *((one, one) for one in offered), (WHOLE, "The whole prompt")]
    is_all = len(offered) == len(listing.versions)
    has_choice = is_all and form.version.data in dict(choices)
    if has_choice:
        form.version.description = ""
    return frame.render(
        "withdraw.html",
        frame.status_of(form),
        form=form,
        name=name,
        offered=offered,
        choices=choices if has_choice else None,
        choices_left=[("", "No version"), *choices[1:-1]],
        is_open=bool(listing.versions),
    )
