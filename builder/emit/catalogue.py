"""Writes the files about several prompts: owners, pages of lists, tags, the home page, the feed,
the catalogue's lines, ``sitemap.xml`` with its parts, the hub's record; and the pages about the API
and about clients, whose examples are prompts of this hub.

A page's digest is over its meta and its rows' digests. Pages with the same digest as in the last
build are skipped, so a new version costs the pages between its repo's old position and its new one.

The sitemap is always an index of parts, even of one: the same form for a hub of any size. The pages
of versions are left out: they are near copies of their repo's page, which links to them, and
crawlers that visit them reach fewer prompts. It includes only the first page of each list.
"""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, groupby, islice
from typing import NamedTuple, TypeVar

import msgspec
from markupsafe import Markup

from builder.emit import files
from builder.emit.history import StalePage
from builder.model import envelopes
from builder.model.answers import Repo, RepoSummary, Tag, VersionEntry
from builder.model.errors import STATUS
from builder.model.kinds import KINDS, Kind
from builder.model.links import Links
from builder.model.matching import langfuse_page, list_api, list_page, version_file
from builder.model.objects import id_of
from builder.model.routes import BY_NAME, LIST_PAGES_MAX, PAGE_SIZE, ROUTES, SORTS
from builder.model.settings import Settings
from builder.render import api_page, connect, derive, feeds, openapi
from builder.render.api_page import Examples
from builder.render.pages import pages_of
from builder.render.prompt_text import trial
from builder.store import content
from builder.store.site import Site
from builder.store.state import State
from builder.text.intro import intro

PAGES_PER_STRETCH = 20

Record = TypeVar("Record", Repo, VersionEntry)


def find_stale_first(state: State, tag: str | None) -> list[StalePage]:
    """The first pages of a list that are not up to date on the site, in all its orders.

    ``tag`` None: all repos. Notes in the state that they are about to be written. Costs the same
    for a list of any length.
    """
    total, _ = state.repos.totals(tag)
    if not total and tag:
        return []
    pages = [
        _make_page(tag, sort, 1, total, state.lists.order(tag, sort, PAGE_SIZE)) for sort in SORTS
    ]
    return [page for page in pages if _note_stale(state, page, state.lists.page(tag, page.sort, 1))]


class Stretch(NamedTuple):
    """Some pages of a list in one order. ``pages`` are the stale ones of them; ``gone`` are files
    of pages past the list's end; ``following`` is the number of the page after these, or None.
    """

    pages: list[StalePage]
    gone: list[str]
    following: int | None


def find_stale(state: State, tag: str | None, sort: str, first: int) -> Stretch:
    """As ``find_stale_first``, for a stretch of pages in one order, from page ``first`` on."""
    total, _ = state.repos.totals(tag)
    last = envelopes.page_count(total) if total or tag is None else 0
    following = first + PAGES_PER_STRETCH
    order = state.lists.order(
        tag, sort, PAGES_PER_STRETCH * PAGE_SIZE, offset=(first - 1) * PAGE_SIZE
    )
    known = state.lists.pages(tag, sort, first)
    stale = []
    for number in range(first, min(last + 1, following)):
        start = (number - first) * PAGE_SIZE
        page = _make_page(tag, sort, number, total, order[start : start + PAGE_SIZE])
        if _note_stale(state, page, known.get(number)):
            stale.append(page)
    if following <= last:
        return Stretch(stale, [], following)
    gone = [number for number in known if number > last]
    state.lists.drop_pages_after(tag, sort, last)
    for page in gone:
        state.files.remove(id_of(_at(tag, sort, page)))
    return Stretch(stale, [file for page in gone for file in _files(tag, sort, page)], None)


def _files(tag: str | None, sort: str, number: int) -> list[str]:
    files = [list_api(tag, sort, number).file]
    if sort == SORTS[0]:
        files.append(langfuse_page(tag, number).file)
    if number <= LIST_PAGES_MAX:
        files.append(list_page(tag, sort, number).file)
    return files


def _make_page(
    tag: str | None, sort: str, number: int, total: int, rows: list[tuple[int, bytes]]
) -> StalePage:
    hasher = hashlib.blake2b(b"%d/%d" % (number, total), digest_size=12)
    hasher.update(b"".join(digest for _, digest in rows))
    return StalePage(tag, sort, number, total, [key for key, _ in rows], hasher.digest())


def _note_stale(state: State, page: StalePage, known: bytes | None) -> bool:
    if known == page.digest:
        return False
    state.lists.put_page(page.tag, page.sort, page.number, b"")
    return True


def write_page(page: StalePage, settings: Settings, state: State, site: Site) -> None:
    """Write one page of a list, and store its digest."""
    at = page.tag, page.sort, page.number
    site.put(_at(*at), files.of_page(page, settings, state))
    state.lists.put_page(*at, page.digest)


def _at(tag: str | None, sort: str, number: int) -> dict[str, object]:
    return {**({"tag": tag} if tag else {}), "sort": sort, "page": number}


def write_owner(owner: str, settings: Settings, state: State, site: Site) -> None:
    """Write an owner's files, and store the mark of the profile that they were made from.

    An owner with neither profile nor repos is removed from the state. Raises ContentError.
    """
    mark = content.owner_mark(settings.content, owner)
    profile = content.read_owner(settings.content, owner)
    rows = state.repos.rows_of_owner(owner)
    if not profile and not rows:
        state.owners.remove(owner)
        state.files.remove(id_of({"owner": owner}))
        state.orphans.add(owner_files(owner))
        return
    user = derive.user_record(
        owner, profile, state.owners.joined_at(owner), len(rows), state.pulls.of_owner(owner)
    )
    found = state.repos.skills_of_owner(owner)
    site.put({"owner": owner}, files.of_owner(settings, user, rows, found))
    state.owners.put(owner, mark)


def owner_files(owner: str) -> list[str]:
    """The files that an owner may have, whatever the state knows."""
    return [route.file_for(owner=owner) for route in ROUTES if route.scope == "owner"]


# The home page shows so many prompts of each list.
HOME_ROWS = 6
HOME_TAGS = 6
# A tag of fewer prompts leads nowhere new.
TAG_PROMPTS_MIN = 3
# With fewer tags, an index of letters would not help.
TAGS_BY_LETTER_MIN = 25


def write_home(settings: Settings, state: State, site: Site) -> None:
    """Write the first page of the site: the operator's text, tags, a prompt to fill in, and the new
    and the top prompts of each kind.
    """
    pages = pages_of(settings)
    repos_count, _ = state.repos.totals()
    tried = _tried(state, site)
    first = next(_top(state, 1), None)
    tags = [Tag(*one) for one in state.tags.counts()[:HOME_TAGS] if one[1] >= TAG_PROMPTS_MIN]
    page = pages.render(
        "home.html",
        intro=intro(state.home()[1]),
        tags=tags,
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
    rows = (b"".join(row.card for row in state.repos.rows(keys)) for keys in shown)
    return _Tab(kind, count, *(Markup(one.decode()) for one in rows))


def _tried(state: State, site: Site) -> Repo | None:
    """The prompt to fill in; None if none suits."""
    found = state.repos.best_trial()
    owner, _, name = (found or "").partition("/")
    return _read_record(site, "repo", Repo, owner=owner, name=name) if found else None


def _read_record(site: Site, route: str, kind: type[Record], **at: str) -> Record | None:
    """The record that readers get, because the content may have changed since."""
    data = site.read(BY_NAME[route].file_for(**at))
    return msgspec.json.decode(data, type=dict[str, kind])["data"] if data else None


def write_tags(settings: Settings, state: State, site: Site) -> None:
    """Write the list of tags, as JSON and for people."""
    tags = [Tag(name, count) for name, count in state.tags.counts()]
    site.write_fixed("tags", envelopes.whole_list(tags))
    by_name = sorted(tags, key=lambda tag: tag.name)
    letters = [(letter, [*group]) for letter, group in groupby(by_name, lambda tag: tag.name[0])]
    shown = {"tags": tags, "letters": letters, "by_letter_from": TAGS_BY_LETTER_MIN}
    site.write_fixed("tags_page", pages_of(settings).render("tags.html", **shown))


def write_feed(settings: Settings, state: State, site: Site) -> None:
    """Write the feed of the newest repos."""
    summaries = _summaries(state, "new", feeds.ENTRIES_MAX)
    site.write_fixed("feed", feeds.catalogue_feed(settings, summaries))


def write_llms(settings: Settings, state: State, site: Site) -> None:
    """Write ``llms.txt``, with the top repos."""
    summaries = _summaries(state, SORTS[0], feeds.PROMPTS_MAX)
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
    site.write_fixed("hub", envelopes.single(hub))


def _summaries(state: State, sort: str, count: int) -> list[bytes]:
    """The summaries of the first repos in an order."""
    order = state.lists.order(None, sort, count)
    return [row.summary for row in state.repos.rows([key for key, _ in order])]


def _top(state: State, count: int) -> Iterator[RepoSummary]:
    """The first of the top repos."""
    for summary in _summaries(state, SORTS[0], count):
        yield msgspec.json.decode(summary, type=RepoSummary)


# The protocol's limits for one file (https://www.sitemaps.org/protocol.html).
URLS_PER_PART_MAX = 50_000
PART_BYTES_MAX = 52_428_800
# The most bytes of a URL's entry beside the base URL: markup, time and the longest names.
BYTES_PER_URL_MAX = 250

# The state stores the parts on the site as the pages of a list with this name.
PARTS = "sitemap"

_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'

# A URL, and the time of its last change; empty if unknown.
_Url = tuple[str, str]


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
        index.append((links.page(route.name, page=number), max(time for _, time in part)))
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
    return chain(((page, "") for page in pages), _owners_and_repos(state, links))


def _owners_and_repos(state: State, links: Links) -> Iterator[_Url]:
    """Each owner with a repo, followed by the repos."""
    for owner, group in groupby(state.repos.update_times(), lambda row: row[0].partition("/")[0]):
        repos = [
            (links.page("repo_page", owner=owner, name=repo_id[len(owner) + 1 :]), updated)
            for repo_id, updated in group
        ]
        yield links.page("owner_page", owner=owner), max(updated for _, updated in repos)
        yield from repos


def _document(root: str, element: str, urls: list[_Url]) -> bytes:
    # No base URL and no name has a character that XML would escape.
    lines = "".join(
        f"<{element}><loc>{url}</loc>"
        f"{f'<lastmod>{updated}</lastmod>' if updated else ''}</{element}>\n"
        for url, updated in urls
    )
    return f"{_HEAD}<{root} {_NAMESPACE}>\n{lines}</{root}>\n".encode()


# So many of the top prompts are looked through for examples.
LOOKED_AT_MAX = 20
# The last letter of the block Latin Extended-B.
LATIN_LAST = "\u024f"


def write_reference(settings: Settings, state: State, site: Site) -> None:
    """Write the pages about the API and about clients, after the files that they show."""
    examples = _examples(state, site)
    page = pages_of(settings).render(
        "connect.html", snippets=connect.snippets(settings), example=examples.connect()
    )
    site.write_fixed("connect", page)
    answers = {
        id: api_page.shown(data)
        for id, file in examples.files().items()
        if (data := site.read(file, api_page.ANSWER_BYTES_READ)) is not None
    }
    shown_by = settings._replace(content="", out="", state="")
    site.write_fixed("api_page", _api_page(shown_by, examples, tuple(answers.items())))


@lru_cache(maxsize=1)
def _api_page(
    settings: Settings, examples: Examples, answers: tuple[tuple[str, str], ...]
) -> bytes:
    document = msgspec.json.decode(openapi.document(settings))
    api = api_page.describe(document, STATUS, examples)
    return pages_of(settings).render(
        "docs.html", api=api, answers=dict(answers), example=examples.connect()
    )


def _is_in_other_letters(summary: RepoSummary) -> bool:
    return any(one > LATIN_LAST and one.isalpha() for one in summary.title)


def _examples(state: State, site: Site) -> Examples:
    """The first of the top prompts for each kind of example, with a title in Latin letters if one
    has it: other scripts would change the direction of addresses and answers around them.
    """
    found: dict[str, api_page.Values] = {}
    for summary in sorted(_top(state, LOOKED_AT_MAX), key=_is_in_other_letters):
        at = {"owner": summary.owner, "name": summary.name}
        repo = _read_record(site, "repo", Repo, **at)
        if repo is None:
            continue
        at["version"] = repo.latest_version
        cases = {"any": at}
        if repo.tags:
            cases["tagged"] = {"tag": repo.tags[0]}
        if "changed" not in found and repo.versions_count > 1:
            version = _read_record(site, "version", VersionEntry, **at)
            if version and version.diff_url:  # An old diff may still exist.
                cases["changed"] = at
        if repo.labels:
            cases["labelled"] = at | {"label": min(repo.labels)}
        if repo.files:
            path = repo.files[0].path
            file = version_file(*at.values(), path).file
            cases["folder"] = at | {"file_path": path, "file": file}
        found = {kind: tuple(values.items()) for kind, values in cases.items()} | found
        if len(found) == len(Examples._fields):
            break
    return Examples(**found)
