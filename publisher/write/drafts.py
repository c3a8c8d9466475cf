"""The body of a publication, of a change of a label, or of a withdrawal: reads its fields and
checks that they are well-formed.

Looks at one draft alone, and does not know what a repo holds already. Pure.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct

from builder.model import names
from builder.model.errors import MESSAGES_MAX, Detail, RequestError, validation_failed
from builder.model.records import CHANGELOG_BYTES_MAX, CONTENT_BYTES_MAX, NOTE_BYTES_MAX
from builder.model.request_bodies import (
    Draft,
    LabelDraft,
    LabelRemoval,
    TrustedExchange,
    WithdrawalDraft,
)
from builder.model.version_files import BYTES_MAX
from builder.model.withdrawn import BECAUSE
from builder.text.json_keys import only_once
from publisher.accounts.token import find_token
from publisher.write.fields import GRAMMAR, check_characters, decode, decoder_of, suggest
from publisher.write.folders import IS_POINTER, LFS_POINTER, parse_files
from publisher.write.zips import read_zip

Change = TypeVar("Change", LabelDraft, LabelRemoval, WithdrawalDraft)
_Body = TypeVar("_Body", bound=Struct)

_ADVICE = {
    "content": "send the text of the prompt",
    "version": "send the version that the label is to name",
    "token": "send the ID token that the CI created for this job",
    "repo": f"it {GRAMMAR['repo']}",
    "reason": f"choose one of {', '.join(BECAUSE)}",
}
# JSON Schema counts characters, so these limits are not in the schema.
_BYTES_MAX = {"changelog": CHANGELOG_BYTES_MAX, "note": NOTE_BYTES_MAX}


def parse_draft(raw: bytes, file_bytes: int = BYTES_MAX) -> Draft:
    """Reads a publish body. Raises RequestError ``invalid_json``, and as make_draft."""
    return make_draft(_parse_object(raw, '{"content": "…"}'), file_bytes)


def parse_folder(raw: bytes, packed: bytes, file_bytes: int) -> tuple[Draft, list[str]]:
    """Reads a publish body whose text and files are in a ZIP; warnings name what is left out of
    that. Raises as parse_draft and read_zip.
    """
    fields = _parse_object(raw, '{"changelog": "…"}') if raw.strip() else {}
    found, left = read_zip(packed, file_bytes)
    twice = sorted(fields.keys() & found.keys())
    if twice:
        raise validation_failed(*(Detail(one, "is in the ZIP too: send it once") for one in twice))
    return make_draft(fields | found, file_bytes), left


def make_draft(fields: Mapping[str, Any], file_bytes: int = BYTES_MAX) -> Draft:
    """Returns a draft of these fields, with at most ``file_bytes`` of files.

    Raises RequestError ``validation_failed`` that lists every wrong field, ``content_too_large``,
    ``invalid_label``, ``name_reserved`` or ``secret_detected``.
    """
    draft = _decode(Draft, fields, file_bytes)
    # The parser of the files has checked them for tokens.
    rest = msgspec.structs.replace(draft, files=UNSET)
    _check_secret("prompt", "text", msgspec.json.encode(rest).decode())
    return draft


def parse_change(kind: type[Change], raw: bytes) -> Change:
    """Reads the body of a request to move or to remove a label; that of a removal may be empty.
    Raises RequestError ``invalid_json``, and as make_change.
    """
    is_removal = kind is LabelRemoval
    example = '{"note": "…"}' if is_removal else '{"version": "1.2.0"}'
    return make_change(kind, {} if is_removal and not raw else _parse_object(raw, example))


def parse_exchange(raw: bytes) -> TrustedExchange:
    """Reads a CI job's request for a token. Raises RequestError ``invalid_json``,
    ``validation_failed``; none quotes the ID token.
    """
    fields = _parse_object(raw, '{"token": "…", "repo": "ada/code-review"}')
    return _decode(TrustedExchange, fields)


def make_change(kind: type[Change], fields: Mapping[str, Any]) -> Change:
    """Returns the change of a label, or the withdrawal, that these fields describe.

    Raises RequestError ``validation_failed`` that lists every wrong field, or ``secret_detected``.
    """
    draft = _decode(kind, fields)
    _check_secret("note", "note", draft.note)
    return draft


def _check_secret(what: str, part: str, text: str) -> None:
    if find_token(text):
        raise RequestError(
            "secret_detected",
            f"The {what} contains an access token of this hub. Remove it from the {part} and "
            "revoke it: anyone who has seen it can publish as its owner.",
        )


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


def _decode(kind: type[_Body], fields: Mapping[str, Any], file_bytes: int = 0) -> _Body:
    """Returns a body with these fields.

    Raises RequestError ``validation_failed`` that lists every wrong field. Any other error of a
    field is raised at once.
    """
    values: dict[str, Any] = {}
    details: list[Detail] = []
    for field, value in fields.items():
        if field not in kind.__struct_fields__:
            details.append(_unknown(field, kind.__struct_fields__, len(details)))
            continue
        try:
            values[field] = _decode_field(kind, field, value, file_bytes)
        except RequestError as error:
            if error.code != "validation_failed":
                raise
            details += error.details
        except ValueError as error:
            details.append(Detail(field, str(error)))
    required = (one.name for one in msgspec.structs.fields(kind) if one.required)
    missing = (field for field in required if field not in fields)
    details += [Detail(field, f"is missing: {_ADVICE[field]}") for field in missing]
    if details:
        raise validation_failed(*details)
    return kind(**values)


def _decode_field(kind: type[Struct], field: str, value: Any, file_bytes: int) -> Any:
    """Returns a field of a body. Raises RequestError, ValueError."""
    if field == "files":
        return parse_files(value, file_bytes)
    if field == "labels":
        return _check_labels(value)
    bytes_max = _BYTES_MAX.get(field)
    if bytes_max and isinstance(value, str) and len(value.encode("utf-8", "replace")) > bytes_max:
        raise ValueError(f"is longer than {bytes_max:,} bytes: shorten it")
    parsed = decode(decoder_of(kind, field), field, value)
    if field == "content":
        return _check_content(parsed)
    if field == "token":  # no error may quote it
        return parsed
    check_characters(field, msgspec.to_builtins(parsed))
    return parsed


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


def _check_content(text: str) -> str:
    if (size := len(text.encode())) > CONTENT_BYTES_MAX:
        raise RequestError(
            "content_too_large",
            f"The content has {size:,} bytes, but {CONTENT_BYTES_MAX:,} is the limit. Shorten "
            "it, or publish it in parts.",
        )
    if not text.strip():
        raise ValueError("is empty: send the text of the prompt")
    if text.startswith(LFS_POINTER.decode()):
        raise ValueError(IS_POINTER)
    if "\0" in text:
        raise ValueError(f"has a NUL character at position {text.index(chr(0))}: remove it")
    return text


def _check_labels(value: Any) -> list[str]:
    # Not by the schema: a label that breaks the grammar has an error of its own.
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise ValueError('must be a list of labels: ["production"]')
    if len(value) > names.LABELS_PER_REPO_MAX:
        raise ValueError(f"has {len(value):,} labels, but {names.LABELS_PER_REPO_MAX} is the limit")
    if len({*value}) < len(value):
        raise ValueError("names a label twice: name each one once")
    return [names.check_new_label(label) for label in value]
