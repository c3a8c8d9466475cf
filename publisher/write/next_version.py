"""The number of a new version, and the step from the version before it. Pure.

The rule is in builder.text.interface.
"""

from typing import NamedTuple

from builder.model import names
from builder.model.errors import RequestError
from builder.model.names import AUTO, Version
from builder.model.records import VersionFile
from builder.model.request_bodies import Draft
from builder.text.interface import (
    KINDS,
    Bump,
    Interface,
    bump_of,
    changes_for_callers,
    interface_of,
)
from publisher.write.resolve import Metadata

# A reason names at most so many variables; it counts the others.
NAMED_MAX = 5


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


def propose_step(before: Interface, after: Interface) -> Step:
    """Returns the step from one version to the next."""
    changes = changes_for_callers(before, after)
    bump = bump_of(changes)
    names: dict[str, list[str]] = {}
    for change in changes:
        names.setdefault(change.kind, []).append(change.name)
    old, new = before.variables, after.variables
    found = {change.name for change in changes if change.kind != "setting"}
    return Step(
        bump,
        [_say(*one) for one in names.items() if KINDS[one[0]].bump == bump != "patch"]
        or [_AS_BEFORE],
        [name for name in new if name not in old],
        names.get("gone", []),
        [name for name in old if name in new and name in found],
    )


def _say(kind: str, names: list[str]) -> str:
    """Returns a sentence about these variables."""
    shown = ", ".join(names[:NAMED_MAX]) or "The prompt"
    more = len(names) - NAMED_MAX
    words = KINDS[kind].one if len(names) == 1 else KINDS[kind].many
    return f"{shown}{f' and {more} more' if more > 0 else ''} {words}."
