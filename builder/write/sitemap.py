"""``sitemap.xml`` and its parts, which name every page that a search engine should know.

Always an index of parts, however few: one form for a hub of any size. The pages of versions are
left out. They are near copies of their repo's page, which links to them, and a crawler that
spends its visits on them comes to fewer prompts; so are list pages but the first of each.
"""

from collections.abc import Iterator
from itertools import chain, groupby, islice
from typing import NamedTuple

from builder.model.links import Links
from builder.model.routes import BY_NAME, SORTS
from builder.model.settings import Settings
from builder.store.site import Site
from builder.store.state import State

# The protocol's limits for one file (https://www.sitemaps.org/protocol.html).
URLS_PER_PART_MAX = 50_000
PART_BYTES_MAX = 52_428_800
# What a URL takes beside the base URL, at most: markup, time and the longest names.
BYTES_PER_URL_MAX = 250

# The state remembers the parts that are on the site as the pages of a list of this name.
PARTS = "sitemap"

_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


class _Url(NamedTuple):
    """``updated`` is the time of the last change, empty where nobody knows."""

    url: str
    updated: str


def write_sitemap(settings: Settings, state: State, site: Site) -> None:
    """Write the parts, then the index; what was a part and is none now becomes an orphan."""
    links = Links(settings.base_url)
    route = BY_NAME["sitemap_part"]
    known = state.lists.pages(None, PARTS)
    urls = _urls(state, links)
    index: list[_Url] = []
    while part := [*islice(urls, urls_per_part(settings.base_url))]:
        number = len(index) + 1
        if number not in known:
            # Noted before it is there, so that it is found again whatever happens.
            state.lists.put_page(None, PARTS, number, b"")
            state.checkpoint()
        site.write(route.file_for(page=number), _document("urlset", "url", part))
        index.append(_Url(links.page(route.name, page=number), max(url.updated for url in part)))
    state.orphans.add(route.file_for(page=number) for number in known if number > len(index))
    state.lists.drop_pages_after(None, PARTS, len(index))
    site.write(BY_NAME["sitemap"].file, _document("sitemapindex", "sitemap", index))


def urls_per_part(base_url: str) -> int:
    """How many URLs a part may have."""
    return min(URLS_PER_PART_MAX, PART_BYTES_MAX // (len(base_url) + BYTES_PER_URL_MAX))


def _urls(state: State, links: Links) -> Iterator[_Url]:
    pages = [links.page(name) for name in ("home", "connect", "api_page", "tags_page")]
    pages += [links.page("list_page", sort=sort) for sort in SORTS]
    # By name: the order by use changes with every repo.
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
