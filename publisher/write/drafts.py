"""The body of a publication, of a change of a label, or of a withdrawal: reads its fields and
checks that they are well-formed.

Looks at one draft alone, and does not know what a repo holds already. Pure.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from builder.model import names
from builder.model.errors import MESSAGES_MAX, Detail, RequestError, validation_failed
from builder.model.records import CHANGELOG_BYTES_MAX, CONTENT_BYTES_MAX, NOTE_BYTES_MAX
from builder.model.request_bodies import Draft, LabelDraft, LabelRemoval, WithdrawalDraft
from builder.model.withdrawn import BECAUSE
from builder.text.json_keys import only_once
from publisher.accounts.token_text import find_token
from publisher.write.characters import check_characters
from publisher.write.fields import METADATA_FIELDS, parse_field, suggest
from publisher.write.folders import parse_files
from publisher.write.zips import read_zip

_Parser = Callable[[Any], Any]


def parse_draft(raw: bytes) -> Draft:
    """Reads a publish body. Raises RequestError ``invalid_json``, and as make_draft."""
    return make_draft(_parse_object(raw, '{"content": "…"}'))


def parse_folder(raw: bytes, packed: bytes) -> tuple[Draft, list[str]]:
    """Reads a publish body whose text and files are in a ZIP; warnings name what is left out of
    that. Raises as parse_draft and read_zip.
    """
    fields = _parse_object(raw, '{"changelog": "…"}') if raw.strip() else {}
    found, left = read_zip(packed)
    twice = sorted(fields.keys() & found.keys())
    if twice:
        raise validation_failed(*(Detail(one, "is in the ZIP too: send it once") for one in twice))
    return make_draft(fields | found), left


def make_draft(fields: Mapping[str, Any]) -> Draft:
    """Returns a draft of these fields.

    Raises RequestError ``validation_failed`` that lists every wrong field, ``content_too_large``,
    ``invalid_label``, ``name_reserved`` or ``secret_detected``.
    """
    draft = Draft(**_parse_fields(fields, _DRAFT, content="send the text of the prompt"))
    # The parser of the files has checked them for tokens.
    rest = msgspec.structs.replace(draft, files=UNSET)
    if find_token(msgspec.json.encode(rest).decode()):
        raise RequestError(
            "secret_detected",
            "The prompt contains an access token of this hub. Remove it from the text and "
            "revoke it: anyone who has seen it can publish as its owner.",
        )
    return draft


def parse_label_draft(raw: bytes) -> LabelDraft:
    """Reads the body of a request to move a label. Raises RequestError ``invalid_json``, and as
    make_label_draft.
    """
    return make_label_draft(_parse_object(raw, '{"version": "1.2.0"}'))


def make_label_draft(fields: Mapping[str, Any]) -> LabelDraft:
    """Returns the move of a label that these fields describe.

    Raises RequestError ``validation_failed`` that lists every wrong field, or ``secret_detected``.
    """
    then = "send the version that the label is to name"
    return _without_token(LabelDraft(**_parse_fields(fields, _LABEL_DRAFT, version=then)))


def parse_label_removal(raw: bytes) -> LabelRemoval:
    """Reads the body of a request to remove a label; the body may be empty. Raises as
    parse_label_draft.
    """
    return make_label_removal(_parse_object(raw, '{"note": "…"}') if raw else {})


def make_label_removal(fields: Mapping[str, Any]) -> LabelRemoval:
    """Returns the removal of a label that these fields describe. Raises as make_label_draft."""
    return _without_token(LabelRemoval(**_parse_fields(fields, _LABEL_REMOVAL)))


def make_withdrawal_draft(fields: Mapping[str, Any]) -> WithdrawalDraft:
    """Returns the withdrawal that these fields describe. Raises as make_label_draft."""
    then = f"choose one of {', '.join(BECAUSE)}"
    return _without_token(WithdrawalDraft(**_parse_fields(fields, _WITHDRAWAL_DRAFT, reason=then)))


def _without_token(draft: LabelDraft | LabelRemoval | WithdrawalDraft) -> Any:
    if find_token(draft.note):
        raise RequestError(
            "secret_detected",
            "The note contains an access token of this hub. Remove it from the note and revoke "
            "it: anyone who has seen it can publish as its owner.",
        )
    return draft


def _parse_object(raw: bytes, example: str) -> dict[str, Any]:
    """Returns the fields of a body. Raises RequestError ``invalid_json``."""
    try:
        # Not msgspec, which refuses half of a surrogate pair as invalid JSON: here the field's
        # parser reports it, with the name of the field.
        fields = json.loads(
            raw.decode("utf-8"),
            parse_constant=_parse_number,
            parse_float=_parse_number,
            object_pairs_hook=only_once,
        )
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise RequestError(
            "invalid_json", f"The body is not a JSON object in UTF-8: {reason}. Send one."
        ) from None
    if not isinstance(fields, dict):
        raise RequestError("invalid_json", f"The body is not a JSON object. Send one: {example}.")
    return fields


def _parse_fields(
    fields: Mapping[str, Any], parsers: Mapping[str, _Parser], **required: str
) -> dict[str, Any]:
    """Returns the fields as their parsers read them. ``required`` maps each required field to the
    advice for where it is missing.

    Raises RequestError ``validation_failed`` that lists every wrong field. Any other error of a
    parser is raised at once.
    """
    values: dict[str, Any] = {}
    details: list[Detail] = []
    for field, value in fields.items():
        if field not in parsers:
            details.append(_unknown(field, [*parsers], len(details)))
            continue
        try:
            values[field] = parsers[field](value)
        except RequestError as error:
            if error.code != "validation_failed":
                raise
            details += error.details
        except ValueError as error:
            details.append(Detail(field, str(error)))
    missing = required.keys() - fields.keys()
    details += [Detail(field, f"is missing: {required[field]}") for field in sorted(missing)]
    if details:
        raise validation_failed(*details)
    return values


def _unknown(field: str, known: Sequence[str], faults: int) -> Detail:
    # The error shows only the first faults, so only for these a suggestion is searched for.
    near = suggest(field, known) if faults < MESSAGES_MAX else ""
    shown = field[:100].encode("utf-8", "replace").decode()
    return Detail(shown, f"is not a known field{near}: the fields are {', '.join(known)}")


def _parse_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a JSON number")
    return number


def _parse_content(value: Any) -> str:
    size = _utf8_size(value)
    if size > CONTENT_BYTES_MAX:
        raise RequestError(
            "content_too_large",
            f"The content has {size:,} bytes, but {CONTENT_BYTES_MAX:,} is the limit. Shorten "
            "it, or publish it in parts.",
        )
    if not value.strip():
        raise ValueError("is empty: send the text of the prompt")
    if "\0" in value:
        raise ValueError(f"has a NUL character at position {value.index(chr(0))}: remove it")
    return value


def _parse_text(field: str, bytes_max: int, value: Any) -> str:
    if _utf8_size(value) > bytes_max:
        raise ValueError(f"is longer than {bytes_max:,} bytes: shorten it")
    check_characters(field, value)
    return value


def _parse_choice(choices: tuple[str, ...], value: Any) -> str:
    if value not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}")
    return value


def _parse_version(value: Any) -> str:
    try:
        return str(names.Version.parse(value if isinstance(value, str) else ""))
    except RequestError as error:
        raise ValueError(str(error)) from None


def _parse_expected(value: Any) -> str | None:
    return None if value is None else _parse_version(value)


def _parse_labels(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise ValueError('must be a list of labels: ["production"]')
    if len(value) > names.LABELS_PER_REPO_MAX:
        raise ValueError(f"has {len(value):,} labels, but {names.LABELS_PER_REPO_MAX} is the limit")
    if len({*value}) < len(value):
        raise ValueError("names a label twice: name each one once")
    return [names.check_new_label(label) for label in value]


def _utf8_size(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type(value).__name__}")
    try:
        return len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ValueError(
            f"has half of a surrogate pair at position {error.start}: send whole characters"
        ) from None


_parse_note = partial(_parse_text, "note", NOTE_BYTES_MAX)

_OTHERS: dict[str, _Parser] = {
    "content": _parse_content,
    "changelog": partial(_parse_text, "changelog", CHANGELOG_BYTES_MAX),
    "bump": partial(_parse_choice, (*names.BUMPS, names.AUTO)),
    "base_version": _parse_version,
    "labels": _parse_labels,
    "files": parse_files,
}
_DRAFT: dict[str, _Parser] = {
    field: partial(parse_field, field) if field in METADATA_FIELDS else _OTHERS[field]
    for field in Draft.__struct_fields__
}
_LABEL_DRAFT: dict[str, _Parser] = {
    "version": _parse_version,
    "note": _parse_note,
    "expected": _parse_expected,
}
_LABEL_REMOVAL: dict[str, _Parser] = {"note": _parse_note, "expected": _parse_version}
_WITHDRAWAL_DRAFT: dict[str, _Parser] = {
    "reason": partial(_parse_choice, (*BECAUSE,)),
    "note": _parse_note,
    "move_labels": _parse_version,
}
