"""Searches a catalogue as the server searches its index. The build inserts this into the client, so
it uses only Python 3.7 and its library. `assets/catalogue.js` does the same in browsers.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

RULES = json.loads(r"""{}""")
STOP, FREQUENT = set(RULES["STOP"]), set(RULES["FREQUENT"])
VALUES = RULES["VALUES"]
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
ARTICLE, SPOKEN = re.compile(RULES["ARTICLE"]), re.compile(RULES["SPOKEN"])
LABELLED = re.compile(RULES["LABELLED"])
# A posting is the number of a repo times this, plus the value of the word's best place there.
POSTING = 32


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


def query_words(q: str) -> list[tuple[str, str]]:
    """The first different words, each at its last place. The last character of a run is left out,
    because it is in a pair.
    """
    once = {}
    before = ""
    for token in tokens(q):
        is_rest = len(token) == 1 and len(before) == 2 and before[1] == token
        if not (is_rest and re.match(RUN, token)):
            is_new = once.pop(stem_of(token), None) is None
            if is_new and len(once) == RULES["QUERY_WORDS_MAX"]:
                break
            once[stem_of(token)] = surface_of(token)
        before = token
    return list(once.items())


def edits(one: str, other: str, most: int) -> int:
    """The number of letters to insert, drop, replace or swap with the next; above `most`, any
    number above it.
    """
    while one and one[0] == other[:1]:
        one, other = one[1:], other[1:]
    if not (most and one and other):
        return len(one) + len(other)
    skips = [(1, 0), (0, 1), (1, 1)] + [(2, 2)] * (one[:2] == other[1::-1])
    return 1 + min(edits(one[drop:], other[skip:], most - 1) for drop, skip in skips)


class Target(NamedTuple):
    """A searched word: its stem and those of synonyms, the prefix of other words that match, and
    the word as it is written.
    """

    stems: list[str]
    prefix: str = ""
    rarity: int = 1
    weight: int = 1
    surface: str = ""
    is_corrected: bool = False


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
        is_short = len(set(map(stem_of, title)) - STOP) <= RULES["SHORT_TITLE_WORDS_MAX"]
        best = dict.fromkeys(tokens(repo["owner"]), VALUES["text"])
        described = " ".join([repo["description"], repo.get("words", ""), *repo.get("labels", ())])
        best.update(dict.fromkeys(tokens(described), VALUES["description"]))
        best.update(dict.fromkeys(tokens(" ".join(repo["tags"])), VALUES["tags"]))
        best.update(dict.fromkeys(title, VALUES["short_title" if is_short else "title"]))
        for token, value in best.items():
            self.postings[token].append(number * POSTING + value)

    def search(self, q: str, tags: set[str]) -> tuple[list[dict], dict]:
        """The matching repos, best first; `match`, `corrected` and `label` as in the API."""
        plain = folded(q)
        labels = list(dict.fromkeys(LABELLED.findall(plain)))[: RULES["QUERY_WORDS_MAX"]]
        q = LABELLED.sub(" ", plain) if labels else q
        targets, corrected, is_complete = self._plan(q)
        needed = sum(target.weight for target in targets)
        values = [self._values(target) for target in targets]
        scores: dict[int, float] = {}
        for number in set().union(*values) if query_words(q) else range(len(self.repos)):
            repo = self.repos[number]
            has = [(one, value[number]) for one, value in zip(targets, values) if number in value]
            weight = sum(target.weight for target, _ in has)
            is_in = tags <= set(repo["tags"]) and set(labels) <= set(repo.get("labels", ()))
            if is_in and weight >= needed / 2:
                scores[number] = sum(int(target.rarity * value) for target, value in has)
        for number in self._wholes(q, targets, scores) if needed else ():
            scores[number] += RULES["WHOLE_SCORE"]
        found = sorted(scores, key=lambda one: (-scores[one], self._id(one)))
        strict = [one._replace(stems=one.stems[:1]) for one in targets if one.weight]
        has_all = is_complete and found and all(found[0] in self._values(one) for one in strict)
        meta = {"match": "all" if has_all else "some", "corrected": corrected or None}
        if labels:
            meta["label"] = ",".join(labels)
        return [self.repos[number] for number in found], meta

    def _id(self, number: int) -> str:
        return self.repos[number]["owner"] + "/" + self.repos[number]["name"]

    def _wholes(self, q: str, targets: list[Target], scores: dict[int, float]) -> list[int]:
        """The repos whose whole title or name is the query."""
        whole = whole_of(q)
        # The least value of each of its words: a single word is never an owner and a name.
        value = VALUES["text" if "_" in whole else "title"]
        least = value * sum(target.rarity for target in targets)
        found = []
        for number in (one for one, score in scores.items() if score >= least):
            repo = self.repos[number]
            parts = repo["title"], repo["name"], repo["owner"] + " " + repo["name"]
            if whole in map(whole_of, parts):
                found.append(number)
        return found

    def _values(self, target: Target) -> dict[int, float]:
        """The best value of a target in each repo."""
        best: dict[int, float] = {}
        for word in self._beginning(target.prefix) if target.prefix else ():
            for number, value in self._places(self.written[word]):
                is_short = len(target.prefix) <= RULES["BEGINNING_CHARS_MAX"]
                if is_short and value >= VALUES["title"]:
                    best[number] = RULES["BEGINNING_VALUE"]
                else:
                    best.setdefault(number, RULES["BEGINNING_ELSEWHERE_VALUE"])
        for at, stem in enumerate(target.stems):
            share = RULES["SYNONYM_SHARE"] if at else 1
            own: dict[int, int] = {}
            for number, value in self._places(self._forms(stem)):
                own[number] = max(own.get(number, 0), value)
            exact: dict[int, int] = {}
            for number, value in (
                self._places(self.written.get(target.surface, ())) if not at else ()
            ):
                exact[number] = max(exact.get(number, 0), 1 + (value >= VALUES["title"]))
            for number, value in own.items():
                value = value * share + RULES["EXACT_VALUE"] * exact.get(number, 0)
                best[number] = max(best.get(number, 0), value)
        return best

    def _places(self, tokens: list[str]) -> list[tuple[int, int]]:
        """The repos with these tokens, and the value of the best place of each."""
        return [divmod(posting, POSTING) for token in tokens for posting in self.postings[token]]

    def _forms(self, stem: str) -> list[str]:
        """The tokens with a stem, which differs from them in its last two letters or an article."""
        words = self._beginning(stem[:-2] or stem[0]) + [one + stem for one in RULES["ARTICLES"]]
        tokens = [token for word in words for token in self.written.get(word, ())]
        return [token for token in tokens if stem_of(token) == stem]

    def _beginning(self, prefix: str) -> list[str]:
        """The words with this prefix, sorted."""
        end = bisect_left(self.vocabulary, prefix + chr(0x10FFFF))
        return self.vocabulary[bisect_left(self.vocabulary, prefix) : end]

    def _plan(self, q: str) -> tuple[list[Target], list[dict], bool]:
        """The targets, the corrected words, and true if no word is left out."""
        words = query_words(q)
        content = {stem for stem, _ in query_words(SPOKEN.sub(" ", folded(q)))} - STOP or (
            {stem for stem, _ in words} - STOP
        )
        telling = [word for word in words if word[0] in content] or words
        corrected: list[dict] = []
        counted = [self._counted(*word, word == words[-1]) for word in telling]
        is_known = any(count for count, _ in counted)
        least = RULES["CORRECTED_BESIDE_LETTERS_MIN" if is_known else "CORRECTED_LETTERS_MIN"]
        for at, (_, surface) in enumerate(telling):
            if not counted[at][0] and len(corrected) < RULES["CORRECTED_MAX"]:
                nearest = self._nearest(surface, least)
                if nearest:
                    corrected.append({"from": surface, "to": nearest})
                    target = Target([stem_of(nearest)], surface=nearest, is_corrected=True)
                    counted[at] = len(self._values(target)), target
        counted = [pair for pair in counted if pair[0]]
        return self._weigh(counted), corrected, len(counted) == len(telling)

    def _counted(self, stem: str, surface: str, is_last: bool) -> tuple[int, Target]:
        is_beginning = is_last and any(stem_of(one) != stem for one in self._beginning(surface))
        stems = [stem, *RULES["SYNONYMS"].get(stem, ())]
        target = Target(stems, surface if is_beginning else "", surface=surface)
        return len(self._values(Target([stem])) or self._values(target)), target

    def _weigh(self, counted: list[tuple[int, Target]]) -> list[Target]:
        counted.sort(key=lambda pair: (pair[0], pair[1].stems[0]))
        frequent = [pair for pair in counted if pair[1].stems[0] in FREQUENT]
        rare = [pair for pair in counted if pair not in frequent]
        if not rare:
            # Even if few repos here have one of them, it does not distinguish repos.
            least = len(self.repos) // RULES["FREQUENT_PARTS"]
            rare, frequent = [(max(count, least), target) for count, target in frequent], []
        rare = rare[: RULES["TARGETS_MAX"]]
        chosen = [
            (math.log2(len(self.repos) / count), target)
            for count, target in rare + frequent[: RULES["FREQUENT_TARGETS_MAX"]]
        ]
        least = max(0.5, min((halvings for halvings, _ in chosen[: len(rare)]), default=1))
        known = [halvings for halvings, one in chosen[: len(rare)] if not one.is_corrected]
        is_beside = known and any(target.is_corrected for _, target in chosen)
        times = RULES["KNOWN_TIMES"] if is_beside else 1
        weighed = []
        for at, (halvings, target) in enumerate(chosen):
            weight = times * min(RULES["WEIGHT_MAX"], max(1, round(halvings / least)))
            if target.is_corrected and known:
                halvings, weight = min(halvings, *known), 1
            is_frequent = at >= len(rare)
            steps = RULES["RARITY_STEPS"] * (RULES["FREQUENT_SHARE"] if is_frequent else 1)
            rarity = max(1, round(halvings * steps))
            weighed.append(target._replace(rarity=rarity, weight=0 if is_frequent else weight))
        return weighed

    def _nearest(self, word: str, letters_min: int) -> str | None:
        """The word at the least distance; among several, the one in most repos."""
        if len(word) < letters_min or not word.isalpha() or re.match(RUN, word):
            return None
        most = 1 if len(word) <= RULES["ONE_EDIT_LETTERS_MAX"] else 2
        # At most one edit in the first letters.
        similar = re.compile(".?{0}{1}|{1}{0}|.?{1}{2}|{0}.?{2}|{0}.{1}".format(*word))
        others = [
            (edits(word, other, most), -len(self._values(Target([stem_of(other)]))), other)
            for other in filter(similar.match, self.vocabulary)
            if edits(word, other, most) <= most
        ]
        return min(others)[2] if others else None
