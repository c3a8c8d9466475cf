r"""Writes a version of a prompt as a file of another format, and reports what that format cannot
hold.

The formats are dotprompt, prompty (version 2) and skills; `clients/exports.json` has cases. The
build inserts this module into the shell client, so it uses only Python 3.7 and its standard
library.

A *record* is a version or a repo, as the API returns it. The formats use its owner, name, version,
title, description, tags, license, variables, parameters, body and messages. A skill also uses
`is_described`. If that is False, the front matter has no description, and the skill's description
begins with the title. No file holds the `files` of a version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

# The suffixes of the formats' files; a skill is a folder with a file of this name.
SUFFIXES = {"dotprompt": ".prompt", "prompty": ".prompty", "skill": "SKILL.md"}

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

_CAMEL = {
    "max_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}
_PROMPTY_OPTIONS = {*_CAMEL.values(), "seed", "temperature"}
# Names that the templates of these formats do not read as variables.
_HANDLEBARS_WORDS = set(
    "this else true false null undefined if unless each with lookup log helperMissing"
    " blockHelperMissing json role section media ifEquals unlessEquals".split()
)
_JINJA_WORDS = set("not true false none True False None self".split())

_token = re.compile(r"\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}")
_backslashes_and_braces = re.compile(r"(?<!\\)(\\*)\{\{")
_opening_of_jinja = re.compile(r"\{[{%#]")
# Characters that YAML allows only as escapes in quotes. Runs of hyphens or plus signs are escaped,
# too, because prompty ends front matter at the first fence, even within a line.
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

_SPACE = "[ \t\x1f\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]*"
# A line that prompty reads as the beginning of a message, or would read so without its backslashes
# (the second group).
role_line = re.compile(
    f"((?:{_SPACE}#)?{_SPACE}(?:[sſ]y[sſ]tem|developer|u[sſ]er|a[sſ][sſ][iı][sſ]tant|funct[iı]on|tool)"
    rf"(?:{_SPACE}\[.*\])?{_SPACE})(\\*)(:{_SPACE})",
    re.IGNORECASE,
)
line_break = re.compile("([\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")
# Prompty replaces such a text by an environment variable or by a file.
_reference = re.compile(r"\s*\$\{[\s\S]*\}\s*")


def write_as(record: dict, format: str) -> tuple[str, list[str]]:
    """The file of a record in one of the formats of SUFFIXES, and its losses: what the format
    cannot hold.

    Each loss is a phrase that completes "cannot hold", and is the same for all prompts.

    Raises KeyError for another format.
    """
    losses: dict[str, None] = {}  # In order, each once.
    front, text = _WRITERS[format](record, losses)
    if record.get("files"):
        losses["files beside the prompt"] = None
    return with_front(front, text), list(losses)


def with_front(front: dict, text: str) -> str:
    """The front matter, then the text."""
    return "\n".join(["---", *_mapping(front), "---", text])


# The formats ------------------------------------------------------------------------------------


def _dotprompt(record: dict, losses: dict) -> tuple[dict, str]:
    parameters = _rename(record["parameters"], _CAMEL, losses)
    front = {
        "name": record.get("name"),
        "version": _version(record),
        "title": record["title"],
        "description": record["description"],
        "authors": [record["owner"]],
        "tags": record["tags"],
        "license": record["license"],
        "model": _take_model(parameters),
        "config": parameters,
        "input": _input(record["variables"]),
    }
    front = _without_empty(front)
    if record["messages"] is None:
        return front, _handlebars(record["body"], losses)
    text = ""
    for one in record["messages"]:
        role = "model" if one["role"] == "assistant" else one["role"]
        text += '{{role "' + role + '"}}\n' + _handlebars(one["content"], losses) + "\n"
    return front, text


def _input(variables: list) -> dict:
    """Dotprompt's description of variables, as JSON Schema."""
    properties = {}
    for one in variables:
        is_default_in_schema = one["required"] and one["default"] is not None
        properties[one["name"]] = _without_none(
            {
                "type": one["type"],
                "description": one["description"] or None,
                # The default of a required variable is also in the schema. A variable with a
                # default in `input.default` alone counts as optional.
                "default": one["default"] if is_default_in_schema else None,
                "examples": None if one["example"] is None else [one["example"]],
                "enum": one["enum"],
            }
        )
    if not properties:
        return {}
    required = [one["name"] for one in variables if one["required"]]
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    defaults = {one["name"]: one["default"] for one in variables if one["default"] is not None}
    return {"schema": schema, "default": defaults} if defaults else {"schema": schema}


def _prompty(record: dict, losses: dict) -> tuple[dict, str]:
    parameters = _rename(record["parameters"], _CAMEL, losses)
    model = _without_none({"id": _take_model(parameters)})
    options = {key: value for key, value in parameters.items() if key in _PROMPTY_OPTIONS}
    others = {key: value for key, value in parameters.items() if key not in _PROMPTY_OPTIONS}
    if others:
        options["additionalProperties"] = others
    if options:
        model["options"] = options
    front = {
        "name": record.get("name"),
        "displayName": record["title"],
        "description": record["description"],
        "metadata": _without_empty(
            {
                "authors": [record["owner"]],
                "tags": record["tags"],
                "license": record["license"],
                "version": _version(record),
            }
        ),
        "model": model,
        "inputs": [_property(one) for one in record["variables"]],
    }
    front = _without_references(_without_empty(front), losses)
    if record["messages"] is None:
        return front, _guard(_jinja(record["body"], losses), losses)
    messages = []
    for one in record["messages"]:
        text = _guard(_jinja(one["content"], losses), losses)
        messages.append(_known_role(one["role"], losses) + ":\n" + text + "\n")
    return front, "\n".join(messages)


def _property(one: dict) -> dict:
    """Prompty's description of a variable."""
    return _without_none(
        {
            "name": one["name"],
            "kind": one["type"],
            "description": one["description"] or None,
            "required": one["required"],
            "default": one["default"],
            "example": one["example"],
            "enumValues": one["enum"],
            "items": {"kind": "any"} if one["type"] == "array" else None,  # Prompty requires it.
        }
    )


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


_WRITERS = {"dotprompt": _dotprompt, "prompty": _prompty, "skill": skill_parts}


def _version(record: dict) -> str | None:
    return record.get("version") or record.get("latest_version")


def _rename(parameters: dict, names: dict, losses: dict) -> dict:
    """Parameters under the format's names, without those that are null."""
    renamed = {names.get(key, key): value for key, value in parameters.items()}
    for key, value in parameters.items():
        if key in names:
            renamed[names[key]] = value
    if len(renamed) < len(parameters):
        losses["a parameter under two names"] = None
    return _without_none(renamed)


def _take_model(parameters: dict) -> str | None:
    return parameters.pop("model") if isinstance(parameters.get("model"), str) else None


def _known_role(role: str, losses: dict) -> str:
    if role == "tool":
        losses["the role tool: it becomes user"] = None
        return "user"
    return role


def _without_references(front: dict, losses: dict) -> dict:
    """The front matter without values that prompty would replace."""
    kept = {}
    for key, value in front.items():
        if isinstance(value, dict):
            value = _without_references(value, losses)
        elif isinstance(value, list):
            items = [_without_references({"": one}, losses) for one in value]
            value = [one[""] for one in items if one]
        elif isinstance(value, str) and _reference.fullmatch(value):
            losses["values such as ${env:NAME}, which it would replace"] = None
            continue
        kept[key] = value
    return kept


def _without_empty(values: dict) -> dict:
    """The values without empty ones. An empty description stays: it shows that there is none."""
    return {
        key: value
        for key, value in values.items()
        if value not in (None, "", [], {}) or key == "description"
    }


def _without_none(values: dict) -> dict:
    return {key: value for key, value in values.items() if value is not None}


# Templates --------------------------------------------------------------------------------------


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The literal pieces of a text, each with the name of the variable after it. The last name is
    empty.
    """
    literal: list[str] = []
    end = 0
    for found in _token.finditer(text):
        literal.append(text[end : found.start()])
        end = found.end()
        if found.group(1):
            yield "".join(literal), found.group(1)
            literal = []
        else:
            literal.append("{{")
    yield "".join([*literal, text[end:]]), ""


def _handlebars(text: str, losses: dict) -> str:
    r"""A template of dotprompt. ``{{!}}``, an empty comment, separates braces that would otherwise
    be read together. With a tilde, it also removes the space before it.
    """
    if "<<<dotprompt:" in text:
        losses["<<<dotprompt: in a text, which it reads as its own mark"] = None
    written = []
    is_after_variable = False
    for literal, name in _parts(text):
        if is_after_variable and literal.startswith("}"):
            written.append("{{!}}")
        written.append(_backslashes_and_braces.sub(_escape_for_handlebars, literal))
        if name and literal.endswith("{"):
            written.append(" {{~!}}")
        if name == "history":
            losses["{{history}} as a variable: it stands for the messages so far"] = None
        if name:
            written.append(_braces("this.[" + name + "]" if name in _HANDLEBARS_WORDS else name))
        is_after_variable = True
    return "".join(written)


def _escape_for_handlebars(found: re.Match) -> str:
    backslashes = found.group(1)
    # Before braces, two backslashes mean one, and a single one makes the braces text.
    return backslashes + "\\{{!}}\\{{" if backslashes else "\\{{"


def _jinja(text: str, losses: dict) -> str:
    written = []
    for literal, name in _parts(text):
        if name in _JINJA_WORDS:
            losses["variables named not, true, false, none or self: they become text"] = None
            literal, name = literal + _braces(name), ""
        escaped = _opening_of_jinja.sub(_write_in_jinja, literal)
        if name and escaped.endswith("{"):
            escaped = escaped[:-1] + '{{ "{" }}'
        written.append(escaped + (_braces(name) if name else ""))
    return "".join(written)


def _write_in_jinja(found: re.Match) -> str:
    return '{{ "' + found.group() + '" }}'


def _guard(text: str, losses: dict) -> str:
    """The text, with a backslash in each line that prompty would read as the beginning of a
    message.
    """
    lines = line_break.split(text)
    for number, line in enumerate(lines):
        found = role_line.fullmatch(line)
        if found:
            lines[number] = found.group(1) + found.group(2) + "\\" + found.group(3)
            losses["lines such as user: in a text: they get a backslash"] = None
    return "".join(lines)


def _braces(name: str) -> str:
    return "{{" + name + "}}"


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
