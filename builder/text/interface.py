"""The rule that finds which changes between two versions matter to programs that use them. Pure.

As in Semantic Versioning (https://semver.org), a program that fills in a prompt keeps working after
a patch or a minor step. After a major step, it may need a change.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from builder.model.errors import cut
from builder.model.records import Variable
from builder.text.messages import parse_messages
from builder.text.prompts import body_of, variable_names
from builder.text.values import as_text

Bump = Literal["major", "minor", "patch"]

# The name of a step, and what it means for programs that use the version `{}`. Largest first.
_BUMPS: dict[Bump, tuple[str, str]] = {
    "major": ("A major step", "programs that fill in {} can fail, or mean something else."),
    "minor": ("A minor step", "programs can fill it in like {}, and can send more."),
    "patch": ("A patch", "programs can fill it in like {}."),
}


class Kind(NamedTuple):
    """A kind of change: its ``bump``; ``words`` beside a name; and what a sentence says about one
    name, and about several.
    """

    bump: Bump
    words: str
    one: str = ""
    many: str = ""


# Most important first.
KINDS = {
    "required": Kind(
        "major",
        "new and required: callers must send it",
        "is a new required variable",
        "are new required variables",
    ),
    "gone": Kind("major", "gone: callers must stop sending it", "is gone", "are gone"),
    "needed": Kind(
        "major", "required now: callers must send it", "is required now", "are required now"
    ),
    "retyped": Kind("major", "another type:", "has another type", "have other types"),
    "narrowed": Kind("major", "fewer values:", "allows fewer values", "allow fewer values"),
    "chat": Kind("major", "messages now, not one text", "is now a chat prompt"),
    "text": Kind("major", "one text now, not messages", "is no longer a chat prompt"),
    "optional": Kind(
        "minor", "new and optional", "is a new optional variable", "are new optional variables"
    ),
    "type": Kind("patch", "a wider type:"),
    "values": Kind("patch", "more values:"),
    "any": Kind("patch", "any value now"),
    "left out": Kind("patch", "may be left out now"),
    "default": Kind("patch", "default:"),
    "setting": Kind("patch", "model setting:"),
}
_ORDER = {kind: number for number, kind in enumerate(KINDS)}
# Characters of a value that a change shows.
SHOWN_CHARS = 80

# By type, the wider types that take all of its values.
_WIDER = {"integer": ("number", "string"), "number": ("string",), "boolean": ("string",)}


class Described(Protocol):
    """The fields of a version's record that callers depend on."""

    variables: list[Variable]
    parameters: dict[str, Any]
    front_matter_bytes: int


class Interface(NamedTuple):
    """The part of a prompt that callers depend on: the variables that its text uses, by name;
    ``is_chat``, True if it has messages; and its model settings.
    """

    variables: dict[str, Variable]
    is_chat: bool
    parameters: dict[str, Any]


class Change(NamedTuple):
    """A change for callers. ``name``: of a variable or setting; empty for the prompt itself.
    ``old`` and ``new`` are values, empty if they do not matter.
    """

    kind: str
    name: str
    old: str = ""
    new: str = ""

    @property
    def bump(self) -> Bump:
        return KINDS[self.kind].bump

    @property
    def words(self) -> str:
        return KINDS[self.kind].words


def interface_of(one: Described, text: str) -> Interface:
    """The interface of a version with this text."""
    body = body_of(text, one.front_matter_bytes)
    found = {*variable_names(body)}
    used = {variable.name: variable for variable in one.variables if variable.name in found}
    return Interface(used, parse_messages(body) is not None, one.parameters)


def changes_for_callers(before: Interface, after: Interface) -> list[Change]:
    """The changes between two versions for callers, most important first.

    Major: filling in as before can fail or mean something else. That is the case where a variable
    is new and required, is gone, became required, or takes fewer values, or where a text became
    messages or the reverse. Minor: an optional variable is new. Patch: all else.
    """
    return sorted(_changes(before, after), key=lambda one: _ORDER[one.kind])


def bump_of(changes: Sequence[Change]) -> Bump:
    """The step that these changes make."""
    return changes[0].bump if changes else "patch"


def by_name(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """The changes of each name, as a page lists them."""
    names: dict[str, list[Change]] = {}
    for one in changes:
        names.setdefault(one.name, []).append(one)
    return names


def explain(changes: Sequence[Change], old: str, new: str) -> str:
    """Sentences about the step from version ``old`` to ``new``."""
    bump = bump_of(changes)
    rows = by_name(changes).values()
    first = sum(row[0].bump == bump for row in rows)
    why = f", because of the first {first}".removesuffix(" 1") if first < len(rows) else ""
    name, meaning = _BUMPS[bump]
    sentence = f"{name}{why}: {meaning.format(old)}"
    numbers = [[int(part) for part in one.split(".")] for one in (old, new)]
    by_number = next(one for one, was, now in zip(_BUMPS, *numbers, strict=True) if was != now)
    if [*_BUMPS].index(by_number) <= [*_BUMPS].index(bump) or numbers[0] > numbers[1]:
        return sentence
    return f"{sentence} Its number says {by_number}."


def _changes(before: Interface, after: Interface) -> Iterator[Change]:
    for name, old in before.variables.items():
        new = after.variables.get(name)
        yield from _changes_of_variable(old, new) if new else [Change("gone", name)]
    for name, new in after.variables.items():
        if name not in before.variables:
            yield Change("required" if is_required(new) else "optional", name)
    if before.is_chat != after.is_chat:
        yield Change("chat" if after.is_chat else "text", "")
    for name in {**before.parameters, **after.parameters}:
        old, new = (one.parameters.get(name) for one in (before, after))
        if not _is_same(old, new):
            yield Change("setting", name, _value(old), _value(new))


def _changes_of_variable(old: Variable, new: Variable) -> Iterator[Change]:
    if is_required(old) != is_required(new):
        yield Change("needed" if is_required(new) else "left out", new.name)
    if old.type != new.type:
        is_wider = new.type in _WIDER.get(old.type, ())
        yield Change("type" if is_wider else "retyped", new.name, old.type, new.type)
    if not _is_same(old.default, new.default):
        yield Change("default", new.name, _value(old.default), _value(new.default))
    if not old.enum and not new.enum:
        return
    was, now = (dict.fromkeys(map(as_text, one.enum or ())) for one in (old, new))
    gone, come = (
        cut(", ".join(value or '""' for value in one if value not in other), SHOWN_CHARS)
        for one, other in ((was, now), (now, was))
    )
    if now and (not was or gone):
        yield Change("narrowed", new.name, gone, come)
    elif was and not now:
        yield Change("any", new.name)
    elif come:
        yield Change("values", new.name, "", come)


def _is_same(old: Any, new: Any) -> bool:
    """True if prompts and pages show the same for both values."""
    # Python has no difference between True and 1, not even within lists.
    is_plain = old.__class__ is new.__class__ and not isinstance(old, list | dict)
    return (is_plain and old == new) or as_text([old]) == as_text([new])


def is_required(variable: Variable) -> bool:
    """True if a caller that leaves the variable out fails."""
    return bool(variable.required) and variable.default is None


def _value(value: Any) -> str:
    """A value as a page shows it; empty if there is none."""
    return "" if value is None else cut(as_text(value) or '""', SHOWN_CHARS)
