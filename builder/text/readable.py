"""Marks the blocks and the emphasis of a Markdown text for its readers, and keeps every character.

HTML allows only phrasing content in ``pre``, and the style sheet shows it as blocks: ``b`` is a
heading, ``i`` an item of a list, ``code`` a block of code, ``samp`` a table with rows in ``bdi``
and cells in ``var``, ``q`` a quotation, ``cite`` a line across, ``kbd`` code in a line, ``small``
the target of a link or the language of a block of code, and ``var`` also the number of an item.
``span`` isolates a date in a text from right to left, where its parts would change places.
``u`` is a sign of Markdown, which readers see in the source only. A model reads every character, so
no ``u`` has words of the author, except for the path of a file that a link leads to.
"""

import re
from typing import NamedTuple

from markupsafe import Markup, escape

# A mark takes many times the bytes of a short heading or item. Beyond these, a text is shown as it
# is.
HEADINGS_MAX = 500
MARKS_MAX = 3_000
# A row of a table with more cells is shown as a line.
CELLS_MAX = 30
# Deeper items are shown at this depth.
DEPTH_MAX = 2
# Deeper headings are shown at this level of the page.
LEVEL_MAX = 4

_END = r"(?:\n|\Z)"
# Lines of differences begin with "+", and with "-" before a tab or four spaces: no items.
_ITEM = r"[ \t]*(?:-[ ]{1,3}|(?:[*•]|\d{1,3}[.)])[ \t]{1,4})(?![ \t])"
# The module searches for a line break fastest, and most lines do not begin with one of these signs.
# A block ends with a line break, at which the next one may begin.
_block = re.compile(
    r"\n(?=[ \t`~|&*_=#•{\[\d-])(?:"
    rf"(?P<opening>[ \t]*(?P<ticks>`{{3,}}+|~{{3,}}+)[^`\n]*{_END})(?P<fenced>(?:[^\n]*\n)*?)"
    rf"(?:(?P<closing>[ \t]*(?P=ticks)[`~]*[ \t\r]*{_END})|(?P<last>[^\n]*\Z))"
    rf"|(?P<table>(?:[ \t]*\|[^\n]*{_END}){{2,200}})"
    rf"|(?P<quote>(?:&gt;[^\n]*{_END})+)"
    rf"|(?P<rule>(?:-{{3,}}|\*{{3,}}|_{{3,}}|={{3,}})[ \t\r]*{_END})"
    r"|(?P<sign>\#{1,6}[ \t]+)(?P<title>[^\n]+\n?)(?P<gap>\r?\n)?"
    rf"|(?P<marker>{_ITEM})(?P<item>[^\n]+\n?(?:[ \t]++(?!{_ITEM}|[`|~\s])[^\n]+\n?)*)"
    # A brace, alone or before a key; indented lines and keys; a line with the closing brace.
    rf"|(?P<data>[{{\[](?:(?<=\[)\{{)?(?:&\#3[49];[^\n]*|[ \t\r]*){_END}"
    rf"(?:(?:[ \t]|&\#3[49];)[^\n]*{_END}|\r?\n(?=[ \t]))*+(?:[}}\]][^\n]*{_END})?)"
    rf"|(?:(?<=\n\n)|(?<=\n\r\n))(?P<code>(?:(?:[ ]{{4}}|\t)[^\n]*{_END})+)"
    r")"
)
# A sign in an attribute is none; between two signs, only variables and files are marked already.
_INSIDE = r"(?:[^*`\n<]|</?(?:mark|a|span)\b[^>]*>)+"
# In code, a link may lead to a file; two signs are around one that has another inside.
_CODE = r"(?:[^`\n<]|</?(?:mark|a|span)\b[^>]*>)"
_inline = re.compile(
    # It begins with a set of characters, which the module searches for fastest.
    rf"[<`*\[](?:(?P<tag>(?<=<)[^>]*>)|(?P<kbd>(?<=`)(?:{_CODE}+`|`(?:{_CODE}|`(?!`))+``))"
    rf"|(?P<strong>(?<=\*)\*(?=\S){_INSIDE}(?<!\s)\*\*)"
    r"|(?P<em>(?<=\*)(?<![\w*]\*)(?=[^\s*])[^*`\n<]+(?<!\s)\*(?![\w*]))"
    r"|(?P<link>(?<=\[)(?P<label>(?:[^\[\]\n<]|</?(?:mark|span)\b[^>]*>)+)\]"
    r"\((?P<to><a [^>]*>)?(?P<target>[^()\s<>]+)(?:</a>)?\)))"
)
# Hebrew, Arabic and the scripts beside them. UAX #9, W2: after them, "-" joins no numbers.
_right_to_left = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_tag_or_date = re.compile(r"<[^>]*>|(?<![\w/.:=&?#-])\d++(?:-\d++)++(?![\w/])")
_quoting = re.compile(r"^&gt;[ \t]?", re.MULTILINE)
_indent = re.compile(r"(?<=\n)[ \t]+")
# Spaces are read once, from their first.
_pipe = re.compile(r"((?:(?<![ \t])[ \t]++)?(?<!\\)\|[ \t]*(?:\r?\n|\Z)?)")
_under_header = re.compile(r"[\s|:]*-[\s|:-]*").fullmatch
_ticks = re.compile(r"[ \t]*(?:`+|~+)\s*").match
_line = re.compile(r"[^\n]*(?:\n|\Z)")
_WIDTHS = {"kbd": 1, "strong": 2, "em": 1}
_closing_signs = re.compile(r"[ \t]#+[ \t]*\Z")


class Heading(NamedTuple):
    """``id`` is the fragment that leads to it."""

    id: str
    title: str


def readable(text: str, headings: list[Heading], level: int = 2) -> Markup:
    """HTML of a text with its blocks and emphasis marked. Appends its headings to ``headings``,
    those of the page so far. ``level``: that of its upper headings on the page.
    """
    return Markup(_Marking(headings, level).marked(str(text)))


def isolated(text: str) -> Markup:
    """HTML of a text without blocks, such as a description, with the dates in it isolated."""
    return Markup(_Marking([], 1).isolated(str(escape(text))))


class _Marking:
    """The marks of a text."""

    def __init__(self, headings: list[Heading], level: int) -> None:
        self._headings = headings
        self._level = level
        # The author's levels of the headings around the next one: a page leaves out no level.
        self._around: list[int] = []
        self._left = MARKS_MAX
        # Those of the items around the next block.
        self._indents: list[int] = []

    def marked(self, text: str) -> str:
        # Most texts have no emphasis, and a text has many parts.
        self._has_emphasis = "*" in text or "`" in text or "[" in text
        parts = []
        text = f"\n\n{self.isolated(text)}"
        end = item_end = 2
        while self._left > 0 and (found := _block.search(text, end - 1)):
            start = found.start() + 1
            parts.append(self._inline(text[end:start]))
            if self._indents and text[item_end:start].strip():
                self._indents = []
            end = found.end()
            self._left -= 1
            if found.lastgroup == "item":
                item_end = end
                parts.append(self._item(*found.group("marker", "item")))
            else:
                parts.append(self._block(found))
        parts.append(self._inline(text[end:]))
        return "".join(parts)

    def isolated(self, text: str) -> str:
        return _tag_or_date.sub(self._isolated, text) if _right_to_left.search(text) else text

    def _isolated(self, found: re.Match[str]) -> str:
        if found[0].startswith("<") or self._left <= 0:
            return found[0]
        self._left -= 1
        return f'<span dir="ltr">{found[0]}</span>'

    def _inline(self, text: str) -> str:
        """A part of a text without blocks, with its emphasis marked."""
        return _inline.sub(self._emphasis, text) if self._has_emphasis else text

    def _block(self, found: re.Match[str]) -> str:
        if found["sign"]:
            return self._heading(*found.group("sign", "title", "gap"))
        if found["table"]:
            rows = map(self._row, _line.findall(found["table"]))
            return f'<samp tabindex="0">{"".join(rows)}</samp>'
        if data := found["data"]:
            is_whole = data.rstrip(" \t\r\n,;.").endswith(("}", "]"))
            return f"<code>{data}</code>" if is_whole else self._inline(data)
        if found["quote"]:
            return f"<q>{self._without(_quoting, self._inline(found['quote']))}</q>"
        if found["rule"]:
            return f"<cite><u>{found['rule']}</u></cite>"
        if found["code"]:
            # After an item, indented lines belong to it.
            code = found["code"]
            return self._inline(code) if self._indents else f"<code>{code}</code>"
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
        if not text or self._left <= 0:
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
            f"<var>{self._inline(part)}</var>" if at % 2 else f"<u>{part}</u>"
            for at, part in enumerate(parts)
        )
        return f"<bdi>{''.join(cells)}</bdi>"

    def _item(self, marker: str, text: str) -> str:
        sign = marker.lstrip()
        indent = len(marker[: -len(sign)].expandtabs(4))
        while self._indents and self._indents[-1] >= indent:
            self._indents.pop()
        depth = min(len(self._indents), DEPTH_MAX)
        self._indents.append(indent)
        deep = f' class="d{depth}"' if depth else ""
        tag = "var" if sign[0].isdigit() else "u"
        shown = self._inline(text)
        if "\n" in text[:-1]:
            shown = self._without(_indent, shown)
        return f"<i{deep}><{tag}>{marker}</{tag}>{shown}</i>"

    def _heading(self, sign: str, title: str, gap: str | None) -> str:
        if len(self._headings) == HEADINGS_MAX:
            return f"{sign}{title}{gap or ''}"
        is_marked = "<" in title or "&" in title
        plain = Markup(title).striptags() if is_marked else " ".join(title.split())
        plain = plain.replace("**", "").strip()
        id = f"part-{len(self._headings) + 1}"
        level = sign.count("#")
        while self._around and self._around[-1] >= level:
            self._around.pop()
        shown_level = min(self._level + len(self._around), LEVEL_MAX)
        self._around.append(level)
        self._headings.append(Heading(id, _closing_signs.sub("", plain)))
        after = f"<u>{gap}</u>" if gap else ""
        return (
            f'<b id="{id}" role="heading" aria-level="{shown_level}"><u>{sign}</u>'
            f"{self._inline(title)}{after}</b>"
        )

    def _emphasis(self, found: re.Match[str]) -> str:
        kind, text = found.lastgroup, found[0]
        if kind == "tag" or self._left <= 0:
            return text
        self._left -= 1
        if kind == "link":
            label, to, target = self._inline(found["label"]), found["to"], found["target"]
            if to:
                return f"<u>[</u>{to}{label}</a><u>]({target})</u>"
            return f"<u>[</u>{label}<u>]</u><small>({target})</small>"
        width = _WIDTHS[kind] + text.startswith("``")
        sign, inner = text[:width], text[width:-width]
        return f"<{kind}><u>{sign}</u>{inner}<u>{sign}</u></{kind}>"
