r"""Placeholders with the type of a form's field, as chat front ends have them. Pure.

``{{name | type:key=value:flag}}``, such as ``{{tone | select:options=["kind","brief"]}}``. These
keys are used: ``options``, ``default``, ``label`` and ``placeholder``.
"""

import re
from typing import Any

from msgspec import DecodeError, json

from builder.model.records import Variable
from builder.text.prompts import VARIABLE_NAME

# Variable types by field type; all other fields hold text.
_TYPES = {"number": "number", "range": "number", "checkbox": "boolean"}
_FIELDS = (
    "text|textarea|select|number|checkbox|date|datetime-local|color|email|month|range|tel|time|url"
)
_property = r":[ \t]*\w+(?:=(?:\"(?:[^\"\\{}]|\\.)*+\"|\[[^\[\]{}]*+\]|[^:\"\[\]{}]*+))?+"
pattern = re.compile(
    rf"\{{\{{[ \t]*(?P<name>{VARIABLE_NAME})[ \t]*\|[ \t]*(?P<field>{_FIELDS})[ \t]*"
    rf"(?P<properties>(?:{_property})*+)[ \t]*\}}\}}"
)
_one_property = re.compile(r":[ \t]*(\w+)(?:=(\"(?:[^\"\\]|\\.)*\"|\[[^\]]*\]|[^:]*))?")


def variable_of(found: re.Match[str]) -> Variable:
    """The variable that a match of ``pattern`` declares."""
    values = {key: _read(value) for key, value in _one_property.findall(found["properties"])}
    kind = _TYPES.get(found["field"], "string")
    options = values.get("options")
    default = values.get("default")
    is_fitting = isinstance(default, {"number": int | float, "boolean": bool}.get(kind, str))
    about = values.get("label") or values.get("placeholder")
    return Variable(
        found["name"],
        about if isinstance(about, str) else "",
        kind,
        default=default if is_fitting else None,
        enum=options if isinstance(options, list) and options else None,
    )


def _read(value: str) -> Any:
    """A value as JSON, or otherwise as plain text."""
    try:
        return json.decode(value)
    except DecodeError:
        return value.strip()
