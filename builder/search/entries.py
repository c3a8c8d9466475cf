"""What of a repo is looked for, as every engine stores it. Pure.

An entry has words, not counts: a word that stands in a text many times says no more than one that
stands there once, and nothing here depends on other repos. So a score is the same whatever else
the index holds or once held.
"""

from typing import NamedTuple

from builder.model.records import CatalogueLine
from builder.search.language import STOP_STEMS
from builder.text.words import distinct_words, words

OPENING_CHARS = 400
LONG_TEXT_CHARS = 4_000
SHORT_TITLE_WORDS_MAX = 4
BEGINNING_CHARS_MAX = 8
# How much a word says by the best place where it stands. Each word stands in the text, which is
# what all of a repo's words together are called here; other places add to that.
TEXT_VALUE = 6
LONG_TEXT_VALUE = 4
ADDED_VALUES = {"short_title": 14, "title": 12, "tags": 8, "description": 4, "opening": 2}


class Entry(NamedTuple):
    """A repo in the index. All but the first four fields are sets of words without spaces.

    ``title`` has the name, too. ``added``: the stems of each place, of those that they are best
    in. ``stems``, ``words``: of everything, as they are found by and as they are written.
    ``beginnings``: of the title's words. ``whole``: what the title and the names are in one.
    """

    id: str
    owner: str
    tags: list[str]
    digest: str
    is_long: bool
    added: dict[str, set[str]]
    stems: set[str]
    words: set[str]
    beginnings: set[str]
    whole: set[str]


def entry_of(line: CatalogueLine, text: str, digest: str) -> Entry:
    """``digest`` differs when anything of the entry does."""
    names = f"{line.title} {line.name}"
    title = distinct_words(names)
    rest = {
        "tags": distinct_words(" ".join(line.tags)),
        "description": distinct_words(line.description),
        "opening": distinct_words(text[:OPENING_CHARS]),
    }
    every = distinct_words(text).union(title, *rest.values(), distinct_words(line.owner))
    added: dict[str, set[str]] = {}
    placed: set[str] = set()
    telling = {word.stem for word in title} - STOP_STEMS
    title_place = "short_title" if len(telling) <= SHORT_TITLE_WORDS_MAX else "title"
    for place, found in {title_place: title, **rest}.items():
        added[place] = {word.stem for word in found} - placed
        placed |= added[place]
    return Entry(
        id=f"{line.owner}/{line.name}",
        owner=line.owner,
        tags=line.tags,
        digest=digest,
        is_long=len(text) > LONG_TEXT_CHARS,
        added=added,
        stems={word.stem for word in every},
        words={word.surface for word in every},
        beginnings={
            word.surface[:end]
            for word in title
            for end in range(1, min(len(word.surface), BEGINNING_CHARS_MAX) + 1)
        },
        whole={whole_of(part) for part in (line.title, line.name, f"{line.owner} {line.name}")},
    )


def whole_of(text: str) -> str:
    """All words of a short text as one, in order."""
    return "_".join(word.stem for word in words(text))
