"""What browsers run to compare two texts, with the patterns and limits of the site's own pages."""

import os
import re

from builder.render.envelopes import json_bytes
from builder.render.hunks import ROWS_MAX
from builder.text.hidden_chars import CONTROL, INVISIBLE, MARKS_MAX, SUSPECT
from builder.text.line_diff import CONTEXT_LINES
from builder.text.word_diff import TOKEN

_SOURCE = os.path.join(os.path.dirname(__file__), "assets", "changes.js")
_LONG_ESCAPE = re.compile(r"\\U0*([0-9a-fA-F]+)")


def for_browsers() -> bytes:
    """A module."""
    patterns = {"TOKEN": TOKEN, "SUSPECT": SUSPECT, "INVISIBLE": INVISIBLE, "CONTROL": CONTROL}
    rules = {
        "ROWS_MAX": ROWS_MAX, "CONTEXT_LINES": CONTEXT_LINES, "MARKS_MAX": MARKS_MAX,
        **{name: _in_javascript(pattern) for name, pattern in patterns.items()},
    }  # fmt: skip
    with open(_SOURCE, encoding="utf-8") as file:
        return file.read().replace("RULES = {};", f"RULES = {json_bytes(rules).decode()};").encode()


def _in_javascript(pattern: str) -> str:
    """A pattern of Python's, in ASCII, as JavaScript has it with the flag ``u``."""
    ascii_only = pattern.encode("ascii", "backslashreplace").decode()
    return _LONG_ESCAPE.sub(r"\\u{\1}", ascii_only)
