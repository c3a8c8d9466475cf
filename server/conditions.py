"""Conditions and encodings of HTTP (RFC 9110 §13 and §12.5.3). Pure functions of headers."""

import re

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
