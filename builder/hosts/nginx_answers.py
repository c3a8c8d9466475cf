"""nginx's own answers: the headers of responses, rate limits and errors."""

import math
from collections.abc import Iterator

from builder.hosts.rules import (
    TEXT_MEDIA,
    HostedSite,
    header_lines,
)
from builder.model import answer_headers
from builder.model.errors import (
    LANGFUSE_INVALID,
    LANGFUSE_STATUS,
    STATUS,
)
from builder.model.messages import (
    ACCOUNT_TOO_LARGE,
    BAD_REQUEST,
    NO_QUERIES,
    misplaced,
)
from builder.model.service_urls import (
    WRITES,
)

_RETRY = ("Retry-After", str(answer_headers.RETRY_SECONDS))

_NETWORK_BYTES = answer_headers.IPV6_CLIENT_BITS // 8
# Extract the key of ``throttle.network`` from the 16 bytes of an IPv6 address: the embedded IPv4
# address, or the /64. The first pattern that matches counts.
_CLIENTS = (
    r"(?s)^\x00{10}\xFF{2}(?<network>.{4})\z",
    rf"(?s)^(?<network>.{{{_NETWORK_BYTES}}}).{{{16 - _NETWORK_BYTES}}}\z",
)


def header_values(site: HostedSite) -> dict[str, object]:
    """The template's values for the headers of responses."""
    limit, common = site.reads_per_minute, _common_headers(site)
    # Variables that depend on the media type of the response.
    safety = [
        (header, "$" + header.lower().replace("-", "_"))
        for header, _ in header_lines(answer_headers.PAGE_SAFETY)
    ]
    by_media = {
        media: dict(header_lines(headers))
        for media, headers in answer_headers.SAFETY_BY_MEDIA.items()
    }
    return {
        "safety": [
            (variable, {media: one[header] for media, one in by_media.items() if header in one})
            for header, variable in safety
        ],
        "api_headers": [*common, *_policy(limit), safety[0]],
        "page_headers": [*common, *safety],
        "common_headers": common,
        "preflight_headers": [*common, *in_syntax(site.preflight)],
        # Account settings are not for other origins, so no CORS. The variables are empty unless the
        # response is a page.
        "account_headers": [
            ("Cache-Control", "$cache"),
            *in_syntax(answer_headers.SAFETY),
            *safety,
        ],
        "retry_headers": [_RETRY],
        "cache_status": [("X-Cache", "$upstream_cache_status")],
        "gzip_types": TEXT_MEDIA,
        "gzip_bytes_min": answer_headers.GZIP_BYTES_MIN,
    }


def limits_and_errors(site: HostedSite) -> dict[str, object]:
    """The template's values for rate limits and errors."""
    limit = site.reads_per_minute
    return {
        "limit": limit,
        "clients": _CLIENTS,
        "status": STATUS | LANGFUSE_STATUS,
        "errors": _errors(site),
        "account_too_large": ACCOUNT_TOO_LARGE,
    }


def write_place(methods: tuple[str, ...]) -> str:
    """The name of the location that answers which methods write at a URL."""
    return "_".join(("allow", *methods)).lower()


def _errors(site: HostedSite) -> Iterator[tuple[str, str, list[tuple[str, str]], str]]:
    """nginx's own errors: name of the location, code, headers, and any message of its own."""
    limit, common = site.reads_per_minute, _common_headers(site)
    for code in ("invalid_parameter", "invalid_version", "invalid_label"):
        yield code, code, [*common, *_policy(limit)], ""
    for code in ("content_too_large", "internal_error"):
        yield code, code, common, ""
    yield "langfuse_invalid", LANGFUSE_INVALID, [*common, *_policy(limit)], ""
    yield "bad_request", "invalid_parameter", common, BAD_REQUEST
    yield "no_queries", "invalid_parameter", [*common, *_policy(limit)], NO_QUERIES
    yield "misplaced", "invalid_parameter", [*common, *_policy(limit)], misplaced()
    yield (
        "read_only",
        "method_not_allowed",
        [*common, ("Allow", quoted(answer_headers.READ_METHODS))],
        "",
    )
    for methods in WRITES.values():
        allow = ", ".join((answer_headers.READ_METHODS, *methods))
        yield write_place(methods), "method_not_allowed", [*common, ("Allow", quoted(allow))], ""
    yield "unavailable", "unavailable", [*common, _RETRY], ""
    # nginx has already added the file's own headers.
    yield "range_not_satisfiable", "range_not_satisfiable", common[:1], ""
    if limit:
        # The limit is a leaky bucket, so the next read is allowed after this time.
        wait_seconds = math.ceil(answer_headers.WINDOW_SECONDS / limit)
        exhausted = [
            ("Retry-After", str(wait_seconds)),
            ("RateLimit", quoted(answer_headers.exhausted(wait_seconds))),
        ]
        yield "rate_limited", "rate_limited", [*common, *_policy(limit), *exhausted], ""


def _common_headers(site: HostedSite) -> list[tuple[str, str]]:
    return [
        ("Cache-Control", "$cache"),
        # nginx's own gzip_vary omits Vary from a 304, which must have it (RFC 9110 §15.4.5).
        ("Vary", "Accept-Encoding"),
        *in_syntax(site.sharing + answer_headers.SAFETY),
    ]


def _policy(limit: int) -> list[tuple[str, str]]:
    return [("RateLimit-Policy", quoted(answer_headers.policy(limit)))] if limit else []


def in_syntax(headers: answer_headers.Headers) -> list[tuple[str, str]]:
    """Headers with their values in the syntax of nginx's configuration."""
    return [(name, quoted(value)) for name, value in header_lines(headers)]


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
