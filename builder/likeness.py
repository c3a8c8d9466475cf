"""Which of the names that there are may be meant by a misspelt one. Pure."""

import difflib
from collections.abc import Iterable
from itertools import islice

# Two names of 64 characters from few letters take a millisecond, and anybody may ask.
COMPARED_MAX = 50
COMPARED_CHARS_MAX = 100
# Likeness is from 0 to 1, as difflib measures it. From here on, a name is worth suggesting.
LIKENESS_MIN = 0.6


def alike(wrong: str, known: Iterable[str]) -> dict[str, float]:
    """Names like ``wrong`` with their likeness, the most alike first.

    Only the first COMPARED_MAX of ``known`` are compared, and nothing with a ``wrong`` that is
    longer than COMPARED_CHARS_MAX.
    """
    if len(wrong) > COMPARED_CHARS_MAX:
        return {}
    matcher = difflib.SequenceMatcher(b=wrong)
    found = {}
    for name in islice(known, COMPARED_MAX):
        matcher.set_seq1(name)
        # Upper bounds, which take less.
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= LIKENESS_MIN:
            found[name] = matcher.ratio()
    likeliest = sorted(found, key=lambda name: (-found[name], name))
    return {name: found[name] for name in likeliest if found[name] >= LIKENESS_MIN}
