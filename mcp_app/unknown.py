"""How an error names what a caller got wrong: the name, and the nearest ones that exist."""

import re
from collections.abc import Iterable
from itertools import islice

from builder.model.errors import RequestError
from builder.text.likeness import alike

SUGGESTED_MAX = 3
NAMES_TOLD = 10

# Of a caller's names these alone are repeated: whatever else is one may be meant for a model.
_is_plain = re.compile("[A-Za-z0-9_.-]{1,64}").fullmatch


def unknown_argument(
    what: str, given: Iterable[str], known: Iterable[str], kind: str = "argument"
) -> RequestError:
    """The error for arguments, or others of a ``kind``, of which at least one is not known.
    ``what`` takes those that are.
    """
    known = list(known)
    unknown = next(name for name in given if name not in known)
    if not _is_plain(unknown):
        named, advice = f"Unknown {kind}.", ""
    else:
        named, advice = f"Unknown {kind} `{unknown}`.", did_you_mean(alike(unknown, known), 1)
    takes = f"This {what} takes {told(known) or f'no {kind}s'}."
    return RequestError("invalid_parameter", " ".join(filter(None, [named, advice, takes])))


def did_you_mean(near: Iterable[str], count: int = SUGGESTED_MAX) -> str:
    """A question with the nearest names; empty where none is near."""
    *first, last = [f"`{name}`" for name in islice(near, count)] or [""]
    if first:
        last = f"{', '.join(first)} or {last}"
    return f"Did you mean {last}?" if last else ""


def told(names: Iterable[str]) -> str:
    """Names as an error tells them: not all, where there are many."""
    shown = list(islice(names, NAMES_TOLD + 1))
    return ", ".join([*shown[:NAMES_TOLD], *(["…"] if len(shown) > NAMES_TOLD else [])])
