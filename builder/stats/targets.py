"""The repo that a request reads, by its target and the table of routes."""

import os
import re
from functools import lru_cache
from urllib.parse import unquote

from builder.model.matching import match_url
from builder.model.routes import BY_NAME

# A pull is a successful read of one of these rows.
PULLED = tuple(
    "raw version_raw label_raw body version_body label_body repo version label langfuse_prompt "
    "langfuse_ref".split()
)

# Percent-encoded paths of the longest valid names and version are shorter.
PATH_CHARS_MAX = 2000
_REMEMBERED = 16_384

# The path before the owner in each of these routes.
_PREFIXES = tuple({BY_NAME[name].url.partition("{")[0] for name in PULLED})
_origin = re.compile(r"https?://[^/]*", re.IGNORECASE)
_odd_segment = re.compile(r"//|/\.\.?(?:/|$)")


def repo_of(target: str, base_path: str) -> str | None:
    """``owner/name`` of the repo whose text, record or version a target requests; None for any
    other target.

    ``base_path`` is empty, or has a leading slash. The path is decoded and its dots and double
    slashes are resolved, as most servers do. A server that does not resolve such a path answers an
    error status, so it is not counted. The query is ignored, because every version in it belongs to
    the same repo.
    """
    path = target.partition("?")[0]
    return _find(path, base_path) if len(path) <= PATH_CHARS_MAX else None


@lru_cache(_REMEMBERED)
def _find(path: str, base_path: str) -> str | None:
    path = path.partition("#")[0]
    if not path.startswith("/"):
        path = _origin.sub("", path)
    if "%" in path:
        path = unquote(path)
    if _odd_segment.search(path):
        # normpath would keep two slashes at the start.
        path = os.path.normpath("/" + path.lstrip("/"))
    below = path.removeprefix(base_path)
    if not path.startswith(base_path) or not below.startswith(_PREFIXES):
        return None
    found = match_url(below)
    if found is None or found.route.name not in PULLED:
        return None
    return f"{found.params['owner']}/{found.params['name']}"
