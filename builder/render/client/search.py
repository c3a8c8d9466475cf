"""Searches a catalogue as the server searches its index. The build inserts this into the client, so
it uses only Python 3.7 and its library. `assets/catalogue.js` does the same in browsers.

Words are those of `builder/text/words.py`; the plan of a query is made by the server's own code.
"""

from __future__ import annotations

import json
import math  # noqa: F401 (for the plan)
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from functools import lru_cache
from string import ascii_lowercase  # noqa: F401 (for the plan)
from typing import NamedTuple

RULES = json.loads(r"""{}""")
STOP_STEMS, FREQUENT_STEMS = set(RULES["STOP"]), set(RULES["FREQUENT"])
SYNONYMS, VALUES, QUERY_WORDS_MAX = (
    RULES[name] for name in ("SYNONYMS", "VALUES", "QUERY_WORDS_MAX")
)
STEM_STEPS = [
    {suffix: (re.compile(condition), ending) for suffix, (condition, ending) in step.items()}
    for step in RULES["STEM_STEPS"]
]
SUFFIX_CHARS_MAX = max(len(suffix) for step in STEM_STEPS for suffix in step)
RUN = "[{UNSPACED}][{UNSPACED}{COMBINING}]*".format_map(RULES)
LETTER = r"[^\W_{UNSPACED}]".format_map(RULES)
PART = r"{0}|[{COMBINING}]|['’](?={0})".format(LETTER, **RULES)
TOKEN = re.compile("({0})|{SIGNED}|{1}(?:{2})*".format(RUN, LETTER, PART, **RULES))
ASCII_TOKEN = re.compile(RULES["SIGNED"] + "|[a-z0-9]+(?:'[a-z0-9]+)*")
JOINED = re.compile(RULES["JOINED"])
ARTICLE, _spoken, _labelled = (
    re.compile(RULES[name]) for name in ("ARTICLE", "SPOKEN", "LABELLED")
)
# A posting is the number of a repo times this, plus the value of the word's best place there.
POSTING = 32


class Word(NamedTuple):
    stem: str
    surface: str


def words(text: str) -> list[Word]:
    return [Word(stem_of(token), surface_of(token)) for token in tokens(text)]


def is_unspaced(word: str) -> bool:
    return re.match(RUN, word) is not None


def tokens(text: str) -> list[str]:
    """The words of a text, with their apostrophes: joined ones first; pairs of characters of
    unspaced scripts.
    """
    plain = folded(text)
    return JOINED.findall(plain) + parts_of(plain)


def folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", folded))
    return unicodedata.normalize("NFC", plain)


def parts_of(plain: str) -> list[str]:
    if plain.isascii():
        return ASCII_TOKEN.findall(plain)
    found = []
    for match in TOKEN.finditer(plain):
        run = match.group(1) or ""
        found += [run[at : at + 2] for at in range(len(run))] or [match.group()]
    return found


def surface_of(token: str) -> str:
    """The word without apostrophes."""
    return token.replace("'", "").replace("’", "")[: RULES["WORD_CHARS_MAX"]]


@lru_cache(maxsize=None)
def stem_of(token: str) -> str:
    """The form under which a word is found."""
    surface = surface_of(token)
    if not re.fullmatch("[a-z]+", surface):
        return surface if surface.isascii() else ARTICLE.sub("", surface)
    return stem(surface_of(re.sub("['’]s$", "", token)))


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


def whole_of(text: str) -> str:
    """The words of a short text, joined into one."""
    return "_".join(map(stem_of, parts_of(folded(text))))


# The build puts the plan here.


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
        title = tokens(repo["title"] + " " + repo["name"])
        is_short = len(set(map(stem_of, title)) - STOP_STEMS) <= RULES["SHORT_TITLE_WORDS_MAX"]
        best = dict.fromkeys(tokens(repo["owner"]), VALUES["text"])
        described = " ".join([repo["description"], repo.get("words", ""), *repo.get("labels", ())])
        best.update(dict.fromkeys(tokens(described), VALUES["description"]))
        best.update(dict.fromkeys(tokens(" ".join(repo["tags"])), VALUES["tags"]))
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
        for number in self._wholes(plan, scores) if plan.needed else ():
            scores[number] += WHOLE_SCORE
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

    def _wholes(self, plan: QueryPlan, scores: dict[int, float]) -> list[int]:
        """The repos whose whole title or name is the query."""
        # The least value of each of its words: a single word is never an owner and a name.
        value = VALUES["text" if "_" in plan.whole else "title"]
        least = value * sum(target.rarity for target in plan.targets)
        found = []
        for number in (one for one, score in scores.items() if score >= least):
            repo = self.repos[number]
            parts = repo["title"], repo["name"], repo["owner"] + " " + repo["name"]
            if plan.whole in map(whole_of, parts):
                found.append(number)
        return found

    def _values(self, target: Target) -> dict[int, float]:
        """The best value of a target in each repo."""
        best: dict[int, float] = {}
        for word in self.words_beginning(target.prefix) if target.prefix else ():
            for number, value in self._places(self.written[word]):
                is_short = len(target.prefix) <= RULES["BEGINNING_CHARS_MAX"]
                if is_short and value >= VALUES["title"]:
                    best[number] = BEGINNING_VALUE
                else:
                    best.setdefault(number, BEGINNING_ELSEWHERE_VALUE)
        for at, (stem, share) in enumerate(target.shares()):
            own: dict[int, int] = {}
            for number, value in self._places(self._forms(stem)):
                own[number] = max(own.get(number, 0), value)
            exact: dict[int, int] = {}
            for number, value in (
                self._places(self.written.get(target.surface, ())) if not at else ()
            ):
                exact[number] = max(exact.get(number, 0), 1 + (value >= VALUES["title"]))
            for number, value in own.items():
                value = value * share + EXACT_VALUE * exact.get(number, 0)
                best[number] = max(best.get(number, 0), value)
        return best

    def _places(self, tokens: list[str]) -> list[tuple[int, int]]:
        """The repos with these tokens, and the value of the best place of each."""
        return [divmod(posting, POSTING) for token in tokens for posting in self.postings[token]]

    def _forms(self, stem: str) -> list[str]:
        """The tokens with a stem, which differs from them in its last two letters or an article."""
        words = self.words_beginning(stem[:-2] or stem[0]) + [
            one + stem for one in RULES["ARTICLES"]
        ]
        tokens = [token for word in words for token in self.written.get(word, ())]
        return [token for token in tokens if stem_of(token) == stem]
