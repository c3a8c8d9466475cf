"""Decides a new version's metadata: fields over front matter over the previous version. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET

from builder.model.errors import Detail, cut, validation_failed
from builder.model.records import METADATA, VARIABLES_MAX, Variable, VersionFile
from builder.model.request_bodies import Draft
from builder.text.foreign import find_foreign, find_single, tell_foreign
from builder.text.prompts import Document, body_of, parse_document, variable_names
from builder.text.skill_texts import KEYS, looks_like_skill
from builder.text.summary import first_sentence, title_of
from builder.text.values import as_text, inexact_integers
from publisher.write.fields import parse_loosely
from publisher.write.secret_shapes import tell_secrets
from publisher.write.unworkable import tell_unworkable

_SHOWN_CHARS_MAX = 80


class Metadata(NamedTuple):
    """The facts about a prompt in a version's record: the fields of METADATA, and how many
    bytes of the text are front matter.
    """

    title: str
    description: str
    tags: list[str]
    license: str | None
    variables: list[Variable]
    parameters: dict[str, Any]
    front_matter_bytes: int


def resolve(
    draft: Draft, name: str, previous: tuple[VersionFile, str] | None, *, front_matter: bool = True
) -> tuple[Metadata, list[str]]:
    """Returns the metadata of the version that ``draft`` makes of repo ``name``, and warnings.

    ``previous`` is the latest version's record and text. Without ``front_matter`` the block in the
    text is left alone: the caller has read it. Raises RequestError ``validation_failed`` where the
    text has more variables than a record can hold, or front matter that neither this function nor
    the caller can read.
    """
    document = parse_document(draft.content)
    if document.fault and front_matter:
        raise validation_failed(
            Detail(
                "content",
                f"The front matter cannot be read: {document.fault}. Correct it, or start the "
                "content with an empty line to publish it as text",
            )
        )
    declared, warnings = _read_front(document) if front_matter else ({}, [])
    for field in METADATA:
        if getattr(draft, field) is not UNSET:
            declared[field] = getattr(draft, field)

    # A {{name}} in the front matter is an example, not a variable that a reader fills in.
    found = variable_names(document.body)
    values = {
        "title": title_of(document.body) or name,
        "description": first_sentence(document.body),
        "tags": [],
        "license": None,
        "parameters": {},
        **_inherit(previous, name, draft.content),
        **declared,
    }
    variables = declared.get("variables")
    if variables is None:
        inherited = previous[0].variables if previous else []
        variables = [variable for variable in inherited if variable.name in found]
    values["variables"], notes = _complete(variables, found)
    size = len(draft.content.encode()) - len(document.body.encode())
    metadata = Metadata(**values, front_matter_bytes=size)
    foreign = tell_foreign(find_foreign(document.body) + find_single(document.body))
    warnings = [*warnings, *notes, *_tell_inexact(metadata), *foreign]
    return metadata, [*warnings, *_tell_of_files(draft, name, document)]


def _tell_of_files(draft: Draft, name: str, document: Document) -> Iterator[str]:
    """Yields warnings about secrets, and about what will not work."""
    files = [(one.path, one.data, one.executable) for one in draft.files or ()]
    yield from tell_unworkable(name, document.front or {}, files)
    yield from tell_secrets(draft.content, [(path, data) for path, data, _ in files])


def _tell_inexact(metadata: Metadata) -> Iterator[str]:
    """Yields warnings about numbers that readers do not get with all their digits: a double cannot
    hold them (RFC 8259 §6).
    """
    places = [(f"Parameter {name!r}", value) for name, value in metadata.parameters.items()]
    for variable in metadata.variables:
        places += [
            (f"The {field} of variable {variable.name!r}", getattr(variable, field))
            for field in ("default", "example", "enum")
        ]
    for place, value in places:
        for number in inexact_integers(value):
            yield (
                f"{cut(place, _SHOWN_CHARS_MAX)} has the number {cut(str(number), 40)}, which a "
                f"double cannot hold exactly: clients write {as_text(number)}. Put it in quotes "
                "to keep it."
            )


def _read_front(document: Document) -> tuple[dict[str, Any], list[str]]:
    front = document.front or {}
    if looks_like_skill(front):
        front = {key: value for key, value in front.items() if key not in KEYS}
    fields, notes = parse_loosely(front)
    return fields, document.warnings + [f"Front matter: {note}" for note in notes]


def _inherit(previous: tuple[VersionFile, str] | None, name: str, content: str) -> dict[str, Any]:
    """Returns what the new version takes from the previous one; its variables depend on the text.

    A title or a description that was derived from the old text is left out, so the new text gives
    its own.
    """
    if not previous:
        return {}
    record, text = previous
    fields = {field: getattr(record, field) for field in METADATA}
    if text != content:
        body = body_of(text, record.front_matter_bytes)
        if record.title in (name, title_of(body)):
            del fields["title"]
        if record.description == first_sentence(body):
            del fields["description"]
    return fields


def _complete(variables: list[Variable], found: list[str]) -> tuple[list[Variable], list[str]]:
    """Returns the declared variables and those that the text uses beside them, and warnings."""
    declared = {variable.name for variable in variables}
    added = [Variable(variable) for variable in found if variable not in declared]
    unused = [variable.name for variable in variables if variable.name not in found]
    if len(found) > VARIABLES_MAX:
        raise validation_failed(
            Detail("content", f"uses {len(found)} variables, but {VARIABLES_MAX} is the limit")
        )
    what = "Declared"
    if len(variables) + len(added) > VARIABLES_MAX:
        variables = [variable for variable in variables if variable.name in found]
        what = "Ignored declared"
    notes = [f"{what} variables that are not in the text: {', '.join(unused)}."] if unused else []
    return variables + added, notes
