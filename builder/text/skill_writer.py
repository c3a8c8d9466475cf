"""Writes a version of a prompt as the SKILL.md of a skill, and reports what a skill cannot hold.

`clients/exports.json` has cases. The bytes are part of a hub's promises: lock files have their
SHA-256.

A *record* is a version or a repo, as the API returns it: owner, name, version, title, description,
tags, license, variables, parameters, body and messages. If `is_described` is False, the front
matter has no description, and the skill's description begins with the title.
"""

import json
import re
from typing import Any

from builder.text.values import as_text

# In UTF-16 code units, because some readers of skills count these. A longer description is cut.
SKILL_DESCRIPTION_UNITS_MAX = 1_024
# The section that begins the text of a skill with variables; a rule ends it.
ASKED_FIRST = """## Ask for these first

In the text below the rule, each of these names stands in double braces. Put its value there. Ask
the user for values that you do not know; where the user has none, use the default.

"""

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
    """The front matter and the text of a skill. Front matter has no empty values."""
    metadata = {
        "title": record["title"],
        "author": record["owner"],
        "version": record.get("version") or record.get("latest_version"),
        "tags": ", ".join(record["tags"]),
    }
    front = {
        "name": record.get("name"),
        "description": _use_of(record, losses),
        "license": record["license"],
        "metadata": {key: value for key, value in metadata.items() if value},
    }
    text = record["body"]
    if record["messages"] is not None:
        losses["roles of messages: they become headings"] = None
        parts = ((one["role"].capitalize(), one["content"]) for one in record["messages"])
        text = "\n".join(f"**{role}:**\n\n{content}\n" for role, content in parts)
    if record["parameters"]:
        losses["the model and parameters"] = None
    front = {key: value for key, value in front.items() if value}
    return front, _asked_first(record["variables"]) + text


def _use_of(record: dict, losses: dict) -> str:
    """The description of a skill, which says when to use it: the author's from the front matter,
    otherwise title and description.
    """
    description = record["description"].strip()
    if not description or not record.get("is_described", True):
        title = record["title"]
        used = f"Use for: {title}" + ("" if title.endswith((".", "!", "?")) else ".")
        if not description:
            losses["an empty description: the title takes its place"] = None
        description = f"{used} {description}".strip()
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
        facts = [_space.sub(" ", one["description"].strip())] if one["description"].strip() else []
        for key, fact in (("default", "Default"), ("example", "Example"), ("enum", "One of")):
            if one[key] is not None:
                facts.append(f"{fact}: {_flow(one[key])}")
        about = f": {'; '.join(facts)}" if facts else ""
        lines.append(f"- `{one['name']}` ({one['type']}, {needed}){about}\n")
    return "".join(lines) + "\n---\n\n"


def _flow(value: Any) -> str:
    """A value as JSON, with numbers and texts in the same form as in the rest of the file."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_quoted(key)}: {_flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    return _number(value) if isinstance(value, float) else json.dumps(value)


# YAML -------------------------------------------------------------------------------------------


def _mapping(values: dict, indent: str = "") -> list[str]:
    """The lines of a mapping whose values are texts, or mappings of texts."""
    lines = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines += [f"{indent}{key}:", *_mapping(value, indent + "  ")]
        else:
            is_plain = _plain.fullmatch(value) and "---" not in value
            is_plain = is_plain and value.lower() not in _RESERVED
            lines.append(f"{indent}{key}: {value if is_plain else _quoted(value)}")
    return lines


def _quoted(text: str) -> str:
    return _escaped.sub(lambda found: f"\\u{ord(found[0]):04x}", _in_quotes(text))


def _number(value: float) -> str:
    """A number as JavaScript writes it, with the point and the sign that YAML 1.1 requires."""
    mantissa, sign, exponent = as_text(value).partition("e")
    point = "" if "." in mantissa else ".0"
    return f"{mantissa}{point}e{int(exponent):+d}" if sign else mantissa
