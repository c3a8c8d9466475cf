"""The classes of caching that rows of the table name."""

import re

CACHE_CONTROL = {
    "immutable": "public, max-age=604800, immutable",
    "version": "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400",
    "repo": "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400",
    "list": "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400",
    "query": "public, max-age=60",
    # For a search: the wanted prompt may have just been published.
    "nothing": "public, max-age=5",
    "not_found": "public, max-age=10",
    "none": "no-store",
}

_max_age = re.compile(r"max-age=(\d+)")


def private_cache(cache_control: str) -> str:
    """The private form of a value of CACHE_CONTROL, for a private hub: only the reader's own cache
    may keep the response.
    """
    return cache_control.replace("public", "private")


def max_age_seconds(cache: str) -> int:
    """The seconds for which a response of a cache class is fresh."""
    found = _max_age.search(CACHE_CONTROL[cache])
    return int(found[1]) if found else 0
