"""Numbers with their nouns, lists and dates, for messages. Pure."""

from collections.abc import Sequence


def counted(number: int, one: str, several: str = "") -> str:
    """``1 prompt``, ``2 prompts``, ``1,000 prompts``. ``several``: a plural that takes no ``s``."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def some_of(names: Sequence[str], most: int) -> str:
    """``a, b``; for more than ``most`` names, ``a, b and 5 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def human_size(size: int) -> str:
    """A number of bytes for people."""
    if size < 1024:
        return f"{size} bytes" if size != 1 else "1 byte"
    return f"{size / 1024:.1f} KiB"


_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def day(time: str) -> str:
    """The day of an RFC 3339 time, for people: ``28 Nov 2026``."""
    return f"{time[8:10].lstrip('0')} {_MONTHS[int(time[5:7]) - 1]} {time[:4]}"
