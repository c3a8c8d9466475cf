"""Turns the editor's fields into those of a publication, or reports their faults.

One rule for metadata: the front matter of the text decides the fields that it sets, and the form
leaves these out. The form decides all others. So no block of front matter is changed, and none
contradicts the record.
"""

import itertools
import os
import re
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from builder.model import names
from builder.model.errors import RequestError
from builder.model.records import VariableType
from builder.model.request_bodies import Draft
from builder.text.plain_words import plain_words
from builder.text.prompts import Document, parse_document, variable_names
from builder.text.summary import first_sentence, title_of
from publisher.web.editor.files import to_files
from publisher.web.editor.values import (
    read_lines,
    read_number,
    read_value,
    restore_line_ends,
)
from publisher.web.editor.writing import AUTO, PARAMETERS, YES, Base, VariableRow, Writing, row_of
from publisher.write.drafts import make_draft
from publisher.write.fields import parse_loosely

# The name for a title without letters, and the suffix after a reserved name.
_NAMELESS = "prompt"
_TITLE_WORDS = 5

# The faults of each field, as sentences, by its name in the form.
Errors = dict[str, list[str]]


class WritingError(Exception):
    """The fields cannot be published. ``errors``: the reasons; ``status``: of HTTP."""

    def __init__(self, errors: Errors, status: int = 422) -> None:
        super().__init__(errors)
        self.errors = errors
        self.status = status


def front_fields(document: Document) -> dict[str, Any]:
    """Returns the metadata that the front matter of a text sets."""
    return parse_loosely(document.front or {})[0]


def to_draft(writing: Writing, name: str, base: Base | None, file_bytes: int) -> Draft:
    """Returns the publication that the fields describe: a version after ``base``, or the first one,
    with at most ``file_bytes`` of files.

    Raises WritingError.
    """
    errors: Errors = {}
    text = restore_line_ends(writing.content, base.text) if base else writing.content
    if not text.strip():
        errors["content"] = ["The prompt is empty: write its text."]
    document = parse_document(text)
    fields = {
        "content": text,
        "changelog": writing.changelog,
        "bump": writing.bump or names.AUTO,
        **_plain_fields(writing, name, base, document.body, errors),
        "variables": _variables(writing, base, variable_names(document.body), errors),
        "parameters": _parameters(writing, base, errors),
        "labels": list(dict.fromkeys([*writing.labels, *_words(writing.new_labels)])),
    }
    if base:
        fields["base_version"] = str(base.version)
    for field in front_fields(document):
        fields.pop(field, None)
        errors.pop(field, None)
    if "variables" not in fields:
        errors = {key: found for key, found in errors.items() if not key.startswith("variable-")}
    files = to_files(writing.files, base.files if base else {}, errors, file_bytes)
    try:
        draft = msgspec.structs.replace(make_draft(fields), files=files)
    except RequestError as error:
        _note(error, fields, errors)
        raise WritingError(errors, error.status) from None
    if errors:
        raise WritingError(errors)
    return draft


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _plain_fields(
    writing: Writing, name: str, base: Base | None, body: str, errors: Errors
) -> dict[str, Any]:
    """Returns title, description, tags and license, without those that equal ``base``."""
    shown = base.shown if base else Writing()
    tags, notes = parse_loosely({"tags": list(writing.tags)})
    if notes:
        errors["tags"] = [note.replace("Ignored tag", "Change", 1) for note in notes]
    given = {
        "title": writing.title or title_of(body) or name,
        # An empty title or description becomes what it is in a publication without one.
        "description": writing.description or first_sentence(body),
        "tags": tags.get("tags", []),
        "license": writing.license or None,
    }
    return {
        field: value
        for field, value in given.items()
        if getattr(writing, field) != getattr(shown, field)
    }


def _variables(
    writing: Writing, base: Base | None, found: list[str], errors: Errors
) -> list[dict[str, Any]]:
    """Returns the variables of the text; where a row equals ``base``, the variable as it is
    there.
    """
    known = {variable.name: variable for variable in base.record.variables} if base else {}
    rows = {row.name: row for row in writing.rows}
    variables = []
    for name in found:
        row = rows.get(name) or (row_of(known[name]) if name in known else VariableRow(name))
        if name in known and row == row_of(known[name]):
            variables.append(msgspec.to_builtins(known[name]))
        else:
            variables.append(_variable(row, errors))
    return variables


def _variable(row: VariableRow, errors: Errors) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": row.name, "type": row.type, "description": row.description}
    if row.required != AUTO:
        fields["required"] = row.required == YES
    kind = row.type if row.type in TYPES else "string"
    for field, read in (("default", read_value), ("example", read_value), ("enum", read_lines)):
        try:
            fields[field] = read(getattr(row, field), kind)
        except ValueError as error:
            errors[f"variable-{row.name}-{field}"] = [str(error)]
    return fields


TYPES = get_args(VariableType)


def _parameters(writing: Writing, base: Base | None, errors: Errors) -> dict[str, Any]:
    if base and _given(writing) == _given(base.shown):
        return base.record.parameters
    parameters: dict[str, Any] = {}
    for name, (_, is_number) in PARAMETERS.items():
        text = writing.parameters.get(name, "")
        if not text:
            continue
        try:
            parameters[name] = read_number(text) if is_number else text
        except ValueError as error:
            errors[f"parameter-{name}"] = [str(error)]
    try:
        more = read_value(writing.more, "object") or {}
        if twice := sorted(more.keys() & parameters.keys()):
            raise ValueError(f"Set {', '.join(twice)} only once: here, or in the field above.")
    except ValueError as error:
        errors["more"] = [str(error)]
        return parameters
    return parameters | more


def _given(writing: Writing) -> tuple[dict[str, str], str]:
    return {name: text for name, text in writing.parameters.items() if text}, writing.more.strip()


def _note(error: RequestError, fields: Mapping[str, Any], errors: Errors) -> None:
    """Adds an error of the publish path to the fields of the form."""
    if not error.details:
        field = "new_labels" if error.code in ("invalid_label", "name_reserved") else "content"
        errors.setdefault(field, []).append(str(error))
    for field, message in error.details:
        if field == "content" and field in errors:
            continue
        errors.setdefault(_form_field(field, fields), []).append(sentence(message))


def sentence(message: str) -> str:
    """Returns the message of an error's detail as a sentence."""
    return f"{message[:1].upper()}{message[1:]}."


def _form_field(field: str, fields: Mapping[str, Any]) -> str:
    """Returns the form's field for one that a detail names, such as ``variables[2].default``."""
    top, _, rest = field.partition("[")
    index, _, part = rest.partition("]")
    if top == "variables" and index.isdigit() and int(index) < len(fields.get("variables", ())):
        name = fields["variables"][int(index)]["name"]
        return f"variable-{name}-{part.lstrip('.').partition('[')[0] or 'type'}"
    if top.partition(".")[0] == "parameters":
        return "more"
    return "new_labels" if top == "labels" else top


def propose_name(root: str, owner: str, writing: Writing) -> str:
    """Returns a name that the owner has not used, from the title, the heading or the first words of
    a text. A typed name is only corrected to a valid one, because it may name an existing prompt on
    purpose.
    """
    if writing.name:
        typed = writing.name.removeprefix(f"{owner}/")
        return plain_words(typed, names.REPO_CHARS_MAX, "-") or typed
    document = parse_document(writing.content)
    given = front_fields(document).get("title") or writing.title or title_of(document.body)
    title = given or " ".join(document.body.split()[:_TITLE_WORDS])
    # Room for a number.
    slug = plain_words(title, names.REPO_CHARS_MAX - 5, "-")
    if not re.search("[a-z]", slug) or names.why_reserved("prompt", slug):
        slug = f"{slug}-{_NAMELESS}".lstrip("-")
    numbered = (f"{slug}-{number}" for number in itertools.count(2))
    candidates = itertools.chain([slug], numbered)
    return next(one for one in candidates if not os.path.exists(f"{root}/{owner}/{one}"))
