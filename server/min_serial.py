"""``min_serial`` in the query of a read: the reader accepts no site older than that serial."""

import os
import re
from urllib.parse import unquote_to_bytes

from builder.model.errors import FIELD_CHARS_MAX, RequestError, cut
from builder.model.routes import BY_NAME
from builder.search.queries import parse_parameters
from builder.store.site import Mark, mark_of, read_serial

PARAMETER = "min_serial"
# Seconds after which the reader may try again.
CATCH_UP_SECONDS = 1

_number = re.compile("[0-9]{1,12}")


class TooOld(RequestError):
    """The site is older than the serial that the reader requires. The reader may try again after
    ``CATCH_UP_SECONDS``.
    """


class MinSerial:
    """Applies ``min_serial`` to reads of the site in a folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._hub = f"{root}/{BY_NAME['hub'].file}"
        self._mark: Mark | None = None
        self._serial: int | None = None

    def check(self, query: bytes) -> bytes:
        """The rest of a query. Raises TooOld; RequestError ``invalid_parameter``."""
        if PARAMETER.encode() not in unquote_to_bytes(query):
            return query
        wanted = parse_parameters(query, (PARAMETER,)).get(PARAMETER)
        if wanted is None:
            return query
        if not _number.fullmatch(wanted):
            raise RequestError(
                "invalid_parameter",
                f"Invalid {PARAMETER} {cut(repr(wanted), FIELD_CHARS_MAX)}. Give the serial of a "
                "publication: a whole number of at most 12 digits.",
            )
        serial = self._read()
        if serial is None:
            raise TooOld("unavailable", "The site is being built. Try again in a moment.")
        if serial < int(wanted):
            raise TooOld(
                "unavailable",
                f"This site has everything up to serial {serial}, not yet {int(wanted)}. Send the "
                "same request again in a second.",
            )
        return b"&".join(part for part in query.split(b"&") if not _is_ours(part))

    def _read(self) -> int | None:
        """The serial of hub.json now; None if there is no site."""
        try:
            mark = mark_of(os.stat(self._hub))
        except FileNotFoundError:
            return None
        if mark != self._mark:
            self._serial, self._mark = read_serial(self._root), mark
        return self._serial


def _is_ours(part: bytes) -> bool:
    return unquote_to_bytes(part.partition(b"=")[0]) == PARAMETER.encode()
