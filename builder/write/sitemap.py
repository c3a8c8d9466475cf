"""``sitemap.xml`` and its parts, which list every page for search engines.

Always an index of parts, even of one: the same form for a hub of any size. The pages of versions
are left out: they are near copies of their repo's page, which links to them, and crawlers that
visit them reach fewer prompts. It includes only the first page of each list.
"""

from collections.abc import Iterator
from itertools import chain, groupby, islice
from typing import NamedTuple

from builder.model.links import Links
from builder.model.objects import id_of
from builder.model.routes import BY_NAME, SORTS
from builder.model.settings import Settings
from builder.store.site import Site
from builder.store.state import State

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
