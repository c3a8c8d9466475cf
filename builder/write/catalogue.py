"""Writes the files about the whole catalogue: the home page, its tags, its feed, its lines, and the
hub's record.
"""

from itertools import groupby

import msgspec
from markupsafe import Markup
from msgspec import Struct

from builder.model.answers import Repo, RepoSummary, Tag
from builder.model.routes import BY_NAME, SORTS
from builder.model.settings import Settings
from builder.render import crawlers, derive, envelopes, feeds
from builder.render.envelopes import json_bytes
from builder.render.intro import intro
from builder.render.pages import Pages
from builder.render.trial import suits_trial, trial
from builder.store.site import Site
from builder.store.state import State

# The home page shows so many prompts of each list, and tries the first ones of the top.
HOME_ROWS = 6
TRIED_MAX = 24
EARLY_CHARS = 200
HOME_TAGS = 10
# With fewer tags, an index of letters would not help.
TAGS_BY_LETTER_MIN = 25


def write_home(state: State, site: Site, pages: Pages) -> None:
    """Write the first page of the site: the operator's text, tags, a prompt to fill in, and the new
    and the top prompts.
    """

    def rows(sort: str, count: int) -> list[tuple[bytes, bytes]]:
        return state.repos.rows([key for key, _ in state.lists.order(None, sort, count)])

    top = rows(SORTS[0], TRIED_MAX)
    summaries = [msgspec.json.decode(summary, type=RepoSummary) for summary, _ in top]
    tags = [Tag(name, count) for name, count in state.tags.counts()[:HOME_TAGS]]
    repos_count, _ = state.repos.totals()
    shown = [card for _, card in top[:HOME_ROWS]]
    newest = [card for _, card in rows("new", HOME_ROWS)]
    # On a young hub, both lists have the same prompts.
    new = [] if sorted(shown) == sorted(newest) else newest
    page = pages.render_list(
        "home.html",
        shown,
        intro=intro(state.home()[1]),
        tags=tags,
        repos_count=repos_count,
        new=Markup(b"".join(new).decode()),
        has_pulls=bool(summaries and summaries[0].pulls),
        trial=_trial(site, pages, summaries),
    )
    site.write_fixed("home", page)


class _RepoFile(Struct):
    """The file of a prompt's record, without its meta."""

    data: Repo


def _trial(site: Site, pages: Pages, summaries: list[RepoSummary]) -> Markup | str:
    """The prompt to fill in; empty if none of these suits. The best one asks for a value early, and
    is short.
    """
    found = []
    for one in summaries:
        # The record that readers get, because the content may have changed since.
        data = site.read(BY_NAME["repo"].file_for(owner=one.owner, name=one.name))
        repo = data and msgspec.json.decode(data, type=_RepoFile).data
        if repo and suits_trial(repo):
            is_asking = any(variable.required for variable in repo.variables)
            place = repo.body.find("{{") // EARLY_CHARS
            found.append(((not is_asking, place, len(repo.body.encode())), repo))
    return trial(pages, min(found, key=lambda one: one[0])[1]) if found else ""


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
