"""Finds the names that a misspelled one may stand for. Pure."""

import difflib
from collections.abc import Iterable
from itertools import islice

# Comparing two names of 64 characters can take a millisecond, and callers may be anonymous.
COMPARED_MAX = 50
COMPARED_CHARS_MAX = 100
# Likeness is difflib's ratio, from 0 to 1. Names below this are not suggested.
LIKENESS_MIN = 0.6


def alike(wrong: str, known: Iterable[str]) -> dict[str, float]:
    """The names in ``known`` that resemble ``wrong``, best first, each with its likeness.

    Compares only the first COMPARED_MAX names. A ``wrong`` longer than COMPARED_CHARS_MAX resembles
    none.
    """
    if len(wrong) > COMPARED_CHARS_MAX:
        return {}
    matcher = difflib.SequenceMatcher(b=wrong)
    found = {}
    for name in islice(known, COMPARED_MAX):
        matcher.set_seq1(name)
        # These two are upper bounds of the ratio, and cheaper.
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= LIKENESS_MIN:
            found[name] = matcher.ratio()
    likeliest = sorted(found, key=lambda name: (-found[name], name))
    return {name: found[name] for name in likeliest if found[name] >= LIKENESS_MIN}
