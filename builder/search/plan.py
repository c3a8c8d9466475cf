"""From a query's words to an engine's targets: the rules of relevance. Knows no engine.

A repo is found if it has words with half of the query's weight. A word's weight grows with its
rarity: how often the catalogue must be halved until only the repos with that word are left.
Stop words have no weight. Words that are frequent in English have none either, but add to the
score. If a query has only such words, they count like others.

A repo's score is the sum, over the words, of rarity times the value of the word's best
place (``entries``). A synonym counts half. A longer word that begins with the last word of the
query counts half in a title, and less elsewhere. A query that is the whole title or name finds that
repo first. Numbers are integers, so sums are exact, and scores tie in every engine or in none. Ties
are broken by owner/name.
"""

import math
from string import ascii_lowercase
from typing import NamedTuple, Protocol

from builder.model.errors import RequestError
from builder.model.search_records import Correction
from builder.search.language import FREQUENT_STEMS, STOP_STEMS, SYNONYMS
from builder.text import words
from builder.text.words import Word, whole_of

RARITY_STEPS = 4
FREQUENT_SHARE = 0.3
# In a query of frequent words only, each counts as if at least this part of the repos had it.
FREQUENT_PARTS = 4
WEIGHT_MAX = 15
SYNONYM_SHARE = 0.5
# The value of a longer word that begins with the last one: in a title, elsewhere.
BEGINNING_VALUE = 7
BEGINNING_ELSEWHERE_VALUE = 3
# Greater than any sum of the above.
WHOLE_SCORE = 1 << 14
# Limits on the work of a query: its rarest words are searched first; words beyond these numbers, or
# that would take the total of their repos above HOLDERS_MAX, are ignored.
TARGETS_MAX = 8
FREQUENT_TARGETS_MAX = 3
HOLDERS_MAX = 150_000
# The most forms of a word that are examined.
FORMS_MAX = 16
# An unknown word of at least CORRECTED_LETTERS_MIN letters is compared with at most COMPARED_MAX
# words for each similar beginning. A query gets at most CORRECTED_MAX corrections. In words longer
# than ONE_EDIT_LETTERS_MAX, two edits are corrected, in others one.
COMPARED_MAX = 5_000
CORRECTED_MAX = 3
CORRECTED_LETTERS_MIN = 4
ONE_EDIT_LETTERS_MAX = 7


class Target(NamedTuple):
    """A searched word. ``stems``: its own, then those of synonyms. ``prefix``: the beginning of
    other matching words; may be empty. ``rarity`` counts for the score, ``weight`` for being found.
    """

    stems: tuple[str, ...]
    prefix: str = ""
    rarity: int = 1
    weight: int = 1

    def shares(self) -> list[tuple[str, float]]:
        """Each stem, and its share of a word's value."""
        word, *synonyms = self.stems
        return [(word, 1.0), *((stem, SYNONYM_SHARE) for stem in synonyms)]


class QueryPlan(NamedTuple):
    """``needed``: the weight that a repo must have. ``whole``: the query as one word.
    ``is_complete``: true if each significant word of the query, or its correction, is in the index.
    """

    targets: tuple[Target, ...]
    needed: int
    whole: str
    corrected: list[Correction]
    is_complete: bool


class RepoFilter(NamedTuple):
    """The searched repos: with all of these tags, of an owner (None: of any)."""

    tags: tuple[str, ...] = ()
    owner: str | None = None


class Vocabulary(Protocol):
    """The questions of a plan to an index."""

    def size(self) -> int:
        """The number of repos."""

    def holders(self, target: Target) -> int:
        """The number of repos with a target."""

    def words_beginning(self, prefix: str, limit: int) -> list[str]:
        """The words with this prefix, as written, in order; may include words of removed repos."""


def parse_query(text: str) -> list[Word]:
    """The words to search for, at least one. Raises RequestError ``invalid_parameter``."""
    found = words.query_words(text)
    if not found:
        raise RequestError("invalid_parameter", "q has no word. Give at least one letter or digit.")
    return found


def make_plan(text: str, index: Vocabulary) -> QueryPlan:
    """The plan for a query. Raises RequestError ``invalid_parameter`` if the text has no word."""
    found = parse_query(text)
    telling = [word for word in found if word.stem not in STOP_STEMS] or found
    corrected: list[Correction] = []
    counted: list[tuple[int, Target]] = []
    for word in telling:
        prefix = word.surface if word is found[-1] and _begins_others(word, index) else ""
        target = Target((word.stem, *SYNONYMS.get(word.stem, ())), prefix)
        # Rarity is that of the word itself, if any repo has it.
        count = index.holders(Target(target.stems[:1])) or index.holders(target)
        if not count and len(corrected) < CORRECTED_MAX:
            nearest = _nearest(word.surface, index)
            if nearest:
                corrected.append(Correction(word.surface, nearest))
                target = Target((words.words(nearest)[0].stem,))
                count = index.holders(target)
        if count:
            counted.append((count, target))
    is_complete = len(counted) == len(telling)
    targets = _weigh(counted, index.size())
    weight = sum(target.weight for target in targets)
    return QueryPlan(targets, -(-weight // 2), whole_of(text), corrected, is_complete)


def _begins_others(word: Word, index: Vocabulary) -> bool:
    """True if words with another stem may begin with this one."""
    others = index.words_beginning(word.surface, FORMS_MAX)
    return len(others) == FORMS_MAX or any(
        words.words(other)[0].stem != word.stem for other in others
    )


def _weigh(counted: list[tuple[int, Target]], size: int) -> tuple[Target, ...]:
    """The targets with their weights, rarest first; without the most frequent if there are many."""
    counted.sort(key=lambda pair: (pair[0], pair[1].stems[0]))
    frequent = [pair for pair in counted if pair[1].stems[0] in FREQUENT_STEMS]
    rare = [pair for pair in counted if pair not in frequent]
    if not rare:
        # Even if few repos here have one of them, it does not distinguish repos.
        least = size // FREQUENT_PARTS
        rare, frequent = [(max(count, least), target) for count, target in frequent], []
    left = HOLDERS_MAX
    chosen = []
    for pairs, limit in ((rare, TARGETS_MAX), (frequent, FREQUENT_TARGETS_MAX)):
        for count, target in pairs[:limit]:
            if count <= left or not chosen:
                left -= count
                halvings = math.log2(size / min(count, size))
                chosen.append((halvings, target, pairs is frequent))
    least = max(0.5, min((one for one, _, is_frequent in chosen if not is_frequent), default=1))
    return tuple(
        target._replace(
            rarity=max(1, round(halvings * RARITY_STEPS * (FREQUENT_SHARE if is_frequent else 1))),
            weight=0 if is_frequent else min(WEIGHT_MAX, max(1, round(halvings / least))),
        )
        for halvings, target, is_frequent in chosen
    )


def strict(plan: QueryPlan) -> QueryPlan:
    """The plan for repos that have every significant word itself, without synonyms."""
    targets = tuple(
        target._replace(stems=target.stems[:1]) for target in plan.targets if target.weight
    )
    return plan._replace(targets=targets, needed=sum(target.weight for target in targets))


def _nearest(word: str, index: Vocabulary) -> str | None:
    """The known word at the least distance; among several, the one in most repos."""
    if len(word) < CORRECTED_LETTERS_MIN or not word.isalpha() or words.is_unspaced(word):
        return None
    edits_max = 1 if len(word) <= ONE_EDIT_LETTERS_MAX else 2
    best: tuple[int, int, str] | None = None
    for other in _similar(word, edits_max, index):
        edits = _edits(word, other, edits_max)
        if edits > (best[0] if best else edits_max):
            continue
        count = index.holders(Target((words.words(other)[0].stem,)))
        if count and (best is None or (edits, -count, other) < best):
            best = edits, -count, other
    return best[2] if best else None


def _similar(word: str, edits_max: int, index: Vocabulary) -> set[str]:
    """Candidates: words that begin alike, or with one edit in the first letters."""
    first, second, third = word[:3]
    beginnings = {first + second, second + first, second + third, first + third}
    for letter in ascii_lowercase:
        beginnings |= {
            letter + second + third,
            letter + first + second,
            first + letter + third,
            first + letter + second,
        }
    letters = set(word)
    return {
        other
        for beginning in beginnings
        for other in index.words_beginning(beginning, COMPARED_MAX)
        if abs(len(other) - len(word)) <= edits_max
        and len(letters.symmetric_difference(other)) <= 2 * edits_max
    }


def _edits(one: str, other: str, most: int) -> int:
    """The number of letters to insert, drop, replace or swap with the next (optimal string
    alignment distance); above ``most``, any number above it.
    """
    before: list[int] = []
    last = list(range(len(other) + 1))
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
