"""Marks the blocks and the emphasis of a Markdown text for its readers, and keeps every character.

HTML allows only phrasing content in ``pre``, and the style sheet shows it as blocks: ``b`` is a
heading, ``i`` an item of a list, ``code`` a block of code, ``samp`` a table with rows in ``bdi``
and cells in ``var``, ``q`` a quotation, ``cite`` a line across, ``kbd`` code in a line, ``small``
the target of a link or the language of a block of code, and ``var`` also the number of an item.
``u`` is a sign of Markdown, which readers see in the source only. A model reads every character, so
no ``u`` has words of the author, except for the path of a file that a link leads to.
"""

import re
from typing import NamedTuple

from markupsafe import Markup

# A mark takes many times the bytes of a short heading or item. Beyond these, a text is shown as it
# is.
HEADINGS_MAX = 500
MARKS_MAX = 3_000
# A row of a table with more cells is shown as a line.
CELLS_MAX = 30
# Deeper items are shown at this depth.
DEPTH_MAX = 2

_END = r"(?:\n|\Z)"
# Neither "+" nor a sign with more spaces begins an item: lines of differences begin so.
_ITEM = r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]{1,4}(?![ \t])"
_block = re.compile(
    r"^(?:"
    rf"(?P<opening>[ \t]*(?P<ticks>`{{3,}}+|~{{3,}}+)[^`\n]*{_END})(?P<fenced>(?:[^\n]*\n)*?)"
    rf"(?:(?P<closing>[ \t]*(?P=ticks)[`~]*[ \t\r]*{_END})|(?P<last>[^\n]*\Z))"
    rf"|(?P<table>(?:[ \t]*\|[^\n]*{_END}){{2,200}})"
    rf"|(?P<quote>(?:&gt;[^\n]*{_END})+)"
    rf"|(?P<rule>(?:-{{3,}}|\*{{3,}}|_{{3,}}|={{3,}})[ \t\r]*{_END})"
    r"|(?P<sign>\#{1,6}[ \t]+)(?P<title>[^\n]+\n?)(?P<gap>\r?\n)?"
    rf"|(?P<marker>{_ITEM})(?P<item>[^\n]+\n?(?:[ \t]++(?!{_ITEM}|[`|~\s])[^\n]+\n?)*)"
    # A brace, alone or before a key; indented lines and keys; a line with the closing brace.
    rf"|[{{\[](?P<data>(?:(?<=\[)\{{)?(?:&\#3[49];[^\n]*|[ \t\r]*){_END}"
    rf"(?:(?:[ \t]|&\#3[49];)[^\n]*{_END}|\r?\n(?=[ \t]))*+(?:[}}\]][^\n]*{_END})?)"
    rf"|(?:(?<=\n\n)|(?<=\n\r\n)|(?<![\s\S]))(?P<code>(?:(?:[ ]{{4}}|\t)[^\n]*{_END})+)"
    r")",
    re.MULTILINE,
)
# A sign in an attribute is none; between two signs, only variables are marked already.
_INSIDE = r"(?:[^*`\n<]|</?mark[^>]*>)+"
_inline = re.compile(
    # It begins with a set of characters, which the module searches for fastest.
    rf"[<`*\[](?:(?P<tag>(?<=<)[^>]*>)|(?P<kbd>(?<=`){_INSIDE}`)"
    rf"|(?P<strong>(?<=\*)\*(?=\S){_INSIDE}(?<!\s)\*\*)"
    r"|(?P<em>(?<=\*)(?<![\w*]\*)(?=[^\s*])[^*`\n<]+(?<!\s)\*(?![\w*]))"
    r"|(?P<link>(?<=\[)(?P<label>(?:[^\[\]\n<]|</?mark[^>]*>)+)\]"
    r"\((?P<to><a [^>]*>)?(?P<target>[^()\s<>]+)(?:</a>)?\)))"
)
_quoting = re.compile(r"^&gt;[ \t]?", re.MULTILINE)
_indent = re.compile(r"(?<=\n)[ \t]+")
# Spaces are read once, from their first.
_pipe = re.compile(r"((?:(?<![ \t])[ \t]++)?(?<!\\)\|[ \t]*(?:\r?\n|\Z)?)")
_under_header = re.compile(r"[\s|:]*-[\s|:-]*").fullmatch
_ticks = re.compile(r"[ \t]*(?:`+|~+)\s*").match
_line = re.compile(r"[^\n]*(?:\n|\Z)")
_has_sign = re.compile(r"[*`\[]").search
_WIDTHS = {"kbd": 1, "strong": 2, "em": 1}
_closing_signs = re.compile(r"[ \t]#+[ \t]*\Z")


class Heading(NamedTuple):
    """``id`` is the fragment that leads to it. ``level``: from 1, as the text has it."""

    id: str
    title: str
    level: int


def readable(text: str, headings: list[Heading]) -> Markup:
    """HTML of a text with its blocks and emphasis marked. Appends its headings to ``headings``,
    those of the page so far.
    """
    marking = _Marking(headings)
    text = str(text)  # parts of Markup take longer to make
    parts = []
    end = 0
    for found in _block.finditer(text):
        if marking.is_full:
            break
        parts.append(marking.inline(text[end : found.start()]))
        is_after_item = not text[marking.item_end : found.start()].strip()
        parts.append(marking.block(found, is_after_item))
        end = found.end()
    parts.append(marking.inline(text[end:]))
    return Markup("".join(parts))


class _Marking:
    """The marks of a text. ``item_end``: where the last item of a list ends."""

    def __init__(self, headings: list[Heading]) -> None:
        self._headings = headings
        self._left = MARKS_MAX
        self._indents: list[int] = []
        self.item_end = 0

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def inline(self, text: str) -> str:
        """A part of a text without blocks, with its emphasis marked."""
        return _inline.sub(self._emphasis, text) if _has_sign(text) else text

    def block(self, found: re.Match[str], is_after_item: bool) -> str:
        self._left -= 1
        if not is_after_item:
            self._indents = []
        if found["marker"]:
            self.item_end = found.end()
            return self._item(found["marker"], found["item"])
        if found["sign"]:
            return self._heading(found)
        if found["table"]:
            rows = map(self._row, _line.findall(found["table"]))
            return f'<samp tabindex="0">{"".join(rows)}</samp>'
        if found["data"] is not None:
            is_whole = found[0].rstrip(" \t\r\n,;.").endswith(("}", "]"))
            return f"<code>{found[0]}</code>" if is_whole else self.inline(found[0])
        if found["quote"]:
            return f"<q>{self._without(_quoting, self.inline(found[0]))}</q>"
        if found["rule"]:
            return f"<cite><u>{found[0]}</u></cite>"
        if found["code"]:
            # After an item, indented lines belong to it.
            return self.inline(found[0]) if self._indents else f"<code>{found[0]}</code>"
        ticks = _ticks(found["opening"])[0]
        language = found["opening"][len(ticks) :]
        opening = f"<u>{ticks}</u>" + (f"<small>{language}</small>" if language else "")
        closing = f"<u>{found['closing']}</u>" if found["closing"] else found["last"]
        return f"<code>{opening}{found['fenced']}{closing}</code>"

    def _without(self, signs: re.Pattern[str], text: str) -> str:
        shown, count = signs.subn(r"<u>\g<0></u>", text, max(self._left, 1))
        self._left -= count
        return shown

    def _row(self, text: str) -> str:
        if not text or self.is_full:
            return text
        self._left -= 1
        if _under_header(text):
            return f"<u>{text}</u>"
        # By turns what is between signs, and a sign.
        first, *parts = _pipe.split(text)
        if first or len(parts) > 2 * CELLS_MAX:
            return f"<bdi>{text}</bdi>"
        if not parts[-1]:
            parts.pop()
        self._left -= len(parts) // 2
        cells = (
            f"<var>{self.inline(part)}</var>" if at % 2 else f"<u>{part}</u>"
            for at, part in enumerate(parts)
        )
        return f"<bdi>{''.join(cells)}</bdi>"

    def _item(self, marker: str, text: str) -> str:
        indent = len(marker[: -len(marker.lstrip())].expandtabs(4))
        while self._indents and self._indents[-1] >= indent:
            self._indents.pop()
        depth = min(len(self._indents), DEPTH_MAX)
        self._indents.append(indent)
        deep = f' class="d{depth}"' if depth else ""
        sign = "var" if marker.strip()[0].isdigit() else "u"
        shown = self._without(_indent, self.inline(text))
        return f"<i{deep}><{sign}>{marker}</{sign}>{shown}</i>"

    def _heading(self, found: re.Match[str]) -> str:
        if len(self._headings) == HEADINGS_MAX:
            return found[0]
        sign, title, gap = found["sign"], found["title"], found["gap"]
        is_marked = "<" in title or "&" in title
        plain = Markup(title).striptags() if is_marked else " ".join(title.split())
        plain = plain.replace("**", "").strip()
        id = f"part-{len(self._headings) + 1}"
        level = sign.count("#")
        shown_level = min(level + 2, 5)
        self._headings.append(Heading(id, _closing_signs.sub("", plain), level))
        after = f"<u>{gap}</u>" if gap else ""
        return (
            f'<b id="{id}" role="heading" aria-level="{shown_level}"><u>{sign}</u>'
            f"{self.inline(title)}{after}</b>"
        )

    def _emphasis(self, found: re.Match[str]) -> str:
        if found["tag"] or self.is_full:
            return found[0]
        self._left -= 1
        text = found[0]
        if found["link"]:
            label, to, target = self.inline(found["label"]), found["to"], found["target"]
            if to:
                return f"<u>[</u>{to}{label}</a><u>]({target})</u>"
            return f"<u>[</u>{label}<u>]</u><small>({target})</small>"
        kind, width = next((kind, width) for kind, width in _WIDTHS.items() if found[kind])
        sign, inner = text[:width], text[width:-width]
        return f"<{kind}><u>{sign}</u>{inner}<u>{sign}</u></{kind}>"
