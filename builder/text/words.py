"""Splits text into the words of the search. Pure.

Text is NFKC-normalised and case-folded, and accents are removed. Words are runs of letters, digits
and marks; English ones are stemmed. Scripts written without spaces are cut into pairs of
characters, and Arabic words lose their article. Signs that carry meaning stay: C++, C#, .NET. Words
joined by signs, such as node.js, snake_case and @types, are indexed as a whole and by their parts.

The build puts the second part of this module into the shell client, so that part keeps to Python
3.7 and to names that the client has, too.
"""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from whoosh.lang.porter import stem


@lru_cache(maxsize=1)
def mark_ranges() -> str:
    """The combining marks as a character class of a regular expression; in many scripts they are
    part of words.
    """
    ranges: list[list[int]] = []
    for point in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        if unicodedata.category(chr(point))[0] == "M":
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def placed_words(text: str) -> Iterator[tuple[int, int, "Word"]]:
    """The words of ``part_words``, each with its start and end in ``text``."""
    lower = text.lower()
    # Only a few capitals, such as İ, have a lower case of another length.
    for match in _token().finditer(lower if len(lower) == len(text) else text):
        start, end = match.span()
        if match[0].isascii():
            yield start, end, _known[match[0]]
            continue
        parts = part_words(match[0])
        is_run = match["run"] is not None and len(parts) == end - start
        for at, part in enumerate(parts, start):
            yield (at, min(at + 2, end), part) if is_run else (start, end, part)


def count_words(text: str) -> list[tuple["Word", int]]:
    """The words of ``part_words``, in order of first occurrence, with their counts. A word with two
    spellings occurs twice.
    """
    counts = Counter(_parts(folded(text)))
    return [*zip(map(_known.__getitem__, counts), counts.values(), strict=True)]


def distinct_words(text: str) -> tuple[set[str], set[str]]:
    """The stems of all words of ``text``, and their surfaces."""
    found = [*map(_known.__getitem__, {*split_words(text)})]
    return {*map(itemgetter(0), found)}, {*map(itemgetter(1), found)}


# The build puts what follows into the shell client.

# Ranges of scripts written without spaces: Thai, Lao, Myanmar, Khmer; kana, CJK ideographs, Hangul;
# the planes of rarer ideographs.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
WORD_CHARS_MAX = 64
# The Arabic article, also after a particle that is written with it. Enough letters must follow: a
# word such as "father" only begins alike.
ARTICLES = ("ال", "لل", "وال", "فال", "بال", "كال")
ARTICLE = "^(?:(?:ال|لل)(?=[\u0621-\u064a]{2})|[وفبك]ال(?=[\u0621-\u064a]{3}))"
# Agents paste whole sentences, whose first different words show the topic. Later words are ignored.
QUERY_WORDS_MAX = 32
KNOWN_MAX = 200_000

# Accents of Latin, Greek and Cyrillic letters. The marks of other scripts count as letters.
_ACCENTS = re.compile("[\u0300-\u036f]")
# These patterns have no braces, and mean the same in Python and in JavaScript.
SIGNED = r"[a-z](?:\+\+|#(?![a-z]))|\.net(?![a-z0-9])"
JOINED = (
    r"(?<![a-z0-9@])@[a-z][a-z0-9]*"
    r"|(?<![a-z0-9])[a-z][a-z0-9]*(?:_[a-z0-9]+|(?<=[a-z0-9][a-z0-9])\.[a-z][a-z0-9]+)+"
)
_ascii_words = re.compile(f"{SIGNED}|[a-z0-9]+(?:'[a-z0-9]+)*").findall
# Few texts have a word with signs. Those without are split by `str.split`, in half the time.
_may_sign = re.compile(r"\+\+|#(?<=[a-z]#)|\.net").search
_apostrophes_outside = re.compile("'(?:(?<![a-z0-9]')|(?![a-z0-9]))").sub
_OUTSIDE = {code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != "'"}
_joined = re.compile(JOINED).findall
_article = re.compile(ARTICLE)
_genitive = re.compile("['’]s$").sub
# A part of each joined word. Few words have one, and this check takes a thirtieth of the time.
_may_join = re.compile("[@_.][a-z0-9]").search


@lru_cache(maxsize=1)
def _token() -> re.Pattern[str]:
    marks = mark_ranges()
    return re.compile(
        rf"(?P<run>[{UNSPACED}][{UNSPACED}{marks}]*)"
        rf"|(?P<word>{SIGNED}|[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]|[{marks}]|['’](?=[^\W_{UNSPACED}]))*)"
    )


class Word(NamedTuple):
    """A word of a text. ``stem`` is its form in the index; ``surface`` its form in the text."""

    stem: str
    surface: str


def stem_of(token: str) -> str:
    """The form under which a word of ``split_words`` is found."""
    return _known[token].stem


def words(text: str) -> list[Word]:
    """All words of ``text``: joined ones, then all others in order. A run without spaces gives its
    pairs and its last character, so that every character of it begins a word.
    """
    return [*map(_known.__getitem__, split_words(text))]


def part_words(text: str) -> list[Word]:
    """As ``words``, without the joined ones."""
    return [*map(_known.__getitem__, _parts(folded(text)))]


def whole_of(text: str) -> str:
    """All words of a short text, joined into one, in order."""
    return "_".join(word.stem for word in part_words(text))


def split_words(text: str) -> list[str]:
    """The words of a text as they are before stemming, with their apostrophes."""
    plain = folded(text)
    joined = _joined(" ".join(filter(_may_join, plain.split()))) if _may_join(plain) else []
    return joined + _parts(plain)


def folded(text: str) -> str:
    """A text without differences of case, accents and character forms."""
    if text.isascii():
        return text.lower()
    same = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", same))
    return unicodedata.normalize("NFC", plain)


def _parts(plain: str) -> list[str]:
    if plain.isascii():
        return _ascii_parts(plain)
    found = []
    # Most words of most texts are ASCII.
    for is_ascii, some in groupby(plain.split(), str.isascii):
        found += (_ascii_parts if is_ascii else _other_parts)(" ".join(some))
    return found


def _ascii_parts(plain: str) -> list[str]:
    if _may_sign(plain):
        return _ascii_words(plain)
    return _apostrophes_outside(" ", plain).translate(_OUTSIDE).split()


def _other_parts(plain: str) -> list[str]:
    found = []
    for run, word in _token().findall(plain):
        found += [run[i : i + 2] for i in range(len(run))] if run else [word]
    return found


def is_unspaced(word: str) -> bool:
    """True if a word is from a script written without spaces."""
    return _token().match(word)["run"] is not None


class _KnownWords(dict):
    """Words by their text. A dictionary of its own, because every word of every prompt passes
    through it, and `lru_cache` takes twice as long.
    """

    def __missing__(self, text: str) -> Word:
        if len(self) >= KNOWN_MAX:
            self.clear()
        self[sys.intern(text)] = word = _word(text)
        return word


_known = _KnownWords()


def _word(text: str) -> Word:
    plain = sys.intern(surface_of(text))
    if not plain.isascii() or not plain.isalpha():
        return Word(plain if plain.isascii() else _article.sub("", plain), plain)
    return Word(sys.intern(stem(surface_of(_genitive("", text)))), plain)


def surface_of(text: str) -> str:
    """The word without apostrophes."""
    return text.replace("'", "").replace("’", "")[:WORD_CHARS_MAX]
