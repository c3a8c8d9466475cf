"""The prompts of some owners as the site shows them, for lists and choices.

Reads the output of the last build, so no list opens the files of each prompt.
"""

import unicodedata
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from builder.model.answers import CatalogueLine, RepoSummary
from builder.model.errors import RequestError
from builder.model.routes import PAGE_SIZE, QUERY_CHARS_MAX
from builder.model.settings import Settings
from builder.store.state import State
from publisher.web.pages.repos import labels_of, reading

TAGS_OFFERED_MAX = 200

_decode_summary = msgspec.json.Decoder(RepoSummary).decode
_decode_line = msgspec.json.Decoder(CatalogueLine).decode


class Mine(NamedTuple):
    """A page of the prompts of some owners, latest changed first, each with its labels and their
    versions. ``total``: of all prompts that match; ``has_any``: they have at least one prompt.
    """

    prompts: list[tuple[RepoSummary, dict[str, str]]]
    page: int
    pages: int
    total: int
    has_any: bool


def list_mine(settings: Settings, owners: Sequence[str], words: str, page: int) -> Mine:
    """Returns a page of the prompts that have all of these ``words`` in name, title, description or
    tags. A page number after the last page gives the last page.

    Raises RequestError ``unavailable`` before the site is built.
    """
    wanted = _fold(words[:QUERY_CHARS_MAX]).split()
    with reading(settings) as state:
        count = state.repos.count_of_owners(owners)
        found = _search(state, owners, wanted) if wanted else None
        total = count if found is None else len(found)
        pages = max(1, -(-total // PAGE_SIZE))
        page = min(max(page, 1), pages)
        start = (page - 1) * PAGE_SIZE
        if found is None:
            rows = state.repos.summaries_of_owners(owners, start, PAGE_SIZE)
        else:
            rows = state.repos.summaries(found[start : start + PAGE_SIZE])
    prompts = [_decode_summary(row) for row in rows]
    shown = [(one, current_labels(settings, one.owner, one.name)) for one in prompts]
    return Mine(shown, page, pages, total, count > 0)


def _search(state: State, owners: Sequence[str], wanted: list[str]) -> list[str]:
    found = []
    for repo_id, raw in state.repos.lines_of_owners(owners):
        line = _decode_line(raw)
        text = _fold(" ".join((line.owner, line.name, line.title, line.description, *line.tags)))
        if all(word in text for word in wanted):
            found.append(repo_id)
    return found


def _fold(text: str) -> str:
    """Returns ``text`` without case and accents."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def current_labels(settings: Settings, owner: str, name: str) -> dict[str, str]:
    """Returns the version of each label of a prompt, as readers see it."""
    moves = labels_of(settings, owner, name)
    return {label: move.version for label, move in moves.items() if move.version}


def tags_in_use(settings: Settings) -> list[str]:
    """Returns the most frequent tags."""
    try:
        with reading(settings) as state:
            return [tag for tag, _ in islice(state.tags.counts(), TAGS_OFFERED_MAX)]
    except RequestError:
        return []  # tags are only suggestions
