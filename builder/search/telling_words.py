"""The words of a prompt's text that distinguish it from others, for searches that have only its
line of the catalogue. They depend only on the prompt and the release, so no prompt changes
another's line.
"""

import math
import os
import re
from functools import cache, lru_cache

from builder.model.answers import Repo
from builder.search.language import FREQUENT_STEMS, STOP_STEMS
from builder.text.messages import without_markers
from builder.text.words import KNOWN_MAX, count_words, distinct_words

WORDS_MAX = 24
BYTES_MAX = 219
CHARS_MAX = 24
# Occurrences beyond this number add nothing.
COUNT_MAX = 8
_weights = [0.0, *(1 + math.log2(count) for count in range(1, COUNT_MAX + 1))]
# Rarity is log2(texts / texts with the word). This is the rarity of words that are not in the
# table.
UNKNOWN_RARITY = 7.0

# A placeholder begins at the last of its opening braces, so that many of them take no more time.
_addresses_and_placeholders = re.compile(r"https?://\S+|\{\{(?:(?!\{\{).)*?\}\}")
# A single letter, a number that is not a year, a key.
_is_odd = re.compile("[a-z]|[0-9]{1,3}|[0-9]{5,}|(?=(?:[^0-9]*[0-9]){3}).*[a-z].*").fullmatch


@cache
def rarities() -> dict[str, float]:
    """The rarity of the stems that occur in most prompts, from ``bench/common_words.py``."""
    with open(f"{os.path.dirname(__file__)}/common_words.txt", encoding="utf-8") as file:
        rows = (line.split() for line in file if not line.startswith("#"))
        return {stem: float(rarity) for rarity, *stems in rows for stem in stems}


def telling_words(repo: Repo) -> str:
    """Words of the text that no other field of its line has, sorted: at most WORDS_MAX, and
    BYTES_MAX with the spaces between them.
    """
    fields = (repo.owner, repo.name, repo.title, repo.description, *repo.tags)
    known, _ = distinct_words(" ".join(fields))
    text = _addresses_and_placeholders.sub(" ", without_markers(repo.body))
    spellings = count_words(text)
    counts: dict[str, int] = {}
    for (stem, _), count in spellings:
        if _rarity(stem) is not None and stem not in known:
            counts[stem] = counts.get(stem, 0) + count
    scores = {
        stem: _weights[count if count < COUNT_MAX else COUNT_MAX] * _rarity(stem)
        for stem, count in counts.items()
    }
    # Equal scores keep the order of the text.
    ordered = sorted(scores, key=scores.get, reverse=True)
    written = {stem: dict[str, int]() for stem in ordered[:WORDS_MAX]}
    for (stem, surface), count in spellings:
        if stem in written:
            written[stem][surface] = written[stem].get(surface, 0) + count
    chosen: list[str] = []
    left = BYTES_MAX + 1
    for forms in written.values():
        word = min(forms, key=lambda one: (-forms[one], len(one), one))
        left -= len(word.encode()) + 1
        if left < 0:
            break
        chosen.append(word)
    return " ".join(sorted(chosen))


@lru_cache(KNOWN_MAX)
def _rarity(stem: str) -> float | None:
    """The rarity of a stem; None for one that says nothing."""
    is_common = stem in STOP_STEMS or stem in FREQUENT_STEMS
    tells = not is_common and len(stem) <= CHARS_MAX and not _is_odd(stem)
    return rarities().get(stem, UNKNOWN_RARITY) if tells else None
