"""The addresses in the note of a withdrawal, and the prompt that it names. Pure."""

import re
from urllib.parse import quote

from markupsafe import Markup

from builder.model.names import NAME_PATTERN, RESERVED_OWNERS
from builder.text.hidden_chars import Marks, visible

# Characters of a URL besides letters and digits (RFC 3986).
_URL_CHARS = "%/:?#[]@!$&'()*+,;=~-._"

_address = re.compile(r"(https?://[^\s<>\"']*[^\s<>\"'.,;:!?)\]])")
_ID = rf"({NAME_PATTERN})/({NAME_PATTERN})(?![\w/-])"


def href(url: str) -> str:
    """The URL for a link: other characters are encoded."""
    return quote(url, safe=_URL_CHARS)


def linked(text: str, marks: Marks) -> Markup:
    """The text with its addresses as links."""
    link = Markup('<a rel="nofollow ugc noopener" href="%s">%s</a>')
    parts = (
        link % (href(part), visible(part, marks)) if at % 2 else visible(part, marks)
        for at, part in enumerate(_address.split(text))
    )
    return Markup().join(parts)


def prompt_in(text: str, base_url: str) -> tuple[str, str] | None:
    """The owner and name of the first prompt that a text names, by its address on this hub or
    after a word as in "use ann/story"; None without one.
    """
    before = rf"(?:{re.escape(base_url)}/|\b(?i:use|see|try|by|to|is|in|with)\s+)"
    found = re.search(before + _ID, text)
    return (found[1], found[2]) if found and found[1] not in RESERVED_OWNERS else None
