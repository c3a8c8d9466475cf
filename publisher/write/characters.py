"""The characters that metadata may have: one rule for all fields. Pure.

Control characters give orders to terminals. Noncharacters and surrogates break readers of XML (XML
1.0 §2.2, https://www.w3.org/TR/xml/#charsets) and of YAML (YAML 1.2.2 §5.1,
https://yaml.org/spec/1.2.2/#51-character-set).
"""

import re
from collections.abc import Iterator
from typing import Any

from builder.model.errors import Detail, cut, validation_failed

_NONCHARACTERS = "\ud800-\udfff\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_control = re.compile(rf"[\x00-\x1f\x7f-\x9f{_NONCHARACTERS}]")
# A text of several lines may also have tabs and both common line ends.
_control_in_lines = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_NONCHARACTERS}]|\r(?!\n)")
_SHOWN_CHARS_MAX = 40


def check_characters(field: str, value: Any) -> None:
    """Raises RequestError ``validation_failed`` where a text in ``value`` has a control character
    or a noncharacter. The detail names the place.

    Only a license must be one line.
    """
    pattern = _control if field == "license" else _control_in_lines
    for place, text in _texts(field, value):
        if found := pattern.search(text):
            near = cut(repr(text[max(found.start() - 10, 0) :]), _SHOWN_CHARS_MAX)
            message = f"has the control character U+{ord(found[0]):04X} in {near}: remove it"
            raise validation_failed(Detail(place, message))


def without_controls(text: str) -> str:
    """Returns ``text`` of several lines with a space for each character that ``check_characters``
    refuses.
    """
    return _control_in_lines.sub(" ", text)


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Each text in ``value`` with its place, keys included."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield place, key
            yield from _texts(f"{place}.{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(f"{place}[{index}]", item)
