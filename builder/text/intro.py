"""The operator's text on the home page, from Markdown to HTML. Pure.

HTML in it is shown as text, images become links, and no link can run a script.
"""

from functools import cache
from typing import Any, NamedTuple

from markupsafe import Markup


@cache
def _markdown() -> Any:
    # Loaded late, because most builds read no text of an operator.
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable("image")


class Intro(NamedTuple):
    """The operator's parts of the home page; each is empty if it is missing.

    ``heading`` and ``lead``: the first heading and paragraph. ``rest``: the remaining text, with
    headings from the second level on. ``plain``: the lead without markup.
    """

    heading: Markup = Markup()
    lead: Markup = Markup()
    rest: Markup = Markup()
    plain: str = ""


def intro(text: str) -> Intro:
    """The parts of ``home.md``."""
    if not text:
        return Intro()
    tokens = _markdown().parse(text)
    heading = _take(tokens, "heading_open")
    lead = _take(tokens, "paragraph_open")
    for token in tokens:
        if token.tag == "h1":
            token.tag = "h2"
    plain = "".join(
        one.content if one.type in ("text", "code_inline") else " "
        for one in (lead.children if lead else None) or ()
        if not one.nesting
    )
    return Intro(_html([heading]), _html([lead]), _html(tokens), plain)


def _take(tokens: list[Any], kind: str) -> Any:
    """The content of the first block if it is of this kind, else None; removes the block from
    ``tokens``.
    """
    if not tokens or tokens[0].type != kind:
        return None
    content = tokens[1]
    del tokens[:3]
    return content


def _html(tokens: list[Any]) -> Markup:
    there = [token for token in tokens if token]
    markdown = _markdown()
    return Markup(markdown.renderer.render(there, markdown.options, {}).strip())
