"""Which objects a destination has for a site's files, and the order in which they may change.

Everything here follows from the table of routes. At every moment in between, what a reader can
get to has to be there, whichever site the reader began on. So first comes what is new, to which
nothing points yet; then what changes, while all of the old site and all of the new one is there;
then what goes, to which nothing points any more. Within each part what is pointed to goes before
what points to it, and the other way round where things go.
"""

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

from builder.model import routes
from builder.model.routes import (
    BY_NAME,
    CACHE_CONTROL,
    READ_ROUTES,
    ROUTES,
    Match,
    Route,
    Scope,
    match_file,
    match_url,
)


class Put(NamedTuple):
    """An object to upload: ``file`` of the site under ``key``. ``mark`` is the file's; ``old`` is
    the destination's mark of what it has under the key, None where that is nothing.
    """

    key: str
    file: str
    route: Route
    mark: str
    md5: bytes
    size: int
    old: str | None


class Delete(NamedTuple):
    """An object to remove. ``route``: None where the table does not have it any more."""

    key: str
    route: Route | None


Group = list[Put] | list[Delete]

# A page loads these, and they point to nothing.
_LOADED = (routes.CSS, routes.SCRIPT, routes.SVG)
# Texts point to nothing; records to pages and texts, and programs go by records.
_KINDS = (routes.TEXT, routes.HTML, routes.ATOM, routes.XML, routes.JSON_LINES, routes.JSON)


def cache_control(route: Route) -> str:
    return CACHE_CONTROL[route.cache]


def key_count(route: Route, *, files_only: bool) -> int:
    """Under how many keys a file goes; see ``keys_of``."""
    has_url = route in READ_ROUTES and route.url not in ("/", f"/{route.file}")
    return 2 if has_url and not files_only else 1


def keys_of(match: Match, *, files_only: bool) -> list[str]:
    """The keys under which a file goes: its own and, unless ``files_only``, its URL's where that
    is another, since a bucket looks for nothing but the very key. ``/`` has no key.
    """
    count = key_count(match.route, files_only=files_only)
    return [match.file, match.url.removeprefix("/")][:count]


def match_key(key: str) -> Match | None:
    """The row of the table whose file or URL a key is."""
    found = match_file(key) or match_url(f"/{key}")
    return found if found and key in keys_of(found, files_only=False) else None


def is_certain(match: Match, sorted_keys: Sequence[str]) -> bool:
    """Whether an object that nobody remembers to have put there is the site's, among these keys.

    What looks like a page of an owner may be anybody's: a host's ``google0123.html``, say. It is
    the site's if the API has something of the same owner, repo or version; and that goes later.
    """
    if match.route.is_api or "owner" not in match.params:
        return True
    return any(
        _has_prefix(sorted_keys, _fill(route.file, match.params))
        for route in ROUTES
        if route.is_api and all(f"{{{name}}}" in route.file for name in match.params)
    )


def _fill(template: str, params: Mapping[str, str]) -> str:
    """The template as far as the parameters reach."""
    for name, value in params.items():
        template = template.replace(f"{{{name}}}", value)
    return template.partition("{")[0]


def _has_prefix(sorted_keys: Sequence[str], prefix: str) -> bool:
    at = bisect.bisect_left(sorted_keys, prefix)
    return at < len(sorted_keys) and sorted_keys[at].startswith(prefix)


def groups(puts: Iterable[Put], deletes: Iterable[Delete]) -> Iterator[Group]:
    """Everything that is to be done, in groups: of one, all has to be done before the next begins,
    in any order.
    """
    puts = list(puts)
    yield from _by_rank([put for put in puts if put.old is None])
    yield from _by_rank([put for put in puts if put.old is not None])
    yield from reversed(_by_rank(deletes))


def _by_rank(steps: Iterable[Put | Delete]) -> list[Group]:
    found: dict[int, Group] = {}
    for step in steps:
        rank = RANKS[step.route.name] if step.route else 0
        found.setdefault(rank, []).append(step)
    return [sorted(found[rank]) for rank in sorted(found)]


def _place(route: Route) -> tuple[int, ...]:
    """Where a route comes in the order.

    By scope, as the table names them: a list points to repos, a repo to its versions. Within one,
    texts, pages, records. Then what has more parameters or lies deeper: an address says what is
    below it, as a repo's record names its versions'.
    """
    if route.media == routes.GZIP:
        return _place(BY_NAME[route.name.removesuffix("_gzip")])
    if route.media in _LOADED:
        return (0,)
    if route.url == "/":
        return (2,)  # where people begin
    if route == BY_NAME["hub"]:
        return (3,)  # it says how far all the others are
    return (
        1,
        get_args(Scope).index(route.scope),
        _KINDS.index(route.media),
        -route.file.count("{"),
        -route.url.count("/"),
    )


_PLACES = sorted({_place(route) for route in ROUTES})
# By a route's name. Routes of one rank do not point to each other.
RANKS = {route.name: _PLACES.index(_place(route)) for route in ROUTES}
