"""Values of variables and parameters as texts, and numbers that a text cannot keep. Pure.

Every client writes a value that is not text by RFC 8785. `clients/vectors.json` has the cases.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any


def as_text(value: Any) -> str:
    """A value as it appears in a prompt: a text as it is, any other as RFC 8785 writes it."""
    return value if isinstance(value, str) else _canonical(value)


def inexact_integers(value: Any) -> Iterator[int]:
    """The integers in a value that a double cannot hold exactly."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from inexact_integers(item)
    elif isinstance(value, int) and _double(value) != value:
        yield value


def check_size(value: Any) -> None:
    """Raises ValueError if a value has an integer larger than all doubles."""
    if any(_double(one) is None for one in inexact_integers(value)):
        raise ValueError("has a number that is too large: no double can hold it")


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_quoted(key)}:{_canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value)
    return _quoted(value)


def _quoted(value: str | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: int | float) -> str:
    """The number as JavaScript writes it (ECMA-262, Number::toString)."""
    number = _double(value)
    # Publishing refuses such a number, but a record of an older release may have it.
    if number is None:
        return str(value)
    if 1e-6 <= abs(number) < 1e21:
        return format(Decimal(repr(number)), "f").removesuffix(".0")
    return repr(number).replace("e-0", "e-") if number else "0"


def _double(value: int | float) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
