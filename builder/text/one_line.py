"""Untrusted texts on one line: for an attribute, a list, a document for programs."""

import re

# Control characters, and those that reorder or hide their neighbours. The joiners of emoji and of
# Persian stay.
_unseen = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff]+"
)


def one_line(text: str, chars_max: int) -> str:
    """``text`` as one line of at most ``chars_max`` characters; a cut shows as ``…``."""
    # Most texts are printable, and none of these characters is.
    seen = text if text.isprintable() else _unseen.sub(" ", text)
    line = " ".join(seen.split())
    return line if len(line) <= chars_max else line[: chars_max - 1].rstrip() + "…"
