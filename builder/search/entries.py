"""What of a repo is looked for, as every engine stores it. Pure.

An entry has words, not counts: a word that stands in a text many times says no more than one that
stands there once, and nothing here depends on other repos. So a score is the same whatever else
the index holds or once held.
"""

from typing import NamedTuple

from builder.model.records import CatalogueLine
from builder.model.routes import SORTS
from builder.search.language import STOP_STEMS
from builder.text.words import distinct_words, whole_of

LONG_TEXT_CHARS = 4_000
SHORT_TITLE_WORDS_MAX = 4
BEGINNING_CHARS_MAX = 8
# How much a word says by the best place where it stands. Each word stands in the text, which is
# what all of a repo's words together are called here; other places add to that.
TEXT_VALUE = 6
LONG_TEXT_VALUE = 4
ADDED_VALUES = {"short_title": 14, "title": 12, "tags": 8, "description": 4}


class Entry(NamedTuple):
    """A repo in the index. Most fields are sets of words without spaces.

    ``title`` has the name, too. ``added``: the stems of each place, of those that they are best
    in. ``stems``, ``words``: of everything, as they are found by and as they are written.
    ``beginnings``: of the title's words. ``whole``: what the title and the names are in one.
    ``order``: in each order of lists, a number within 64 bits; greater ones come first.
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
    order: dict[str, int]


def entry_of(
    line: CatalogueLine, text: str, digest: str, order: dict[str, int] | None = None
) -> Entry:
    """``digest`` differs when anything of the entry does."""
    every, surfaces = distinct_words(text)
    title, title_surfaces = distinct_words(f"{line.title} {line.name}")
    is_short = len(title - STOP_STEMS) <= SHORT_TITLE_WORDS_MAX
    added: dict[str, set[str]] = {"short_title" if is_short else "title": title}
    placed = set(title)
    for place, part in (("tags", " ".join(line.tags)), ("description", line.description)):
        stems, part_surfaces = distinct_words(part)
        added[place] = stems - placed
        placed |= stems
        surfaces |= part_surfaces
    owner, owner_surfaces = distinct_words(line.owner)
    return Entry(
        id=f"{line.owner}/{line.name}",
        owner=line.owner,
        tags=line.tags,
        digest=digest,
        is_long=len(text) > LONG_TEXT_CHARS,
        added=added,
        stems=every | placed | owner,
        words=surfaces | title_surfaces | owner_surfaces,
        beginnings={
            word[:end]
            for word in title_surfaces
            for end in range(1, min(len(word), BEGINNING_CHARS_MAX) + 1)
        },
        whole={whole_of(part) for part in (line.title, line.name, f"{line.owner} {line.name}")},
        order=order or dict.fromkeys(SORTS, 0),
    )
