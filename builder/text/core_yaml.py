"""YAML to JSON values, by the core schema of YAML 1.2.2 (§10.3.2). Pure.

PyYAML parses, but the value of a plain scalar is decided here, because PyYAML's own rules are those
of YAML 1.1: `no` is false, `010` is 8. Texts are untrusted, so limits are checked while parsing, in
one pass.
"""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import yaml
from yaml.reader import Reader

from builder.model.errors import MESSAGES_MAX
from builder.model.plural import some_of

VALUES_MAX = 2_000
DEPTH_MAX = 50
# Numbers with more digits exceed all doubles, and Python refuses 4,301 digits.
_NUMBER_CHARS_MAX = 400

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOOLEANS = {word: word.lower() == "true" for word in "true True TRUE false False FALSE".split()}
_NULLS = ("", "~", "null", "Null", "NULL")
_integer = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
# Scalars that are not text, by the name of their tag.
_core = re.compile(
    rf"(?P<null>{'|'.join(_NULLS)})|(?P<bool>{'|'.join(_BOOLEANS)})|(?P<int>{_integer.pattern})"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
)
_TAG = "tag:yaml.org,2002:"
# An escaped half of a surrogate pair. `json.dumps` writes characters beyond U+FFFF as such pairs,
# which libyaml refuses.
_half_of_pair = re.compile(r"\\u[dD][89a-fA-F]")
# YAML ends lines at more characters than \n, and PyYAML's errors count these lines.
_line_end = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# A line that begins with a key, and what follows its colon instead of a space; no address.
_unspaced = re.compile(r"[ ]*(?:- )?[\w.$-]+:(?!//)([^ \t\r])")
_spaced = re.compile(r"[ ]*(?:- )?[^:#]+:(?:[ \t\r]|$)")
# A key, and a quote that the line does not close.
_open_quote = re.compile(
    r"""[ ]*(?:- )?[^:#"']+:[ \t]+((?:"(?:[^"\\]|\\.)*+|'(?:[^']|\'\')*+)\r?\Z)"""
)
_SECOND_COLON = "a second colon; put a text that has one in quotes"
_NO_COLON = (
    "no colon; begin a line with a key and a colon, or indent it as part of the value before"
)
_NO_QUOTE = "nothing closes this quote; add the second one"
_NO_BRACKET = "nothing closes this bracket; add the second one, or put the value in quotes"


class YamlError(ValueError):
    """Text that cannot be parsed. The message is one line, with line and column."""


class Plain(str):
    """The spelling of a scalar that the core schema reads as a number, a boolean or null. Fields
    that take text need the spelling. ``core_values`` replaces it by its value, and ``spellings`` by
    a plain text.
    """

    __slots__ = ()


def load_yaml(text: str, values_max: int = VALUES_MAX) -> tuple[Any, list[str]]:
    """The lists, dicts and texts in a document, and at most one warning. Keys stay as they are
    spelled; if a key is repeated, the last one counts. A null is None, but in a list it is Plain.

    Raises YamlError, also for more than ``values_max`` values or DEPTH_MAX levels.
    """
    if found := Reader.NON_PRINTABLE.search(text):
        before = text[: found.start()].split("\n")
        problem = f"the character U+{ord(found[0]):04X} is not allowed"
        raise _error(problem, len(before) - 1, len(before[-1]))
    # PyYAML in Python reads halves of pairs, but takes ten times as long.
    loader = yaml.SafeLoader if _half_of_pair.search(text) else _Loader
    reader = _Document(yaml.parse(text, loader), values_max)
    try:
        value = reader.read()
    except yaml.MarkedYAMLError as error:
        raise _error(*_cause(error, _line_end.split(text))) from None
    repeated = some_of(reader.repeated, MESSAGES_MAX)
    return value, [f"Repeated keys; the last one counts: {repeated}."] if repeated else []


def _cause(error: yaml.MarkedYAMLError, lines: list[str]) -> tuple[str, int, int]:
    """The cause of an error in a writer's words, and its line and column, which may be before those
    that the parser names: it notices an open bracket or quote only where the next value begins.
    """
    problem = error.problem or ""
    mark = error.problem_mark or error.context_mark
    begin = error.context_mark or mark
    # The end of the text can be marked a line later.
    here = "".join(lines[mark.line : mark.line + 1])
    entry = _spaced.match(here)
    if problem.startswith("mapping values are not allowed"):
        return _cause_before(_SECOND_COLON, lines, mark.line, mark.column)
    if problem.startswith("could not find expected ':'"):
        return _cause_before(_NO_COLON, lines, begin.line, begin.column)
    if "end of stream" in problem:
        return _NO_QUOTE, begin.line, begin.column
    if "expected ','" in problem:
        if begin.line < mark.line and (entry or not here.strip()):
            return _NO_BRACKET, begin.line, begin.column
        return "a comma or a bracket is missing before this", mark.line, mark.column
    if "\t" in here[: mark.column + 1] and not here[: mark.column + 1].strip():
        return "a tab; indent with spaces", mark.line, mark.column
    for number, line in enumerate(lines[: mark.line]):
        if (quote := _open_quote.match(line)) and _spaced.match(lines[number + 1]):
            return _NO_QUOTE, number, quote.start(1)
    if entry and mark.column >= entry.end():
        return "YAML cannot read this value; put it in quotes", mark.line, mark.column
    what = "this line fits neither in the list nor in the mapping before it; check how far it is "
    return f"{what}indented", mark.line, mark.column


def _cause_before(problem: str, lines: list[str], line: int, column: int) -> tuple[str, int, int]:
    """The cause of a problem with a key, and its place. It may be in a line before: without a space
    after its colon, a key is the beginning of a text of several lines.
    """
    first = _spaced.match(lines[line])
    # Another colon in a line that begins with a key is its own fault.
    for number in range(line, -1, -1) if not first or column < first.end() else ():
        if found := _unspaced.match(lines[number]):
            sign = "no " if found[1].isprintable() else f"U+{ord(found[1]):04X} instead of "
            what = f"{sign}space after the colon; put a plain one there"
            return what, number, found.start(1)
        if number < line and _spaced.match(lines[number]):
            break
    return problem, line, column


def core_values(value: Any) -> Any:
    """``value`` with the values of the core schema. Raises ValueError for a number that
    JSON lacks.
    """
    return _read_plain(value, _value_of)


def spellings(value: Any) -> Any:
    """``value`` with the spelling of each scalar."""
    return _read_plain(value, str)


def _read_plain(value: Any, read: Callable[[Plain], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _read_plain(item, read) for key, item in value.items()}
    if isinstance(value, list):
        return [_read_plain(item, read) for item in value]
    return read(value) if isinstance(value, Plain) else value


def _value_of(plain: Plain) -> bool | int | float | None:
    if plain in _NULLS:
        return None
    if plain in _BOOLEANS:
        return _BOOLEANS[plain]
    if len(plain) <= _NUMBER_CHARS_MAX and _integer.fullmatch(plain):
        return int(plain, 0 if plain[1:2] in ("o", "x") else 10)
    with suppress(ValueError):  # For .inf and .nan.
        if math.isfinite(number := float(plain)):
            return number
    raise ValueError(f"JSON has no number {plain[:40]}: use a smaller, finite one")


class _Document:
    """Reads the events of a document while the text is parsed."""

    def __init__(self, events: Iterator[yaml.Event], values_max: int) -> None:
        self._events = events
        self._left = self._max = values_max
        self.repeated: list[str] = []

    def read(self) -> Any:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), 0)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _error_at(after, "a second document begins")
        return value

    def _value(self, event: yaml.Event, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _error_at(event, f"it has more than {self._max:,} values")
        if depth > DEPTH_MAX:
            raise _error_at(event, f"it is nested deeper than {DEPTH_MAX} levels")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        # An alias may refer to itself or multiply: a few bytes can become gigabytes of JSON.
        if isinstance(event, yaml.AliasEvent):
            raise _error_at(event, "aliases (*name) are not supported; repeat the value")
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (None, "!", _TAG + ("seq" if is_list else "map")):
            raise _error_at(event, _unsupported(event.tag))
        return self._list(depth + 1) if is_list else self._mapping(depth + 1)

    def _list(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._value(event, depth)
            if not isinstance(key, str):
                raise _error_at(event, "a key is a list or a mapping; use a text")
            if key in items:
                self.repeated.append(f"{str(key)[:40]!r} in line {event.start_mark.line + 1}")
            value = self._value(next(self._events), depth)
            items[str(key)] = None if isinstance(value, Plain) and value in _NULLS else value
        return items


def _scalar(event: yaml.ScalarEvent) -> str:
    text = event.value if event.value.isascii() else _joined(event)
    if (event.tag is None and not event.implicit[0]) or event.tag in ("!", f"{_TAG}str"):
        return text
    found = _core.fullmatch(text)
    if event.tag is None:
        return Plain(text) if found else text
    tag = event.tag.removeprefix(_TAG)
    if tag not in _core.groupindex:
        raise _error_at(event, _unsupported(event.tag))
    # Each integer is also a float.
    if not found or found.lastgroup not in (tag, "int" if tag == "float" else tag):
        raise _error_at(event, f"{text[:40]!r} does not match its tag !!{tag}")
    return Plain(text)


def _joined(event: yaml.ScalarEvent) -> str:
    try:
        return event.value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _error_at(event, "it has half of a surrogate pair") from None


def _unsupported(tag: str) -> str:
    return f"the tag {tag.replace(_TAG, '!!')[:40]} is not supported; remove it"


def _error_at(event: yaml.Event, problem: str) -> YamlError:
    return _error(problem, event.start_mark.line, event.start_mark.column)


def _error(problem: str, line: int, column: int) -> YamlError:
    return YamlError(f"invalid YAML in line {line + 1}, column {column + 1}: {problem}")
