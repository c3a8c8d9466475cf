r"""Splits a prompt's body into the messages of a conversation. Pure.

A *marker* is dotprompt's, on a line of its own: ``{{role "user"}}``. Its role is ``system``,
``user``, ``assistant`` or ``tool``, in lower case, between double or single quotes. Spaces and tabs
may stand around the marker and inside its braces, and at least one must stand before the role.
Anything else is text: another role, a marker within a line, ``\{{role "user"}}``.

The rules, for other implementations (`clients/vectors.json` has the cases):

- A body without a marker has no messages (None, null).
- A message is the text between a marker and the next one, or the end. Text before the first marker
  is a message of ``system``. A byte order mark at the start of the body is no text.
- Blank lines at both ends of a message are removed, and so is its last line break. The rest is kept
  to the byte: indentation, line breaks, spaces at the end of a line, variables.
- A message of blank lines alone is left out, so a body of markers alone has an empty list.
- A line ends with a line feed, or with the text; carriage returns before that are part of the line
  break. A blank line has nothing but spaces, tabs and carriage returns.
- Messages are found before variables are filled in, so no value can create one.

Dotprompt assigns the text before the first marker to ``user``, says ``model`` for ``assistant``,
and keeps blank lines.
"""

import re
from collections.abc import Callable, Iterable

from builder.model.answers import Message

_marker = re.compile(
    r"""^[ \t]*\{\{[ \t]*role[ \t]+(?P<quote>["'])(?P<role>system|user|assistant|tool)(?P=quote)"""
    r"""[ \t]*\}\}[ \t]*\r*$""",
    re.MULTILINE,
)
# Most texts have no marker, and this check for the beginning of one is much faster.
_may_have_markers = re.compile(r"\{\{[ \t]*role[ \t]").search
# Possessive, so that no text causes backtracking.
_blank_lines = re.compile(r"(?:[ \t\r]*+\n)*+")
_BLANK = " \t\r\n"


def parse_messages(body: str) -> list[Message] | None:
    """The messages of a prompt's body (see ``body_of``) in order; None if it has no marker."""
    text = body.removeprefix("\ufeff")
    markers = list(_marker.finditer(text)) if _may_have_markers(text) else []
    if not markers:
        return None
    roles = ["system", *(marker["role"] for marker in markers)]
    starts = [0, *(marker.end() for marker in markers)]
    ends = [*(marker.start() for marker in markers), len(text)]
    contents = [_trim(text[start:end]) for start, end in zip(starts, ends, strict=True)]
    return [Message(*one) for one in zip(roles, contents, strict=True) if one[1]]


def write_messages(messages: Iterable[Message]) -> str:
    r"""A body with these messages, without blank lines at both ends of their contents.

    A line that reads as a marker is escaped, as ``\{{role "user"}}``. Messages of blank lines alone
    are left out.
    """
    escaped = ((one.role, _trim(escape_markers(one.content))) for one in messages)
    return "\n".join(f'{{{{role "{role}"}}}}\n{text}\n' for role, text in escaped if text)


def escape_markers(text: str) -> str:
    r"""``text`` with ``\{{`` in lines that would read as markers."""
    return _marker.sub(lambda marker: marker[0].replace("{{", "\\{{", 1), text)


def without_markers(body: str) -> str:
    """``body`` with empty lines in place of its markers, and without a byte order mark."""
    text = body.removeprefix("\ufeff")
    return _marker.sub("", text) if _may_have_markers(text) else text


def change_messages(body: str, change: Callable[[str], str]) -> str:
    """``body`` with ``change(text)`` in place of each text between its markers."""
    pieces: list[str] = []
    start = 0
    for marker in _marker.finditer(body):
        pieces += change(body[start : marker.start()]), marker[0]
        start = marker.end()
    return "".join([*pieces, change(body[start:])])


def _trim(text: str) -> str:
    """The text without blank lines at both ends, and without the last line break."""
    end = text.find("\n", len(text.rstrip(_BLANK)))
    lines = text if end < 0 else text[:end]
    return lines[_blank_lines.match(lines).end() :].rstrip("\r") if lines.strip(_BLANK) else ""
