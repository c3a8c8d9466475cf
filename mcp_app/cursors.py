"""Cursors: opaque texts that say where the next page of a list begins.

A cursor holds a number of rows and a digest of the query, so a cursor of another list is rejected.
After a build, it continues at the same place in the new list.
"""

import base64
import binascii
import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta

from builder.model.errors import RequestError

CURSOR_CHARS_MAX = 1000

# Cursors are not signed, so a client can send any.
_Cursor = tuple[str, Annotated[int, Meta(ge=0, le=10**9)]]


def make_cursor(start: int, *query: object) -> str:
    """A cursor for the rows from ``start`` of the list that ``query`` describes."""
    data = msgspec.json.encode([_digest(query), start])
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read_cursor(cursor: str, *query: object) -> int:
    """The start in a cursor. Raises RequestError ``invalid_parameter``."""
    try:
        padding = "=" * (-len(cursor) % 4)
        data = base64.b64decode(cursor + padding, altchars=b"-_", validate=True)
        digest, start = msgspec.json.decode(data, type=_Cursor)
    except (ValueError, binascii.Error, RecursionError):  # cut off, or not made by the hub
        digest = None
    if digest != _digest(query):
        raise stale()
    return start


def refuse_cursor(cursor: str | None) -> None:
    """Reject any cursor, for a list of one page. Raises RequestError ``invalid_parameter``."""
    if cursor is not None:
        raise stale()


def stale() -> RequestError:
    return RequestError(
        "invalid_parameter",
        "This cursor is not valid here: the list has changed, or the other arguments differ. Start "
        "over without cursor.",
    )


def _digest(query: tuple[object, ...]) -> str:
    return hashlib.blake2b(msgspec.json.encode(query), digest_size=6).hexdigest()
