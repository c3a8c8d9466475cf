"""Checks the values that a reader gives for a prompt's variables, and fills them in. Pure.

Clients and browsers have the same rules in their own code; `clients/vectors.json` has the cases.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from builder.model.records import Variable
from builder.text.prompts import variable_names
from builder.text.values import as_text

FILLED_CHARS_MAX = 1_000_000


class Values(NamedTuple):
    """``texts``: the text for each variable that has one. ``missing``: the names in the prompt's
    text without one. ``wrong``: variables whose values do not fit, with the reason: "enum", or the
    type.
    """

    texts: dict[str, str]
    missing: list[str]
    wrong: dict[str, str]


def known_names(body: str, variables: Iterable[Variable]) -> list[str]:
    """The names of the variables of a prompt: the declared ones, then those in its text alone."""
    return list(dict.fromkeys([*(one.name for one in variables), *variable_names(body)]))


def fit(body: str, variables: list[Variable], given: Mapping[str, Any]) -> Values:
    """The values for the variables of a text: those ``given``, and defaults for the others.

    An optional variable without value and default is empty; a required one is missing.
    """
    declared = {variable.name: variable for variable in variables}
    texts: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for name in known_names(body, variables):
        variable = declared.get(name)
        if name in given:
            if variable and (reason := _misfit(variable, given[name])):
                wrong[name] = reason
            texts[name] = as_text(given[name])
        elif variable and variable.default is not None:
            texts[name] = as_text(variable.default)
        elif variable and not variable.required:
            texts[name] = ""
    missing = [name for name in variable_names(body) if name not in texts]
    return Values(texts, missing, wrong)


def _misfit(variable: Variable, value: Any) -> str:
    """The reason why a variable cannot have a value; empty if it can."""
    text = as_text(value)
    if variable.enum and text not in map(as_text, variable.enum):
        return "enum"
    return "" if _FITS[variable.type](value, text) else variable.type


_is_integer = re.compile(r"-?(0|[1-9][0-9]*)(\.0+)?").fullmatch
_is_number = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?").fullmatch

# For each type, True for a value of it. Forms, and clients that can only send texts, send it as
# text.
_FITS = {
    "string": lambda value, text: isinstance(value, str),
    "integer": lambda value, text: _is_integer(text),
    "number": lambda value, text: _is_number(text),
    "boolean": lambda value, text: text in ("true", "false"),
    "array": lambda value, text: isinstance(_read_json(value), list),
    "object": lambda value, text: isinstance(_read_json(value), dict),
}


def _read_json(value: Any) -> Any:
    """The value of a text; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
