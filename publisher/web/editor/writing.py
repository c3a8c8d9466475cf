"""The content of the editor: its fields as a person fills them in, from a request, a version or a
saved draft. Holds any values, right or wrong.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs
from werkzeug.datastructures import MultiDict

from builder.model import names
from builder.model.names import Version
from builder.model.records import VARIABLES_MAX, Variable, VersionFile
from builder.store import content
from builder.text.prompts import VARIABLE_NAME, body_of, parse_document, variable_names
from builder.text.summary import first_sentence
from publisher.web.editor.files import FileRow, read_rows, rebase_rows, rows_of
from publisher.web.editor.values import show_lines, show_value, with_line_feeds
from publisher.web.pages.difference import Files, Side, files_of

# Parameters with a field of their own: its label, and True if it is a number.
PARAMETERS = {
    "model": ("Model", False),
    "temperature": ("Temperature", True),
    "top_p": ("Top p", True),
    "max_tokens": ("Max. tokens", True),
}
AUTO, YES, NO = "auto", "yes", "no"
_variable = re.compile(VARIABLE_NAME)


class VariableRow(Struct, frozen=True):
    """The fields of a variable. ``required`` is AUTO, YES or NO; AUTO: unless it has a default."""

    name: str
    type: str = "string"
    required: str = AUTO
    description: str = ""
    default: str = ""
    example: str = ""
    enum: str = ""


class Writing(Struct, frozen=True):
    """All fields of the editor.

    ``name`` is that of a new prompt; ``base_version`` is the version that the next one is to
    follow. One of the two is empty. ``bump`` is empty where the proposed step is to be taken. Line
    ends are LF. ``nonce`` distinguishes pages with the same fields.
    """

    name: str = ""
    base_version: str = ""
    content: str = ""
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    license: str = ""
    rows: tuple[VariableRow, ...] = ()
    parameters: dict[str, str] = {}
    more: str = ""
    changelog: str = ""
    bump: str = ""
    labels: tuple[str, ...] = ()
    new_labels: str = ""
    nonce: str = ""
    files: tuple[FileRow, ...] = ()


class Base(NamedTuple):
    """The version that the author began with, and the fields that showed it."""

    version: Version
    record: VersionFile
    text: str
    files: Files
    shown: Writing

    @property
    def side(self) -> Side:
        """The version as a side of a comparison."""
        return Side(str(self.version), self.text, self.record.front_matter_bytes, self.files)


def read_writing(form: MultiDict[str, str]) -> Writing:
    """Returns the fields of a request. A missing field is empty."""

    def text(field: str) -> str:
        return with_line_feeds(form.get(field, ""))

    def line(field: str) -> str:
        return " ".join(form.get(field, "").split())

    columns = (form.getlist(f"variable-{field}") for field in VariableRow.__struct_fields__)
    rows = tuple(
        VariableRow(*map(with_line_feeds, cells))
        for cells in zip(*columns, strict=False)  # the editor's own page sends as many of each
        if _variable.fullmatch(cells[0])
    )
    return Writing(
        name=line("name"),
        base_version=line("base_version"),
        content=text("content"),
        title=line("title"),
        description=text("description"),
        tags=tuple(" ".join(form.getlist("tags")).replace(",", " ").split()),
        license=line("license"),
        rows=rows[:VARIABLES_MAX],
        parameters={name: line(f"parameter-{name}") for name in PARAMETERS},
        more=text("more"),
        changelog=text("changelog"),
        bump=form.get("bump", "") if form.get("bump") in names.BUMPS else "",
        labels=tuple(form.getlist("labels")[: names.LABELS_PER_REPO_MAX]),
        new_labels=line("new_labels"),
        nonce=line("nonce")[:32],
        files=read_rows(form),
    )


def read_base(root: str, owner: str, name: str, version: str | None = None) -> Base | None:
    """Returns a version, by default the latest; None where it does not exist, or no longer does.

    Raises ContentError where its files are broken, OperatorError.
    """
    versions = content.list_versions(root, owner, name).versions
    found = [one for one in versions if version in (None, str(one))]
    if not found:
        return None
    wanted = found[-1]
    record, text = content.read_version(root, owner, name, wanted)
    files = files_of(record, content.read_files(root, owner, name, wanted, record))
    return Base(wanted, record, text, files, show_version(wanted, record, text, files))


def show_version(version: Version, record: VersionFile, text: str, files: Files) -> Writing:
    """Returns the fields of a version."""
    body = body_of(text, record.front_matter_bytes)
    parameters, more = split_parameters(record.parameters)
    # A description that was derived from the text is not shown: the next text has its own first
    # sentence.
    is_written = record.description != first_sentence(body)
    return Writing(
        base_version=str(version),
        content=with_line_feeds(text),
        title=record.title,
        description=with_line_feeds(record.description) if is_written else "",
        tags=tuple(record.tags),
        license=record.license or "",
        rows=rows_for(variable_names(body), map(row_of, record.variables)),
        parameters=parameters,
        more=more,
        files=rows_of(files),
    )


def row_of(variable: Variable) -> VariableRow:
    """Returns the fields of a variable."""
    is_usual = variable.required is (variable.default is None)
    return VariableRow(
        name=variable.name,
        type=variable.type,
        required=AUTO if is_usual else YES if variable.required else NO,
        description=with_line_feeds(variable.description),
        default=with_line_feeds(show_value(variable.default)),
        example=with_line_feeds(show_value(variable.example)),
        enum=show_lines(variable.enum),
    )


def rows_for(found: Iterable[str], known: Iterable[VariableRow]) -> tuple[VariableRow, ...]:
    """Returns a row for each variable ``found`` in a text: a known one (the last of its name), or a
    new one. The known ones that are not in the text follow. At most VARIABLES_MAX rows.
    """
    rows = {row.name: row for row in known}
    used = [rows.pop(name, None) or VariableRow(name) for name in found]
    return (*used, *rows.values())[:VARIABLES_MAX]


def split_parameters(parameters: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Returns the parameters with fields of their own, and the others as a JSON object; empty for
    none.
    """
    fields, others = dict.fromkeys(PARAMETERS, ""), {}
    for name, value in parameters.items():
        kind = (int, float) if name in PARAMETERS and PARAMETERS[name][1] else str
        if name in PARAMETERS and isinstance(value, kind) and not isinstance(value, bool):
            shown = show_value(value)
            if shown == " ".join(shown.split()):
                fields[name] = shown
                continue
        others[name] = value
    more = msgspec.json.format(msgspec.json.encode(others), indent=2).decode() if others else ""
    return fields, more


# Two people who edited the same version

# Fields that merge independently, each as a whole.
_FIELDS = ("content", "title", "description", "tags", "license", "more")


def rebase(writing: Writing, base: Base | None, latest: Base) -> Writing:
    """Returns the author's fields as a change of the latest version: fields that equal ``base``
    become those of the latest, and of a field that both have changed, the author's stays. Without a
    ``base``, all stay as they are.
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
