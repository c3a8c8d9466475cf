"""Cursors: opaque texts that say where the next page of a list begins.

A cursor holds a position and a digest of the query, so a cursor of another list is rejected. It
stays valid after builds: the position is the last row shown if the order is by a key, else a number
of rows.
"""

import base64
import binascii
import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from builder.model.errors import RequestError
from builder.model.names import VERSION_PATTERN

CURSOR_CHARS_MAX = 1000

# The types of a cursor's position. Cursors are not signed, so a client can send any.
Offset = Annotated[int, Meta(ge=0, le=10**9)]
LastVersion = Annotated[str, Meta(pattern=rf"\A{VERSION_PATTERN}\Z")]
LastTag = tuple[int, str]


def make_cursor(position: Any, *query: object) -> str:
    """A cursor for the rows after ``position`` of the list that ``query`` describes."""
    data = msgspec.json.encode([_digest(query), position])
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read_cursor(cursor: str, kind: Any, *query: object) -> Any:
    """The position in a cursor, of type ``kind``. Raises RequestError ``invalid_parameter``."""
    try:
        padding = "=" * (-len(cursor) % 4)
        data = base64.b64decode(cursor + padding, altchars=b"-_", validate=True)
        digest, position = msgspec.json.decode(data, type=tuple[str, kind])
    except (ValueError, binascii.Error, RecursionError):  # cut off, or not made by the hub
        digest = None
    if digest != _digest(query):
        raise stale()
    return position


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
