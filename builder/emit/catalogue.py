"""Writes the files about the whole catalogue: the home page, its tags, its feed, its lines, the
hub's record, and ``sitemap.xml`` with its parts.

The sitemap is always an index of parts, even of one: the same form for a hub of any size. The pages
of versions are left out: they are near copies of their repo's page, which links to them, and
crawlers that visit them reach fewer prompts. It includes only the first page of each list.
"""

from collections.abc import Iterator
from itertools import chain, groupby, islice
from typing import NamedTuple

import msgspec
from markupsafe import Markup
from msgspec import Struct

from builder.model.answers import Repo, RepoSummary, Tag
from builder.model.kinds import KINDS, Kind
from builder.model.links import Links
from builder.model.objects import id_of
from builder.model.routes import BY_NAME, SORTS
from builder.model.settings import Settings
from builder.render import derive, envelopes, feeds
from builder.render.envelopes import json_bytes
from builder.render.pages import Pages
from builder.render.prompt_text import trial, trial_rank
from builder.store.site import Site
from builder.store.state import State
from builder.text.intro import intro

# The home page shows so many prompts of each list.
HOME_ROWS = 6
HOME_TAGS = 6
# A tag of fewer prompts leads nowhere new.
TAG_PROMPTS_MIN = 3
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
        tags=[
            Tag(name, count)
            for name, count in state.tags.counts()[:HOME_TAGS]
            if count >= TAG_PROMPTS_MIN
        ],
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
    repo = read_repo(site, *found.split("/"))
    return repo if repo and trial_rank(repo) else None


def read_repo(site: Site, owner: str, name: str) -> Repo | None:
    """The record that readers get, because the content may have changed since."""
    data = site.read(BY_NAME["repo"].file_for(owner=owner, name=name))
    return msgspec.json.decode(data, type=_RepoFile).data if data else None


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
    summaries = _summaries(state, "top", feeds.PROMPTS_MAX)
    site.write_fixed("llms", feeds.llms(settings, summaries))


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


# The protocol's limits for one file (https://www.sitemaps.org/protocol.html).
URLS_PER_PART_MAX = 50_000
PART_BYTES_MAX = 52_428_800
# The most bytes of a URL's entry beside the base URL: markup, time and the longest names.
BYTES_PER_URL_MAX = 250

# The state stores the parts on the site as the pages of a list with this name.
PARTS = "sitemap"

_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


class _Url(NamedTuple):
    """``updated`` is the time of the last change; empty if unknown."""

    url: str
    updated: str


def write_sitemap(settings: Settings, state: State, site: Site) -> None:
    """Write the parts, then the index; parts that are no longer needed become orphans."""
    links = Links(settings.base_url)
    route = BY_NAME["sitemap_part"]
    known = state.lists.pages(None, PARTS)
    urls = _urls(state, links)
    index: list[_Url] = []
    while part := [*islice(urls, urls_per_part(settings.base_url))]:
        number = len(index) + 1
        if number not in known:
            # Stored before the file exists, so that a killed build cannot lose track of it.
            state.lists.put_page(None, PARTS, number, b"")
            state.checkpoint()
        site.put({"page": number}, [(route.name, _document("urlset", "url", part))])
        index.append(_Url(links.page(route.name, page=number), max(url.updated for url in part)))
    for number in known:
        if number > len(index):
            state.files.remove(id_of({"page": number}))
            state.orphans.add([route.file_for(page=number)])
    state.lists.drop_pages_after(None, PARTS, len(index))
    site.write_fixed("sitemap", _document("sitemapindex", "sitemap", index))


def urls_per_part(base_url: str) -> int:
    """The most URLs in a part."""
    return min(URLS_PER_PART_MAX, PART_BYTES_MAX // (len(base_url) + BYTES_PER_URL_MAX))


def _urls(state: State, links: Links) -> Iterator[_Url]:
    pages = [links.page(name) for name in ("home", "connect", "api_page", "tags_page")]
    pages += [links.page("list_page", sort=sort) for sort in SORTS]
    # By name, because the order by use changes with every repo.
    pages += [
        links.page("tag_page", tag=tag) for tag in sorted(tag for tag, _ in state.tags.counts())
    ]
    return chain((_Url(page, "") for page in pages), _owners_and_repos(state, links))


def _owners_and_repos(state: State, links: Links) -> Iterator[_Url]:
    """Each owner with a repo, followed by the repos."""
    for owner, group in groupby(state.repos.update_times(), lambda row: row[0].partition("/")[0]):
        repos = [
            _Url(links.page("repo_page", owner=owner, name=repo_id[len(owner) + 1 :]), updated)
            for repo_id, updated in group
        ]
        yield _Url(links.page("owner_page", owner=owner), max(repo.updated for repo in repos))
        yield from repos


def _document(root: str, element: str, urls: list[_Url]) -> bytes:
    # No base URL and no name has a character that XML would escape.
    lines = "".join(
        f"<{element}><loc>{url}</loc>"
        f"{f'<lastmod>{updated}</lastmod>' if updated else ''}</{element}>\n"
        for url, updated in urls
    )
    return f"{_HEAD}<{root} {_NAMESPACE}>\n{lines}</{root}>\n".encode()
