"""Which step a new version is: what its variables ask of the callers of the one before. Pure.

A caller that fills a prompt in keeps working after a patch or a minor version, and must look after
a major one.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from builder.model.records import Variable

Bump = Literal["major", "minor", "patch"]

# Of the variables that a reason names.
NAMED_MAX = 5


class Step(NamedTuple):
    """The proposed ``bump``, and ``reasons``: sentences that say why, most important first."""

    bump: Bump
    reasons: list[str]


def propose_step(before: Sequence[Variable], after: Sequence[Variable]) -> Step:
    """The step from a version whose text uses the variables ``before`` to one that uses ``after``.

    Major: a caller that worked may fail, as a required variable is new, or one is gone, became
    required, changed its type or takes fewer values. Minor: there is something new that a caller
    may use. Patch: all else, which is words.
    """
    old = {variable.name: variable for variable in before}
    new = {variable.name: variable for variable in after}
    both = [(old[name], new[name]) for name in old if name in new]
    added = [variable for name, variable in new.items() if name not in old]
    major = [
        *_told(added, "is a new required variable", "are new required variables", required=True),
        *_say((name for name in old if name not in new), "is gone", "are gone"),
        *_say(
            (two.name for one, two in both if two.required and not one.required),
            "is required now", "are required now",
        ),
        *_say(
            (two.name for one, two in both if two.type != one.type),
            "has another type", "have other types",
        ),
        *_say(
            (two.name for one, two in both if not _allows(two, one)),
            "allows fewer values", "allow fewer values",
        ),
    ]  # fmt: skip
    if major:
        return Step("major", major)
    minor = [
        *_told(added, "is a new optional variable", "are new optional variables", required=False),
        *_say(
            (two.name for one, two in both if one.required and not two.required),
            "may be left out now", "may be left out now",
        ),
        *_say(
            (two.name for one, two in both if not _allows(one, two)),
            "allows more values", "allow more values",
        ),
    ]  # fmt: skip
    if minor:
        return Step("minor", minor)
    return Step("patch", ["The variables ask for nothing else than before."])


def _told(added: Iterable[Variable], one: str, many: str, *, required: bool) -> Iterator[str]:
    return _say((variable.name for variable in added if variable.required is required), one, many)


def _say(names: Iterable[str], one: str, many: str) -> Iterator[str]:
    """A sentence about some variables; none about none."""
    found = list(names)
    if not found:
        return
    shown = ", ".join(found[:NAMED_MAX])
    more = len(found) - NAMED_MAX
    yield f"{shown}{f' and {more} more' if more > 0 else ''} {one if len(found) == 1 else many}."


def _allows(variable: Variable, other: Variable) -> bool:
    """Whether a variable takes all the values that another takes, as far as their enums say."""
    if not variable.enum:
        return True
    return bool(other.enum) and {*map(_key, other.enum)} <= {*map(_key, variable.enum)}


def _key(value: Any) -> str:
    """The same for the same value: in JSON, 1 and true are not."""
    return json.dumps(value, sort_keys=True)
