"""Which repo a request's target reads, by the table of routes."""

import os
import re
from functools import lru_cache
from urllib.parse import unquote

from builder.model.routes import BY_NAME, match_url

# A pull is a successful read of one of these rows.
PULLED = (
    "raw",
    "version_raw",
    "label_raw",
    "body",
    "version_body",
    "label_body",
    "repo",
    "version",
    "label",
    "langfuse_prompt",
    "langfuse_ref",
)

# Every name and version of the grammar's greatest length, percent-encoded, is shorter.
PATH_CHARS_MAX = 2000
_REMEMBERED = 16_384

# What is before the owner in each of them.
_PREFIXES = tuple({BY_NAME[name].url.partition("{")[0] for name in PULLED})
_origin = re.compile(r"https?://[^/]*", re.IGNORECASE)
_odd_segment = re.compile(r"//|/\.\.?(?:/|$)")


class Targets:
    """Knows the repos below one base URL's path (empty, or with a leading slash)."""

    def __init__(self, base_path: str) -> None:
        self._base_path = base_path
        self._of_path = lru_cache(_REMEMBERED)(self._find)

    def repo_of(self, target: str) -> str | None:
        """``owner/name`` of the repo whose text, record or version a target asks for; None for
        any other.

        A path is decoded and its dots and double slashes resolved, as most servers do; for one
        that does not, such a path leads nowhere, and the status says so. A query is left out:
        whichever version it asks for, it is the same repo's.
        """
        path = target.partition("?")[0]
        return self._of_path(path) if len(path) <= PATH_CHARS_MAX else None

    def _find(self, path: str) -> str | None:
        path = path.partition("#")[0]
        if not path.startswith("/"):
            path = _origin.sub("", path)
        if "%" in path:
            path = unquote(path)
        if _odd_segment.search(path):
            # Two slashes at the start would stay two.
            path = os.path.normpath("/" + path.lstrip("/"))
        below = path.removeprefix(self._base_path)
        if not path.startswith(self._base_path) or not below.startswith(_PREFIXES):
            return None
        found = match_url(below)
        if found is None or found.route.name not in PULLED:
            return None
        return f"{found.params['owner']}/{found.params['name']}"
