"""Searches a catalogue as the server does its index. The build puts this into the client, so it
keeps to Python 3.7 and its library. `assets/catalogue.js` does the same in browsers.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from bisect import bisect_left
from functools import lru_cache
from string import ascii_lowercase
from typing import NamedTuple

RULES: dict = {}
STOP, FREQUENT = set(RULES["STOP"]), set(RULES["FREQUENT"])
VALUES = RULES["VALUES"]
STEM_STEPS = [
    {suffix: (re.compile(condition), ending) for suffix, (condition, ending) in step.items()}
    for step in RULES["STEM_STEPS"]
]
SUFFIX_CHARS_MAX = max(len(suffix) for step in STEM_STEPS for suffix in step)
RUN = "[{UNSPACED}][{UNSPACED}{MARKS}]*".format_map(RULES)
LETTER = r"[^\W_{UNSPACED}]".format_map(RULES)
TOKEN = re.compile("({0})|{1}(?:{1}|[{MARKS}]|['’](?={1}))*".format(RUN, LETTER, **RULES))
ASCII_TOKEN = re.compile("[a-z0-9]+(?:'[a-z0-9]+)*")
# A posting is the number of a repo times this, plus the value of the best place of a word there.
POSTING = 32


def tokens(text: str) -> list[str]:
    """The words of a text, with their apostrophes; pairs of characters of unspaced scripts."""
    if text.isascii():
        return ASCII_TOKEN.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", folded))
    found = []
    for match in TOKEN.finditer(unicodedata.normalize("NFC", plain)):
        run = match.group(1) or ""
        found += [run[at : at + 2] for at in range(len(run))] or [match.group()]
    return found


@lru_cache(maxsize=None)
def word_of(token: str) -> tuple[str, str]:
    """The stem that it is found by, and it as written."""
    plain = re.sub("['’]", "", token)[: RULES["WORD_CHARS_MAX"]]
    if not re.fullmatch("[a-z]+", plain):
        return plain, plain
    base = re.sub("['’]", "", re.sub("['’]s$", "", token))[: RULES["WORD_CHARS_MAX"]]
    return stem(base), plain


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


def stems(text: str) -> list[str]:
    return [word_of(token)[0] for token in tokens(text)]


def query_words(q: str) -> list[tuple[str, str]]:
    """Each word once, at its last place; without the last character of a run, which is in a pair."""
    once = {}
    before = ""
    for token in tokens(q):
        is_rest = len(token) == 1 and len(before) == 2 and before[1] == token
        if not (is_rest and re.match(RUN, token)):
            stem, surface = word_of(token)
            once.pop(stem, None)
            once[stem] = surface
        before = token
    return list(once.items())


def edits(one: str, other: str, most: int) -> int:
    """Letters to insert, drop, replace or swap with the next; more than `most` if it is more."""
    before, last = [], list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, against in enumerate(other, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        if min(line) > most:
            return most + 1
        before, last = last, line
    return last[-1]


class Target(NamedTuple):
    """A word that is looked for: its stem and those of synonyms; how others may begin instead."""

    stems: list[str]
    prefix: str = ""
    rarity: int = 1
    weight: int = 1


class Catalogue:
    """Repos, and where each word stands in them. Raises errors of many kinds where they are none."""

    def __init__(self, repos: list[dict]) -> None:
        self.repos = repos
        self.postings: dict[str, list[int]] = {}
        for number, repo in enumerate(repos):
            self._add(number, repo)
        self.forms: dict[str, list[str]] = {}  # the tokens of a stem
        self.written: dict[str, list[str]] = {}  # the tokens of a word as written
        for token in self.postings:
            stem, surface = word_of(token)
            self.forms.setdefault(stem, []).append(token)
            self.written.setdefault(surface, []).append(token)
        self.vocabulary = sorted(self.written)

    def _add(self, number: int, repo: dict) -> None:
        title = tokens(repo["title"] + " " + repo["name"])
        telling = {word_of(token)[0] for token in title} - STOP
        is_short = len(telling) <= RULES["SHORT_TITLE_WORDS_MAX"]
        best: dict[str, int] = {}
        for value, found in (
            (VALUES["short_title" if is_short else "title"], title),
            (VALUES["tags"], tokens(" ".join(repo["tags"]))),
            (VALUES["description"], tokens(repo["description"])),
            (VALUES["text"], tokens(repo["owner"])),
        ):
            for token in found:
                best.setdefault(token, value)
        for token, value in best.items():
            self.postings.setdefault(token, []).append(number * POSTING + value)

    def search(self, q: str, tags: set[str]) -> tuple[list[dict], str, list[dict] | None]:
        """The repos that are found, best first; `match` and `corrected` as in the API."""
        targets, corrected, is_complete = self._plan(q)
        needed = sum(target.weight for target in targets) / 2
        values = [self._values(target) for target in targets]
        scores: dict[int, float] = {}
        for number in set().union(*values):
            has = [(one, value[number]) for one, value in zip(targets, values) if number in value]
            is_in_scope = tags <= set(self.repos[number]["tags"])
            if is_in_scope and sum(target.weight for target, _ in has) >= needed:
                scores[number] = sum(target.rarity * value for target, value in has)
                if len(has) == len(targets) and self._is_whole(q, self.repos[number]):
                    scores[number] += RULES["WHOLE_SCORE"]
        found = sorted(scores, key=lambda one: (-scores[one], self._id(one)))
        has_all = is_complete and found and all(
            found[0] in self._values(target._replace(stems=target.stems[:1]))
            for target in targets
            if target.weight
        )
        match = "all" if has_all else "some"
        return [self.repos[number] for number in found], match, corrected or None

    def _id(self, number: int) -> str:
        return self.repos[number]["owner"] + "/" + self.repos[number]["name"]

    def _is_whole(self, q: str, repo: dict) -> bool:
        parts = repo["title"], repo["name"], repo["owner"] + " " + repo["name"]
        return stems(q) in map(stems, parts)

    def _values(self, target: Target) -> dict[int, float]:
        """The value of the best way in which each repo has a target."""
        best: dict[int, float] = {}
        for word in self._beginning(target.prefix) if target.prefix else ():
            for posting in (one for token in self.written[word] for one in self.postings[token]):
                number, value = divmod(posting, POSTING)
                is_short = len(target.prefix) <= RULES["BEGINNING_CHARS_MAX"]
                if is_short and value >= VALUES["title"]:
                    best[number] = RULES["BEGINNING_VALUE"]
                else:
                    best.setdefault(number, RULES["BEGINNING_ELSEWHERE_VALUE"])
        for at, stem in enumerate(target.stems):
            share = RULES["SYNONYM_SHARE"] if at else 1
            for posting in (one for token in self.forms.get(stem, ()) for one in self.postings[token]):
                number, value = divmod(posting, POSTING)
                best[number] = max(best.get(number, 0), value * share)
        return best

    def _beginning(self, prefix: str, limit: float = math.inf) -> list[str]:
        """Words that begin so, in order."""
        found: list[str] = []
        for at in range(bisect_left(self.vocabulary, prefix), len(self.vocabulary)):
            if len(found) == limit or not self.vocabulary[at].startswith(prefix):
                break
            found.append(self.vocabulary[at])
        return found

    def _plan(self, q: str) -> tuple[list[Target], list[dict], bool]:
        """What is looked for, words that are corrected, and whether no word is left out."""
        words = query_words(q)
        telling = [word for word in words if word[0] not in STOP] or words
        corrected: list[dict] = []
        counted: list[tuple[int, Target]] = []
        for stem, surface in telling:
            begins = stem == words[-1][0] and self._begins_others(stem, surface)
            target = Target([stem, *RULES["SYNONYMS"].get(stem, ())], surface if begins else "")
            count = len(self._values(Target([stem])) or self._values(target))
            if not count and len(corrected) < RULES["CORRECTED_MAX"]:
                nearest = self._nearest(surface)
                if nearest:
                    corrected.append({"from": surface, "to": nearest})
                    target = Target([word_of(nearest)[0]])
                    count = len(self._values(target))
            if count:
                counted.append((count, target))
        return self._weigh(counted), corrected, len(counted) == len(telling)

    def _begins_others(self, stem: str, surface: str) -> bool:
        others = self._beginning(surface, RULES["FORMS_MAX"])
        return len(others) == RULES["FORMS_MAX"] or any(word_of(one)[0] != stem for one in others)

    def _weigh(self, counted: list[tuple[int, Target]]) -> list[Target]:
        counted.sort(key=lambda pair: (pair[0], pair[1].stems[0]))
        frequent = [pair for pair in counted if pair[1].stems[0] in FREQUENT]
        rare = [pair for pair in counted if pair not in frequent]
        if not rare:
            rare, frequent = frequent, []
        left = RULES["HOLDERS_MAX"]
        chosen = []
        for pairs, most, share in (
            (rare, RULES["TARGETS_MAX"], 1),
            (frequent, RULES["FREQUENT_TARGETS_MAX"], RULES["FREQUENT_SHARE"]),
        ):
            for count, target in pairs[:most]:
                if count <= left or not chosen:
                    left -= count
                    chosen.append((math.log2(len(self.repos) / count), target, share))
        least = max(0.5, min((one for one, _, share in chosen if share == 1), default=1))
        return [
            target._replace(
                rarity=max(1, round(halvings * RULES["RARITY_STEPS"] * share)),
                weight=min(RULES["WEIGHT_MAX"], max(1, round(halvings / least))) if share == 1 else 0,
            )
            for halvings, target, share in chosen
        ]

    def _nearest(self, word: str) -> str | None:
        """The word at the least distance; of several, the one that most repos have."""
        if len(word) < RULES["CORRECTED_LETTERS_MIN"] or not word.isalpha() or re.match(RUN, word):
            return None
        most = 1 if len(word) <= RULES["ONE_EDIT_LETTERS_MAX"] else 2
        best: tuple[int, int, str] | None = None
        for other in self._similar(word, most):
            distance = edits(word, other, best[0] if best else most)
            if distance <= (best[0] if best else most):
                one = distance, -len(self._values(Target([word_of(other)[0]]))), other
                best = min(best or one, one)
        return best[2] if best else None

    def _similar(self, word: str, most: int) -> set[str]:
        """Words that begin alike, or with one edit in the first letters."""
        first, second, third = word[:3]
        beginnings = {first + second, second + first, second + third, first + third}
        for letter in ascii_lowercase:
            beginnings |= {letter + second + third, letter + first + second}
            beginnings |= {first + letter + third, first + letter + second}
        return {
            other
            for beginning in beginnings
            for other in self._beginning(beginning, RULES["COMPARED_MAX"])
            if abs(len(other) - len(word)) <= most and len(set(word) ^ set(other)) <= 2 * most
        }
