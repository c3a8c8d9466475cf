"""The cases that every implementation of filling in and of messages passes."""

import json
import pathlib
from typing import Any

VECTORS = pathlib.Path(__file__).parents[2] / "clients/vectors.json"
_cases = json.loads(VECTORS.read_text(encoding="utf-8"))

# ``name``, ``body``, ``variables``, ``values``, and ``text`` or ``error``: unknown_variable,
# invalid_value or missing_variable.
FILL: list[dict[str, Any]] = _cases["fill"]
# ``name``, ``body``, and ``messages``, which may be null.
MESSAGES: list[dict[str, Any]] = _cases["messages"]


def name_of(case: dict[str, Any]) -> str:
    return case["name"]
