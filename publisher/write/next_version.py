"""The number of a new version, and the step from the version before it. Pure.

As in Semantic Versioning (https://semver.org), a program that fills in a prompt keeps working after
a patch or a minor version. After a major version, it may need a change.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from builder.model import names
from builder.model.errors import RequestError
from builder.model.names import AUTO, Version
from builder.model.records import Variable, VersionFile
from builder.model.request_bodies import Draft
from builder.text.messages import parse_messages
from builder.text.prompts import body_of, variable_names
from builder.text.values import as_text
from publisher.write.resolve import Metadata

Bump = Literal["major", "minor", "patch"]

# A reason names at most so many variables; it counts the others.
NAMED_MAX = 5

# By type, the wider types that take all of its values.
_WIDER = {"integer": ("number", "string"), "number": ("string",), "boolean": ("string",)}


class Interface(NamedTuple):
    """The part of a prompt that callers depend on: the variables that its text uses, by name, and
    ``is_chat``, True if it has messages.
    """

    variables: dict[str, Variable]
    is_chat: bool


class Step(NamedTuple):
    """The ``bump`` of a change, and ``reasons``: sentences that say why, most important first.
    ``added``, ``removed`` and ``changed`` are names of variables.
    """

    bump: Bump
    reasons: list[str]
    added: list[str]
    removed: list[str]
    changed: list[str]


# The reason where nothing changes for callers.
_AS_BEFORE = "Callers can fill it in as before."
NO_STEP = Step("patch", [_AS_BEFORE], [], [], [])


def next_version(highest: Version | None, count: int, bump: str, floor: int) -> Version:
    """Returns the number after the ``highest`` of ``count`` versions; no part that ``bump`` raises
    is below ``floor``. Raises RequestError ``version_conflict`` at the limit of versions.
    """
    if not highest:
        return names.FIRST_VERSION.lifted("patch", floor)
    if count >= names.VERSIONS_PER_REPO_MAX:
        raise RequestError(
            "version_conflict",
            f"The prompt has {count:,} versions, which is the limit. Publish under another name.",
        )
    return highest.bump(bump).lifted(bump, floor)


def check_ordinal(ordinal: int) -> int:
    """Returns ``ordinal`` if it is within the limit. Raises RequestError ``version_conflict``."""
    if ordinal > names.ORDINAL_MAX:
        raise RequestError(
            "version_conflict",
            f"The prompt has the ordinal {names.ORDINAL_MAX:,}, which is the limit. Publish under "
            "another name.",
        )
    return ordinal


def step_after(
    previous: tuple[VersionFile, str] | None, new: Metadata | VersionFile, text: str
) -> Step | None:
    """Returns the step from the ``previous`` version to one with this text; None for the first."""
    return propose_step(interface_of(*previous), interface_of(new, text)) if previous else None


def take_step(draft: Draft, step: Step | None) -> tuple[str, list[str]]:
    """Returns the bump of a publication that makes this step, and warnings of what it breaks."""
    if not step:
        return "patch", []
    bump = step.bump if draft.bump == AUTO else draft.bump
    if step.bump != "major" or bump == "major":
        return bump, []
    return bump, [
        f"breaking_variables: Programs that use the version before can fail with this {bump} "
        f"version. {' '.join(step.reasons)} Use bump major or {AUTO} for such a change."
    ]


def interface_of(one: Metadata | VersionFile, text: str) -> Interface:
    """Returns the interface of a version with this text."""
    body = body_of(text, one.front_matter_bytes)
    found = {*variable_names(body)}
    used = {variable.name: variable for variable in one.variables if variable.name in found}
    return Interface(used, parse_messages(body) is not None)


def propose_step(before: Interface, after: Interface) -> Step:
    """Returns the step from one version to the next.

    Major: filling in as before can fail or mean something else. That is the case where a variable
    is new and required, is gone, became required, or takes fewer values, or where a text became
    messages or the reverse. Minor: an optional variable is new. Patch: all else.
    """
    old, new = before.variables, after.variables
    both = [(old[name], new[name]) for name in old if name in new]
    added = [variable for name, variable in new.items() if name not in old]
    removed = [name for name in old if name not in new]
    required = [one.name for one in added if _is_required(one)]
    optional = [one.name for one in added if not _is_required(one)]
    needed = [two.name for one, two in both if _is_required(two) and not _is_required(one)]
    retyped = [two.name for one, two in both if not _takes_type(two, one)]
    narrowed = [two.name for one, two in both if not _takes_enum(two, one)]
    major = [
        *_say(required, "is a new required variable", "are new required variables"),
        *_say(removed, "is gone", "are gone"),
        *_say(needed, "is required now", "are required now"),
        *_say(retyped, "has another type", "have other types"),
        *_say(narrowed, "allows fewer values", "allow fewer values"),
    ]
    if before.is_chat != after.is_chat:
        major.append(f"The prompt is {'now' if after.is_chat else 'no longer'} a chat prompt.")
    minor = [*_say(optional, "is a new optional variable", "are new optional variables")]
    bump: Bump = "major" if major else "minor" if minor else "patch"
    reasons = major or minor or [_AS_BEFORE]
    changed = [two.name for one, two in both if _declared(one) != _declared(two)]
    return Step(bump, reasons, [one.name for one in added], removed, changed)


def _say(names: Iterable[str], one: str, many: str) -> Iterator[str]:
    """Yields a sentence about these variables; nothing where there are none."""
    found = list(names)
    if not found:
        return
    shown = ", ".join(found[:NAMED_MAX])
    more = len(found) - NAMED_MAX
    yield f"{shown}{f' and {more} more' if more > 0 else ''} {one if len(found) == 1 else many}."


def _is_required(variable: Variable) -> bool:
    """True if a caller that leaves the variable out fails."""
    return bool(variable.required) and variable.default is None


def _takes_type(variable: Variable, other: Variable) -> bool:
    return variable.type in (other.type, *_WIDER.get(other.type, ()))


def _takes_enum(variable: Variable, other: Variable) -> bool:
    """True if a variable takes all the values that another takes, as far as their enums say."""
    if not variable.enum:
        return True
    return bool(other.enum) and {*map(as_text, other.enum)} <= {*map(as_text, variable.enum)}


def _declared(variable: Variable) -> tuple[str, bool, str, str]:
    """Returns what a variable demands of callers, without its description."""
    default = as_text([variable.default])
    return variable.type, _is_required(variable), default, as_text(variable.enum)
