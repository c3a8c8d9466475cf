"""Shows in HTML the characters of a text that one cannot see, or that put others out of order.

A prompt may hide words from its reader with them, and not from a model. Each stays where it is,
so what is copied is the text; the style sheet writes its code before it.
"""

import re

from markupsafe import Markup, escape

_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS = "\u200c\u200d"
# Control characters; what directs, fills, joins or splits without a look; tags.
_ALWAYS = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
_suspect = re.compile(rf"[\r{_ALWAYS}{_JOINERS}{_SELECTORS}]")
# Between letters or pictures, one joiner or selector is part of how they are written.
_LETTER = r"[^\x00-\u02ff\u2000-\u206f\s]"
_INVISIBLE = (
    rf"[{_ALWAYS}]|(?<!{_LETTER})[{_JOINERS}]|[{_JOINERS}](?!{_LETTER})"
    rf"|(?<=[{_SELECTORS}])[{_SELECTORS}]"
)
_is_control = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]").match
_invisible = re.compile(_INVISIBLE)
_invisible_or_return = re.compile(rf"{_INVISIBLE}|\r")


def visible(text: str, is_return_shown: bool = False) -> Markup:
    """``text`` as HTML, each such character in a ``span`` of the class "invisible".

    ``is_return_shown``: carriage returns too, where it matters how a line ends.
    """
    if not _suspect.search(text):
        return escape(text)
    pattern = _invisible_or_return if is_return_shown else _invisible
    return Markup(pattern.sub(_span, str(escape(text))))


def _span(found: re.Match[str]) -> str:
    code = f"U+{ord(found[0]):04X}"
    # A control character is none of HTML's, not even as a reference.
    character = "" if _is_control(found[0]) else found[0]
    # An element with a direction keeps to itself what the character does to the order of others.
    return f'<span class="invisible" dir="ltr" title="{code}" data-code="{code}">{character}</span>'
