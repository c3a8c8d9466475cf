"""Writes the files about the whole catalogue: the home page, its tags, its feed, its lines, and the
hub's record.
"""

from itertools import groupby
from typing import NamedTuple

import msgspec
from markupsafe import Markup
from msgspec import Struct

from builder.model.answers import Repo, RepoSummary, Tag
from builder.model.kinds import KINDS, Kind
from builder.model.routes import BY_NAME, SORTS
from builder.model.settings import Settings
from builder.render import crawlers, derive, envelopes, feeds
from builder.render.envelopes import json_bytes
from builder.render.intro import intro
from builder.render.pages import Pages
from builder.render.trial import trial, trial_rank
from builder.store.site import Site
from builder.store.state import State

# The home page shows so many prompts of each list.
HOME_ROWS = 6
HOME_TAGS = 10
# With fewer tags, an index of letters would not help.
TAGS_BY_LETTER_MIN = 25


def write_home(state: State, site: Site, pages: Pages) -> None:
    """Write the first page of the site: the operator's text, tags, a prompt to fill in, and the new
    and the top prompts of each kind.
    """
    repos_count, _ = state.repos.totals()
    tried = _tried(state, site)
    top = state.repos.rows([key for key, _ in state.lists.order(None, SORTS[0], 1)])
    first = msgspec.json.decode(top[0][0], type=RepoSummary) if top else None
    page = pages.render(
        "home.html",
        intro=intro(state.home()[1]),
        tags=[Tag(name, count) for name, count in state.tags.counts()[:HOME_TAGS]],
        repos_count=repos_count,
        tabs=_tabs_of_home(state, repos_count),
        has_pulls=bool(first and first.pulls),
        example=tried or first,
        trial=trial(pages, tried) if tried else "",
    )
    site.write_fixed("home", page)


class _Tab(NamedTuple):
    """A tab of the home page: a kind, or None for all prompts; the number of prompts; and rows of
    the new and the top ones. ``new`` is empty if both lists have the same prompts, as on a young
    hub.
    """

    kind: Kind | None
    count: int
    new: Markup
    top: Markup


def _tabs_of_home(state: State, repos_count: int) -> list[_Tab]:
    """The tab of all prompts; and those of the kinds, if there are several."""
    counts = state.tags.kinds()
    tabs = [_tab(state, None, repos_count)]
    if len(counts) > 1:
        tabs += [_tab(state, kind, counts[kind.key]) for kind in KINDS if kind.key in counts]
    return tabs


def _tab(state: State, kind: Kind | None, count: int) -> _Tab:
    new, top = (
        [key for key, _ in state.lists.order(kind and kind.key, sort, HOME_ROWS)]
        for sort in ("new", SORTS[0])
    )
    shown = (new if {*new} != {*top} else [], top)
    rows = (b"".join(card for _, card in state.repos.rows(keys)) for keys in shown)
    return _Tab(kind, count, *(Markup(one.decode()) for one in rows))


class _RepoFile(Struct):
    """The file of a prompt's record, without its meta."""

    data: Repo


def _tried(state: State, site: Site) -> Repo | None:
    """The prompt to fill in; None if none suits."""
    found = state.repos.best_trial()
    if not found:
        return None
    owner, name = found.split("/")
    # The record that readers get, because the content may have changed since.
    data = site.read(BY_NAME["repo"].file_for(owner=owner, name=name))
    repo = data and msgspec.json.decode(data, type=_RepoFile).data
    return repo if repo and trial_rank(repo) else None


def write_tags(state: State, site: Site, pages: Pages) -> None:
    """Write the list of tags, as JSON and for people."""
    tags = [Tag(name, count) for name, count in state.tags.counts()]
    site.write_fixed("tags", envelopes.whole_list(tags))
    by_name = sorted(tags, key=lambda tag: tag.name)
    letters = [(letter, [*group]) for letter, group in groupby(by_name, lambda tag: tag.name[0])]
    page = pages.render("tags.html", tags=tags, letters=letters, by_letter_from=TAGS_BY_LETTER_MIN)
    site.write_fixed("tags_page", page)


def write_feed(settings: Settings, state: State, site: Site) -> None:
    """Write the feed of the newest repos."""
    summaries = _summaries(state, "new", feeds.ENTRIES_MAX)
    site.write_fixed("feed", feeds.catalogue_feed(settings, summaries))


def write_llms(settings: Settings, state: State, site: Site) -> None:
    """Write ``llms.txt``, with the top repos."""
    summaries = _summaries(state, "top", crawlers.PROMPTS_MAX)
    site.write_fixed("llms", crawlers.llms(settings, summaries))


def write_lines(state: State, site: Site) -> None:
    """Write ``catalogue.jsonl``, a line for each repo."""
    lines = state.repos.catalogue_lines()
    site.write_fixed("catalogue", b"".join(line + b"\n" for line in lines))


def write_withdrawn_lines(state: State, site: Site) -> None:
    """Write ``withdrawn.jsonl``, a line for each withdrawal."""
    site.write_fixed("withdrawn", b"".join(state.withdrawn.lines()))


def write_hub(settings: Settings, state: State, site: Site, serial: int) -> None:
    """Write ``hub.json``. ``serial``: the number of publications in the lists."""
    repos_count, _ = state.repos.totals()
    hub = derive.hub_record(settings, repos_count, serial)
    site.write_fixed("hub", envelopes.single(json_bytes(hub)))


def _summaries(state: State, sort: str, count: int) -> list[bytes]:
    """The summaries of the first repos in an order."""
    order = state.lists.order(None, sort, count)
    return [summary for summary, _ in state.repos.rows([key for key, _ in order])]
