"""The links in the note of a withdrawal. Pure."""

import re
from urllib.parse import quote

from markupsafe import Markup

from builder.model.names import NAME_PATTERN, RESERVED_OWNERS
from builder.text.hidden_chars import Marks, visible

# Characters of a URL besides letters and digits (RFC 3986).
_URL_CHARS = "%/:?#[]@!$&'()*+,;=~-._"

# An address, or a word and a prompt, as in "use ann/story". Other words may precede "and/or".
_link = re.compile(
    r"(https?://[^\s<>\"']*[^\s<>\"'.,;:!?)\]])"
    r"|\b((?i:use|see|try|also|and|or|by|to|is|in|with)\s+)"
    rf"(({NAME_PATTERN})/{NAME_PATTERN})(?![\w/-])"
)


def href(url: str) -> str:
    """The URL for a link: other characters are encoded."""
    return quote(url, safe=_URL_CHARS)


def linked(text: str, marks: Marks, root: str) -> Markup:
    """The text with links of its addresses, and of prompts that it names on the hub at ``root``."""
    parts, end = [], 0
    for found in _link.finditer(text):
        address, word, prompt, owner = found.groups(default="")
        parts.append(visible(text[end : found.start()] + word, marks))
        if address:
            link = Markup('<a rel="nofollow ugc noopener" href="%s">%s</a>')
            parts.append(link % (href(address), visible(address, marks)))
        elif owner in RESERVED_OWNERS:
            parts.append(Markup(prompt))
        else:
            parts.append(Markup(f'<a href="{root}/{prompt}">{prompt}</a>'))
        end = found.end()
    return Markup().join([*parts, visible(text[end:], marks)])
