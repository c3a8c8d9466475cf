"""The searchable words of a repo, as every engine stores them. Pure.

An entry has words, not counts: a word that occurs many times says no more than one that occurs
once. An entry does not depend on other repos, so no change of one repo changes the entry of
another.
"""

from typing import NamedTuple

from builder.model.answers import CatalogueLine
from builder.model.routes import SORTS
from builder.search.language import STOP_STEMS
from builder.text.words import distinct_words, whole_of

LONG_TEXT_CHARS = 4_000
SHORT_TITLE_WORDS_MAX = 4
BEGINNING_CHARS_MAX = 8
TITLE_END = "="  # in no word
# The value of a word, by its best place. Every word is in the text, which here means all words of
# the repo; other places add to that.
TEXT_VALUE = 6
LONG_TEXT_VALUE = 4
ADDED_VALUES = {"short_title": 14, "title": 12, "tags": 8, "description": 4}
# The fields of an engine that have words with spaces between them.
WORD_FIELDS = (*ADDED_VALUES, "text", "long_text", "word", "beginning", "whole")


class Entry(NamedTuple):
    """A repo in the index. Most fields are sets of words without spaces.

    ``added``: the stems by the best place of each; ``title`` includes the name, ``description`` the
    labels. ``stems`` and ``words``: all words, stemmed and as written.
    ``beginnings``: prefixes of the title's words, and the words themselves with TITLE_END.
    ``whole``: the title and the names, each joined into one word.
    ``order``: for each order of lists, a 64-bit number; greater ones come first.
    """

    id: str
    owner: str
    tags: list[str]
    labels: list[str]
    digest: str
    is_long: bool
    added: dict[str, set[str]]
    stems: set[str]
    words: set[str]
    beginnings: set[str]
    whole: set[str]
    order: dict[str, int]

    def word_fields(self) -> dict[str, str]:
        """The texts of those of WORD_FIELDS that the repo has."""
        sets = self.added | {
            "long_text" if self.is_long else "text": self.stems,
            "word": self.words,
            "beginning": self.beginnings,
            "whole": self.whole,
        }
        return {field: " ".join(words) for field, words in sets.items()}


def entry_of(
    line: CatalogueLine, text: str, digest: str, order: dict[str, int] | None = None
) -> Entry:
    """The entry of a repo; ``digest`` changes whenever the entry does."""
    every, surfaces = distinct_words(text)
    title, title_surfaces = distinct_words(f"{line.title} {line.name}")
    is_short = len(title - STOP_STEMS) <= SHORT_TITLE_WORDS_MAX
    added: dict[str, set[str]] = {"short_title" if is_short else "title": title}
    placed = set(title)
    labels = line.labels or []
    described = " ".join([line.description, *labels])
    for place, part in (("tags", " ".join(line.tags)), ("description", described)):
        stems, part_surfaces = distinct_words(part)
        added[place] = stems - placed
        placed |= stems
        surfaces |= part_surfaces
    owner, owner_surfaces = distinct_words(line.owner)
    return Entry(
        id=f"{line.owner}/{line.name}",
        owner=line.owner,
        tags=line.tags,
        labels=labels,
        digest=digest,
        is_long=len(text) > LONG_TEXT_CHARS,
        added=added,
        stems=every | placed | owner,
        words=surfaces | title_surfaces | owner_surfaces,
        beginnings={
            word[:end]
            for word in title_surfaces
            for end in range(1, min(len(word), BEGINNING_CHARS_MAX) + 1)
        }
        | {word + TITLE_END for word in title_surfaces},
        whole={whole_of(part) for part in (line.title, line.name, f"{line.owner} {line.name}")},
        order=order or dict.fromkeys(SORTS, 0),
    )
