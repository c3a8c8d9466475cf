"""Code that reads a prompt with the clients for Python and JavaScript, as pages show it.

Pure functions. The snippets run as they are; an ellipsis stands for the reader's text. From the
author's text, they contain only names of variables and plain values of enums.
"""

import json
import keyword
import re

from builder.model.answers import Repo, Version
from builder.model.records import Variable

LINE_CHARS_MAX = 60
_is_plain = re.compile("[A-Za-z0-9 ,.:/_-]{1,30}").fullmatch
# A value of each type, in JSON.
_VALUES = {"integer": "1", "number": "1.5", "boolean": "true", "array": "[]", "object": "{}"}


def python_snippet(base_url: str, id: str, prompt: Repo | Version) -> str:
    """The code for the prompt named ``id``: ``OWNER/NAME`` or ``OWNER/NAME@VERSION``."""
    result, method, values = _call(prompt)
    arguments = [
        f'**{{"{name}": {value}}}' if keyword.iskeyword(name) else f"{name}={value}"
        for name, value in (
            (name, {"true": "True", "false": "False"}.get(value, value))
            for name, value in values.items()
        )
    ]
    line = f"{result} = prompt.{method}({', '.join(arguments)})"
    if len(line) > LINE_CHARS_MAX:
        lines = "".join(f"    {one},\n" for one in arguments)
        line = f"{result} = prompt.{method}(\n{lines})"
    return (
        f'from hub_prompts import Hub\n\nhub = Hub("{base_url}")\nprompt = hub.get("{id}")\n{line}'
    )


def script_snippet(base_url: str, id: str, prompt: Repo | Version) -> str:
    """As ``python_snippet``, for JavaScript and TypeScript."""
    result, method, values = _call(prompt)
    # As a plain key, this name would set the object's prototype.
    quoted = {"__proto__": '["__proto__"]'}
    arguments = [f"{quoted.get(name, name)}: {value}" for name, value in values.items()]
    given = f"{{ {', '.join(arguments)} }}" if arguments else ""
    line = f"const {result} = prompt.{method}({given});"
    if len(line) > LINE_CHARS_MAX:
        lines = "".join(f"  {one},\n" for one in arguments)
        line = f"const {result} = prompt.{method}({{\n{lines}}});"
    return (
        f'import {{ Hub }} from "./hub.js";\n\nconst hub = new Hub("{base_url}");\n'
        f'const prompt = await hub.get("{id}");\n{line}'
    )


def _call(prompt: Repo | Version) -> tuple[str, str, dict[str, str]]:
    """The name of the result, the method for a text or for messages, and its variables in JSON."""
    values = {
        variable.name: _value(variable)
        for variable in prompt.variables
        if variable.required and variable.default is None
    }
    result, method = ("text", "fill") if prompt.messages is None else ("messages", "messages")
    return result, method, values


def _value(variable: Variable) -> str:
    for one in variable.enum or ():
        if isinstance(one, int) or (isinstance(one, str) and _is_plain(one)):
            return json.dumps(one)
    return _VALUES.get(variable.type, '"…"')
