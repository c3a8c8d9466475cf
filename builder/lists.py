"""Renders and writes the pages of lists: all repos and each tag's, in each order.

A page's digest is over its meta and its rows' digests. Pages whose digest is that of the last
build are not looked at again, so a new version costs the pages between its repo's old place
and its new one.
"""

import hashlib
from typing import NamedTuple

from builder.render import Pages, envelope, list_meta, page_count
from builder.routes import BY_NAME, PAGE_SIZE, SORTS, list_api, list_page
from builder.site import Site
from builder.state import State


class StalePage(NamedTuple):
    """A page that has to be written; ``keys`` are its repos in the state."""

    tag: str | None
    sort: str
    number: int
    total: int
    keys: list[int]


class Staleness(NamedTuple):
    """What is to be done about a list, in all its orders. ``gone``: files of pages past its end."""

    pages: list[StalePage]
    gone: list[str]


def find_stale(state: State, tag: str | None) -> Staleness:
    """The pages of a list that are not on the site as they should be; ``tag`` None: all repos.

    Remembers them as written: the caller's build writes them all, or does not end.
    """
    found = Staleness([], [])
    for sort in SORTS:
        order = state.order(tag, sort)
        last = page_count(len(order)) if order or tag is None else 0
        known = state.pages(tag, sort)
        fresh = {}
        for number in range(1, last + 1):
            rows = order[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
            digest = _page_digest(number, len(order), [digest for _, digest in rows])
            if known.get(number) != digest:
                fresh[number] = digest
                keys = [key for key, _ in rows]
                found.pages.append(StalePage(tag, sort, number, len(order), keys))
        state.put_pages(tag, sort, fresh, last)
        for number in known:
            if number > last:
                found.gone.append(list_api(tag, sort, number).file)
                found.gone.append(list_page(tag, sort, number).file)
    return found


def _page_digest(number: int, total: int, rows: list[bytes]) -> bytes:
    hasher = hashlib.blake2b(b"%d/%d" % (number, total), digest_size=12)
    hasher.update(b"".join(rows))
    return hasher.digest()


def write_page(page: StalePage, state: State, site: Site, pages: Pages) -> None:
    """Write one page of a list, as JSON and for people."""
    tag, sort, number = page.tag, page.sort, page.number
    rows = state.rows(page.keys)
    meta = list_meta(number, page.total, sort, tag)
    data = envelope([summary for summary, _ in rows], meta)
    site.write(list_api(tag, sort, number).file, data)
    if (tag, sort, number) == (None, SORTS[0], 1):
        site.write(BY_NAME["repos"].file, data)
    site.write(
        list_page(tag, sort, number).file,
        pages.render_list("list.html", [card for _, card in rows], meta=meta),
    )
