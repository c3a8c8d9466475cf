"""Where the next page of a list begins, as an opaque text.

A cursor holds a position and a digest of what was asked, so that one from another list is
noticed. It outlives builds: a position is the last row that was shown where the order is by a
key, a number of rows where it is not.
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

# What a cursor can hold. It is not signed, so anything may come back in one.
Offset = Annotated[int, Meta(ge=0, le=10**9)]
LastVersion = Annotated[str, Meta(pattern=rf"\A{VERSION_PATTERN}\Z")]
LastTag = tuple[int, str]


def make_cursor(position: Any, *asked: object) -> str:
    """A cursor for the rows after ``position``, of the list that ``asked`` describes."""
    data = msgspec.json.encode([_digest(asked), position])
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read_cursor(cursor: str, kind: Any, *asked: object) -> Any:
    """The position in a cursor, of type ``kind``. Raises RequestError ``invalid_parameter``."""
    try:
        padding = "=" * (-len(cursor) % 4)
        data = base64.b64decode(cursor + padding, altchars=b"-_", validate=True)
        digest, position = msgspec.json.decode(data, type=tuple[str, kind])
    except (ValueError, binascii.Error, RecursionError):  # not ours: cut, or made up
        digest = None
    if digest != _digest(asked):
        raise stale()
    return position


def refuse_cursor(cursor: str | None) -> None:
    """No cursor is valid for a list of one page. Raises RequestError ``invalid_parameter``."""
    if cursor is not None:
        raise stale()


def stale() -> RequestError:
    return RequestError(
        "invalid_parameter",
        "This cursor is not valid here: the list has changed, or the other arguments differ. Start "
        "over without cursor.",
    )


def _digest(asked: tuple[object, ...]) -> str:
    return hashlib.blake2b(msgspec.json.encode(asked), digest_size=6).hexdigest()
