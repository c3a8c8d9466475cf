"""Previews a publication: its number, its difference and its warnings, before the author
publishes.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup
from msgspec import UNSET

from builder.model import names
from builder.model.errors import RequestError
from builder.model.names import Version
from builder.model.request_bodies import Draft
from builder.model.settings import Settings
from builder.render.prompt_text import MESSAGES_SHOWN_MAX
from builder.text.hidden_chars import Marks, visible
from builder.text.messages import parse_messages
from builder.text.prompts import body_of, filled_chars, mark_variables
from builder.text.readable import readable
from builder.text.summary import is_data
from builder.text.values import as_text
from publisher.web.editor.fields import WritingError, sentence, to_draft
from publisher.web.editor.values import show_value
from publisher.web.editor.writing import Base, Writing
from publisher.web.pages.difference import File, Side, compare_versions
from publisher.write.decision import Terms
from publisher.write.folders import tell_kept
from publisher.write.publish import preview
from publisher.write.resolve import Metadata

# A longer filled-in text is not shown: a value that a text names thousands of times could make any
# page too large.
FILLED_CHARS_MAX = 1024 * 1024

# The form's field for that of an error's detail, and for an error without one of these.
_FIELDS = {"labels": "new_labels", "tags": "tags", "files": "files"}
_USUAL_FIELDS = {
    "invalid_name": "name",
    "name_reserved": "name",
    "validation_failed": "content",
    "version_conflict": "content",
    "idempotency_key_reused": "content",
}

_SHOWN_FIELDS = ("title", "description", "tags", "license", "parameters")


class Choice(NamedTuple):
    """A step that the author may take, and the version that it leads to. ``bump`` is empty for the
    proposed one, which follows later changes of the text.
    """

    bump: str
    version: Version
    is_chosen: bool


# The result that a publication would have, for the editor's page.
#
# ``base`` is None for a first version. ``filled``: the text with the examples filled in, or the
# messages of a chat, each with its role and whether it is code; ``is_filled`` is False if that
# text would be too long. ``difference``: the change from ``base``,
# or from an empty text. ``changes``: metadata before and after. ``seal`` changes with text, files
# and metadata.
PublicationPlan = dict[str, Any]


def make_plan(
    settings: Settings, owner: str, name: str, writing: Writing, base: Base | None
) -> PublicationPlan:
    """Returns the plan of a publication. ``base`` is the version that the author began with.

    Raises WritingError where it cannot be published; RequestError ``base_version_mismatch`` where
    there is a newer version; and what ``publish.preview`` raises.
    """
    root = settings.content
    draft = to_draft(writing, name, base, settings.file_bytes)
    try:
        terms = Terms(create_only=base is None)
        found = preview(root, owner, name, draft, publisher=owner, terms=terms)
    except RequestError as error:
        raise as_writing_error(error, name) from error
    done, metadata, step = found.decision.answer, found.metadata, found.step
    proposed = step.bump if step else "patch"
    choices = _choices(base, writing.bump or proposed, proposed) if base else []
    version = next((one.version for one in choices if one.is_chosen), names.FIRST_VERSION)
    body = body_of(draft.content, metadata.front_matter_bytes)
    filled, is_filled = _fill(body, metadata)
    files = {one.path: File(one.path, one.data, one.executable) for one in draft.files or ()}
    if base and draft.files is UNSET:
        files = base.files
    mine = Side(f"your {version}", draft.content, metadata.front_matter_bytes, files)
    return dict(
        draft=draft,
        base=base,
        step=step,
        choices=choices,
        version=version,
        unchanged=done.unchanged,
        # The page says in its own words which files stay.
        warnings=[one for one in done.warnings if one != tell_kept(done.files or ())],
        filled=filled,
        is_filled=is_filled,
        difference=compare_versions(base.side if base else Side("", "", 0, {}), mine),
        changes=_changes(metadata, base) if base else [],
        seal=seal_of(draft, name),
    )


def as_writing_error(error: RequestError, name: str) -> Exception:
    """Returns an error of the publish path as one of the form's fields, if the author can fix
    it.
    """
    if error.code == "not_owner":
        message = f"You have a prompt {name} already. Choose another name, or edit that prompt."
        return WritingError({"name": [message]}, 409)
    if error.code not in _USUAL_FIELDS:
        return error
    fields = (detail.field.partition("[")[0] for detail in error.details)
    usual = _USUAL_FIELDS[error.code]
    field = next((_FIELDS[field] for field in fields if field in _FIELDS), usual)
    # Without the field's name, which only callers of the API know.
    sentences = [sentence(detail.message) for detail in error.details] or [str(error)]
    return WritingError({field: sentences}, error.status)


def _choices(base: Base, chosen: str, proposed: str) -> list[Choice]:
    """Returns the steps whose numbers are within the limits; there is always one."""
    choices = []
    for bump in reversed(names.BUMPS):
        try:
            field = "" if bump == proposed else bump
            choices.append(Choice(field, base.version.bump(bump), bump == chosen))
        except RequestError as error:
            if error.code != "version_conflict":
                raise
    return choices


def _fill(body: str, metadata: Metadata) -> tuple[list[tuple[str, bool, Markup]], bool]:
    values = {}
    for variable in metadata.variables:
        value = variable.example if variable.example is not None else variable.default
        if value is not None:
            values[variable.name] = as_text(value)
    is_filled = filled_chars(body, values) <= FILLED_CHARS_MAX
    marks = Marks()
    shown = {name: visible(value, marks) for name, value in values.items()} if is_filled else {}
    messages = [(one.role, one.content) for one in parse_messages(body) or ()]
    filled, headings = [], []
    for role, part in messages if 0 < len(messages) <= MESSAGES_SHOWN_MAX else [("", body)]:
        text, is_code = visible(part, marks), is_data(part)
        # Marks blocks before the variables are filled in, so a value adds none.
        blocks = text if is_code else readable(text, headings)
        filled.append((role, is_code, Markup(mark_variables(str(blocks), _marker(shown)))))
    return filled, is_filled


def _marker(shown: dict[str, Markup]) -> Callable[[str, str], str]:
    def mark(name: str, placeholder: str) -> str:
        if name in shown:
            return str(
                Markup('<mark class="variable filled" title="{}">{}</mark>').format(
                    name, shown[name]
                )
            )
        return f'<mark class="variable">{placeholder}</mark>'

    return mark


def _changes(metadata: Metadata, base: Base) -> list[tuple[str, str, str]]:
    pairs = (
        (field, getattr(base.record, field), getattr(metadata, field)) for field in _SHOWN_FIELDS
    )
    return [(field, _shown(old), _shown(new)) for field, old, new in pairs if old != new]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return show_value(value or None) or "none"


def seal_of(draft: Draft, name: str) -> str:
    """Returns a hash of a publication's name, text, files and metadata."""
    words = msgspec.structs.replace(draft, changelog="", bump="patch", labels=[])
    sealed = msgspec.json.encode((name, words), order="deterministic")
    return hashlib.sha256(sealed).hexdigest()[:32]
