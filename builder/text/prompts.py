"""Front matter and variables of a prompt's text.

Pure functions of text. The front matter block follows the common convention (dotprompt, prompty,
SKILL.md): a YAML mapping between two lines of three hyphens, at the very start.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from builder.model.records import FRONT_MATTER_BYTES_MAX
from builder.text.core_yaml import load_yaml

VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"

_variable = re.compile(r"\{\{[ \t]*(" + VARIABLE_NAME + r")[ \t]*\}\}")
# From left to right: an escaped opening is matched before it can open anything.
_variable_or_escape = re.compile(r"\\\{\{|" + _variable.pattern)
# The line before front matter, and the line after it.
_fence = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
# The same with line ends that YAML allows and front matter does not.
_any_fence = re.compile(r"[\r\n]---[ \t]*+(?:[\r\n]|\Z)")
_lone_return = re.compile(r"\r(?!\n)")
BOM = "\ufeff"
# A text between two rules is a prompt, but one whose first line begins with a key is metadata.
_begins_with_key = re.compile(
    BOM + r"""?---[ \t]*+(?:\r\n?|\n)[ \t]*+(?:\{\s*+)?"""
    r"""(?:[\w.$-]++[ \t]*+:(?=\s|\Z)|"[^"\r\n]++"[ \t]*+:|'[^'\r\n]++'[ \t]*+:)"""
)


class Document(NamedTuple):
    """A parsed prompt text. ``front`` is None if there is no front matter block; its scalars are as
    ``load_yaml`` returns them.

    ``fault``: the reason why a block that begins with a key cannot be read as front matter,
    otherwise empty.
    """

    front: dict[str, Any] | None
    body: str
    warnings: list[str]
    fault: str = ""


def parse_document(text: str) -> Document:
    """Split ``text`` into front matter and body. Front matter has at most FRONT_MATTER_BYTES_MAX
    bytes, with its lines of hyphens. Warnings describe its faults. Never raises.
    """
    opening = _fence.match(text)
    closing = opening and _fence.search(text, opening.end())
    if not closing:
        return _without_front(text)
    try:
        size = len(text[: closing.end()].encode(errors="surrogatepass"))
        if size > FRONT_MATTER_BYTES_MAX:
            limit = f"the limit is {FRONT_MATTER_BYTES_MAX:,}"
            raise ValueError(f"it has {size:,} bytes; {limit}")
        # An empty line in place of the fence, so that errors name the lines of the text.
        front, notes = load_yaml("\n" + text[opening.end() : closing.start()])
    except ValueError as error:
        return _kept(text, str(error))
    if not isinstance(front, dict):
        message = "The block between the --- lines is not a mapping and was kept as text."
        return Document(None, text, [message])
    return Document(front, text[closing.end() :], [f"Front matter: {note}" for note in notes])


def _without_front(text: str) -> Document:
    """A text without a complete front matter block."""
    if without_block(text) is not text:
        if text.startswith(BOM):
            message = "line 1, column 1 is a byte order mark; save the text as UTF-8 without one"
            return _kept(text, message)
        before = text[: _lone_return.search(text).start()].split("\n")
        place = f"line {len(before)}, column {len(before[-1]) + 1}"
        return _kept(text, f"{place} is a CR alone; save the text with line ends of LF or CR LF")
    message = (
        "The text begins like front matter, but no second line of --- ends it: it is all text."
    )
    return Document(None, text, [message] if _begins_with_key.match(text) else [])


def _kept(text: str, reason: str) -> Document:
    message = f"The front matter is invalid and was kept as text: {reason}."
    return Document(None, text, [message], reason if _begins_with_key.match(text) else "")


def without_block(text: str) -> str:
    """``text`` without a block that begins like front matter, even if it does not parse."""
    begin = _begins_with_key.match(text)
    end = begin and _any_fence.search(text, begin.end())
    return text[end.end() :] if end else text


def body_of(text: str, front_matter_bytes: int | UnsetType) -> str:
    """``text`` without its front matter, by the length in its record. Parses the text only if the
    record has none.
    """
    if front_matter_bytes is UNSET:
        return parse_document(text).body
    return text.encode()[front_matter_bytes:].decode() if front_matter_bytes else text


def variable_names(text: str) -> list[str]:
    r"""The names of the ``{{variables}}`` in ``text``, each once, as they first appear.

    ``\{{`` is a literal ``{{``.
    """
    return list(dict.fromkeys(filter(None, _pattern_for(text).findall(text))))


def _pattern_for(text: str) -> re.Pattern[str]:
    # Most texts have no escape, and a search for one beginning takes a fifth of the time.
    return _variable_or_escape if "\\{{" in text else _variable


def mark_variables(text: str, mark: Callable[[str, str], str]) -> str:
    r"""``text`` with ``mark(name, placeholder)`` in place of each ``{{variable}}``, and ``{{`` for
    ``\{{``.
    """
    return _pattern_for(text).sub(
        lambda found: mark(found[1], found[0]) if found[1] else "{{", text
    )


def fill(text: str, values: Mapping[str, str]) -> str:
    r"""``text`` with these values in place of its ``{{variables}}``, in one pass, and ``{{`` for
    ``\{{``. A variable without a value stays.
    """
    return mark_variables(text, values.get)


def filled_chars(text: str, values: Mapping[str, str]) -> int:
    """An upper bound of the length of ``fill``'s result, without building it."""
    return len(text) + sum(len(values.get(name, "")) for name in _pattern_for(text).findall(text))
