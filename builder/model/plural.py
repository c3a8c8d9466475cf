"""Numbers with their nouns, and lists, for messages. Pure."""

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
