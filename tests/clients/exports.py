"""The cases of `clients/exports.json` for skills.

`python -m tests.clients.exports` writes texts and losses again, for review as a diff.
"""

import json
import pathlib
from typing import Any

from builder.text.skill_writer import write_skill

PATH = pathlib.Path(__file__).parents[2] / "clients/exports.json"


def read_cases() -> list[dict[str, Any]]:
    """Each with ``name``, ``record``, ``text`` and ``losses``."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def _write(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        case["text"], case["losses"] = write_skill(case["record"])
    PATH.write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    _write(read_cases())
