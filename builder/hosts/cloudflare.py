"""Cloudflare Workers: a Worker that serves the site, and its configuration for Wrangler."""

import ipaddress
import json
from urllib.parse import urlsplit

from builder.hosts.rules import HostedSite, rules
from builder.hosts.templates import fill
from builder.model import answer_headers, missing, names
from builder.model.caching import CACHE_CONTROL
from builder.model.errors import (
    LANGFUSE_INVALID,
    LANGFUSE_NOT_FOUND,
    LANGFUSE_STATUS,
    STATUS,
    OperatorError,
)
from builder.model.messages import MESSAGES, NO_QUERIES, misplaced
from builder.model.routes import (
    API_ROOTS,
    BY_NAME,
    CHARS_MAX,
    COMPUTED_PARAMETERS,
    GRAMMAR,
    HTML,
    JSON,
    LANGFUSE_NOT_FILTERS,
    LANGFUSE_ROOT,
    LATEST_TEXTS,
    LIST_PARAMETERS,
    PARAMETERS,
    READ_ROUTES,
    SORTS,
    TEXT,
    TEXT_PARAMETERS,
    WELL_KNOWN,
    Route,
)
from builder.model.service_urls import (
    ACCOUNT_URL,
    MCP_URLS,
    MONITOR_URLS,
    POST_ONLY_PATTERN,
    WRITES,
)

# Wrangler needs the date of the Workers runtime that the Worker was written for.
COMPATIBILITY_DATE = "2026-07-01"


def files(site: HostedSite) -> dict[str, str]:
    """The Worker and `wrangler.toml`, by file name. Raises OperatorError."""
    base = urlsplit(site.base_url)
    paths = [rule for rule in rules() if rule.paths]
    patterns = [rule for rule in rules() if not rule.paths]
    worker = fill(
        "worker.js.jinja",
        js=_js,
        regex=_regex,
        row=_row,
        constants=_constants(site, base.path),
        routes=READ_ROUTES,
        paths=paths,
        patterns=patterns,
        grammar=GRAMMAR,
        writes=WRITES,
        post_only=POST_ONLY_PATTERN,
    )
    wrangler = fill(
        "wrangler.toml.jinja",
        toml=_toml,
        site=site,
        base=base,
        date=COMPATIBILITY_DATE,
        is_public=_is_public(base.hostname),
        upstream=_upstream_url(site.upstream),
        window_seconds=answer_headers.WINDOW_SECONDS,
    )
    return {"worker.js": worker, "wrangler.toml": wrangler}


def _constants(site: HostedSite, base_path: str) -> dict[str, object]:
    """The Worker's constants, by their names in worker.js."""
    limit = site.reads_per_minute
    return {
        "BASE_PATH": base_path,
        "REPOS": f"{BY_NAME['repos'].url}/",
        "USERS": BY_NAME["user"].url_for(owner=""),
        "API_ROOTS": API_ROOTS,
        "LANGFUSE_ROOT": LANGFUSE_ROOT,
        "LANGFUSE_LIST_URL": BY_NAME["langfuse_list"].url,
        "LANGFUSE_NOT_FILTERS": LANGFUSE_NOT_FILTERS,
        "LANGFUSE_INVALID": LANGFUSE_INVALID,
        "LANGFUSE_NOT_FOUND": LANGFUSE_NOT_FOUND,
        "WELL_KNOWN": WELL_KNOWN,
        "PASSED_ON": [*MCP_URLS, *MONITOR_URLS],
        "ACCOUNT_URL": ACCOUNT_URL,
        "PARAMETERS": PARAMETERS,
        "COMPUTED_PARAMETERS": COMPUTED_PARAMETERS,
        "LIST_PARAMETERS": LIST_PARAMETERS,
        "TEXT_PARAMETERS": TEXT_PARAMETERS,
        "LATEST_TEXTS": LATEST_TEXTS,
        "FIRST_SORT": SORTS[0],
        "CHARS_MAX": CHARS_MAX,
        "TAGS_MAX": names.TAGS_PER_REPO_MAX,
        "JSON_MEDIA": JSON,
        "TEXT_MEDIA": TEXT,
        "HTML_MEDIA": HTML,
        "CACHE_CONTROL": CACHE_CONTROL,
        "EVERY_ANSWER": _object(answer_headers.SAFETY + answer_headers.CORS),
        "SAFETY": _object(answer_headers.SAFETY),
        "PREFLIGHT": _object(answer_headers.PREFLIGHT),
        "PAGE_SAFETY": _object(answer_headers.PAGE_SAFETY),
        "SAFETY_BY_MEDIA": {
            media: _object(headers) for media, headers in answer_headers.SAFETY_BY_MEDIA.items()
        },
        "READ_METHODS": answer_headers.READ_METHODS,
        "RATE_POLICY": answer_headers.policy(limit) if limit else "",
        "RATE_EXHAUSTED": answer_headers.exhausted(answer_headers.WINDOW_SECONDS),
        "RATE_WINDOW_SECONDS": answer_headers.WINDOW_SECONDS,
        "RETRY_SECONDS": answer_headers.RETRY_SECONDS,
        "STATUS": {
            code: (STATUS | LANGFUSE_STATUS)[code]
            for code in [*MESSAGES, *missing.MESSAGES, missing.WITHDRAWN]
        },
        "MESSAGES": MESSAGES,
        "MISSING": missing.MESSAGES,
        "NO_QUERIES": NO_QUERIES,
        "MISPLACED": misplaced(),
    }


def _row(route: Route) -> str:
    """The Worker's entry for a route; ``missing``: the reasons why a file of the route may not
    exist.
    """
    url, file, media, cache = map(_js, (route.url, route.file, route.media, route.cache))
    reasons = [
        [one.witness, one.code, *([one.text] if one.text else [])] for one in missing.reasons(route)
    ]
    last = f", missing: {_js(reasons)}" if route.has_json_errors else ""
    withdrawn = missing.withdrawn(route)
    last += f",\n    withdrawn: {_js(withdrawn)}" if withdrawn else ""
    return f"{{\n    url: {url}, file: {file},\n    media: {media}, cache: {cache}{last} }}"


def _object(headers: answer_headers.Headers) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers}


def _upstream_url(upstream: str) -> str:
    """The origin of `hubctl serve` for a Worker; empty for an address that only this machine can
    reach.
    """
    url = upstream if "://" in upstream else f"https://{upstream}"
    try:
        parts = urlsplit(url)
        is_origin = (
            parts.port != 0
            and parts.path in ("", "/")
            and not (parts.query or parts.fragment or "@" in parts.netloc)
        )
    except ValueError:
        is_origin = False
    if not is_origin or parts.scheme not in ("http", "https") or not parts.hostname:
        raise OperatorError(
            f"Invalid upstream {upstream!r}. Give the address at which Cloudflare reaches "
            "`hubctl serve`, without a path: https://hub-origin.example.org."
        )
    return url.rstrip("/") if _is_public(parts.hostname) else ""


def _is_public(host: str | None) -> bool:
    """True if a host name can mean the same host from outside its own machine and network."""
    try:
        return ipaddress.ip_address(host or "").is_global
    except ValueError:
        name = host or ""
        return "." in name and not name.endswith((".local", ".localhost", ".internal"))


def _js(value: object) -> str:
    """A value as JavaScript, as JSON is JavaScript."""
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict) else None)


def _regex(pattern: str) -> str:
    """A regular expression that matches a whole text, as JavaScript."""
    return "/^(?:" + pattern.replace("/", r"\/") + ")$/"


def _toml(text: str) -> str:
    """A text in TOML's quotes. Raises OperatorError for a text that is not valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OperatorError(
            f"Cannot write {text!r} to wrangler.toml: it is not UTF-8. Rename the folder."
        ) from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
