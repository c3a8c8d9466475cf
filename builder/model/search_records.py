"""The records that explain a search, beside its results."""

from typing import Literal

from msgspec import Struct


class Correction(Struct, rename={"word": "from", "nearest": "to"}):
    """A word that no prompt has, and the word that was searched for instead."""

    word: str
    nearest: str


class SearchMatch(Struct, rename={"places": "in"}):
    """The reason why a search found a repo: `in` lists the fields that have words of the query, and
    `words` these words, as they are written there. `line` is a part of the text around such words,
    as plain text; null if its beginning has none, or says no more than the title. `kind` is
    `skill` for a prompt with files, and `chat` for one with messages. `labels` are those of its
    labels that have words of the query. `without` are the meaningful words that it lacks.
    """

    places: list[Literal["title", "name", "owner", "tags", "labels", "description", "text"]]
    words: list[str]
    line: str | None
    kind: Literal["prompt", "skill", "chat"]
    labels: list[str] = []
    without: list[str] = []


class Facet(Struct):
    """A tag, an owner or a label, with the number of results that have it."""

    name: str
    count: int


class Facets(Struct):
    """The most frequent tags, owners and labels of all results, not only of those on this page."""

    tags: list[Facet]
    owners: list[Facet]
    labels: list[Facet]
