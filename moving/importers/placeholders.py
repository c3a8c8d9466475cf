r"""Placeholders of other conventions, converted to ``{{variables}}``. Pure; executes nothing.

A *convention* is how a source marks its placeholders:

- ``dollar``: ``${name}`` and ``${Some Name:default}``. ``\${`` and ``$${`` are text.
- ``single``: ``{name}``. Doubled braces stay as they are.
- ``f-string``: ``{name}``, and ``{{`` and ``}}`` for single braces.
- ``mustache``: ``{{name}}``, ``{{{name}}}`` and ``{{&name}}``, with Handlebars' ``\{{``.
- ``jinja``: ``{{ name }}`` and ``{{ name | default("x") }}``, and ``{{ "{{" }}`` for braces.
- ``vscode``: ``${input:name:what to enter}`` and ``${input:name}`` everywhere, and names such as
  ``${selection}`` outside fences.
- ``typed``: ``{{name | type:key=value}}`` (`typed_placeholders`).
- ``brackets``: ``[TOPIC]`` in capitals, unless a link follows.
- ``raycast``: ``{argument name="topic" default="fish"}``.
- ``arguments``: ``$ARGUMENTS`` and ``$1`` of commands, as ``{{arguments}}`` and ``{{arg_1}}``.
- ``none``: the hub's own.
- ``files``: the hub's own, but ``{{{name}}}`` in a fence is code.

Prompts have no logic: sections, filters, paths and expressions stay text, and are reported as
*kept*. Text that is literal in its source and would be a variable here is escaped, as ``\{{``. A
placeholder after a backslash is kept, because the two would read as that escape. Markers of roles
stay.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from builder.model.answers import Message
from builder.model.errors import cut
from builder.model.records import VARIABLES_MAX, Variable
from builder.text import dollars
from builder.text.foreign import KEPT_CHARS_MAX, KEPT_MAX, Kept
from builder.text.messages import change_messages, write_messages
from builder.text.plain_words import plain_words
from builder.text.prompts import VARIABLE_NAME, variable_names
from moving.importers import typed_placeholders

CONVENTIONS = tuple(
    "dollar single f-string mustache jinja vscode typed brackets raycast arguments none".split()
)
NAME_CHARS_MAX = 64
DESCRIPTION_CHARS_MAX = 500
# If this many texts of a source have ``${name:default}``, or this many have ``${name}``, its
# convention is dollar.
DEFAULTS_MIN = 3
BARE_MIN = 5

# All patterns read each character a bounded number of times: the text inside braces has no braces,
# and is matched possessively.
_single = re.compile(r"\{{2,}[^{}]*+\}*+|\{(?P<field>[^{}]*+)\}")
_f_string = re.compile(r"\{\{|\}\}|\{(?P<field>[^{}]*+(?:\{[^{}]*+\}[^{}]*+)?+)\}")
# Empty comments only separate signs that would be read together: a backslash, or braces.
_mustache = re.compile(
    r"(?P<parting>\\\\\{\{!\}\}|\{\{!\}\}| \{\{~!\}\})|"
    r"\\\{\{|\{\{\{(?P<raw>[^{}]*+)\}\}\}|\{\{(?P<tag>[^{}]*+)\}\}"
)
_jinja = re.compile(
    r"""\{\{\s*+(?P<quote>["'])(?P<braces>[{}%#]{1,2})(?P=quote)\s*+\}\}|"""
    r"\{%[^{}]*+\}?|\{#[^{}]*+\}?|\{\{(?P<expression>[^{}]*+)\}\}"
)
_jinja_raw = re.compile(r"\{%[-+]?\s*+(end)?raw\s*+[-+]?%\}")
_jinja_default = re.compile(
    r"(?P<name>\w+)\s*\|\s*(?:default|d)\(\s*"
    r"""(?:"(?P<double>[^"\\]*)"|'(?P<plain>[^'\\]*)'|(?P<number>-?\d+(?:\.\d+)?))"""
    r"\s*(?:,\s*(?:boolean\s*=\s*)?[Tt]rue\s*)?\)"
)
argument_pattern = re.compile(r"(?<![\w$\\])\$(?:ARGUMENTS\b(?!\[)|([1-9])(?![\d.,]*\d))")
# Conventions whose placeholders are read by their pattern alone.
MARKED = {
    "brackets": re.compile(r"\[([A-Z][A-Z0-9][A-Z0-9 _/'-]{1,60})\](?![(\[:])"),
    "raycast": re.compile(
        r'\{argument\s++(?:name="(?P<name>[^"{}]{1,64})")(?:\s++default="(?P<default>[^"{}]*+)")?[^{}]*+\}'
    ),
    "arguments": argument_pattern,
}
_identifier = re.compile(r"[^\W\d]\w*+")
# Keys of mustache may have hyphens, and letters of any script, including some that \w lacks.
_key_of_this = re.compile(r"this\.\[(" + VARIABLE_NAME + r")\]")
_key = re.compile(r"(?:[^\W\d]|[^\x00-\x7f])(?:[\w-]|[^\x00-\x7f])*+")
# The syntax of Python's format strings beyond a bare name.
_format_field = re.compile(r"\w++(?:[.\[!:]\S*+)?$|[^\W\d][\w -]*+$")
_ours = re.compile(r"\{\{[ \t]*" + VARIABLE_NAME + r"[ \t]*\}\}")
_in_three = re.compile(rf"(?<![\\{{]){{{_ours.pattern}}}(?!\}})")
_ours_or_escape = re.compile(r"\\\{\{|" + _ours.pattern + r"|\{\{(?=[ \t]*role[ \t])")
_valid_in_braces = re.compile(r"\{[ \t]*+(" + VARIABLE_NAME + r")\b")


def argument_name(found: re.Match[str]) -> str:
    """The variable of a match of ``argument_pattern``."""
    return f"arg_{found[1]}" if found[1] else "arguments"


class Turned(NamedTuple):
    """A text with variables of the hub. ``variables``: those with more than a name.

    ``kept``: snippets that stay text, each once, at most KEPT_MAX, shortened. ``notes``: other
    losses. ``is_turned``: a placeholder has become a variable.
    """

    text: str
    variables: list[Variable]
    kept: list[str]
    notes: list[str]
    is_turned: bool


def turn(text: str, convention: str) -> Turned:
    """``text`` with variables in place of the placeholders of ``convention``."""
    turner = _Turner(convention, [text])
    return turner.finish(text, change_messages(text, turner.turn))


def turn_messages(messages: Sequence[Message], convention: str) -> Turned:
    """The body for messages whose contents have placeholders of ``convention``."""
    turner = _Turner(convention, [message.content for message in messages])
    turned = [Message(message.role, turner.turn(message.content)) for message in messages]
    return turner.finish(write_messages(messages), write_messages(turned))


def guess(texts: Iterable[str]) -> str:
    """The convention of the texts of a source that does not name it: ``dollar``, ``typed`` or
    ``none``.

    It is ``dollar`` if at least 3 texts have ``${name:default}`` outside fences, or half of those
    with placeholders; or at least 5 have ``${name}`` outside code, and more than have ``{{name}}``.
    Otherwise it is ``typed`` if a text has such a placeholder.
    """
    defaults = bare = ours = typed = 0
    for text in texts:
        outside = dollars.without_fences(text)
        defaults += any(":" in dollars.content_of(found) for found in dollars.find_names(outside))
        typed += typed_placeholders.pattern.search(text) is not None
        prose = dollars.without_code(text)
        bare += bool(dollars.find_names(prose))
        ours += bool(variable_names(prose))
    has_defaults = defaults and defaults >= ours and 2 * defaults >= bare
    if defaults >= DEFAULTS_MIN or has_defaults or (bare >= BARE_MIN and bare > ours):
        return "dollar"
    return "typed" if typed else "none"


class _Turner:
    """Converts the texts of one prompt: the same name in two of them is the same variable."""

    def __init__(self, convention: str, texts: Sequence[str]) -> None:
        self.turn = {
            "dollar": self._dollar,
            "single": self._single,
            "f-string": self._f_string,
            "mustache": self._mustache,
            "jinja": self._jinja,
            "vscode": self._vscode,
            "typed": self._typed,
            "none": lambda text: text,
            "files": self._files,
        }.get(convention) or partial(self._marked, MARKED[convention])
        self._kept = Kept()
        self._names: dict[str, str] = {}
        # Names that are already valid keep their meaning, so no other placeholder gets one of them.
        self._taken = {found[1] for text in texts for found in _valid_in_braces.finditer(text)}
        self._numbers: dict[str, int] = {}
        self._defaults: dict[str, dict[str, None]] = {}
        # The source's description of a variable, beyond its name and default.
        self._known: dict[str, Variable] = {}

    def finish(self, source: str, text: str) -> Turned:
        """``source`` converted to ``text``; unchanged if it would have more variables than a record
        can hold.
        """
        if len(variable_names(text)) > VARIABLES_MAX >= len(variable_names(source)):
            spelled = [cut(name, KEPT_CHARS_MAX) for name in self._names]
            message = (
                f"{len(self._names):,} placeholders stay text: a prompt has at most "
                f"{VARIABLES_MAX} variables."
            )
            return Turned(source, [], spelled[:KEPT_MAX], [message], False)
        variables, notes = [], []
        for source_name, name in self._names.items():
            about = cut(source_name, DESCRIPTION_CHARS_MAX) if name != source_name else ""
            defaults = list(self._defaults.get(name, ()))
            if name in self._known:
                variables.append(self._known[name])
            elif defaults:
                variables.append(Variable(name, about, required=False, default=defaults[0]))
            elif about:
                variables.append(Variable(name, about))
            if len(defaults) > 1:
                first, *others = (repr(cut(one, KEPT_CHARS_MAX)) for one in defaults[:4])
                notes.append(
                    f"{{{{{name}}}}} has several defaults in the source. It gets {first}, not "
                    f"{', '.join(others)}."
                )
        return Turned(text, variables, self._kept.spelled, notes, bool(self._names))

    def _keep(self, spelled: str) -> str:
        self._kept.add(spelled)
        return spelled

    def _variable(self, source: str, default: str | None = None) -> str:
        name = self._names.get(source) or self._name(source)
        if default is not None:
            self._defaults.setdefault(name, {})[default] = None
        return f"{{{{{name}}}}}"

    def _name(self, source: str) -> str:
        name = source
        if not re.fullmatch(VARIABLE_NAME, source):
            base = plain_words(source, NAME_CHARS_MAX - 1, "_") or "variable"
            base = f"_{base}" if base[0].isdigit() else base
            name = base
            while name in self._taken:
                # The last number is remembered, because thousands of names in a text may give the
                # same one.
                self._numbers[base] = self._numbers.get(base, 1) + 1
                suffix = f"_{self._numbers[base]}"
                name = base[: NAME_CHARS_MAX - len(suffix)].rstrip("_") + suffix
        self._taken.add(name)
        self._names[source] = name
        return name

    def _dollar(self, text: str) -> str:
        return self._turn_dollars(text, dollars.find_names(text))

    def _vscode(self, text: str) -> str:
        fences = dollars.fence_borders(text)
        inputs, others = [], []
        for one in dollars.find_all(text):
            if dollars.input_pattern.fullmatch(dollars.content_of(one)):
                inputs.append(one)
            elif bisect_right(fences, one.start()) % 2 == 0:  # In fences, all others are code.
                others.append(one)
        names = [*inputs, *filter(dollars.is_name, others)]
        return self._turn_dollars(text, names, {one.start() for one in (*inputs, *others)})

    def _files(self, text: str) -> str:
        fences = dollars.fence_borders(text)

        def one(found: re.Match[str]) -> str:
            is_code = bisect_right(fences, found.start()) % 2
            return f"\\{self._keep(found[0])}" if is_code else found[0]

        return _in_three.sub(one, text)

    def _turn_dollars(
        self, text: str, names: Sequence[re.Match[str]], among: Container[int] | None = None
    ) -> str:
        """``text`` with variables for ``names``. Other matches ``among`` the given positions, or
        anywhere, are kept.
        """
        turned = {found.start() for found in names}

        def one(found: re.Match[str]) -> str:
            if found["escape"] or (among is not None and found.start() not in among):
                return found[0]
            if found.start() not in turned or _is_escaped(found):
                return self._keep(found[0])
            if inputs := dollars.input_pattern.fullmatch(dollars.content_of(found)):
                return self._input(inputs)
            return self._variable(*dollars.split(found))

        return dollars.pattern.sub(one, text)

    def _input(self, found: re.Match[str]) -> str:
        """The variable of ``${input:name:what to enter}`` or ``${input:name|default}``."""
        more = " ".join((found["more"] or "").split())
        spelled = self._variable(found["name"], more if found["sign"] == "|" else None)
        name = self._names[found["name"]]
        if more and found["sign"] == ":":
            about = cut(more, DESCRIPTION_CHARS_MAX)
            self._known.setdefault(name, Variable(name, about))
        return spelled

    def _typed(self, text: str) -> str:
        def one(found: re.Match[str]) -> str:
            if _is_escaped(found):
                return self._keep(found[0])
            variable = typed_placeholders.variable_of(found)
            self._known.setdefault(variable.name, variable)
            return self._variable(variable.name)

        return typed_placeholders.pattern.sub(one, text)

    def _marked(self, pattern: re.Pattern[str], text: str) -> str:
        def one(found: re.Match[str]) -> str:
            if _is_escaped(found):
                return self._keep(found[0])
            if pattern is argument_pattern:
                return self._variable(argument_name(found))
            return self._variable(found[1], found.groupdict().get("default"))

        return pattern.sub(one, text)

    def _single(self, text: str) -> str:
        return _single.sub(lambda found: self._field(found, found["field"]), text)

    def _f_string(self, text: str) -> str:
        def one(found: re.Match[str]) -> tuple[str, bool]:
            if found["field"] is None:
                return found[0][0], False
            made = self._field(found, found["field"])
            return made, made != found[0]

        return _rebuild(_f_string, text, one)

    def _field(self, found: re.Match[str], field: str | None) -> str:
        """The replacement for ``{field}``, which is a placeholder only if it is a name."""
        if field is None:
            return found[0]
        if _identifier.fullmatch(field) and not _is_escaped(found):
            return self._variable(field)
        return self._keep(found[0]) if field and _format_field.match(field) else found[0]

    def _mustache(self, text: str) -> str:
        has_sections = re.search(r"\{\{[#^]", text) is not None

        def one(found: re.Match[str]) -> str:
            if found["parting"]:
                return "\\" if found[0][0] == "\\" else ""
            if found[0][0] == "\\":
                return found[0]
            tag = (found["tag"] if found["raw"] is None else found["raw"]).strip()
            key = tag.removeprefix("&").strip() if found["raw"] is None else tag
            if has_sections and key in ("else", "this"):
                return "\\" + self._keep(found[0])
            if of_this := _key_of_this.fullmatch(key):
                return self._variable(of_this[1])
            if _key.fullmatch(key):
                # Left as it is if it is valid, so that a second import finds the same text.
                is_ours = found["raw"] is None and _ours.fullmatch(found[0])
                return found[0] if is_ours else self._variable(key)
            return self._keep(found[0]) if tag else found[0]

        return _mustache.sub(one, text)

    def _jinja(self, text: str) -> str:
        pieces: list[str] = []
        end = 0
        is_raw = False
        for tag in _jinja_raw.finditer(text):
            if is_raw == bool(tag[1]):
                part = text[end : tag.start()]
                pieces += (_escape(part) if is_raw else self._jinja_part(part)), self._keep(tag[0])
                end, is_raw = tag.end(), not is_raw
        part = text[end:]
        return "".join([*pieces, _escape(part) if is_raw else self._jinja_part(part)])

    def _jinja_part(self, text: str) -> str:
        def one(found: re.Match[str]) -> tuple[str, bool]:
            if found["braces"]:
                return found["braces"], False
            if found["expression"] is None:
                is_tag = found[0][1] == "%" or found[0].endswith("#}")
                return self._keep(found[0]) if is_tag else found[0], False
            expression = found["expression"].strip()
            if not expression:
                return found[0], False
            made = "" if _is_escaped(found) else self._expression(found[0], expression)
            return made or self._keep(found[0]), True

        return _rebuild(_jinja, text, one)

    def _expression(self, spelled: str, expression: str) -> str:
        """The replacement for Jinja's ``{{ expression }}``; empty if it is no variable."""
        if _identifier.fullmatch(expression):
            return spelled if _ours.fullmatch(spelled) else self._variable(expression)
        default = _jinja_default.fullmatch(expression)
        if not default or not _identifier.fullmatch(default["name"]):
            return ""
        values = (default["double"], default["plain"], default["number"])
        return self._variable(default["name"], next(one for one in values if one is not None))


def _rebuild(
    pattern: re.Pattern[str], text: str, one: Callable[[re.Match[str]], tuple[str, bool]]
) -> str:
    """``text`` with the results of ``one`` for each match. ``one`` returns a replacement, and True
    if it is final. The rest is literal, and escaped if it would read as a variable.
    """
    pieces: list[str] = []
    literal: list[str] = []
    end = 0
    for found in pattern.finditer(text):
        literal.append(text[end : found.start()])
        end = found.end()
        made, stays = one(found)
        if stays:
            pieces += _escape("".join(literal)), made
            literal = []
        else:
            literal.append(made)
    literal.append(text[end:])
    return "".join([*pieces, _escape("".join(literal))])


def _is_escaped(found: re.Match[str]) -> bool:
    """True if {{name}} in its place, with the text before it, would read as an escape."""
    before = found.string[max(found.start() - 3, 0) : found.start()]
    return before.endswith(("\\", "\\{", "\\{{"))


def _escape(literal: str) -> str:
    """A text that gives ``literal`` when it is filled in."""
    return _ours_or_escape.sub(r"\\\g<0>", literal)
