"""Errors that name what a caller got wrong, and the nearest names that exist."""

import re
from collections.abc import Iterable
from itertools import islice

from builder.model.errors import RequestError
from builder.text.likeness import alike

SUGGESTED_MAX = 3
NAMES_LISTED_MAX = 10

# Only such a name is repeated to the caller: any other text may be aimed at a model.
_is_plain = re.compile("[A-Za-z0-9_.-]{1,64}").fullmatch


def unknown_argument(what: str, given: Iterable[str], known: Iterable[str]) -> RequestError:
    """The error for the first unknown argument; ``what`` takes those in ``known``."""
    known = list(known)
    unknown = next(name for name in given if name not in known)
    if not _is_plain(unknown):
        named, advice = "Unknown argument.", ""
    else:
        named, advice = f"Unknown argument `{unknown}`.", did_you_mean(alike(unknown, known), 1)
    takes = f"This {what} takes {listed(known) or 'no arguments'}."
    return RequestError("invalid_parameter", " ".join(filter(None, [named, advice, takes])))


def did_you_mean(near: Iterable[str], count: int = SUGGESTED_MAX) -> str:
    """A question with the nearest names; empty if none is near."""
    *first, last = [f"`{name}`" for name in islice(near, count)] or [""]
    if first:
        last = f"{', '.join(first)} or {last}"
    return f"Did you mean {last}?" if last else ""


def listed(names: Iterable[str]) -> str:
    """The names for an error, the first NAMES_LISTED_MAX if there are more."""
    shown = list(islice(names, NAMES_LISTED_MAX + 1))
    return ", ".join([*shown[:NAMES_LISTED_MAX], *(["…"] if len(shown) > NAMES_LISTED_MAX else [])])
