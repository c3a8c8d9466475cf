"""The body of a publication: its fields, and whether they are well-formed.

Looks at one draft alone: what a repo holds already is not known here. Pure.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from builder.model import names, records
from builder.model.errors import MESSAGES_MAX, Detail, RequestError, validation_failed
from builder.model.records import CONTENT_BYTES_MAX, Draft
from publisher.accounts.tokens import find_token
from publisher.write.fields import METADATA_FIELDS, parse_field, suggest

_KNOWN = Draft.__struct_fields__
CHANGELOG_BYTES_MAX = records.Changelog.__metadata__[0].max_length


def parse_draft(raw: bytes) -> Draft:
    """Read a publish body. Raises RequestError ``invalid_json``, and as make_draft."""
    try:
        # Not msgspec: half of a surrogate pair is for make_draft to name with its field.
        fields = json.loads(
            raw.decode("utf-8"), parse_constant=_parse_number, parse_float=_parse_number
        )
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise RequestError(
            "invalid_json", f"The body is not a JSON object in UTF-8: {reason}. Send one."
        ) from None
    if not isinstance(fields, dict):
        raise RequestError(
            "invalid_json", 'The body is not a JSON object. Send one: {"content": "…"}.'
        )
    return make_draft(fields)


def make_draft(fields: Mapping[str, Any]) -> Draft:
    """A draft of these fields.

    Raises RequestError ``validation_failed`` that lists every wrong field,
    ``content_too_large`` or ``secret_detected``.
    """
    values: dict[str, Any] = {}
    details: list[Detail] = []
    for field, value in fields.items():
        if field not in _KNOWN:
            # Only what is shown is worth the search for what was meant.
            near = suggest(field, _KNOWN) if len(details) < MESSAGES_MAX else ""
            shown = field[:100].encode("utf-8", "replace").decode()
            details.append(
                Detail(shown, f"is not a known field{near}: the fields are {', '.join(_KNOWN)}")
            )
            continue
        try:
            values[field] = _parse(field, value)
        except RequestError as error:
            details += error.details
            if error.code == "content_too_large":
                raise
        except ValueError as error:
            details.append(Detail(field, str(error)))
    if "content" not in fields:
        details.append(Detail("content", "is missing: send the text of the prompt"))
    if details:
        raise validation_failed(*details)
    draft = Draft(**values)
    if find_token(msgspec.json.encode(draft).decode()):
        raise RequestError(
            "secret_detected",
            "The prompt contains an access token of this hub. Remove it from the text and "
            "revoke it: anyone who has seen it can publish as its owner.",
        )
    return draft


def _parse_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a JSON number")
    return number


def _parse(field: str, value: Any) -> Any:
    if field in METADATA_FIELDS:
        return parse_field(field, value)
    return _PARSERS[field](value)


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


def _parse_changelog(value: Any) -> str:
    if _utf8_size(value) > CHANGELOG_BYTES_MAX:
        raise ValueError(f"is longer than {CHANGELOG_BYTES_MAX:,} bytes: shorten it")
    return value


def _parse_bump(value: Any) -> str:
    if value not in names.BUMPS:
        raise ValueError(f"must be one of {', '.join(names.BUMPS)}")
    return value


def _parse_base_version(value: Any) -> str:
    try:
        return str(names.Version.parse(value if isinstance(value, str) else ""))
    except RequestError as error:
        raise ValueError(str(error)) from None


def _utf8_size(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type(value).__name__}")
    try:
        return len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ValueError(
            f"has half of a surrogate pair at position {error.start}: send whole characters"
        ) from None


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "content": _parse_content,
    "changelog": _parse_changelog,
    "bump": _parse_bump,
    "base_version": _parse_base_version,
}
