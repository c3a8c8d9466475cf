"""Conditions, ranges and encodings of HTTP (RFC 9110 §13, §14 and §12.5.3). Pure functions of
headers.
"""

import re

_range = re.compile(r"bytes=(\d*)-(\d*)")
_entity_tag = re.compile(r'(?:W/)?("[^"]*")')


def matches_none(if_none_match: str, etags: tuple[str, ...]) -> str | None:
    """The first of ``etags`` that an If-None-Match header names, by weak comparison."""
    if if_none_match.strip() == "*":
        return etags[0]
    named = set(_entity_tag.findall(if_none_match))
    return next((etag for etag in etags if etag in named), None)


def accepts_gzip(accept_encoding: str) -> bool:
    """True if an Accept-Encoding header allows gzip."""
    weights = {}
    for part in accept_encoding.lower().split(","):
        coding, _, parameters = part.partition(";")
        weight = parameters.strip().removeprefix("q=").strip()
        weights[coding.strip()] = weight
    weight = weights.get("gzip", weights.get("x-gzip", weights.get("*")))
    return weight is not None and not re.fullmatch(r"0(\.0*)?", weight)


class RangeNotSatisfiable(ValueError):
    """No byte of the file is in the range."""


def parse_range(text: str, size: int) -> tuple[int, int] | None:
    """The (start, stop) of a Range header with one range of bytes.

    None if the header must be ignored (RFC 9110 §14.2): malformed, another unit, or several ranges.
    Raises RangeNotSatisfiable.
    """
    found = _range.fullmatch(text.strip().lower())
    if not found or found[1] == found[2] == "":
        return None
    first, last = _number(found[1]), _number(found[2])
    if first is None:
        start, stop = max(0, size - last), size
    else:
        start, stop = first, size if last is None else min(size, last + 1)
        if last is not None and last < start:
            return None
    if start >= size or start >= stop:
        raise RangeNotSatisfiable
    return start, stop


def _number(digits: str) -> int | None:
    """A number of a range; None if it is left out. A huge one is cut to 18 digits, which exceeds
    the size of any file.
    """
    return int(digits.lstrip("0")[:18] or "0") if digits else None
