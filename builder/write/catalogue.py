"""Writes the files about the whole catalogue: the home page, its tags, its feed, its lines, and the
hub's record.
"""

from itertools import groupby

from builder.model.records import Tag
from builder.model.routes import SORTS
from builder.model.settings import Settings
from builder.render import crawlers, derive, envelopes, feeds
from builder.render.envelopes import json_bytes
from builder.render.intro import intro
from builder.render.pages import Pages
from builder.store.site import Site
from builder.store.state import State

# The home page shows rows of three or two cards.
HOME_CARDS = 12
HOME_TAGS = 10
# With fewer tags, an index of letters would not help.
TAGS_BY_LETTER_MIN = 25


def write_home(state: State, site: Site, pages: Pages) -> None:
    """Write the first page of the site: the operator's text, tags, the top prompts."""
    order = state.lists.order(None, SORTS[0], HOME_CARDS)
    cards = [card for _, card in state.repos.rows([key for key, _ in order])]
    tags = [Tag(name, count) for name, count in state.tags.counts()[:HOME_TAGS]]
    repos_count, _ = state.repos.totals()
    page = pages.render_list(
        "home.html", cards, intro=intro(state.home()[1]), tags=tags, repos_count=repos_count
    )
    site.write_fixed("home", page)


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


def write_hub(settings: Settings, state: State, site: Site, serial: int) -> None:
    """Write ``hub.json``. ``serial``: the number of publications in the lists."""
    repos_count, _ = state.repos.totals()
    hub = derive.hub_record(settings, repos_count, serial)
    site.write_fixed("hub", envelopes.single(json_bytes(hub)))


def _summaries(state: State, sort: str, count: int) -> list[bytes]:
    """The summaries of the first repos in an order."""
    order = state.lists.order(None, sort, count)
    return [summary for summary, _ in state.repos.rows([key for key, _ in order])]
