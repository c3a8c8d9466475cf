"""Functions that several vendors' modules share. Pure."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from builder.model.errors import cut
from builder.model.names import ORDINAL_MAX
from builder.model.plural import some_of
from moving.importers.items import Document

COMMIT_CHARS = 8
_SHOWN_MAX = 10
_NAME_CHARS_MAX = 40
# Fields of a tool on another server that may have credentials.
_KEYS_OF_TOOLS = ("authorization", "headers")
_place_in_file = re.compile(r", (?:entry|line|row) ([0-9,]{1,20})$")


def is_text(value: Any) -> bool:
    """True if it is a text with more than white space."""
    return isinstance(value, str) and bool(value.strip())


def get_text(value: Any, key: str) -> str:
    """The text under a key; empty if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if is_text(found) else ""


def as_dict(value: Any) -> dict[str, Any]:
    """``value``, or an empty dict if it is none."""
    return value if isinstance(value, dict) else {}


def open_list(document: Document, key: str) -> Iterator[Document]:
    """The contents of a document: one, or a list under ``key``."""
    where, value = document
    entries = as_dict(value).get(key)
    if not isinstance(entries, list):
        yield document
        return
    for number, one in enumerate(entries, start=1):
        yield Document(f"{where}, entry {number:,}", one)


def shorten(name: str) -> str:
    """A name from a stranger, shortened for a message."""
    return cut("".join(char if char.isprintable() else "?" for char in name), _NAME_CHARS_MAX)


def list_names(names: Iterable[str]) -> str:
    """Names for a message: each once, sorted, the first ones if there are many."""
    return some_of([shorten(name) for name in sorted(set(names))], _SHOWN_MAX)


def read_number(version: Any) -> int | None:
    """The number of a version, which may be text; None if it cannot be an ordinal."""
    if isinstance(version, int) and not isinstance(version, bool):
        version = str(version)
    if not isinstance(version, str) or not re.fullmatch("[0-9]{1,9}", version.strip()):
        return None
    return int(version) if 1 <= int(version) <= ORDINAL_MAX else None


def name_from_place(where: str) -> str:
    """A name for a prompt that has none: its file's, with its place in the file."""
    found = _place_in_file.search(where)
    stem = os.path.splitext(os.path.basename(where[: found.start()] if found else where))[0]
    return f"{stem} {found[1].replace(',', '')}" if found else stem


def write_changelog(text: str, commit: str, vendor: str) -> str:
    """A vendor's changelog of a version, with the start of its commit, if it has one."""
    source = f"Commit {commit[:COMMIT_CHARS]} of {vendor}" if commit else ""
    return "\n\n".join(filter(None, (text.strip(), source)))


def leave_out_keys(tools: Any, warnings: list[str]) -> Any:
    """Tools without credentials for other servers, which anyone could read here."""
    if not isinstance(tools, list):
        return tools
    if any(key in as_dict(tool) for tool in tools for key in _KEYS_OF_TOOLS):
        warnings.append(f"Left out {' and '.join(_KEYS_OF_TOOLS)} of tools, which can have keys.")
    return [
        {key: value for key, value in tool.items() if key not in _KEYS_OF_TOOLS}
        if isinstance(tool, dict)
        else tool
        for tool in tools
    ]
