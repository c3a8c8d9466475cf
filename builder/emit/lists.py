"""Renders and writes the pages of lists: all repos and each tag's, in each order; and the files of
owners, which list their repos.

A page's digest is over its meta and its rows' digests. Pages with the same digest as in the last
build are skipped, so a new version costs the pages between its repo's old position and its new one.
"""

import hashlib
from typing import NamedTuple

from builder.emit import files
from builder.emit.files import StalePage
from builder.model.matching import langfuse_page, list_api, list_page
from builder.model.objects import id_of
from builder.model.routes import LIST_PAGES_MAX, PAGE_SIZE, ROUTES, SORTS
from builder.model.settings import Settings
from builder.render import derive
from builder.render.envelopes import page_count
from builder.render.pages import Pages
from builder.store import content
from builder.store.site import Site
from builder.store.state import State

PAGES_PER_STRETCH = 20


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
    last = page_count(total) if total or tag is None else 0
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
    digest = _page_digest(number, total, [digest for _, digest in rows])
    return StalePage(tag, sort, number, total, [key for key, _ in rows], digest)


def _note_stale(state: State, page: StalePage, known: bytes | None) -> bool:
    if known == page.digest:
        return False
    state.lists.put_page(page.tag, page.sort, page.number, b"")
    return True


def _page_digest(number: int, total: int, rows: list[bytes]) -> bytes:
    hasher = hashlib.blake2b(b"%d/%d" % (number, total), digest_size=12)
    hasher.update(b"".join(rows))
    return hasher.digest()


def write_page(
    page: StalePage, state: State, site: Site, pages: Pages, *, has_langfuse: bool
) -> None:
    """Write one page of a list, as JSON and, unless too deep, for people, and store its digest.
    With ``has_langfuse``, also write it for Langfuse's SDKs.
    """
    tag, sort, number = page.tag, page.sort, page.number
    made = dict(files.of_page(page, state, pages, has_langfuse=has_langfuse))
    site.put(_at(tag, sort, number), made.items())
    if (tag, sort, number) == (None, SORTS[0], 1):
        site.write_fixed("repos", made["list"])
        if has_langfuse:
            site.write_fixed("langfuse_list", made["langfuse_page"])
    state.lists.put_page(tag, sort, number, page.digest)


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
