"""Turns one scope's object into a page of HTML. Pure: the same object gives the same bytes, always.

Knows the templates; not where bytes go, nor what they were before.
"""

import os
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from builder.model.records import Message
from builder.model.routes import ACCOUNT_URL, BY_NAME, PAGE_POLICY, SORTS, list_page
from builder.model.settings import Settings
from builder.model.withdrawn import BECAUSE
from builder.render import linked_data
from builder.render.code_snippets import python_snippet, script_snippet
from builder.render.compiled import CompiledTemplates
from builder.render.connect import mcp_url
from builder.render.derive import Links
from builder.render.envelopes import json_bytes
from builder.text.hidden_chars import Marks, visible
from builder.text.one_line import one_line
from builder.text.prompts import mark_variables

TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
ASSETS = os.path.join(os.path.dirname(__file__), "assets")

SHORTENED_CHARS = 300
# Of a conversation on a page, which has all of it as text as well.
MESSAGES_SHOWN_MAX = 200
MESSAGES_CHARS_MAX = 50_000
# Stand for names in a page that is rendered once; no other text on it has a NUL.
_OWNER, _NAME = "\0owner", "\0name"
# What a URL can have beside letters and digits (RFC 3986).
URL_CHARS = "%/:?#[]@!$&'()*+,;=~-._"


class _Environment(jinja2.Environment):
    """Looks a global up in one dictionary; Jinja's own chain of them takes a tenth of a build."""

    def make_globals(self, more: Any) -> dict[str, Any]:
        return {**self.globals, **(more or {})}


def pages_of(settings: Settings) -> "Pages":
    """The renderer of these settings' pages, made once: loading templates takes longest."""
    return _pages_of(settings._replace(content="", out="", state=""))


@lru_cache(maxsize=4)
def _pages_of(site: Settings) -> "Pages":
    return Pages(site)


class Pages:
    """Renders pages for people, by the templates of the site and those of other folders."""

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
        root = settings.base_path
        links = Links(settings.base_url)

        def url(route: str, **params: object) -> str:
            return root + BY_NAME[route].url_for(**params)

        def file_url(route: str, **params: object) -> str:
            return f"{root}/{BY_NAME[route].file_for(**params)}"

        def page_url(route: str, **params: object) -> str:
            return settings.base_url + BY_NAME[route].url_for(**params)

        def list_url(tag: str | None, sort: str, page: int) -> str:
            return root + list_page(tag, sort, page).url

        self._environment.globals.update(
            site_name=settings.site_name,
            base_url=settings.base_url,
            queries=settings.queries,
            private=settings.private,
            account_url=root + ACCOUNT_URL,
            connect_url=url("connect"),
            mcp_url=mcp_url(settings),
            root=root,
            url=url,
            file_url=file_url,
            page_url=page_url,
            api_url=lambda route: "/" + BY_NAME[route].file,
            list_url=list_url,
            sorts=SORTS,
            website=linked_data.website(settings),
            page_policy=Markup(PAGE_POLICY),
            Marks=Marks,
            python_snippet=partial(python_snippet, settings.base_url),
            script_snippet=partial(script_snippet, settings.base_url),
            because=BECAUSE,
        )
        self._environment.filters |= _FILTERS
        self._environment.filters["json_ld"] = lambda repo: linked_data.creative_work(repo, links)
        self._compare_page = b""
        self._template = lru_cache(maxsize=None)(self._environment.get_template)
        # The same on every page, or every one of a section, so rendered once.
        self._environment.globals["opening"] = Markup(self.render("opening.html").decode())
        self._environment.globals["footer"] = Markup(self.render("footer.html").decode())
        sections = _sections(settings, url, list_url)
        self._environment.globals["headers"] = {
            name: Markup(self.render("header.html", section=name, sections=sections).decode())
            for name in ("", "home", "prompts", "tags", "connect", "api", "account")
        }

    def render(self, template: str, **values: Any) -> bytes:
        return self._template(template).render(values).encode()

    def compare_page(self, owner: str, name: str) -> bytes:
        """The page that compares versions of a repo: the same for all but for the names."""
        if not self._compare_page:
            self._compare_page = self.render("compare.html", owner=_OWNER, name=_NAME)
        with_owner = self._compare_page.replace(_OWNER.encode(), owner.encode())
        return with_owner.replace(_NAME.encode(), name.encode())

    def render_list(self, template: str, cards: list[bytes], **values: Any) -> bytes:
        """A page around rows that are HTML already."""
        return self.render(template, cards=Markup(b"".join(cards).decode()), **values)


def _sections(
    settings: Settings, url: Callable[..., str], list_url: Callable[..., str]
) -> list[tuple[str, str, str]]:
    """The links of the header: what templates call a section, its title, its URL."""
    sections = [
        ("prompts", "Prompts", list_url(None, SORTS[0], 1)),
        ("tags", "Tags", url("tags_page")),
        ("connect", "Connect", url("connect")),
        ("api", "API", url("api_page")),
    ]
    if settings.queries:
        sections.append(("account", "Account", settings.base_path + ACCOUNT_URL))
    return sections


def _marked(text: str, marks: Marks) -> Markup:
    """A prompt with its variables marked; ``\\{{`` is shown as what it stands for."""
    return Markup(mark_variables(str(visible(text, marks)), _mark_variable))


def _mark_variable(name: str, placeholder: str) -> str:
    return f'<mark class="variable" data-name="{name}">{placeholder}</mark>'


def _shown_messages(messages: list[Message]) -> list[Message]:
    """The first messages, as many as a page has room for."""
    lengths = accumulate(len(message.content) for message in messages[:MESSAGES_SHOWN_MAX])
    return messages[: sum(length <= MESSAGES_CHARS_MAX for length in lengths)]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json_bytes(value).decode()


def _shortened(text: str) -> str:
    return text if len(text) <= SHORTENED_CHARS else text[: SHORTENED_CHARS - 1] + "…"


def _human_size(size: int) -> str:
    if size < 1024:
        return f"{size} bytes" if size != 1 else "1 byte"
    return f"{size / 1024:.1f} KiB"


_FILTERS = {
    "day": lambda time: time[:10],
    "size": _human_size,
    "json": lambda value: json_bytes(value).decode(),
    "value": _as_text,
    "href": lambda url: quote(url, safe=URL_CHARS),
    "shortened": _shortened,
    "first_line": lambda text: text.strip().partition("\n")[0].rstrip(),
    "one_line": lambda text: one_line(text, SHORTENED_CHARS),
    "data_block": linked_data.data_block,
    "visible": visible,
    "marked": _marked,
    "shown_messages": _shown_messages,
    # What a script counts.
    "utf16_length": lambda text: len(text.encode("utf-16-le")) // 2,
}
