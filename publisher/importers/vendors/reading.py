"""What several vendors' modules do with what they read. Pure."""

import os
import re
from collections.abc import Iterable
from typing import Any

from builder.model.errors import cut

_COMMIT_CHARS = 8
_SHOWN_MAX = 10
_NAME_CHARS_MAX = 40
_place_in_file = re.compile(r", (?:entry|line|row) ([0-9,]{1,20})$")


def is_text(value: Any) -> bool:
    """Whether it is a text of more than white space."""
    return isinstance(value, str) and bool(value.strip())


def get_text(value: Any, key: str) -> str:
    """The text there; empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if is_text(found) else ""


def shorten(name: str) -> str:
    """A name that a stranger has chosen, as a message shows it."""
    return cut("".join(char if char.isprintable() else "?" for char in name), _NAME_CHARS_MAX)


def list_names(names: Iterable[str]) -> str:
    """Names as a message lists them: each once, sorted, and not too many."""
    shown = [shorten(name) for name in sorted(set(names))]
    more = len(shown) - _SHOWN_MAX
    return ", ".join(shown[:_SHOWN_MAX]) + (f" and {more:,} more" if more > 0 else "")


def name_from_place(where: str) -> str:
    """A name for a prompt that has none: that of its file, with its place in it."""
    found = _place_in_file.search(where)
    stem = os.path.splitext(os.path.basename(where[: found.start()] if found else where))[0]
    return f"{stem} {found[1].replace(',', '')}" if found else stem


def write_changelog(text: str, commit: str, vendor: str) -> str:
    """What a vendor says of a version, with the start of its commit there, if it has one."""
    source = f"Commit {commit[:_COMMIT_CHARS]} of {vendor}" if commit else ""
    return "\n\n".join(filter(None, (text.strip(), source)))
