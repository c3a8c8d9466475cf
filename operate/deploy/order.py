"""The objects of a site's files, and the order in which they may change.

All of it is derived from the table of routes. At every moment, everything that a reader can reach
has to exist, whether the reader began on the old site or on the new one. So new objects come first,
to which nothing links yet. Then come changed ones, while all objects of both sites exist. Deletions
come last, when nothing links to them any more. Within new and changed objects, the target of a link
comes before the link; within deletions, after it.
"""

from typing import NamedTuple, get_args

from builder.model import routes
from builder.model.caching import CACHE_CONTROL
from builder.model.matching import Match, match_file, match_url
from builder.model.routes import BY_NAME, READ_ROUTES, ROUTES, Route, Scope
from builder.store.site import Mark


class File(NamedTuple):
    """A file of the site: the MD5 of its bytes in hexadecimal, and its time, size and inode."""

    md5: str
    mark: Mark


class Step(NamedTuple):
    """The upload of ``file`` under ``key``; without a file, the deletion of ``key``.

    ``route``: the file's. ``md5``: of its bytes. ``is_new``: the destination has
    no such object.
    """

    key: str
    file: str | None
    route: Route
    md5: str
    is_new: bool

    @property
    def headers(self) -> dict[str, str]:
        cache = CACHE_CONTROL[self.route.cache]
        return {"Content-Type": self.route.media, "Cache-Control": cache}

    @property
    def place(self) -> int:
        """The place in the order. Steps of one place may run at once."""
        rank = RANKS[self.route.name]
        if self.file is None:
            return 3 * len(_PLACES) - rank
        return rank if self.is_new else len(_PLACES) + rank


def keys_of(match: Match, *, files_only: bool) -> list[str]:
    """The keys of a file: its own and, unless ``files_only``, that of its URL, since a bucket finds
    only exact keys. ``/`` has no key.
    """
    route = match.route
    has_url = route in READ_ROUTES and route.url not in ("/", f"/{route.file}")
    keys = [match.file, match.url.removeprefix("/")]
    return keys if has_url and not files_only else keys[:1]


def match_key(key: str) -> Match | None:
    """The row of the table that a key is a file or a URL of."""
    found = match_file(key) or match_url(f"/{key}")
    return found if found and key in keys_of(found, files_only=False) else None


def _place(route: Route) -> tuple[int, ...]:
    """The place of a route among others of its part of the order.

    Ordered by scope, as in the table: a list links to repos, and a repo to its versions. Within a
    scope, texts come first, which link to nothing, then pages, feeds and lists of lines, and
    records, with which programs begin. Then come more parameters or deeper URLs: an address links
    to those below it, as a repo's record links to its versions'.
    """
    media = route.media
    if media == routes.GZIP:
        return _place(BY_NAME[route.name.removesuffix("_gzip")])
    if media in (routes.CSS, routes.SCRIPT, routes.SVG, routes.PNG):
        return (0,)  # pages load these, and they link to nothing
    if route.url == "/":
        return (2,)  # readers start here
    if route == BY_NAME["hub"]:
        return (3,)  # its serial vouches for all the others
    return (
        1,
        get_args(Scope).index(route.scope),
        media == routes.JSON,
        media in (routes.ATOM, routes.XML, routes.JSON_LINES),
        media == routes.HTML,
        -route.file.count("{"),
        -route.url.count("/"),
    )


_PLACES = sorted({_place(route) for route in ROUTES})
# The rank of each route, by its name. Routes of one rank do not link to each other.
RANKS = {route.name: _PLACES.index(_place(route)) for route in ROUTES}
