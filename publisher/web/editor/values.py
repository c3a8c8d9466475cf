"""Texts, and values of variables and parameters, as a form has them, and back. Pure.

A form turns every line end into CR LF
(https://html.spec.whatwg.org/#convert-to-a-list-of-name-value-pairs).
Here, all texts of a form have LF. A published text gets the line ends of the version that the
author began with.

Text is written as it is. An empty text, and one that would read as another value, is in quotes, as
in JSON. Lists and objects are JSON.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any

from builder.text.json_keys import only_once

_whole = re.compile(r"[+-]?[0-9]{1,18}")
_end = re.compile(r"\r\n|\r|\n")


def with_line_feeds(text: str) -> str:
    """Returns ``text`` as a form has it, with LF as its only line end."""
    return _end.sub("\n", text)


def restore_line_ends(text: str, base: str) -> str:
    """Returns ``text`` with the line end of the first line of ``base``; an unchanged text as it is
    there.
    """
    if with_line_feeds(base) == text:
        return base
    first = _end.search(base)
    return text.replace("\n", first[0]) if first else text


def show_value(value: Any) -> str:
    """Returns a value as the form shows it; None gives an empty field."""
    if value is None:
        return ""
    if isinstance(value, str) and value and _read_text(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def read_value(text: str, kind: str) -> Any:
    """Returns the value of a field, by its variable's type; None for an empty one.

    Raises ValueError with a sentence that says what to write.
    """
    if not text.strip() and (kind != "string" or not text):
        return None
    return _READERS[kind](text)


def show_lines(values: list[Any] | None) -> str:
    """Returns the text of a field with these values, one on each line."""
    return "\n".join(
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, str) and ("\n" in value or value != value.strip())
        else show_value(value)
        for value in values or ()
    )


def read_lines(text: str, kind: str) -> list[Any] | None:
    """Returns the values on the lines of a field; None for none. Raises as read_value."""
    return [read_value(line.strip(), kind) for line in text.split("\n") if line.strip()] or None


def read_json(text: str) -> Any:
    """Returns the value of a JSON text. Raises ValueError with a sentence that says where it is
    invalid.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"This is not valid JSON: check line {error.lineno} from character {error.colno}."
        ) from None
    except RecursionError:
        raise ValueError("This is nested too deeply. Use fewer levels.") from None


def read_number(text: str) -> int | float:
    """Returns a number. Raises ValueError with a sentence."""
    if _whole.fullmatch(text.strip()):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("Enter a number, such as 0.7.")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    try:
        return only_once(pairs)
    except ValueError as error:
        sentence = str(error)
        raise ValueError(f"{sentence[:1].upper()}{sentence[1:]}. Remove one of them.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON. Use a number.")


def _read_text(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return found if isinstance(found, str) else text
    return text


def _read_whole(text: str) -> int:
    if not _whole.fullmatch(text.strip()):
        raise ValueError("Enter a whole number of at most 18 digits.")
    return int(text)


def _read_truth(text: str) -> bool:
    found = {"true": True, "false": False}.get(text.strip().lower())
    if found is None:
        raise ValueError("Enter true or false.")
    return found


def _read_kind(kind: type, advice: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = read_json(text)
        if not isinstance(value, kind):
            raise ValueError(advice)
        return value

    return read


_READERS: dict[str, Callable[[str], Any]] = {
    "string": _read_text,
    "integer": _read_whole,
    "number": read_number,
    "boolean": _read_truth,
    "array": _read_kind(list, 'Enter a JSON list, such as ["a", "b"].'),
    "object": _read_kind(dict, 'Enter a JSON object, such as {"a": 1}.'),
}
