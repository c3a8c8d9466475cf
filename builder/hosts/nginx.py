"""nginx: a complete configuration, from the table of routes."""

import re
from typing import NamedTuple

from builder.hosts.nginx_answers import header_values, limits_and_errors, quoted, write_place
from builder.hosts.rules import (
    CHALLENGE_PATTERN,
    LIST_DEFAULTS,
    HostedSite,
    Rule,
    envelope,
    open_patterns,
    parameter_pattern,
    rules,
    value_pattern,
    well_known_pattern,
)
from builder.hosts.templates import fill
from builder.model import names
from builder.model.errors import (
    LANGFUSE_NOT_FOUND,
    OperatorError,
)
from builder.model.matching import PROGRAM_PATTERN
from builder.model.messages import (
    CLOSED,
    MESSAGES,
)
from builder.model.missing import Reason, reasons, withdrawn
from builder.model.routes import (
    BY_NAME,
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
    ACCOUNT_URL,
    LOGIN_URL,
    MCP_URLS,
    MONITOR_URLS,
    POST_ONLY_PATTERN,
    TRUSTED_URL,
    WRITES,
)

FILE = "nginx.conf"

# The optional extension in the pattern of a text.
_TEXT = r"(?:\.txt)?"

_known = "|".join(PARAMETERS)
# The location that passes requests to the service.
_ASK = "ask"
# Queries that no map reads, and their locations. A query that needs decoding goes to the service.
_ODD_QUERIES = (
    (rf"^(?:[^&]*&){{{PARAMETERS_MAX}}}", "invalid_parameter"),
    (rf"(?:^|&)(?:(?:{_known})=[^&]*|[^=&]*)[%+]", _ASK),
    (rf"(?:^|&)({_known})(?:=[^&]*)?&(?:[^&]*&)*\1(?:[=&]|$)", "invalid_parameter"),
)

# URLs that the service answers for all readers. It checks access itself where that is needed.
_SERVICE_URLS = (*MCP_URLS, *MONITOR_URLS, TRUSTED_URL)
# Error locations that show nothing of the site, or only a page without prompts.
_ERROR_PLACES = (
    "bad_request|internal_error|read_only|content_too_large|unavailable|preflight|"
    "account_too_large|account_unavailable|allow_[a-z_]+"
)


class Place(NamedTuple):
    """A location of the configuration: its condition, its URL's path, and the file it serves.

    ``url`` and ``file`` contain nginx's variables for the route's parameters.
    """

    route: Route
    where: str
    url: str
    file: str


def folder(site: HostedSite) -> str:
    """The folder for nginx's logs, cache and temporary files; must exist when nginx starts."""
    return f"{site.state}/nginx"


def files(site: HostedSite) -> dict[str, str]:
    """The configuration, by file name. Raises OperatorError for a path that it cannot contain."""
    for path in (site.out, site.state, *(site.certificate or ())):
        _check(path)
    text = fill(
        "nginx.conf.jinja",
        site=site,
        base=site.base_path,
        folder=folder(site),
        # The address :: then includes all IPv4 addresses.
        listen=lambda place: f"{place} ipv6only=off" if place.startswith("[::]:") else place,
        challenge_pattern=CHALLENGE_PATTERN,
        cache=site.cache_control,
        json=JSON,
        html=HTML,
        plain_text=TEXT,
        envelope=envelope,
        path=_path,
        text=quoted,
        variables=_variables,
        file=lambda template: f"{site.out}/{_variables(template)}",
        # ACME tokens have a location of their own, the folder of challenges.
        well_known=rf"{re.escape(WELL_KNOWN)}(?!acme-challenge/)",
        **_reads(site),
        **_queries(site),
        **_service(site.base_path),
        **_members(site),
        **header_values(site),
        **limits_and_errors(site),
    )
    return {FILE: text}


def _reads(site: HostedSite) -> dict[str, object]:
    """The template's values for requests answered from files."""
    base = site.base_path
    places = [place for rule in rules(limits=True) for place in _places(site, base, rule)]
    # The locations that accept a query, and the home page, which is the base path itself.
    lists, home, not_found, unavailable, *texts = [
        next(place for place in places if place.route.name == name)
        for name in ("repos", "home", "not_found_page", "unavailable_page", *LATEST_TEXTS)
    ]
    langfuse = [place for place in places if place.route.scope == "langfuse"]
    # A route can have two locations; the first is that of its URL.
    langfuse_requested = {place.route.name: place for place in reversed(langfuse)}
    langfuse_prompt, langfuse_list = map(
        langfuse_requested.__getitem__, ("langfuse_prompt", "langfuse_list")
    )
    plain = [place for place in places if place not in (lists, home, *texts)]
    # The path of the file itself takes no query.
    plain += [text._replace(where=text.where.replace(_TEXT, _TEXT[:-1])) for text in texts]
    return {
        "home": dict.fromkeys((f"{base}/", base or "/")),
        "lists": lists,
        "texts": [text._replace(where=text.where.replace(_TEXT, "")) for text in texts],
        "langfuse": langfuse_prompt,
        "langfuse_list": langfuse_list,
        "langfuse_plain": [
            place for place in langfuse if place not in (langfuse_prompt, langfuse_list)
        ],
        "langfuse_root": base + LANGFUSE_ROOT,
        "not_found_page": not_found,
        "unavailable_page": unavailable,
        # The patterns exclude each other, so order is only speed: the most frequent reads come
        # first.
        "api": sorted(
            (place for place in plain if place.route.is_api and place.route.scope != "langfuse"),
            key=lambda place: place.route.scope not in ("repo", "version", "label"),
        ),
        "pages": [place for place in plain if not place.route.is_api],
        "slashes": _slashes(site, base),
        **_missing(),
    }


def _missing() -> dict[str, object]:
    """The template's values for the reasons why a file is missing."""
    return {
        "missing": [
            ("", "api", [], reasons(BY_NAME["hub"])),
            ("langfuse", "api", [], [Reason("", LANGFUSE_NOT_FOUND, MESSAGES[LANGFUSE_NOT_FOUND])]),
        ]
        + [
            (route.name, "api" if route.is_api else "file", withdrawn(route), reasons(route))
            for route in READ_ROUTES
            if route.has_json_errors
        ],
        "withdrawn_pages": {
            route.name: withdrawn(route)
            for route in READ_ROUTES
            if not route.has_json_errors and withdrawn(route)
        },
    }


def _queries(site: HostedSite) -> dict[str, object]:
    """The template's values for requests with a query."""
    base, tag = site.base_path, value_pattern("tag")
    ask = _ASK if site.upstream else "no_queries"
    return {
        "grammar": {parameter: value_pattern(parameter) for parameter in GRAMMAR},
        "odd_queries": [
            (pattern, ask if place == _ASK else place) for pattern, place in _ODD_QUERIES
        ],
        "ask": ask,
        "misplaced": {
            "list": parameter_pattern(TEXT_PARAMETERS),
            "text": parameter_pattern(LIST_PARAMETERS),
            "other": parameter_pattern(PARAMETERS),
        },
        # Names of parameters are lower-case letters, which are %61 to %7A when encoded.
        "encoded": r"(?:^|&)[a-z]*%[67][0-9A-Fa-f](?:[a-z]|%[67][0-9A-Fa-f])*(?:[=&]|$)",
        "computed": "|".join(COMPUTED_PARAMETERS),
        "tags": f"{tag}(?:,{tag}){{0,{names.TAGS_PER_REPO_MAX - 1}}}",
        "requested": LIST_DEFAULTS | {"tag": "", "version": "", "label": ""},
        "list": base + _variables(BY_NAME["list"].url, "requested_"),
        "tag_list": base + _variables(BY_NAME["tag_list"].url, "requested_"),
        "requested_texts": {
            f"{key}_{text}": base
            + _variables(BY_NAME[f"{key}_{text}"].url).replace(f"${key}", f"$requested_{key}")
            for key in ("version", "label")
            for text in LATEST_TEXTS
        },
        **_langfuse_queries(site),
    }


def _langfuse_queries(site: HostedSite) -> dict[str, object]:
    """The template's values for queries of Langfuse's API."""
    unknown = "missing/langfuse_prompt"
    places = {
        _ASK: _ASK if site.upstream else unknown,
        "invalid_parameter": "langfuse_invalid",
    }
    list_places = places | ({} if site.upstream else {_ASK: "langfuse_invalid"})
    url = site.base_path + _variables(BY_NAME["langfuse_ref"].url)
    return {
        "langfuse_odd_queries": [(pattern, places[place]) for pattern, place in _ODD_QUERIES],
        "langfuse_odd_list_queries": [
            (pattern, list_places[place]) for pattern, place in _ODD_QUERIES
        ],
        "langfuse_unknown": unknown,
        "langfuse_requested": url.replace("$ref", "$requested_ref"),
        "langfuse_pages": {
            name: site.base_path + _variables(BY_NAME[name].url, "requested_")
            for name in ("langfuse_page", "langfuse_tag_page")
        },
        "not_filters": "|".join(LANGFUSE_NOT_FILTERS),
    }


def _service(base: str) -> dict[str, object]:
    """The template's values for requests that `hubctl serve` answers."""
    return {
        "mcp": f"(?:{'|'.join(re.escape(base + url) for url in MCP_URLS)})",
        "service_urls": _SERVICE_URLS,
        "writes": [
            (write_place(methods), "|".join(methods), re.escape(base) + pattern)
            for pattern, methods in WRITES.items()
        ],
        "post_only": re.escape(base) + POST_ONLY_PATTERN,
        "account": [f"= {base}{ACCOUNT_URL}", f"{base}{ACCOUNT_URL}/"],
        # (?s): a line break is a character like others.
        "account_pattern": f"(?s:{re.escape(base)}{ACCOUNT_PATTERN})",
    }


def _members(site: HostedSite) -> dict[str, object]:
    """The template's values for access to a private hub."""
    base = site.base_path
    patterns = [*open_patterns(), *map(re.escape, _SERVICE_URLS), f"(?s:{ACCOUNT_PATTERN})"]
    return {
        # Error locations are open, too: they show nothing of the hub.
        "unguarded": f"(?:{re.escape(base)}(?:{'|'.join(patterns)})|/-/(?:access|{_ERROR_PLACES})"
        f"|{well_known_pattern(base)})",
        "programs": f"(?s:{re.escape(base)}(?:{PROGRAM_PATTERN}))",
        "access": base + ACCESS_URL,
        "login": base + LOGIN_URL,
        "closed": CLOSED,
        "refusals": {
            code: envelope(code, MESSAGES[code].replace(ACCOUNT_URL, site.base_url + ACCOUNT_URL))
            for code in ("invalid_token", "token_expired", "missing_token")
        },
    }


def _places(site: HostedSite, base: str, rule: Rule) -> list[Place]:
    url, file = base + _variables(rule.route.url), f"{site.out}/{_variables(rule.route.file)}"
    if rule.paths and (rule.route.is_api or len(rule.paths) == 1 or rule.route.name == "home"):
        return [Place(rule.route, f"= {base}{path}", url, file) for path in rule.paths]
    pattern = f"(?:{rule.pattern})" if rule.paths else rule.pattern
    return [Place(rule.route, f'~ "^{re.escape(base)}{pattern}\\z"', url, file)]


def _slashes(site: HostedSite, base: str) -> list[Place]:
    """The URLs of pages with a trailing slash."""
    return [
        place._replace(where=place.where.replace('\\z"', '/\\z"'))
        for rule in rules(limits=True)
        if rule.route.media == HTML and rule.route.name != "home"
        for place in _places(site, base, rule)[:1]
    ]


def _variables(template: str, prefix: str = "") -> str:
    """A template of the table, with nginx's variables for its parameters."""
    return re.sub(r"\{(\w+)\}", rf"${prefix}\g<1>", template)


def _path(path: str) -> str:
    return f'"{path}"'


def _check(path: str) -> None:
    if re.search(r"""["'$\\{};#\x00-\x1f\x7f]""", path):
        raise OperatorError(
            f"nginx's configuration cannot contain the path {path!r}. Choose a path without "
            "quotes, $, braces, semicolons, #, backslashes or control characters."
        )
