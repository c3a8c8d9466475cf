"""Merges the changes of two people who edited the same version, without a loss. Pure.

A field that only one of them has changed takes that change. For a field that both have changed, the
author decides.
"""

from typing import Any

from msgspec import structs

from builder.text.prompts import parse_document, variable_names
from publisher.web.editor.files import rebase_rows
from publisher.web.editor.writing import PARAMETERS, Base, VariableRow, Writing, rows_for

# Fields that merge independently, each as a whole.
_FIELDS = ("content", "title", "description", "tags", "license", "more")


def rebase(writing: Writing, base: Base | None, latest: Base) -> Writing:
    """Returns the author's fields as a change of the latest version: fields that equal ``base``
    become those of the latest. Without a ``base``, all stay as they are.
    """
    changes: dict[str, Any] = {"base_version": str(latest.version), "bump": ""}
    if base:
        old, new = base.shown, latest.shown
        for field in _FIELDS:
            if getattr(writing, field) == getattr(old, field):
                changes[field] = getattr(new, field)
        changes["parameters"] = {
            name: new.parameters.get(name, "")
            if writing.parameters.get(name, "") == old.parameters.get(name, "")
            else writing.parameters.get(name, "")
            for name in PARAMETERS
        }
        text = changes.get("content", writing.content)
        changes["files"] = rebase_rows(writing.files, old.files, new.files)
        changes["rows"] = _rebase_rows(writing, old, new, text)
    return structs.replace(writing, **changes)


def _rebase_rows(
    writing: Writing, old: Writing, new: Writing, text: str
) -> tuple[VariableRow, ...]:
    before, after = _by_name(old.rows), _by_name(new.rows)
    mine = {
        row.name: after.get(row.name, row) if before.get(row.name) == row else row
        for row in writing.rows
    }
    return rows_for(variable_names(parse_document(text).body), ({**after, **mine}).values())


def _by_name(rows: tuple[VariableRow, ...]) -> dict[str, VariableRow]:
    return {row.name: row for row in rows}
