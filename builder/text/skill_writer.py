"""Writes a version of a prompt as the SKILL.md of a skill, and reports what a skill cannot hold.

`clients/exports.json` has cases. The bytes are part of a hub's promises: lock files have their
SHA-256.

A *record* is a version or a repo, as the API returns it: owner, name, version, title, description,
tags, license, variables, parameters, body and messages. If `is_described` is False, the front
matter has no description, and the skill's description begins with the title.
"""

import json
import re
from decimal import Decimal
from typing import Any

# In UTF-16 code units, because some readers of skills count these. A longer description is cut.
SKILL_DESCRIPTION_UNITS_MAX = 1_024
# The section that begins the text of a skill with variables; a rule ends it.
ASKED_FIRST = """## Ask for these first

In the text below the rule, each of these names stands in double braces. Put its value there. Ask
the user for values that you do not know; where the user has none, use the default.

"""
# YAML 1.2.2 §7.4.2 allows at most 1,024 characters before the colon of a key; longer keys are
# written with `?`.
YAML_KEY_CHARS_MAX = 1_000

# Characters that YAML allows only as escapes in quotes. Runs of hyphens or plus signs are escaped,
# too, because some readers end front matter at the first fence, even within a line.
_escaped = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|-(?=--)|\\+(?=\\+\\+)"
)
_in_quotes = json.JSONEncoder(ensure_ascii=False).encode
# The whole section, from ASKED_FIRST to the rule.
asked_first = re.compile(re.escape(ASKED_FIRST) + r"(?:- `.*\n)+\n---\n\n")
_space = re.compile(r"\s+")
_plain = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.,()/' -]*[A-Za-z0-9_.)])?")
_plain_key = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED = set("y n yes no on off true false null none".split())


def write_skill(record: dict) -> tuple[str, list[str]]:
    """The SKILL.md of a record, and its losses: what a skill cannot hold.

    Each loss is a phrase that completes "cannot hold", and is the same for all prompts.
    """
    losses: dict[str, None] = {}  # In order, each once.
    return with_front(*skill_parts(record, losses)), list(losses)


def with_front(front: dict, text: str) -> str:
    """The front matter, then the text."""
    return "\n".join(["---", *_mapping(front), "---", text])


def skill_parts(record: dict, losses: dict) -> tuple[dict, str]:
    """The front matter and the text of a skill."""
    front = {
        "name": record.get("name"),
        "description": _use_of(record, losses),
        "license": record["license"],
        "metadata": _without_empty(
            {
                "title": record["title"],
                "author": record["owner"],
                "version": _version(record),
                "tags": ", ".join(record["tags"]),
            }
        ),
    }
    text = record["body"]
    if record["messages"] is not None:
        losses["roles of messages: they become headings"] = None
        text = "\n".join(
            "**" + one["role"].capitalize() + ":**\n\n" + one["content"] + "\n"
            for one in record["messages"]
        )
    if record["parameters"]:
        losses["the model and parameters"] = None
    return _without_empty(front), _asked_first(record["variables"]) + text


def _use_of(record: dict, losses: dict) -> str:
    """The description of a skill, which says when to use it: the author's from the front matter,
    otherwise title and description.
    """
    description = record["description"].strip()
    if not description or not record.get("is_described", True):
        title = record["title"]
        used = "Use for: " + title + ("" if title.endswith((".", "!", "?")) else ".")
        if not description:
            losses["an empty description: the title takes its place"] = None
        description = (used + " " + description).strip()
    units = description.encode("utf-16-le", "surrogatepass")
    if len(units) > 2 * SKILL_DESCRIPTION_UNITS_MAX:
        losses["a description of more than 1,024 characters: it is cut"] = None
        cut = units[: 2 * SKILL_DESCRIPTION_UNITS_MAX - 2].decode("utf-16-le", "ignore")
        description = cut.rstrip() + "…"
    return description


def _asked_first(variables: list) -> str:
    """A section that lists the variables, because agents do not fill in variables; empty without
    variables.
    """
    if not variables:
        return ""
    lines = [ASKED_FIRST]
    for one in variables:
        needed = "required" if one["required"] else "optional"
        line = "- `" + one["name"] + "` (" + one["type"] + ", " + needed + ")"
        facts = [_space.sub(" ", one["description"].strip())] if one["description"].strip() else []
        for key, fact in (("default", "Default"), ("example", "Example"), ("enum", "One of")):
            if one[key] is not None:
                facts.append(fact + ": " + _flow(one[key]))
        lines.append(line + (": " + "; ".join(facts) if facts else "") + "\n")
    return "".join(lines) + "\n---\n\n"


def _flow(value: Any) -> str:
    """A value as JSON, with numbers and texts in the same form as in the rest of the file."""
    if isinstance(value, dict):
        return "{" + ", ".join(_quoted(key) + ": " + _flow(one) for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _quoted(value) if isinstance(value, str) else _scalar(value)


def _version(record: dict) -> str | None:
    return record.get("version") or record.get("latest_version")


def _without_empty(values: dict) -> dict:
    """The values without empty ones. An empty description stays: it shows that there is none."""
    return {
        key: value
        for key, value in values.items()
        if value not in (None, "", [], {}) or key == "description"
    }


# YAML -------------------------------------------------------------------------------------------


def _mapping(values: dict) -> list[str]:
    lines = []
    for key, value in values.items():
        is_plain = _plain_key.fullmatch(key) and key.lower() not in _RESERVED
        shown = key if is_plain else _quoted(key)
        is_long = len(shown) > YAML_KEY_CHARS_MAX
        lines += ["? " + shown] if is_long else []
        head = ":" if is_long else shown + ":"
        if _is_nested(value):
            lines += [head, *_indented(_nested(value))]
        else:
            lines.append(head + " " + _scalar(value))
    return lines


def _nested(value: Any) -> list[str]:
    if isinstance(value, dict):
        return _mapping(value)
    lines = []
    for item in value:
        inner = _nested(item) if _is_nested(item) else [_scalar(item)]
        first, *rest = inner
        lines += ["- " + first, *_indented(rest)]
    return lines


def _is_nested(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def _indented(lines: list[str]) -> list[str]:
    return ["  " + line if line else line for line in lines]


def _scalar(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, str):
        is_plain = _plain.fullmatch(value) and "---" not in value and value.lower() not in _RESERVED
        return value if is_plain else _quoted(value)
    if isinstance(value, list):
        items = [_quoted(item) if isinstance(item, str) else _scalar(item) for item in value]
        return "[" + ", ".join(items) + "]"
    return _number(value) if isinstance(value, float) else json.dumps(value)


def _quoted(text: str) -> str:
    return _escaped.sub(_escape, _in_quotes(text))


def _escape(found: re.Match) -> str:
    return f"\\u{ord(found.group()):04x}"


def _number(value: float) -> str:
    """A number as JavaScript writes it, with the point and the sign that YAML 1.1 requires."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(repr(value)), "f")
    mantissa, exponent = repr(value).split("e")
    return mantissa + ("" if "." in mantissa else ".0") + f"e{int(exponent):+d}"
