"""From a query's words to an engine's targets: the rules of relevance. Knows no engine.

A repo is found if it has words with half of the query's weight. A word's weight grows with its
rarity: how often the catalogue must be halved until only the repos with that word are left. Stop
words, and the language of the answer ("in Spanish"), have no weight. Words that are frequent in
English have none either, but add to the score. If a query has only such words, they count like
others.

A repo's score is the sum, over the words, of rarity times the value of the word's best place
(``entries``), and a little more for the word in the form of the query. A synonym counts half. A
longer word that begins with the last word of the query counts half in a title, and less elsewhere.
A query that is the whole title or name finds that repo first. Beside words that repos have, a
corrected word finds nothing by itself. Numbers are integers, so sums are exact, and scores tie in
every engine or in none. Ties are broken by owner/name.

The build puts the second part of this module into the shell client, which searches the lines of a
catalogue by it. So that part keeps to Python 3.7 and to names that the client has, too.
"""

import math
import re
from string import ascii_lowercase
from typing import NamedTuple, Protocol

from builder.model.names import LABEL_PATTERN
from builder.search.language import FREQUENT_STEMS, SPOKEN, STOP_STEMS, SYNONYMS
from builder.text.words import QUERY_WORDS_MAX, Word, folded, is_unspaced, whole_of, words

# In a folded query, a part between spaces that asks for a label.
LABELLED = rf"(?<![^\t\n\r ])label:({LABEL_PATTERN})(?![^\t\n\r ])"

_spoken, _labelled = re.compile(SPOKEN), re.compile(LABELLED)


class RepoFilter(NamedTuple):
    """The searched repos: with all of these tags and labels, of an owner (None: of any)."""

    tags: tuple[str, ...] = ()
    owner: str | None = None
    labels: tuple[str, ...] = ()

    def terms(self) -> list[tuple[str, str]]:
        """The field and the word of each condition."""
        owners = () if self.owner is None else (self.owner,)
        given = {"tag": self.tags, "label": self.labels, "owner": owners}
        return [(field, word) for field, some in given.items() for word in some]


class Vocabulary(Protocol):
    """The questions of a plan to an index."""

    def size(self) -> int:
        """The number of repos."""

    def holders(self, target: "Target") -> int:
        """The number of repos with a target."""

    def having(self, targets: "list[Target]", among: list[str]) -> list[set[str]]:
        """For each target, the ids of those of these repos that have it."""

    def words_beginning(self, prefix: str, limit: int) -> list[str]:
        """The words with this prefix, as written, in order; may include words of removed repos."""


# The build puts what follows into the shell client.


RARITY_STEPS = 4
FREQUENT_SHARE = 0.3
# In a query of frequent words only, each counts as if at least this part of the repos had it.
FREQUENT_PARTS = 4
WEIGHT_MAX = 15
SYNONYM_SHARE = 0.5
# The value of a longer word that begins with the last one: in a title, elsewhere.
BEGINNING_VALUE = 7
BEGINNING_ELSEWHERE_VALUE = 3
# Added to the value of a word in the form of the query, and once more in a title.
EXACT_VALUE = 0.125
# Greater than any sum of the above.
WHOLE_SCORE = 1 << 14
# Limits on the work of a query: its rarest words are searched first; words beyond these numbers, or
# that would take the total of their repos above HOLDERS_MAX, are ignored.
TARGETS_MAX = 8
FREQUENT_TARGETS_MAX = 3
HOLDERS_MAX = 150_000
# The most forms of a word that are examined.
FORMS_MAX = 16
# An unknown word of at least CORRECTED_LETTERS_MIN letters, or CORRECTED_BESIDE_LETTERS_MIN beside
# words that repos have, is compared with at most COMPARED_MAX
# words for each similar beginning. A query gets at most CORRECTED_MAX corrections. In words longer
# than ONE_EDIT_LETTERS_MAX, two edits are corrected, in others one.
COMPARED_MAX = 5_000
CORRECTED_MAX = 3
CORRECTED_LETTERS_MIN = 4
CORRECTED_BESIDE_LETTERS_MIN = 5
ONE_EDIT_LETTERS_MAX = 7
# Beside a corrected word, the weight of others counts so often. All corrected words together then
# have less than half of a query's weight.
KNOWN_TIMES = CORRECTED_MAX + 1


class Target(NamedTuple):
    """A searched word. ``stems``: its own, then those of synonyms. ``prefix``: the beginning of
    other matching words; may be empty. ``rarity`` counts for the score, ``weight`` for being found.
    ``surface``: the word as it is written; empty: in any form.
    """

    stems: tuple[str, ...]
    prefix: str = ""
    rarity: int = 1
    weight: int = 1
    surface: str = ""
    is_corrected: bool = False

    def shares(self) -> list[tuple[str, float]]:
        """Each stem, and its share of a word's value."""
        word, *synonyms = self.stems
        return [(word, 1.0), *((stem, SYNONYM_SHARE) for stem in synonyms)]


class QueryPlan(NamedTuple):
    """``needed``: the weight that a repo must have. ``whole``: the query as one word.
    ``corrected``: words that no repo has, each with the one that is searched for instead.
    ``unknown``: the significant words of the query that no repo has, nor a corrected one.
    The plan of a text without words has no targets and needs none, so it finds every repo.
    """

    targets: tuple[Target, ...]
    needed: int
    whole: str
    corrected: list[tuple[str, str]]
    unknown: list[str]


def parse_query(q: str) -> tuple[tuple[str, ...], str]:
    """The labels that a query asks for, each as ``label:NAME``, and the text around them, empty if
    that has no word.
    """
    plain = folded(q)
    labels = tuple(dict.fromkeys(_labelled.findall(plain)))[:QUERY_WORDS_MAX]
    text = _labelled.sub(" ", plain) if labels else q
    return labels, text if query_words(text) else ""


def query_words(text: str) -> list[Word]:
    """The first QUERY_WORDS_MAX different words. A stem that repeats counts once, at its last
    place, and the last character of a run is left out, because its pairs contain it.
    """
    once: dict[str, Word] = {}
    before = ""
    for word in words(text):
        is_rest = len(word.surface) == 1 and len(before) == 2 and before[1] == word.surface
        if not (is_rest and is_unspaced(word.surface)):
            if once.pop(word.stem, None) is None and len(once) == QUERY_WORDS_MAX:
                break
            once[word.stem] = word
        before = word.surface
    return list(once.values())


def make_plan(text: str, index: Vocabulary) -> QueryPlan:
    """The plan for the text of a query."""
    found = query_words(text)
    telling = _telling(text, found)
    corrected: list[tuple[str, str]] = []
    counted = [_counted(word, word is found[-1], index) for word in telling]
    is_known = any(count for count, _ in counted)
    letters_min = CORRECTED_BESIDE_LETTERS_MIN if is_known else CORRECTED_LETTERS_MIN
    for at, word in enumerate(telling):
        if not counted[at][0] and len(corrected) < CORRECTED_MAX:
            nearest = _nearest(word.surface, letters_min, index)
            if nearest:
                corrected.append((word.surface, nearest))
                stem = words(nearest)[0].stem
                target = Target((stem,), surface=nearest, is_corrected=True)
                counted[at] = index.holders(target), target
    unknown = [word.surface for word, (count, _) in zip(telling, counted) if not count]
    counted = [pair for pair in counted if pair[0]]
    targets = _weigh(counted, index.size())
    weight = sum(target.weight for target in targets)
    # Without targets, words that no repo has find nothing.
    needed = -(-weight // 2) or len(found)
    return QueryPlan(targets, needed, whole_of(text), corrected, unknown)


def _telling(text: str, found: list[Word]) -> list[Word]:
    """The words that say what is searched for; if none does, the others."""
    without = query_words(_spoken.sub(" ", folded(text)))
    content = {word.stem for word in without} - STOP_STEMS or (
        {word.stem for word in found} - STOP_STEMS
    )
    return [word for word in found if word.stem in content] or found


def _counted(word: Word, is_last: bool, index: Vocabulary) -> tuple[int, Target]:
    """The target of a word, and the number of repos that have it."""
    others = index.words_beginning(word.surface, FORMS_MAX) if is_last else []
    # Words with another stem may begin with this one.
    is_beginning = len(others) == FORMS_MAX or any(
        words(other)[0].stem != word.stem for other in others
    )
    prefix = word.surface if is_beginning else ""
    target = Target((word.stem, *SYNONYMS.get(word.stem, ())), prefix, surface=word.surface)
    # Rarity is that of the word itself, if any repo has it.
    return index.holders(Target(target.stems[:1])) or index.holders(target), target


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
    known = [one for one, target, is_frequent in chosen if not (is_frequent or target.is_corrected)]
    times = KNOWN_TIMES if known and any(target.is_corrected for _, target, _ in chosen) else 1
    weighed = []
    for halvings, target, is_frequent in chosen:
        weight = times * min(WEIGHT_MAX, max(1, round(halvings / least)))
        if target.is_corrected and known:
            halvings, weight = min(halvings, *known), 1
        steps = RARITY_STEPS * (FREQUENT_SHARE if is_frequent else 1)
        rarity = max(1, round(halvings * steps))
        weighed.append(target._replace(rarity=rarity, weight=0 if is_frequent else weight))
    return tuple(weighed)


def lacking(plan: QueryPlan, ids: list[str], index: Vocabulary) -> dict[str, list[str]]:
    """The significant words that each of these repos has not itself, whatever synonyms it has."""
    weighty = [one._replace(stems=one.stems[:1]) for one in plan.targets if one.weight]
    pairs = [*zip(weighty, index.having(weighty, ids))]
    return {
        one: [target.surface for target, having in pairs if one not in having] + plan.unknown
        for one in ids
    }


def _nearest(word: str, letters_min: int, index: Vocabulary) -> str | None:
    """The known word at the least distance; among several, the one in most repos."""
    if len(word) < letters_min or not word.isalpha() or is_unspaced(word):
        return None
    edits_max = 1 if len(word) <= ONE_EDIT_LETTERS_MAX else 2
    best: tuple[int, int, str] | None = None
    for other in _similar(word, edits_max, index):
        edits = _edits(word, other, edits_max)
        if edits > (best[0] if best else edits_max):
            continue
        count = index.holders(Target((words(other)[0].stem,)))
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
    while one and one[0] == other[:1]:
        one, other = one[1:], other[1:]
    if not (most and one and other):
        return len(one) + len(other)
    skips = [(1, 0), (0, 1), (1, 1)] + [(2, 2)] * (one[:2] == other[1::-1])
    return 1 + min(_edits(one[drop:], other[skip:], most - 1) for drop, skip in skips)
