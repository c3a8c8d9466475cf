"""Searches a catalogue as the server searches its index. The build inserts this into the client, so
it uses only Python 3.7 and its library. `assets/catalogue.js` does the same in browsers.

The words of a text and the plan of a query come from the server's own code.
"""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from string import ascii_lowercase
from typing import NamedTuple

RULES = json.loads(r"""{}""")
STOP_STEMS, FREQUENT_STEMS = set(RULES["STOP"]), set(RULES["FREQUENT"])
SYNONYMS, VALUES = RULES["SYNONYMS"], RULES["VALUES"]
STEM_STEPS = [
    {suffix: (re.compile(condition), ending) for suffix, (condition, ending) in step.items()}
    for step in RULES["STEM_STEPS"]
]
SUFFIX_CHARS_MAX = max(len(suffix) for step in STEM_STEPS for suffix in step)
_spoken, _labelled = re.compile(RULES["SPOKEN"]), re.compile(RULES["LABELLED"])
# A posting is the number of a repo times this, plus the value of the word's best place there.
POSTING = 32


def mark_ranges() -> str:
    return RULES["COMBINING"]


def stem(word: str) -> str:
    if len(word) < 3:
        return word
    word = re.sub("^y", "Y", word)
    for step in STEM_STEPS:
        for at in range(max(0, len(word) - SUFFIX_CHARS_MAX), len(word)):
            if word[at:] in step:
                condition, ending = step[word[at:]]
                if condition.search(word[:at]):
                    word = word[:at] + ending
                break
    return re.sub("^Y", "y", word)


# The build puts text/words.py here.


# The build puts search/plan.py here.


class Catalogue:
    """Repos, and the places of each word in them."""

    def __init__(self, repos: list[dict]) -> None:
        self.repos = repos
        self.postings: dict[str, list[int]] = defaultdict(list)
        for number, repo in enumerate(repos):
            self._add(number, repo)
        self.written: dict[str, list[str]] = defaultdict(list)  # the tokens of a word
        for token in self.postings:
            self.written[surface_of(token)].append(token)
        self.vocabulary = sorted(self.written)

    def _add(self, number: int, repo: dict) -> None:
        title = split_words(repo["title"] + " " + repo["name"])
        stems = {stem_of(token) for token in title}
        is_short = len(stems - STOP_STEMS) <= RULES["SHORT_TITLE_WORDS_MAX"]
        best = dict.fromkeys(split_words(repo["owner"]), VALUES["text"])
        described = " ".join([repo["description"], repo.get("words", ""), *repo.get("labels", ())])
        best.update(dict.fromkeys(split_words(described), VALUES["description"]))
        best.update(dict.fromkeys(split_words(" ".join(repo["tags"])), VALUES["tags"]))
        best.update(dict.fromkeys(title, VALUES["short_title" if is_short else "title"]))
        for token, value in best.items():
            self.postings[token].append(number * POSTING + value)

    def search(self, q: str, tags: set[str]) -> tuple[list[dict], dict]:
        """The matching repos, best first; `match`, `corrected` and `label` as in the API."""
        labels, text = parse_query(q)
        plan = make_plan(text, self)
        values = [self._values(target) for target in plan.targets]
        scores: dict[int, float] = {}
        for number in set().union(*values) if plan.needed else range(len(self.repos)):
            repo = self.repos[number]
            pairs = zip(plan.targets, values)
            has = [(one, value[number]) for one, value in pairs if number in value]
            weight = sum(target.weight for target, _ in has)
            is_in = tags <= set(repo["tags"]) and set(labels) <= set(repo.get("labels", ()))
            if is_in and weight >= plan.needed:
                scores[number] = sum(int(target.rarity * value) for target, value in has)
        for number in scores if plan.needed else ():
            repo = self.repos[number]
            names = repo["title"], repo["name"], repo["owner"] + " " + repo["name"]
            scores[number] += WHOLE_SCORE * (plan.whole in map(whole_of, names))
        found = sorted(scores, key=lambda one: (-scores[one], self._id(one)))
        has_all = found and not lacking(plan, found[:1], self)[found[0]]
        corrected = [{"from": one, "to": nearest} for one, nearest in plan.corrected]
        meta = {"match": "all" if has_all else "some", "corrected": corrected or None}
        if labels:
            meta["label"] = ",".join(labels)
        return [self.repos[number] for number in found], meta

    def size(self) -> int:
        return len(self.repos)

    def holders(self, target: Target) -> int:
        return len(self._values(target))

    def having(self, targets: list[Target], among: list[int]) -> list[set[int]]:
        return [self._values(target).keys() & among for target in targets]

    def words_beginning(self, prefix: str, limit: int | None = None) -> list[str]:
        """The words with this prefix, sorted."""
        first, end = (bisect_left(self.vocabulary, prefix + last) for last in ("", chr(0x10FFFF)))
        return self.vocabulary[first:end][:limit]

    def _id(self, number: int) -> str:
        return self.repos[number]["owner"] + "/" + self.repos[number]["name"]

    def _values(self, target: Target) -> dict[int, float]:
        """The best value of a target in each repo."""
        best: dict[int, float] = {}
        longer = self.words_beginning(target.prefix) if target.prefix else ()
        is_short = len(target.prefix) <= RULES["BEGINNING_CHARS_MAX"]
        tokens = (token for word in longer for token in self.written[word])
        for number, value in self._places(tokens).items():
            is_in_title = is_short and value >= VALUES["title"]
            best[number] = BEGINNING_VALUE if is_in_title else BEGINNING_ELSEWHERE_VALUE
        for at, (stem, share) in enumerate(target.shares()):
            exact = {} if at else self._places(self.written.get(target.surface, ()))
            for number, value in self._places(self._forms(stem)).items():
                times = 1 + (exact[number] >= VALUES["title"]) if number in exact else 0
                value = value * share + EXACT_VALUE * times
                best[number] = max(best.get(number, 0), value)
        return best

    def _places(self, tokens: Iterable[str]) -> dict[int, int]:
        """The repos with any of these tokens, and the value of the best place in each."""
        # Of a repo's postings, the best place comes last.
        postings = sorted(posting for token in tokens for posting in self.postings[token])
        return dict(divmod(posting, POSTING) for posting in postings)

    def _forms(self, stem: str) -> list[str]:
        """The tokens with a stem, which differs from them in its last two letters or an article."""
        words = self.words_beginning(stem[:-2] or stem[0]) + [one + stem for one in ARTICLES]
        tokens = [token for word in words for token in self.written.get(word, ())]
        return [token for token in tokens if stem_of(token) == stem]
