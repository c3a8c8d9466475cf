"""Shows in HTML the characters of a text that are invisible, or that reorder others.

They can hide words in a prompt from its reader, but not from a model. Each stays in place, so
selecting the text copies it unchanged; the style sheet shows its code before it. A page has a
limited number of marks, so that no text makes it much larger than the text is.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup, escape

_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS = "\u200c\u200d"
# Control characters; invisible characters that direct, fill, join or split; tags.
_ALWAYS = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
_suspect = re.compile(rf"[\r{_ALWAYS}{_JOINERS}{_SELECTORS}]")
_SUSPECT_ASCII = bytes(code for code in range(128) if _suspect.match(chr(code)))
# Between letters or pictures, one joiner or selector is part of their spelling.
_LETTER = r"[^\x00-\u02ff\u2000-\u206f\s]"
_INVISIBLE = (
    rf"[{_ALWAYS}]|(?<!{_LETTER})[{_JOINERS}]|[{_JOINERS}](?!{_LETTER})"
    rf"|(?<=[{_SELECTORS}])[{_SELECTORS}]"
)
_is_control = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]").match
# A run of the same character is one mark.
invisible = re.compile(rf"({_INVISIBLE})\1*")
_invisible_or_return = re.compile(rf"({_INVISIBLE}|\r)\1*")

# A mark takes 40 times the bytes of its character. A text with more is cut.
MARKS_MAX = 1_000


def hidden_characters(text: str) -> Counter[str]:
    """The characters that ``visible`` marks, and how often the text has them."""
    runs = invisible.finditer(text) if _is_suspect(text) else ()
    return Counter("".join(found[0] for found in runs))


def _is_suspect(text: str) -> bool:
    if text.isascii():
        # Deleting bytes takes a tenth of the time of the search.
        return len(text.encode().translate(None, _SUSPECT_ASCII)) < len(text)
    return _suspect.search(text) is not None


def called(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()


class Marks:
    """The number of marks left for all texts of a page. ``is_cut``: a text needed more."""

    def __init__(self, left: int = MARKS_MAX) -> None:
        self.left = left
        self.is_cut = False

    def take(self) -> bool:
        """Take one; False if none is left."""
        if not self.left:
            self.is_cut = True
            return False
        self.left -= 1
        return True


def visible(text: str, marks: Marks | None = None, is_return_shown: bool = False) -> Markup:
    """``text`` as HTML, each run of such a character in a ``span`` of the class "invisible".

    If no ``marks`` are left (by default, a page's number), the rest of the text is left out, and
    an ``em`` says how much. ``is_return_shown``: also mark carriage returns, where line ends
    matter.
    """
    if not _is_suspect(text):
        return escape(text)
    marks = marks or Marks()
    parts: list[Markup] = []
    end = 0
    for found in (_invisible_or_return if is_return_shown else invisible).finditer(text):
        parts.append(escape(text[end : found.start()]))
        if not marks.take():
            parts.append(_cut(len(text) - found.start()))
            break
        parts.append(_mark(found))
        end = found.end()
    else:
        parts.append(escape(text[end:]))
    return Markup("").join(parts)


def escape_plain(texts: Sequence[str]) -> list[str] | None:
    """The texts as HTML, escaped together in less time; None if ``visible`` may mark characters."""
    if _is_suspect("".join(texts)):
        return None
    # No text has this character, which is suspect.
    return str.split(escape("\0".join(texts)), "\0")


def _mark(found: re.Match[str]) -> Markup:
    count = len(found[0])
    code = f"U+{ord(found[1]):04X}" + (f" ×{count:,}" if count > 1 else "")
    # HTML allows no control character, not even as a reference.
    characters = "" if _is_control(found[1]) else found[0]
    # An element with a direction isolates the character's effect on the order of others.
    return Markup(
        f'<span class="invisible" dir="ltr" title="{code}" data-code="{code}">{characters}</span>'
    )


def _cut(count: int) -> Markup:
    characters = f"{count:,} more character{'s' if count > 1 else ''}"
    return Markup(f"<em>… {characters} not shown</em>")
