"""The words of a prompt's text that tell it from others, for searches that have only its line of
the catalogue. Chosen by the prompt and the release alone, so that no prompt changes another's line.
"""

import math
import os
import re
from collections import Counter
from functools import cache

from builder.model.records import Repo
from builder.search.language import FREQUENT_STEMS, STOP_STEMS
from builder.text.messages import without_markers
from builder.text.words import distinct_words, part_words

WORDS_MAX = 24
BYTES_MAX = 219
CHARS_MAX = 24
# From here on, more of the same word says no more.
COUNT_MAX = 8
# In doublings of the texts among which one has the word; that of words that are not in the table.
UNKNOWN_RARITY = 7.0

_addresses_and_placeholders = re.compile(r"https?://\S+|\{\{.*?\}\}")
# A letter, a number but a year, a key.
_is_odd = re.compile("[a-z]|[0-9]{1,3}|[0-9]{5,}|(?=(?:.*[0-9]){3}).*[a-z].*").fullmatch


@cache
def rarities() -> dict[str, float]:
    """The rarity of the stems that stand in most prompts, by ``bench/common_words.py``."""
    with open(f"{os.path.dirname(__file__)}/common_words.txt", encoding="utf-8") as file:
        rows = (line.split() for line in file if not line.startswith("#"))
        return {stem: float(rarity) for rarity, *stems in rows for stem in stems}


def telling_words(repo: Repo) -> str:
    """Words of the text that stand in no other field of its line, sorted: at most WORDS_MAX, and
    BYTES_MAX with the spaces between them.
    """
    fields = (repo.owner, repo.name, repo.title, repo.description, *repo.tags)
    known, _ = distinct_words(" ".join(fields))
    text = _addresses_and_placeholders.sub(" ", without_markers(repo.body))
    spellings = Counter(part_words(text))
    counts: Counter[str] = Counter()
    for (stem, _), count in spellings.items():
        counts[stem] += count
    # Equal ones in the order of the text.
    scores = {stem: _score(stem, n) for stem, n in counts.items() if _tells(stem, known)}
    best = sorted(scores, key=lambda stem: -scores[stem])[:WORDS_MAX]
    written: dict[str, list[tuple[int, int, str]]] = {stem: [] for stem in best}
    for (stem, surface), count in spellings.items():
        if stem in written:
            written[stem].append((-count, len(surface), surface))
    chosen: list[str] = []
    left = BYTES_MAX + 1
    for stem in best:
        *_, word = min(written[stem])
        left -= len(word.encode()) + 1
        if left < 0:
            break
        chosen.append(word)
    return " ".join(sorted(chosen))


def _score(stem: str, count: int) -> float:
    return (1 + math.log2(min(COUNT_MAX, count))) * rarities().get(stem, UNKNOWN_RARITY)


def _tells(stem: str, known: set[str]) -> bool:
    is_word = len(stem) <= CHARS_MAX and not _is_odd(stem)
    return is_word and stem not in known and stem not in STOP_STEMS and stem not in FREQUENT_STEMS
