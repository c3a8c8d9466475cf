"""Marks the headings, lists and code of a Markdown text for its readers, and keeps every character.

A model reads every character of a prompt, so none is hidden or replaced.
"""

import re
from typing import NamedTuple

from markupsafe import Markup

# Further headings have no marks, which take many times the bytes of a short heading.
HEADINGS_MAX = 100

_block = re.compile(
    r"^(?:"
    r"(?P<fence> {0,3}(?P<ticks>`{3,}|~{3,})[^\n]*(?:\n|\Z)"
    r"(?:[^\n]*\n)*?(?: {0,3}(?P=ticks)[^\n]*(?:\n|\Z)|[^\n]*\Z))"
    r"|(?P<code>(?:(?: {4}|\t|\|)[^\n]*(?:\n|\Z))+)"
    r"|(?P<sign>\#{1,6}[ \t]+)(?P<title>[^\n]+\n?)"
    r"|[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t][^\n]*\n?"
    r")",
    re.MULTILINE,
)
_closing_signs = re.compile(r"[ \t]#+[ \t]*\Z")


class Heading(NamedTuple):
    """``id`` is the fragment that leads to it."""

    id: str
    title: str


def readable(text: Markup) -> tuple[Markup, list[Heading]]:
    """A text in HTML with its blocks marked, and its first headings.

    Headings are ``b``, items of lists ``i``, and code is ``code``, because HTML allows only
    phrasing content in ``pre``.
    """
    headings: list[Heading] = []

    def mark(found: re.Match[str]) -> str:
        if found["fence"] or found["code"]:
            return f"<code>{found[0]}</code>"
        if not found["sign"]:
            return f"<i>{found[0]}</i>"
        if len(headings) == HEADINGS_MAX:
            return found[0]
        title = _closing_signs.sub("", Markup(found["title"]).striptags().strip())
        headings.append(Heading(f"part-{len(headings) + 1}", title))
        return (
            f'<b id="{headings[-1].id}" role="heading" aria-level="3"><span>{found["sign"]}</span>'
            f"{found['title']}</b>"
        )

    return Markup(_block.sub(mark, text)), headings
