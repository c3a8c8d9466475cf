"""Lists that an API returns in pages, and paths of their entries."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from moving.vendors.api import ApiError

ENTRIES_MAX = 100_000


def list_entries(
    ask: Callable[[int, int], Any], key: str, name: str, source: str
) -> Iterator[dict[str, Any]]:
    """The entries of all pages of a list: objects in which ``name`` is a text.

    ``ask`` gets the number of a page, from 1, and the number of entries before it. Its answer has
    the entries under ``key``, and their number in ``total``. ``source``: its name in errors. Raises
    ApiError.
    """
    page, count, total = 1, 0, 1
    while count < total:
        answer = ask(page, count)
        entries = answer.get(key) if isinstance(answer, dict) else None
        total = answer.get("total") if entries else 0
        if (
            not isinstance(entries, list)
            or not all(isinstance(one, dict) and isinstance(one.get(name), str) for one in entries)
            or not isinstance(total, int)
        ):
            raise ApiError(f"The answer of {source} is no list of {key}. Check the address.")
        if total > ENTRIES_MAX:
            raise ApiError(
                f"The answer of {source} says that it has more than {ENTRIES_MAX:,} {key}."
            )
        yield from entries
        page, count = page + 1, count + len(entries)


def path_part(text: str) -> str:
    """``text`` as one part of a URL's path, with everything escaped."""
    return quote(text, safe="", errors="surrogatepass")
