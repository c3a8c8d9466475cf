"""Files of coding agents: where each tool looks for them, and what their texts say. Pure, except
that ``find_tool`` looks for the folder of a plugin.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from builder.text.core_yaml import load_yaml
from builder.text.prompts import BOM, parse_document
from moving.importers.placeholders import argument_name, argument_pattern

COMMAND, OTHER, GEMINI = "command", "other", "gemini"
# The tools' own documentation names these paths. The group is the name, in folders.
_TOOLS = [
    (kind, re.compile(f".*/{pattern}", re.DOTALL))
    for kind, pattern in (
        (COMMAND, r"\.claude/commands/(.+)\.md"),
        (OTHER, r"\.claude/agents/(?:.+/)?([^/]+)\.md"),
        (OTHER, r"\.cursor/rules/(?:.+/)?([^/]+)\.mdc"),
        (GEMINI, r"\.gemini/commands/(.+)\.toml"),
        (OTHER, r"\.(?:windsurf/rules|clinerules|continue/prompts)/(?:.+/)?([^/]+)\.md"),
    )
]
_PLUGIN_FOLDERS = {"commands": COMMAND, "agents": OTHER}
_run_or_read = {
    "`!` commands": re.compile(r"(?<!\w)!`[^`\n]+`|!\{(?:[^{}\n]|\{\{\w+\}\}){1,200}\}"),
    "`@` files": re.compile(
        r"@\{[^{}\n]{1,200}\}|(?<![\w@`.])@[\w.-]*/[\w./-]+|(?<![\w@`.])@[\w-]+\.\w+"
    ),
}
_toml_block = re.compile(
    r"\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_yaml_block = re.compile(r"(---[ \t]*\r?\n)(.*?)(^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)
_open_header = re.compile(r"(?:[A-Za-z_][\w.-]*:[^\n]*\n(?:[ \t][^\n]*\n)*)+---[ \t]*\r?\n")
# Tools that search for a line that begins with --- read a longer one as the end, too.
_long_end = re.compile(
    r"(---[ \t]*\r?\n\s*+(?:[A-Za-z_][\w.-]*:[^\n]*\n(?:[ \t][^\n]*\n|\r?\n)*+)++)"
    r"-{4,}[ \t]*(?=\r?\n)"
)
_no_break = re.compile(r"(?m)^([A-Za-z_][\w.-]*:)\xa0+")
_next_entry = re.compile(r"(?m)^(?=[^\s#])")
_key = re.compile(r"[A-Za-z_][\w.-]*")
_open_value = re.compile(r"""(?m)^[^\n#=]*=[ \t]*(?:\"{3}|'{3}|["'\[{])|^\[""")
# The words of tomllib, and those of a writer. The last fits all others.
_TOML_FAULTS = {
    "Expected '=' after": 'no "=" after the key; write key = "value"',
    "Unescaped '\\'": r"a \ that begins no escape; write \\",
    "Illegal character": "nothing closes this quote; use three for a text of several lines",
    "Unterminated string": "nothing closes this quote; add the second one",
    "Expected \"'": "nothing closes this quote; add the second one",
    "Cannot overwrite": "a key that the text has already; remove one",
    "Invalid value": "TOML cannot read this value; put it in quotes",
    "": "TOML cannot read this line; check its quotes and brackets",
}
_VALUE_CHARS_MAX = 4_000
REPAIRED = "A line of its front matter is no valid YAML: read as the text that it says."


def find_tool(path: Path) -> tuple[str, str] | None:
    """The kind of an agent's file, and its name; None for another file. ``path`` is absolute."""
    for kind, pattern in _TOOLS:
        if found := pattern.fullmatch(path.as_posix()):
            return kind, found[1].replace("/", "-")
    if path.suffix.lower() == ".md":
        for folder in path.parents:
            kind = _PLUGIN_FOLDERS.get(folder.name)
            if kind and (folder.parent / ".claude-plugin").is_dir():
                parts = path.relative_to(folder).with_suffix("").parts
                return kind, "-".join(parts if kind == COMMAND else parts[-1:])
    return None


def open_header(text: str) -> str:
    """``text`` with the first ``---`` of its front matter, which files of Continue lack."""
    text = text.removeprefix(BOM)
    return f"---\n{text}" if _open_header.match(text) else text


def repair(text: str) -> tuple[str, list[str]]:
    """``text`` with front matter that YAML reads: of TOML, or with quotes around values at the top
    level that YAML refuses; without a byte order mark. The same text if that does not help.
    """
    text = text.removeprefix(BOM)
    if block := _toml_block.match(text):
        try:
            front = _read_toml(block[1], 1)
            lines = [f"{json.dumps(key)}: {json.dumps(one)}\n" for key, one in front.items()]
            return "".join(["---\n", *lines, "---\n", text[block.end() :]]), []
        except TypeError:
            return text, ["Its front matter has a date, which JSON lacks: it was kept as text."]
        except ValueError as error:
            return text, [f"The front matter was kept as text: {error}."]
    if found := _long_end.match(text):
        text = f"{found[1]}---{text[found.end() :]}"
    block = _yaml_block.match(text)
    if not block:
        return text, []
    front = _no_break.sub(r"\1 ", block[2])
    text = "".join([block[1], front, block[3], text[block.end() :]])
    if not parse_document(text).fault:
        return text, []
    entries = map(_quote, _next_entry.split(front))
    repaired = "".join([block[1], *entries, text[len(block[1]) + len(front) :]])
    return (text, []) if parse_document(repaired).fault else (repaired, [REPAIRED])


def _quote(entry: str) -> str:
    """A key at the top level and its value: as it is if YAML reads it, else with spaces for tabs,
    or with quotes around the value.
    """
    key, _, rest = entry.partition(":")
    value = "\n".join(line.strip() for line in rest.strip().splitlines())
    if not (0 < len(value) <= _VALUE_CHARS_MAX and rest[0].isspace() and _key.fullmatch(key)):
        return entry
    for one in (entry, entry.expandtabs(2)):
        try:
            load_yaml(one)
            return one
        except ValueError:
            pass
    return f"{key}: {json.dumps(value, ensure_ascii=False)}{entry[len(entry.rstrip()) :]}"


def read_command(body: str, front: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The body of a command with variables for its arguments, and the front matter that describes
    them.
    """
    names = dict.fromkeys(map(argument_name, argument_pattern.finditer(body)))
    hint = front.get("argument-hint")
    about = {"description": hint if isinstance(hint, str) else " ".join(map(str, hint or ()))}
    variables = [{"name": name} | (about if about["description"] else {}) for name in names]
    if variables and not front.get("variables"):
        front = front | {"variables": variables}
    return argument_pattern.sub(lambda one: f"{{{{{argument_name(one)}}}}}", body), front


def read_gemini(text: str) -> tuple[str, dict[str, Any]]:
    """The prompt of a command of Gemini CLI, and its description. Raises ValueError."""
    found = _read_toml(text)
    prompt, description = found.get("prompt"), found.get("description")
    if not isinstance(prompt, str):
        raise ValueError("has no prompt")
    return prompt, {"description": description} if isinstance(description, str) else {}


def _read_toml(text: str, lines_before: int = 0) -> dict[str, Any]:
    """Raises ValueError, with the line of the fault after ``lines_before`` others."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("invalid TOML: nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        found = str(error)
    what = next(words for sign, words in _TOML_FAULTS.items() if sign in found)
    if place := re.search(r"at line (\d+)", found):
        line = int(place[1])
    else:  # The parser met the end of the text. The last value that can be open begins before it.
        begins = [*_open_value.finditer(text)]
        line = text.count("\n", 0, begins[-1].start() if begins else len(text.rstrip())) + 1
    raise ValueError(f"invalid TOML in line {line + lines_before:,}: {what}")


def warn_of_running(body: str) -> list[str]:
    """A warning for each kind of text that the tool replaces when it runs the prompt."""
    return [
        f"{what} stay text: {found[0][:60]}."
        for what, pattern in _run_or_read.items()
        if (found := pattern.search(body))
    ]
