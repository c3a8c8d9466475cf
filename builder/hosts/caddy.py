"""Caddy: a complete configuration, from the table of routes.

Caddy's regular expressions are RE2's, which have no lookahead. So the configuration reads a query
parameter by parameter. Each parameter has a list of patterns; the first that matches counts.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from builder.hosts.caddy_options import (
    LOGS_CLIENTS_FROM,
    address,
    check_network,
    check_path,
    check_upstream,
    logs_clients,
    parse_listen,
    parse_redirect,
    quoted,
    shown,
)
from builder.hosts.rules import (
    CHALLENGE_PATTERN,
    LIST_DEFAULTS,
    TEXT_MEDIA,
    HostedSite,
    envelope,
    header_lines,
    open_patterns,
    parameter_pattern,
    rules,
    well_known_pattern,
)
from builder.hosts.templates import fill
from builder.model import answer_headers, missing, names
from builder.model.errors import (
    LANGFUSE_INVALID,
    LANGFUSE_NOT_FOUND,
    LANGFUSE_STATUS,
    STATUS,
    OperatorError,
)
from builder.model.matching import PROGRAM_PATTERN
from builder.model.messages import CLOSED, misplaced
from builder.model.routes import (
    API,
    API_ROOTS,
    BY_NAME,
    BYTES,
    COMPUTED_PARAMETERS,
    GRAMMAR,
    HTML,
    JSON,
    LANGFUSE_NOT_FILTERS,
    LANGFUSE_ROOT,
    LATEST_TEXTS,
    LIST_PARAMETERS,
    PARAMETERS,
    PARAMETERS_MAX,
    READ_ROUTES,
    TEXT,
    TEXT_PARAMETERS,
    WELL_KNOWN,
    Route,
)
from builder.model.service_urls import (
    ACCESS_URL,
    ACCOUNT_PATTERN,
    LOGIN_URL,
    MCP_URLS,
    MONITOR_URLS,
    POST_ONLY_PATTERN,
    WRITES,
)
from builder.model.settings import parse_base_url

FILE = "Caddyfile"

# The error codes of Caddy's own failures, by status; all others are internal errors.
_ERRORS = {"404": "not_found", "413": "content_too_large", "502 503 504": "unavailable"}

# The smallest limit of any system on the path of a Unix socket.
_SOCKET_BYTES_MAX = 103

# Patterns for a parameter of a URL: {0} is its name, {1} its grammar.
_CHECKED = "(?P<{0}>{1})"
_CHECKED_BEFORE = "(?P<{0}>[^/]+)"
_ANYTHING = "[^/]+"


class _Parameter(NamedTuple):
    """The meaning of a parameter's values. ``rows``: patterns of the text after its name in a
    query, each with the value that Caddy takes for it. ``default``: the value if the query does not
    have the parameter. ``key``: its name in the query.
    """

    rows: list[tuple[str, str]]
    default: str
    key: str


def folder(site: HostedSite) -> str:
    """The folder for Caddy's certificates and logs; must be writable for Caddy's user."""
    return f"{site.state}/caddy"


def files(site: HostedSite) -> dict[str, str]:
    """The configuration, by file name. Raises OperatorError for a value that it cannot contain."""
    site = site._replace(base_url=parse_base_url(site.base_url))
    base = site.base_path
    listen = parse_listen(site.listen)
    for place in (site.out, site.state, *(site.certificate or ())):
        check_path(place)
    check_upstream(site.upstream)
    for proxy in site.trusted_proxies:
        check_network(proxy)

    text = fill(
        "Caddyfile.jinja",
        site=site,
        folder=folder(site),
        ranges=_ranges(site),
        logs_clients=not site.trusted_proxies or logs_clients(),
        logs_clients_from=shown(LOGS_CLIENTS_FROM),
        address=address(listen, bool(site.certificate)),
        listen=listen,
        redirect=parse_redirect(site),
        challenge_pattern=CHALLENGE_PATTERN,
        base_pattern=re.escape(base),
        # The paths with JSON errors.
        api_pattern=f"(?:{re.escape(base)}/(?:{'|'.join(root[1:] for root in API_ROOTS)})(?:/|$)"
        f"|.*{re.escape(WELL_KNOWN)})",
        langfuse_pattern=f"{re.escape(base + LANGFUSE_ROOT)}(?:/|$)",
        langfuse_invalid=LANGFUSE_INVALID,
        langfuse_not_found=LANGFUSE_NOT_FOUND,
        quoted=quoted,
        envelope=lambda code, message: f"`{envelope(code, message)}`",
        status=STATUS | LANGFUSE_STATUS,
        errors=_ERRORS,
        cache=site.cache_control,
        json=JSON,
        html=HTML,
        plain_text=TEXT,
        **_headers(site),
        **_reads(base),
        **_queries(base),
        **_service(base),
        **_members(base),
    )
    return {FILE: text}


def _headers(site: HostedSite) -> dict[str, object]:
    """The template's values for the headers of responses."""
    return {
        "headers": header_lines(answer_headers.SAFETY + site.sharing),
        "page_headers": header_lines(answer_headers.PAGE_SAFETY),
        "file_headers": header_lines(answer_headers.FILE_SAFETY),
        "bytes": BYTES,
        "account_headers": header_lines(answer_headers.SAFETY),
        "preflight_headers": header_lines(site.preflight),
        "read_methods": answer_headers.READ_METHODS,
        "retry_seconds": answer_headers.RETRY_SECONDS,
        "packed_media": TEXT_MEDIA,
        "gzip_bytes_min": answer_headers.GZIP_BYTES_MIN,
    }


def _reads(base: str) -> dict[str, object]:
    """The template's values for requests answered from files, and for the reasons why a file is
    missing.
    """
    return {
        "rows": list(_rows(base)),
        "not_found_file": f"/{BY_NAME['not_found_page'].file}",
        "unavailable_file": f"/{BY_NAME['unavailable_page'].file}",
        "missing": [
            (
                _pattern(f"/{route.file}", _CHECKED_BEFORE),
                missing.withdrawn(route),
                missing.reasons(route),
            )
            # Long extensions come first, so `1.0.0.body.txt` is not read as the text of a version
            # `1.0.0.body`.
            for route in sorted(READ_ROUTES, key=lambda route: -route.file.count("."))
            if route.has_json_errors and "{" in route.file
        ],
        "withdrawn_pages": [
            (_pattern(f"/{route.file}", _CHECKED_BEFORE), missing.withdrawn(route))
            for route in READ_ROUTES
            if not route.has_json_errors and missing.withdrawn(route)
        ],
        "found": lambda template: _filled(template, "{{re.of.{}}}"),
        "wrong_names": _wrong_names(re.escape(base)),
        "unversioned": re.escape(base) + _pattern(BY_NAME["versions"].url) + "/[^/]+(?:/[^/]*)?",
        "unlabelled": re.escape(base) + _pattern(BY_NAME["labels"].url) + "/[^/]+(?:/[^/]*)?",
    }


def _queries(base: str) -> dict[str, object]:
    """The template's values for requests with a query."""
    return {
        "parameters": _parameters(),
        "computed": "".join(f"{{requested_{name}}}" for name in COMPUTED_PARAMETERS),
        "impossible": _impossible(),
        "misplaced": misplaced(),
        "api": f"{re.escape(base + API)}/",
        "requested_pattern": "|".join(
            re.escape(base) + _pattern(BY_NAME[name].url) for name in ("repos", *LATEST_TEXTS)
        ),
        "text_parameters": parameter_pattern(TEXT_PARAMETERS),
        "list_parameters": parameter_pattern(LIST_PARAMETERS),
        "all_parameters": parameter_pattern(PARAMETERS),
        "repos_url": base + BY_NAME["repos"].url,
        "list_url": base + BY_NAME["list"].url_for(sort="${1}", page="${2}"),
        "tag_list_url": base + BY_NAME["tag_list"].url_for(sort="${1}", page="${2}", tag="${3}"),
        "texts": [_requested_text(base, name) for name in LATEST_TEXTS],
        "langfuse": re.escape(base) + _pattern(BY_NAME["langfuse_prompt"].url),
        "langfuse_urls": {
            key: base
            + BY_NAME["langfuse_ref"].url_for(
                owner="{re.langfuse.owner}",
                name="{re.langfuse.name}",
                ref=f"{{requested_{key}}}",
            )
            for key in ("ordinal", "ref")
        },
        "langfuse_list": base + BY_NAME["langfuse_list"].url,
        "langfuse_page_url": base + BY_NAME["langfuse_page"].url_for(page="{requested_page}"),
        "langfuse_tag_page_url": base
        + BY_NAME["langfuse_tag_page"].url_for(tag="{requested_tag}", page="{requested_page}"),
        "not_filters": rf"(?:^|&)(?:{'|'.join(LANGFUSE_NOT_FILTERS)})(?:[=&]|$)",
        "langfuse_unknown": _filled(missing.MESSAGES[LANGFUSE_NOT_FOUND], "{{re.langfuse.{}}}"),
    }


def _requested_text(base: str, name: str) -> tuple[str, str, dict[str, str]]:
    """The name and the pattern of a text that can be requested with a query, and the URLs that
    serve the requested version or label, by parameter.
    """
    urls = {
        parameter: base
        + BY_NAME[f"{parameter}_{name}"].url_for(
            owner=f"{{re.{name}.owner}}",
            name=f"{{re.{name}.name}}",
            **{parameter: f"{{requested_{parameter}}}"},
        )
        for parameter in ("version", "label")
    }
    return name, re.escape(base) + _pattern(BY_NAME[name].url), urls


def _service(base: str) -> dict[str, object]:
    """The template's values for requests that `hubctl serve` answers."""
    return {
        "service_urls": [base + url for url in (*MCP_URLS, *MONITOR_URLS)],
        "writes": [
            ("_".join(methods).lower(), methods, re.escape(base) + pattern)
            for pattern, methods in WRITES.items()
        ],
        "post_only": re.escape(base) + POST_ONLY_PATTERN,
        "account": re.escape(base) + ACCOUNT_PATTERN,
    }


def _members(base: str) -> dict[str, object]:
    """The template's values for access to a private hub."""
    return {
        "unguarded": f"(?:{re.escape(base)}(?:{'|'.join(open_patterns('?P<{}>'))})"
        f"|{well_known_pattern(base)})",
        "programs": f"(?s:{re.escape(base)}(?:{PROGRAM_PATTERN}))",
        "access": base + ACCESS_URL,
        "login": base + LOGIN_URL,
        "closed": CLOSED,
    }


def _rows(base: str) -> Iterator[tuple[str, str, Route]]:
    """For each rule, the input of Caddy's map, the file it stands for, and the route."""
    for rule in rules("?P<{}>"):
        file = "/" + _filled(rule.route.file, "${{{}}}")
        for path in rule.paths:
            yield base + path, file, rule.route
            if path == "/" and base:
                yield base, file, rule.route
        if not rule.paths:
            yield f"~^{re.escape(base)}{rule.pattern}$", file, rule.route


def _wrong_names(base: str) -> dict[str, str]:
    """Patterns for invalid names of owners and repos; ``base`` is a pattern, too."""
    owner, repo = BY_NAME["user"].url, BY_NAME["repo"].url
    owners, repos = base + owner.partition("{")[0], base + repo.partition("{")[0]
    patterns = {rule.route.name: rule.pattern for rule in rules("?:")}
    below_repo = _pattern(repo, "(?:{1})") + "/.*"
    return {
        "with_capitals": f"(?:{owners}|{repos}(?:[^/]+/)?)[^/]*[A-Z]",
        "too_long": f"(?:(?:{owners}|{repos})[a-z0-9-]{{{names.OWNER_CHARS_MAX + 1}}}|"
        f"{repos}[^/]+/[a-z0-9-]{{{names.REPO_CHARS_MAX + 1}}})",
        "any": f"{base}(?:{_pattern(owner, _ANYTHING)}|"
        f"{_pattern(repo, _ANYTHING)}(?:/[^/]*){{0,3}})$",
        "right": f"{base}(?:{patterns['user']}|{patterns['repo']}|{below_repo})$",
    }


def _parameters() -> dict[str, _Parameter]:
    """The parameters by name. A value that needs decoding is passed to the service ("ASK")."""
    tag = GRAMMAR["tag"]
    special = {
        "tag": [
            (rf"=[^&%,]{{{names.TAG_CHARS_MAX + 1}}}", "WRONG"),
            (rf"={tag}(?:,{tag})+(?:&|$)", "ASK"),
        ],
    }
    special |= {key: [("=[^&]", "ASK")] for key in COMPUTED_PARAMETERS}
    found = {}
    for name in PARAMETERS:
        rows = special.get(name, [])
        if name in GRAMMAR:
            rows = [*rows, (f"=({GRAMMAR[name]})(?:&|$)", "${1}"), ("=[^&]*%", "ASK")]
        rows = [*rows, ("(?:[=&]|$)", "WRONG")]
        found[name] = _Parameter(rows, LIST_DEFAULTS.get(name, ""), name)
    # In Langfuse's SDKs a version is a number, and a number is never a label.
    checked = [("=[^&]*%", "ASK"), ("(?:[=&]|$)", "WRONG")]
    ordinal, label = [rf"=({GRAMMAR[name]})(?:&|$)" for name in ("ordinal", "label")]
    found["ordinal"] = _Parameter([(ordinal, "${1}"), *checked], "", "version")
    found["ref"] = _Parameter(
        [("=[0-9.]*(?:&|$)", "WRONG"), (label, "${1}"), *checked], "", "label"
    )
    return found


def _impossible() -> str:
    """The pattern of queries that are invalid at any address: a parameter given twice, too many
    parameters, or characters outside ASCII.
    """
    twice = "|".join(f"{name}(?:=[^&]*)?&(?:.*&)?{name}(?:[=&]|$)" for name in PARAMETERS)
    return rf"(?:^|&)(?:{twice})|^(?:[^&]*&){{{PARAMETERS_MAX}}}|[^\x00-\x7F]"


def _ranges(site: HostedSite) -> str:
    """The socket of the server for ranges. Raises OperatorError if its path is too long."""
    socket = f"{folder(site)}/ranges.sock"
    if len(socket.encode()) > _SOCKET_BYTES_MAX:
        raise OperatorError(
            f"The path of Caddy's socket is too long: {socket!r}. Choose a state folder with a "
            "shorter path (--state)."
        )
    return quoted(f"unix/{socket}")


def _pattern(template: str, parameter: str = _CHECKED) -> str:
    """The pattern of a URL template from the table; ``parameter`` stands for each of its
    parameters.
    """
    return re.sub(
        r"\\\{(\w+)\\\}",
        lambda found: parameter.format(found[1], GRAMMAR[found[1]]),
        re.escape(template),
    )


def _filled(template: str, placeholder: str) -> str:
    """A template of the table with Caddy's placeholders for its parameters."""
    return re.sub(r"\{(\w+)\}", lambda found: placeholder.format(found[1]), template)
