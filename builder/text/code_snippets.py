"""Code that reads a prompt with the clients for Python and JavaScript, as pages show it.

Pure functions. The snippets run as they are; an ellipsis stands for the reader's text. From the
author's text, they contain only names of variables and plain values of enums.
"""

import json
import keyword
import re
from typing import NamedTuple

from builder.model.answers import Repo, Version
from builder.model.records import Variable

LINE_CHARS_MAX = 60
_is_plain = re.compile("[A-Za-z0-9 ,.:/_-]{1,30}").fullmatch
# A value of each type, in JSON.
_VALUES = {"integer": "1", "number": "1.5", "boolean": "true", "array": "[]", "object": "{}"}


class _Call(NamedTuple):
    """The method for a text or for messages, and its variables; values are JSON."""

    result: str
    method: str
    values: dict[str, str]


def python_snippet(base_url: str, id: str, prompt: Repo | Version) -> str:
    """The code for the prompt named ``id``: ``OWNER/NAME`` or ``OWNER/NAME@VERSION``."""
    call = _call(prompt)
    arguments = [
        f'**{{"{name}": {value}}}' if keyword.iskeyword(name) else f"{name}={value}"
        for name, value in (
            (name, {"true": "True", "false": "False"}.get(value, value))
            for name, value in call.values.items()
        )
    ]
    line = f"{call.result} = prompt.{call.method}({', '.join(arguments)})"
    if len(line) > LINE_CHARS_MAX:
        lines = "".join(f"    {one},\n" for one in arguments)
        line = f"{call.result} = prompt.{call.method}(\n{lines})"
    return (
        f'from hub_prompts import Hub\n\nhub = Hub("{base_url}")\nprompt = hub.get("{id}")\n{line}'
    )


def script_snippet(base_url: str, id: str, prompt: Repo | Version) -> str:
    """As ``python_snippet``, for JavaScript and TypeScript."""
    call = _call(prompt)
    # As a plain key, this name would set the object's prototype.
    quoted = {"__proto__": '["__proto__"]'}
    arguments = [f"{quoted.get(name, name)}: {value}" for name, value in call.values.items()]
    values = f"{{ {', '.join(arguments)} }}" if arguments else ""
    line = f"const {call.result} = prompt.{call.method}({values});"
    if len(line) > LINE_CHARS_MAX:
        lines = "".join(f"  {one},\n" for one in arguments)
        line = f"const {call.result} = prompt.{call.method}({{\n{lines}}});"
    return (
        f'import {{ Hub }} from "./hub.js";\n\nconst hub = new Hub("{base_url}");\n'
        f'const prompt = await hub.get("{id}");\n{line}'
    )


def _call(prompt: Repo | Version) -> _Call:
    values = {
        variable.name: _value(variable)
        for variable in prompt.variables
        if variable.required and variable.default is None
    }
    result, method = ("text", "fill") if prompt.messages is None else ("messages", "messages")
    return _Call(result, method, values)


def _value(variable: Variable) -> str:
    for one in variable.enum or ():
        if isinstance(one, int) or (isinstance(one, str) and _is_plain(one)):
            return json.dumps(one)
    return _VALUES.get(variable.type, '"…"')
