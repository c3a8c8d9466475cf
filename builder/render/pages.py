"""Turns one scope's object into a page of HTML. Pure: the same object always gives the same bytes.

Knows the templates, but not where bytes go or what they were before.

Most of a page is the same for all prompts, and running a template costs as much for that part as
for the rest. A *frame* is a template's output for holes instead of texts. Filling one only joins
strings. Texts are escaped as in templates.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from builder.model.links import Links
from builder.model.matching import list_page
from builder.model.plural import day, human_size
from builder.model.routes import BY_NAME, PAGE_POLICY, QUERY_CHARS_MAX, SORTS
from builder.model.service_urls import ACCOUNT_URL
from builder.model.settings import Settings
from builder.model.withdrawn import BECAUSE
from builder.render.changes_table import changes_table
from builder.render.connect import mcp_url
from builder.render.notes import href, linked
from builder.render.skills import installs_plugins
from builder.text.hidden_chars import Marks, visible
from builder.text.hunks import counts
from builder.text.interface import by_name, explain
from builder.text.one_line import one_line
from builder.text.pictures import is_picture
from builder.text.readable import isolated
from builder.text.sources import built_from

TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")

SHORTENED_CHARS = 300


class CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """Compiled templates, in the folder of Python's compiled modules, and only if it is writable.
    Compiling them takes longer than a small build.
    """

    def __init__(self) -> None:
        folder = os.path.dirname(importlib.util.cache_from_source(__file__))
        super().__init__(folder, f"%s.jinja2-{importlib.metadata.version('jinja2')}.pyc")

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                super().dump_bytecode(bucket)


class _Environment(jinja2.Environment):
    """Looks globals up in one dictionary, because Jinja's own chain takes a tenth of a build."""

    def make_globals(self, more: Any) -> dict[str, Any]:
        return {**self.globals, **(more or {})}


def pages_of(settings: Settings) -> "Pages":
    """The renderer of these settings' pages, created once because loading templates takes
    longest.
    """
    return _pages_of(settings._replace(content="", out="", state=""))


@lru_cache(maxsize=4)
def _pages_of(site: Settings) -> "Pages":
    return Pages(site)


class Pages:
    """Renders pages for people, with the site's templates and those of ``folders``."""

    def __init__(self, settings: Settings, *folders: str) -> None:
        self._environment = _Environment(
            loader=jinja2.FileSystemLoader([TEMPLATES, *folders]),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            auto_reload=False,
            bytecode_cache=CompiledTemplates(),
        )
        self.links = Links(settings.base_url)
        self.root = settings.base_path
        urls = _urls(settings)
        self._environment.globals.update(
            site_name=settings.site_name,
            base_url=settings.base_url,
            queries=settings.queries,
            private=settings.private,
            plugins=installs_plugins(settings.base_url),
            account_url=settings.base_path + ACCOUNT_URL,
            connect_url=urls["url"]("connect"),
            mcp_url=mcp_url(settings),
            root=settings.base_path,
            **urls,
            sorts=SORTS,
            query_chars_max=QUERY_CHARS_MAX,
            page_policy=Markup(PAGE_POLICY),
            Marks=Marks,
            because=BECAUSE,
        )
        self._environment.filters.update((one.__name__, one) for one in _FILTERS)
        self.file_url = urls["file_url"]
        self._template = lru_cache(maxsize=None)(self._environment.get_template)
        frames = Frames(lambda name, values: self._template(name).render(values))
        self.fill, self.fill_page = frames.fill, frames.fill_page
        self.macro = lru_cache(maxsize=None)(self._macro)
        # These parts are the same on every page, or in a section, so they are rendered once.
        self._environment.globals["opening"] = Markup(self.render("opening.html").decode())
        self._environment.globals["footer"] = Markup(self.render("footer.html").decode())
        self._environment.globals["headers"] = {
            name: Markup(self.render("header.html", section=name).decode())
            for name in ("", "home", "prompts", "tags", "connect", "api", "account", "sign-in")
        }

    def load(self) -> None:
        """Load all templates, so that forked processes need not."""
        for name in self._environment.list_templates():
            self._template(name)

    def render(self, template: str, **values: Any) -> bytes:
        return self._template(template).render(values).encode()

    def _macro(self, template: str, name: str) -> Callable[..., Markup]:
        """A macro of a template that needs no values."""
        return getattr(self._template(template).module, name)

    def render_list(self, template: str, cards: list[bytes], **values: Any) -> bytes:
        """A page around rows that are already HTML."""
        return self.render(template, cards=Markup(b"".join(cards).decode()), **values)


def _urls(settings: Settings) -> dict[str, Callable[..., str]]:
    """The functions with which templates write URLs, by name."""
    root = settings.base_path

    def url(route: str, **params: object) -> str:
        return root + BY_NAME[route].url_for(**params)

    def file_url(route: str, **params: object) -> str:
        return f"{root}/{BY_NAME[route].file_for(**params)}"

    def page_url(route: str, **params: object) -> str:
        return settings.base_url + BY_NAME[route].url_for(**params)

    def api_url(route: str) -> str:
        return "/" + BY_NAME[route].file

    def list_url(tag: str | None, sort: str, page: int) -> str:
        return root + list_page(tag, sort, page).url

    return {one.__name__: one for one in (url, file_url, page_url, api_url, list_url)}


def shortened(text: str) -> str:
    """The start of a text, as much as a page shows."""
    return text if len(text) <= SHORTENED_CHARS else text[: SHORTENED_CHARS - 1] + "…"


def hashed(sha256: str) -> Markup:
    """The start of a hash; a button of site.js, which finds the class, copies all of it."""
    html = f'<code class="hash">{sha256[:12]}<span class="unseen">{sha256[12:]}</span></code>'
    return Markup(html)


def dated(time: str) -> Markup:
    """The day of an RFC 3339 time, for people and for programs."""
    return Markup(f'<time datetime="{time[:10]}">{day(time)}</time>')


def line(text: str) -> str:
    """The start of a text, as one line."""
    return one_line(text, SHORTENED_CHARS)


def lines(parts: Iterable[str]) -> Markup:
    return Markup("\n".join(parts))


_FILTERS = [built_from, by_name, changes_table, counts, dated, day, explain, hashed, href, isolated]
_FILTERS += [human_size, is_picture, line, linked, shortened, visible]

# Noncharacters of Unicode, which filters of templates keep.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
# Most texts have none of these, and the search takes a third of the time of escaping.
_needs_escape = re.compile("[&<>\"']").search
_hole = re.compile(f"{_OPEN}(\\w+){_CLOSE}")


class _Hole:
    """Stands for a text that is not empty. It can be printed, joined and tested. All else fails,
    because the text is unknown.
    """

    def __init__(self, name: str) -> None:
        self._mark = f"{_OPEN}{name}{_CLOSE}"

    def __str__(self) -> str:
        return self._mark

    def __eq__(self, other: object) -> bool:
        raise TypeError("a text that is not known yet cannot be compared")


class _Frame(NamedTuple):
    """``pieces``: HTML, with the name of a hole at each odd place; ``encoded``: the same in UTF-8.
    ``holes``: the names in order, with repeats; ``names``: each once.
    """

    pieces: list[str]
    encoded: list[bytes]
    holes: list[str]
    names: frozenset[str]


class Frames:
    """The frames of templates, by shape: which texts are empty, and which flags are set.

    ``render`` renders a template with values. A template may test texts and flags, so it has a
    frame for each combination in use. A list must be rendered to a text first.
    """

    def __init__(self, render: Callable[[str, dict[str, Any]], str]) -> None:
        self._render = render
        self._frames: dict[tuple[str | bool, ...], _Frame] = {}

    def fill(self, template: str, **values: str | bool) -> Markup:
        """The template with these texts and flags; texts that are not Markup are escaped. A
        template always gets values of the same names and types, in the same order.
        """
        frame = self._escape(template, values)
        pieces = frame.pieces.copy()
        pieces[1::2] = map(values.__getitem__, frame.holes)
        # Equals Markup(…), but skips its check for ``__html__``.
        return str.__new__(Markup, "".join(pieces))

    def fill_page(self, template: str, **values: str | bool) -> bytes:
        """As ``fill``, in UTF-8. Texts beside "…" would take longer to join, and then to encode."""
        frame = self._escape(template, values)
        pieces = frame.encoded.copy()
        pieces[1::2] = [values[name].encode() for name in frame.holes]
        return b"".join(pieces)

    def _escape(self, template: str, values: dict[str, str | bool]) -> _Frame:
        """The frame for these values, in which texts are escaped."""
        shape = (template, *map(bool, values.values()))
        frame = self._frames.get(shape)
        if frame is None:
            frame = self._frames[shape] = self._make(template, values)
        texts = map(values.__getitem__, frame.names)
        if _needs_escape("".join([text for text in texts if text.__class__ is not Markup])):
            for name in frame.names:
                values[name] = escape(values[name])
        return frame

    def _make(self, template: str, values: dict[str, str | bool]) -> _Frame:
        with_holes = {
            name: _Hole(name) if value and isinstance(value, str) else value
            for name, value in values.items()
        }
        if not all(isinstance(value, str | bool) for value in values.values()):
            raise TypeError(f"{template} gets a value that is neither a text nor a flag")
        pieces = _hole.split(self._render(template, with_holes))
        is_torn = any(mark in piece for mark in (_OPEN, _CLOSE) for piece in pieces[::2])
        if is_torn or not values.keys() >= {*pieces[1::2]}:
            raise ValueError(f"{template} changes or takes apart a text that is not known yet")
        encoded = [piece.encode() for piece in pieces]
        return _Frame(pieces, encoded, pieces[1::2], frozenset(pieces[1::2]))
