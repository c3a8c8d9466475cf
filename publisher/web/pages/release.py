"""The release board of a prompt: the version of each label, and the steps to change it.

A change takes two requests. The first shows the difference from the label's version to the chosen
one, and changes nothing. The second changes the label, only if it still names the version that the
page showed. To roll back, the board sends the second at once.
"""

from collections.abc import Mapping
from typing import NamedTuple

from flask import Response, g, request
from flask_wtf import FlaskForm
from wtforms import HiddenField, StringField
from wtforms.validators import DataRequired

from builder.model import names
from builder.model.answers import LabelMove
from builder.model.errors import RequestError
from builder.model.labels import Labels, fold
from builder.model.names import Version
from builder.model.request_bodies import LabelDraft, LabelRemoval
from builder.render.chart import by_weight
from builder.store import content
from builder.text.interface import Interface, changes_for_callers, interface_of
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.teams import Actor
from publisher.web.pages.difference import Side, compare_versions, files_of
from publisher.web.pages.frame import Frame, show_errors, stripped
from publisher.web.pages.repos import show_readers
from publisher.write.decision import Terms
from publisher.write.drafts import make_change
from publisher.write.labels import LabelChange, change_label
from publisher.write.moves import read_moves

# The form lists this many versions, the newest first. For older ones, the owner types the number.
OFFERED_VERSIONS_MAX = 200
_OF_VERSION = ("invalid_version", "version_not_found")


class MoveForm(FlaskForm):
    """An empty ``version`` removes the label. ``expected``: the version that the label names on the
    page with this form; empty for none.
    """

    label = StringField(
        "Label",
        [DataRequired("Enter the label.")],
        filters=[stripped],
        description="Such as production.",
    )
    version = StringField("Version", filters=[stripped])
    note = StringField("Note", description="Why it moves. Readers see it.")
    expected = HiddenField()


class _Prompt(NamedTuple):
    """A prompt and its labels, for an actor. ``versions``: newest first."""

    actor: Actor
    name: str
    versions: list[str]
    labels: Labels

    @property
    def owner(self) -> str:
        return self.actor.owner


class Waiting(NamedTuple):
    """A version that ``label`` names, moved there ``by`` a person, while the label ``behind`` still
    names the lower version ``current``.
    """

    label: str
    version: str
    by: str
    behind: str
    current: str


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    path = "/prompts/<whose>/<name>/labels"
    frame.add(path, board)
    frame.add(f"{path}/move", move, "GET", "POST")


def board_path(owner: str, name: str) -> str:
    """Returns the path of a prompt's release board, below the account settings."""
    return f"/prompts/{owner}/{name}/labels"


def board(frame: Frame, person: str, whose: str, name: str) -> Response:
    return _show_board(frame, _read(frame, person, whose, name), MoveForm(formdata=None))


def move(frame: Frame, person: str, whose: str, name: str) -> Response:
    """Shows the step before a change (GET), or makes the change (POST)."""
    if request.method == "GET":
        form, message, status = MoveForm(request.args, meta={"csrf": False}), "", 200
        form.validate()
        return _show_step(frame, _read(frame, person, whose, name), form, message, status)
    form, message, status = MoveForm(), "", 422
    actor = frame.act(person, whose)
    if form.validate():
        try:
            done = _change(frame, actor, name, form)
        except RequestError as error:
            if error.code == "label_moved":
                message, status = _tell_moved(form), error.status
            else:
                show_errors(form, error, _field_of(form, error))
        else:
            return frame.redirect(board_path(whose, name), _tell(frame, done))
    return _show_step(frame, _read(frame, person, whose, name), form, message, status)


def _read(frame: Frame, person: str, whose: str, name: str) -> _Prompt:
    """Returns the prompt. Raises RequestError ``not_owner``, ``invalid_name``, ``repo_not_found``;
    ContentError.
    """
    actor, owner = frame.act(person, whose), whose
    names.check_repo(name)
    root = frame.service.settings.content
    listing = content.list_versions(root, owner, name)
    if not listing.versions:
        raise RequestError(
            "repo_not_found", f"No prompt {owner}/{name}. Publish its first version, then label it."
        )
    moves = read_moves(root, owner, name, listing)
    versions = [str(version) for version in reversed(listing.versions)]
    return _Prompt(actor, name, versions, fold(moves))


def _change(frame: Frame, actor: Actor, name: str, form: MoveForm) -> LabelChange:
    """Makes the change that a form describes. Raises RequestError."""
    g.publication = "label"
    version, expected = form.version.data, form.expected.data or None
    fields: dict[str, str | None] = {"note": form.note.data or ""}
    if version:
        draft = make_change(LabelDraft, fields | {"version": version, "expected": expected})
    else:
        draft = make_change(LabelRemoval, fields | ({"expected": expected} if expected else {}))
    label = form.label.data
    frame.service.rights.check_may_label(actor, name, [label])
    terms = Terms(quotas=frame.service.quotas)
    done = change_label(
        frame.service.store, actor.owner, name, label, draft, by=actor.name, terms=terms
    )
    frame.service.note_change(actor, "label_moved", done)
    return done


def _field_of(form: MoveForm, error: RequestError) -> StringField:
    """Returns the field at which to show an error that names no field."""
    if error.code == "secret_detected":
        return form.note
    return form.version if error.code in _OF_VERSION else form.label


def _tell(frame: Frame, done: LabelChange) -> str:
    """Makes the change visible to readers. Returns the message for the owner."""
    if done.unchanged:
        return f"{done.label} names {done.version} already."
    became = f"now names {done.version}" if done.version else "is removed"
    return show_readers(frame.service.rebuilder, done.owner, done.name, f"{done.label} {became}.")


def _tell_moved(form: MoveForm) -> str:
    before = f"named {form.expected.data}" if form.expected.data else "did not exist"
    return (
        f"{form.label.data} has changed since you opened the page, when it {before}. Nothing was "
        "changed now. Look at what it names, then confirm again."
    )


def _show_board(frame: Frame, prompt: _Prompt, form: MoveForm, status: int = 200) -> Response:
    protected = ProtectedLabels(frame.service.database).in_repo(prompt.owner, prompt.name)
    return frame.render(
        "release.html",
        status,
        place="labels",
        prompt=prompt,
        form=form,
        protected=protected,
        here=board_path(prompt.owner, prompt.name),
        offered=prompt.versions[:OFFERED_VERSIONS_MAX],
        labels=by_weight(prompt.labels.current),
        older={label: _is_older(change) for label, change in prompt.labels.current.items()},
        waiting=waiting_in(prompt.labels.current, protected),
    )


def waiting_in(current: Mapping[str, LabelMove], protected: set[str]) -> list[Waiting]:
    """Returns the labels that are behind: protected ones, or production, that name a lower version
    than another label. The highest of several others counts.
    """
    behind = {label for label in current if label in protected or label == "production"}
    ahead = [move for label, move in current.items() if label not in behind]
    if not ahead:
        return []
    first = max(ahead, key=lambda move: Version.parse(move.version))
    return [
        Waiting(first.label, first.version, first.moved_by, label, current[label].version)
        for label in sorted(behind)
        if Version.parse(current[label].version) < Version.parse(first.version)
    ]


def _is_older(change: LabelMove) -> bool:
    """True if the change moved the label to a lower version."""
    before, since = change.previous, change.version
    return bool(before and since and Version.parse(before) < Version.parse(since))


def _show_step(
    frame: Frame, prompt: _Prompt, form: MoveForm, message: str, status: int
) -> Response:
    """Shows the result that a change would have, and the form that makes it; the board where it
    cannot be made.
    """
    label, version = form.label.data, form.version.data
    current = prompt.labels.versions().get(label)
    if not form.label.errors and not form.version.errors:
        _find_faults(frame, prompt, form, current)
    if form.label.errors or form.version.errors or form.expected.errors:
        return _show_board(frame, prompt, form, 422)
    change, callers = None, []
    if current and version:
        pair = [_read_side(frame, prompt, one) for one in (current, version)]
        change = compare_versions(*(side for side, _ in pair))
        callers = changes_for_callers(*(interface for _, interface in pair))
    return frame.render(
        "release_step.html",
        status,
        place="labels",
        prompt=prompt,
        form=form,
        moved_message=message,
        label=label,
        version=version,
        current=current,
        change=change,
        callers=callers,
        here=board_path(prompt.owner, prompt.name),
        is_older=bool(current and version and Version.parse(version) < Version.parse(current)),
        since=prompt.labels.current.get(label),
    )


def _find_faults(frame: Frame, prompt: _Prompt, form: MoveForm, current: str | None) -> None:
    """Adds to the fields the reasons why the change cannot be made."""
    label, version = form.label.data, form.version.data
    try:
        names.check_new_label(label)
        frame.service.rights.check_may_label(prompt.actor, prompt.name, [label])
        if version and str(Version.parse(version)) not in prompt.versions:
            raise RequestError(
                "version_not_found",
                f"{prompt.owner}/{prompt.name} has no version {version}. Its latest version is "
                f"{prompt.versions[0]}.",
            )
        if not version and current is None:
            raise RequestError(
                "label_not_found",
                f"{prompt.owner}/{prompt.name} has no label {label}. Choose the version that it "
                "is to name.",
            )
    except RequestError as error:
        field = _field_of(form, error)
        field.errors = [*field.errors, str(error)]
        return
    if version == current:
        form.version.errors = [*form.version.errors, f"{label} names {version} already."]


def _read_side(frame: Frame, prompt: _Prompt, version: str) -> tuple[Side, Interface]:
    """A version to compare. Raises ContentError."""
    at = frame.service.settings.content, prompt.owner, prompt.name, Version.parse(version)
    record, text = content.read_version(*at)
    files = files_of(record, content.read_files(*at, record))
    side = Side(version, text, record.front_matter_bytes, files)
    return side, interface_of(record, text)
