"""Finds the row of the table for a URL, a file, a page of a list, or a version's file."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from builder.model import names, version_files
from builder.model.routes import (
    API,
    API_ROOTS,
    BY_NAME,
    CHARS_MAX,
    GRAMMAR,
    PATHS,
    READ_ROUTES,
    ROUTES,
    SORTS,
    Route,
)

# The paths that programs read, by their end or beginning, as a regular expression.
PROGRAM_PATTERN = (
    rf"(?:{'|'.join(re.escape(root) for root in API_ROOTS)})(?:/.*)?"
    r"|/mcp/?|.*\.(?:gz|json|jsonl|md|txt|xml)|.*/\.well-known/.*"
)
_FIELD = re.compile(r"\{(\w+)\}")


def is_page_path(path: str) -> bool:
    """True if a URL's path is for people, even if nothing exists there. On a private hub, readers
    without a session are redirected to sign in there; programs get an error.
    """
    return not re.fullmatch(PROGRAM_PATTERN, path, re.DOTALL) or bool(_file_pages.match(path))


def list_api(tag: str | None, sort: str, page: int) -> "Match":
    """The row of one page of a list as JSON; ``tag`` None for the list of all repos."""
    name = "tag_list" if tag else "list"
    return _match(name, tag=tag, sort=sort, page=page)


def langfuse_page(tag: str | None, page: int) -> "Match":
    """The row of one page of a list for Langfuse's SDKs."""
    return _match("langfuse_tag_page" if tag else "langfuse_page", tag=tag, page=page)


def list_page(tag: str | None, sort: str, page: int) -> "Match":
    """The row of one page of a list for people; first pages have the short URLs."""
    if not tag:
        return _match("list_page" if page == 1 else "list_pages", sort=sort, page=page)
    if page > 1:
        return _match("tag_pages", tag=tag, sort=sort, page=page)
    return _match("tag_page" if sort == SORTS[0] else "tag_sort_page", tag=tag, sort=sort)


def version_file(owner: str, name: str, version: object, path: str) -> "Match":
    """The route and parameters of the file of a version."""
    if version_files.is_text(path):
        return _match("version_text_file", owner=owner, name=name, version=version, text_path=path)
    return _match("version_file", owner=owner, name=name, version=version, file_path=path)


def _match(route: str, /, **params: object) -> "Match":
    return Match(BY_NAME[route], {key: str(value) for key, value in params.items() if value})


class Match(NamedTuple):
    """A row of the table, and the parameters that lead to it."""

    route: Route
    params: Mapping[str, str]

    @property
    def file(self) -> str:
        return self.route.file_for(**self.params)

    @property
    def url(self) -> str:
        return self.route.url_for(**self.params)


class _Matcher:
    """Finds the first row whose template a path fills, with every parameter in its grammar."""

    def __init__(self, templates: list[tuple[str, Route]]) -> None:
        self.templates = templates

    @cached_property
    def patterns(self) -> list[tuple[re.Pattern[str], Route]]:
        return [
            (
                re.compile(
                    _FIELD.sub(
                        lambda found: f"(?P<{found[1]}>{'.+' if found[1] in PATHS else '[^/]+'})",
                        re.escape(text).replace(r"\{", "{").replace(r"\}", "}"),
                    )
                ),
                route,
            )
            for text, route in self.templates
        ]

    def match(self, path: str) -> Match | None:
        for pattern, route in self.patterns:
            found = pattern.fullmatch(path)
            if found and all(fits(key, value) for key, value in found.groupdict().items()):
                if route.url.startswith(("/{owner}", f"{API}/users/")) and (
                    found["owner"] in names.RESERVED_OWNERS
                ):
                    continue
                return Match(route, found.groupdict())
        return None


_GRAMMAR = {key: re.compile(pattern) for key, pattern in GRAMMAR.items()}


def fits(key: str, value: str) -> bool:
    """True if a value matches the grammar of a parameter and is not too long."""
    return len(value) <= CHARS_MAX.get(key, 80) and bool(_GRAMMAR[key].fullmatch(value))


_urls = _Matcher([(route.url, route) for route in READ_ROUTES])
_read_files = _Matcher([(route.file, route) for route in READ_ROUTES])
_file_pages = _Matcher([(BY_NAME["file_page"].url, BY_NAME["file_page"])])
_files = _Matcher([(route.file, route) for route in ROUTES])


def match_url(path: str) -> Match | None:
    """The row and parameters of a URL's path, or of a file's path as a URL; None if there is none.

    Inverse of ``Route.url_for``.
    """
    # Files first: `a.json` is the file of the label `a`, and cannot be a label itself.
    return _read_files.match(path.removeprefix("/")) or _urls.match(path)


def match_file(file: str) -> Match | None:
    """The row and parameters of a file below the site's folder. Inverse of ``Route.file_for``."""
    return _files.match(file)
