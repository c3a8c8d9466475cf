"""Two people have edited one version: what the later one may do, without a loss. Pure.

Each field that only one of them has changed takes that change. A field that both have changed is
the author's to decide.
"""

from typing import Any

from msgspec import structs

from builder.text.prompts import parse_document, variable_names
from publisher.web.editor.writing import PARAMETERS, Base, VariableRow, Writing, rows_for

# Fields that merge by themselves, each as a whole.
_FIELDS = ("content", "title", "description", "tags", "license", "more")


def rebase(writing: Writing, base: Base | None, latest: Base) -> Writing:
    """The author's fields, as a change of the latest version: where they are as in ``base``, they
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
