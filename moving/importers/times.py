"""Converts times of other systems to those of version records. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from builder.model.errors import cut
from builder.model.records import format_time

# Earlier times are placeholders: year 1 and 1970 stand for "never".
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# As seconds, this number is the year 5138; as milliseconds, 1973. Larger numbers are milliseconds.
_MILLISECONDS_FROM = 1e11
_TEXT_CHARS_MAX = 64
_number = re.compile(r"[0-9]{9,16}(?:\.[0-9]{1,20})?")


def to_time(value: Any, now: datetime | None = None) -> str | None:
    """A moment as a Time, from RFC 3339 text (UTC if it has no offset), or from seconds or
    milliseconds since 1970, as a number or as text.

    None for anything else, and for a time before 2000 or after ``now``.
    """
    moment = _parse(value.strip()) if isinstance(value, str) else _from_epoch(value)
    if moment is None or not _EARLIEST <= moment <= (now or datetime.now(UTC)):
        return None
    return format_time(moment)


def read_time(value: Any, warnings: list[str]) -> str | None:
    """As ``to_time``, with a warning that quotes a value that is no valid time."""
    moment = to_time(value)
    if moment is None and value not in (None, ""):
        warnings.append(
            f"The time {cut(repr(value), _TEXT_CHARS_MAX)} is no time from 2000 until now. The "
            "version gets the time of the next one, or that of the import."
        )
    return moment


def _parse(text: str) -> datetime | None:
    if len(text) > _TEXT_CHARS_MAX:
        return None
    if _number.fullmatch(text):
        return _from_epoch(float(text))
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # OverflowError: the year 1 in another time zone
        return None


def _from_epoch(value: Any) -> datetime | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # A larger number is no time in any unit; neither is NaN.
    if not 0 <= value < 1e15:
        return None
    return _EPOCH + timedelta(seconds=value / 1000 if value >= _MILLISECONDS_FROM else value)
