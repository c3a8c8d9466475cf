"""Moves an author's metadata between the form and the front matter of the text. Pure.

It does so only when the author requests it, and loses nothing: a value that cannot be moved whole
stays where it is.
"""

from typing import Any

import msgspec
import yaml
from msgspec import structs

from builder.model.errors import RequestError
from builder.text.prompts import parse_document, variable_names
from publisher.web.editor.fields import Errors, WritingError, front_fields, to_draft
from publisher.web.editor.writing import Base, Writing, row_of, rows_for, split_parameters
from publisher.write.fields import parse_loosely
from publisher.write.resolve import resolve


def into_text(writing: Writing, name: str, base: Base | None) -> Writing:
    """Returns the fields with all metadata in the front matter of the text. Values that the front
    matter has already stay as they are. Raises WritingError.
    """
    draft = to_draft(writing, name, base)
    try:
        metadata, _ = resolve(draft, name, (base.record, base.text) if base else None)
    except RequestError as error:
        raise WritingError({"content": [str(error)]}, error.status) from None
    document = parse_document(writing.content)
    there = document.front or {}
    added = {
        field: value
        for field, value in {
            "title": metadata.title,
            "description": metadata.description if writing.description else None,
            "tags": metadata.tags or None,
            "license": metadata.license,
            "variables": {one.name: _spec(one) for one in metadata.variables} or None,
            "parameters": metadata.parameters or None,
        }.items()
        if value is not None and there.get(field) is None
    }
    if not added:
        raise _refused("The front matter has all details already.")
    lines = yaml.safe_dump(added, sort_keys=False, allow_unicode=True, width=100)
    head = writing.content[: len(writing.content) - len(document.body)]
    if document.front is None:
        content = f"---\n{lines}---\n{document.body}"
    else:
        # Before the last fence, which ends the front matter.
        at = head.rstrip("\n").rfind("\n") + 1
        content = head[:at] + lines + head[at:] + document.body
    moved = structs.replace(writing, content=content)
    wanted = front_fields(document) | {field: getattr(metadata, field) for field in added}
    if front_fields(parse_document(content)) != wanted:
        raise _refused(
            "The details do not fit into the front matter of this text. Write them there by hand, "
            "or take the front matter into the form."
        )
    return moved


def out_of_text(writing: Writing) -> Writing:
    """Returns the fields with the values of the front matter, and the text without it. Raises
    WritingError where a part of it has no field in the form.
    """
    document = parse_document(writing.content)
    if document.front is None:
        raise _refused("The text has no front matter that can be read.")
    _, notes = parse_loosely(document.front)
    notes = document.warnings + notes
    if notes:
        raise _refused(
            "The front matter has parts without a field in the form, so it stays. "
            + " ".join(notes)
        )
    given = front_fields(document)
    changes: dict[str, Any] = {"content": document.body.removeprefix("\n")}
    for field in ("title", "description", "license"):
        if field in given:
            changes[field] = given[field] or ""
    if "tags" in given:
        changes["tags"] = tuple(given["tags"])
    if "parameters" in given:
        changes["parameters"], changes["more"] = split_parameters(given["parameters"])
    if "variables" in given:
        rows = map(row_of, given["variables"])
        changes["rows"] = rows_for(variable_names(document.body), rows)
    return structs.replace(writing, **changes)


def _spec(variable: Any) -> dict[str, Any]:
    """Returns a variable as front matter has it, without defaults."""
    fields = msgspec.to_builtins(variable)
    is_usual = variable.required is (variable.default is None)
    return {
        key: value
        for key, value in fields.items()
        if key != "name"
        and not (key == "required" and is_usual)
        and not (
            key == "type" and value == "string" and isinstance(variable.default, str | type(None))
        )
        and value not in (None, "")
    }


def _refused(reason: str) -> WritingError:
    errors: Errors = {"content": [reason]}
    return WritingError(errors)
