"""The table: every URL, file, media type, cache rule and scope of the site, stated once.

The builder, the embedded server, the OpenAPI document and docs/reference/endpoints.md read it;
generated host configurations and the tool server's reader do the same.

A URL here is a path below the base URL. A file is a path below the site's folder: the URL plus
an extension, and a query becomes path segments, so that a host that ignores queries serves all
of it by path. Both directions come from one template: ``Route.url_for`` and ``Route.file_for``
make paths from parameters, ``match_url`` and ``match_file`` find route and parameters again.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from builder import VERSION
from builder.model import names

SORTS = ("top", "trending", "new")
PAGE_SIZE = 50
# Of a list, for people: nobody turns more pages, one searches. Programs get them all.
LIST_PAGES_MAX = 20
QUERY_CHARS_MAX = 500
# What means something in a URL's query, of a list or a text; each at most once.
PARAMETERS = ("page", "sort", "tag", "q", "version", "label")
PARAMETERS_MAX = 50
# Langfuse's API has more filters of lists. A list that ignored one would say what is not so.
LANGFUSE_NOT_FILTERS = ("name", "label", "version", "fromUpdatedAt", "toUpdatedAt")

API = "/api/v1"
# Where Langfuse's SDKs find prompts, if the site was built for them.
LANGFUSE_ROOT = "/langfuse"
LANGFUSE = f"{LANGFUSE_ROOT}/api/public/v2/prompts"
# Below these, programs read: errors are JSON, and reads are limited.
API_ROOTS = ("/api", LANGFUSE_ROOT)
# The shell client is released with the hub.
CLIENT_VERSION = VERSION

JSON = "application/json"
JSON_LINES = "application/x-ndjson"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
CSS = "text/css; charset=utf-8"
SCRIPT = "text/javascript; charset=utf-8"
SVG = "image/svg+xml"
XML = "application/xml; charset=utf-8"
ATOM = "application/atom+xml; charset=utf-8"
GZIP = "application/gzip"

CACHE_CONTROL = {
    "immutable": "public, max-age=604800, immutable",
    "version": "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400",
    "repo": "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400",
    "list": "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400",
    "query": "public, max-age=60",
    # Of a search: the prompt that someone looks for may have just been published.
    "nothing": "public, max-age=5",
    "not_found": "public, max-age=10",
    "none": "no-store",
}

# What is at these paths follows from code and settings alone: sign-in needs the assets, and a
# member's first client comes from here.
OPEN_ROOTS = ("/assets/", "/cli/", "/clients/", "/robots.txt")

# The Content-Security-Policy of pages. Prompts are other people's text: a page runs nothing but
# the site's own files, and loads nothing from elsewhere.
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'self'"
)

# What a parameter of a template may be. A reader's value outside of its grammar never becomes
# part of a path.
GRAMMAR = {
    "owner": names.NAME_PATTERN,
    "name": names.NAME_PATTERN,
    "tag": names.NAME_PATTERN,
    "version": names.VERSION_PATTERN,
    # As few characters as possible: what follows may be an extension, and no label ends like one.
    "label": names.LABEL_PATTERN,
    "ordinal": names.ORDINAL_PATTERN,
    # In `owner/name@ref`: a version, a number of publication, or a label. All look like labels.
    "ref": names.LABEL_PATTERN,
    "sort": "|".join(SORTS),
    "page": "[1-9][0-9]{0,8}",
}
# Where the grammar does not say how long it may be.
CHARS_MAX = {
    "owner": names.OWNER_CHARS_MAX,
    "name": names.REPO_CHARS_MAX,
    "tag": names.TAG_CHARS_MAX,
}

# "versions": a repo with two versions or more, which alone can be compared. "langfuse": a repo or a
# list of a site that was built for Langfuse's SDKs.
Scope = Literal[
    "withdrawn", "version", "versions", "label", "langfuse", "repo", "owner", "tag", "list", "site"
]  # fmt: skip


class Route(NamedTuple):
    """A row of the table.

    ``scope`` names the one object that the file is rendered from, hence what a change touches.
    ``query``: how the spec's URL says the same with a query, for the endpoints that have one.
    ``summary`` describes a public endpoint; a route without one is not in the API document.
    """

    name: str
    url: str
    file: str
    media: str
    cache: str
    scope: Scope
    query: str = ""
    summary: str = ""

    def url_for(self, **params: object) -> str:
        """The URL's path. ``params`` must have passed their grammar."""
        return self.url.format_map(params)

    def file_for(self, **params: object) -> str:
        """The file's path relative to the site's folder."""
        return self.file.format_map(params)

    @property
    def is_api(self) -> bool:
        return is_api_path(self.url)

    @property
    def is_open(self) -> bool:
        """Whether strangers read it on a private hub, too: nothing in it is from the content."""
        return f"/{self.file}".startswith(OPEN_ROOTS)

    @property
    def compressed(self) -> "Route | None":
        """The row of the same file in compressed form, where there is one."""
        return BY_NAME.get(f"{self.name}_gzip")


_ROWS = (
    # The API of the spec
    Route(
        "repos", f"{API}/repos", "api/v1/repos.json", JSON, "list", "list",
        summary="Repos: filtered, sorted, one page at a time",
    ),
    Route(
        "list", f"{API}/repos/_/{{sort}}/{{page}}", "api/v1/repos/_/{sort}/{page}.json",
        JSON, "list", "list", query=f"{API}/repos?sort={{sort}}&page={{page}}",
        summary="One page of all repos, by path",
    ),
    Route(
        "tag_list", f"{API}/tags/{{tag}}/{{sort}}/{{page}}", "api/v1/tags/{tag}/{sort}/{page}.json",
        JSON, "list", "list", query=f"{API}/repos?tag={{tag}}&sort={{sort}}&page={{page}}",
        summary="One page of the repos with a tag, by path",
    ),
    Route(
        "repo", f"{API}/repos/{{owner}}/{{name}}", "api/v1/repos/{owner}/{name}.json",
        JSON, "repo", "repo", summary="One repo with its latest content, variables and parameters",
    ),
    Route(
        "versions", f"{API}/repos/{{owner}}/{{name}}/versions",
        "api/v1/repos/{owner}/{name}/versions.json", JSON, "repo", "repo",
        summary="All versions of a repo, newest first",
    ),
    Route(
        "version", f"{API}/repos/{{owner}}/{{name}}/versions/{{version}}",
        "api/v1/repos/{owner}/{name}/versions/{version}.json", JSON, "version", "version",
        summary="One version with its content",
    ),
    Route(
        "raw", f"{API}/repos/{{owner}}/{{name}}/raw", "api/v1/repos/{owner}/{name}/raw.txt",
        TEXT, "repo", "repo", summary="The text of the latest version",
    ),
    Route(
        "version_raw", f"{API}/repos/{{owner}}/{{name}}/versions/{{version}}.txt",
        "api/v1/repos/{owner}/{name}/versions/{version}.txt", TEXT, "immutable", "version",
        query=f"{API}/repos/{{owner}}/{{name}}/raw?version={{version}}",
        summary="The text of one version; never changes",
    ),
    Route(
        "body", f"{API}/repos/{{owner}}/{{name}}/body", "api/v1/repos/{owner}/{name}/body.txt",
        TEXT, "repo", "repo", summary="The text of the latest version after its front matter",
    ),
    Route(
        "version_body", f"{API}/repos/{{owner}}/{{name}}/versions/{{version}}.body.txt",
        "api/v1/repos/{owner}/{name}/versions/{version}.body.txt", TEXT, "immutable", "version",
        query=f"{API}/repos/{{owner}}/{{name}}/body?version={{version}}",
        summary="The text of one version after its front matter; never changes",
    ),
    Route(
        "diff", f"{API}/repos/{{owner}}/{{name}}/versions/{{version}}/diff",
        "api/v1/repos/{owner}/{name}/versions/{version}.diff", TEXT, "version", "version",
        summary="Unified diff from the previous version",
    ),
    Route(
        "labels", f"{API}/repos/{{owner}}/{{name}}/labels",
        "api/v1/repos/{owner}/{name}/labels.json", JSON, "repo", "label",
        summary="All labels of a repo with the version that each names",
    ),
    # Each before the next, whose label would match the extension as well.
    Route(
        "label_body", f"{API}/repos/{{owner}}/{{name}}/labels/{{label}}.body.txt",
        "api/v1/repos/{owner}/{name}/labels/{label}.body.txt", TEXT, "repo", "label",
        query=f"{API}/repos/{{owner}}/{{name}}/body?label={{label}}",
        summary="The text of the version that a label names, after its front matter",
    ),
    Route(
        "label_raw", f"{API}/repos/{{owner}}/{{name}}/labels/{{label}}.txt",
        "api/v1/repos/{owner}/{name}/labels/{label}.txt", TEXT, "repo", "label",
        query=f"{API}/repos/{{owner}}/{{name}}/raw?label={{label}}",
        summary="The text of the version that a label names",
    ),
    Route(
        "label", f"{API}/repos/{{owner}}/{{name}}/labels/{{label}}",
        "api/v1/repos/{owner}/{name}/labels/{label}.json", JSON, "repo", "label",
        summary="The version that a label names, with its content",
    ),
    Route(
        "label_history", f"{API}/repos/{{owner}}/{{name}}/labels/{{label}}/history",
        "api/v1/repos/{owner}/{name}/labels/{label}/history.json", JSON, "repo", "label",
        summary="All moves of a label, newest first",
    ),
    # Why something is not there any more. A host sends them with status 410 instead of the files
    # that are gone; a plain file host has them at their own paths alone.
    Route(
        "withdrawn_version", f"{API}/repos/{{owner}}/{{name}}/versions/{{version}}/withdrawn",
        "api/v1/repos/{owner}/{name}/versions/{version}/withdrawn.json", JSON, "none", "withdrawn",
    ),
    Route(
        "withdrawn_repo", f"{API}/repos/{{owner}}/{{name}}/withdrawn",
        "api/v1/repos/{owner}/{name}/withdrawn.json", JSON, "none", "withdrawn",
    ),
    Route(
        "tags", f"{API}/tags", "api/v1/tags.json", JSON, "list", "tag",
        summary="All tags, with the number of repos",
    ),
    Route(
        "user", f"{API}/users/{{owner}}", "api/v1/users/{owner}.json", JSON, "list", "owner",
        summary="A user's profile, with their repos",
    ),
    Route(
        "hub", f"{API}/hub.json", "api/v1/hub.json", JSON, "list", "site",
        summary="This service: its name, features, serial and URLs",
    ),
    Route(
        "catalogue", f"{API}/catalogue.jsonl", "api/v1/catalogue.jsonl", JSON_LINES, "list", "site",
        summary="All repos, one line of JSON each",
    ),
    Route(
        "openapi", f"{API}/openapi.json", "api/v1/openapi.json", JSON, "list", "site",
        summary="This API as an OpenAPI 3.1 document",
    ),
    # Langfuse's API. Its lists are in the order of the first of SORTS. A host without rules serves
    # the files of prompts as they are, so their names are those of the URLs, and none is a folder
    # for others.
    Route(
        "langfuse_list", LANGFUSE, f"{LANGFUSE[1:]}.json", JSON, "list", "langfuse",
    ),
    Route(
        "langfuse_page", f"{LANGFUSE}/_/{{page}}", f"{LANGFUSE[1:]}/_/{{page}}.json",
        JSON, "list", "langfuse",
    ),
    Route(
        "langfuse_tag_page", f"{LANGFUSE}/_/{{tag}}/{{page}}",
        f"{LANGFUSE[1:]}/_/{{tag}}/{{page}}.json", JSON, "list", "langfuse",
    ),
    Route(
        "langfuse_ref", f"{LANGFUSE}/{{owner}}/{{name}}@{{ref}}",
        f"{LANGFUSE[1:]}/{{owner}}/{{name}}@{{ref}}", JSON, "repo", "langfuse",
    ),
    Route(
        "langfuse_prompt", f"{LANGFUSE}/{{owner}}/{{name}}", f"{LANGFUSE[1:]}/{{owner}}/{{name}}",
        JSON, "repo", "langfuse",
    ),
    # Pages for people
    Route("home", "/", "index.html", HTML, "list", "site"),
    Route("list_page", "/{sort}", "{sort}.html", HTML, "list", "list"),
    Route("list_pages", "/{sort}/{page}", "{sort}/{page}.html", HTML, "list", "list"),
    Route("connect", "/connect", "connect.html", HTML, "list", "site"),
    Route("tags_page", "/tags", "tags.html", HTML, "list", "tag"),
    Route("tag_page", "/tags/{tag}", "tags/{tag}.html", HTML, "list", "list"),
    Route("tag_sort_page", "/tags/{tag}/{sort}", "tags/{tag}/{sort}.html", HTML, "list", "list"),
    Route(
        "tag_pages", "/tags/{tag}/{sort}/{page}", "tags/{tag}/{sort}/{page}.html",
        HTML, "list", "list",
    ),
    Route("owner_page", "/{owner}", "{owner}.html", HTML, "list", "owner"),
    Route("repo_page", "/{owner}/{name}", "{owner}/{name}.html", HTML, "list", "repo"),
    Route(
        "version_page", "/{owner}/{name}/{version}", "{owner}/{name}/{version}.html",
        HTML, "list", "version",
    ),
    # A page that reads its query in the browser, so one file does for any two versions.
    Route(
        "compare_page", "/{owner}/{name}/compare", "{owner}/{name}/compare.html",
        HTML, "list", "versions",
    ),
    Route(
        "versions_page", "/{owner}/{name}/versions", "{owner}/{name}/versions.html",
        HTML, "list", "versions",
    ),
    Route(
        "withdrawn_version_page", "/{owner}/{name}/{version}/withdrawn",
        "{owner}/{name}/{version}/withdrawn.html", HTML, "none", "withdrawn",
    ),
    Route(
        "withdrawn_repo_page", "/{owner}/{name}/withdrawn", "{owner}/{name}/withdrawn.html",
        HTML, "none", "withdrawn",
    ),
    Route("search_page", "/search", "search.html", HTML, "list", "site"),
    Route("api_page", "/docs", "docs.html", HTML, "list", "site"),
    Route("not_found_page", "/404", "404.html", HTML, "not_found", "site"),
    # What a host sends for the account settings while their service is down.
    Route("unavailable_page", "/503", "503.html", HTML, "none", "site"),
    Route("stylesheet", "/assets/style.css", "assets/style.css", CSS, "list", "site"),
    Route("site_script", "/assets/site.js", "assets/site.js", SCRIPT, "list", "site"),
    Route("search_script", "/assets/search.js", "assets/search.js", SCRIPT, "list", "site"),
    Route(
        "catalogue_script", "/assets/catalogue.js", "assets/catalogue.js", SCRIPT, "list", "site"
    ),
    Route("prompt_script", "/assets/prompt.js", "assets/prompt.js", SCRIPT, "list", "site"),
    Route("download_script", "/assets/download.js", "assets/download.js", SCRIPT, "list", "site"),
    Route("version_script", "/assets/version.js", "assets/version.js", SCRIPT, "list", "site"),
    Route("compare_script", "/assets/compare.js", "assets/compare.js", SCRIPT, "list", "site"),
    Route("changes_script", "/assets/changes.js", "assets/changes.js", SCRIPT, "list", "site"),
    Route(
        "changes_table_script", "/assets/changes_table.js", "assets/changes_table.js",
        SCRIPT, "list", "site",
    ),
    Route("jsdiff_script", "/assets/jsdiff.js", "assets/jsdiff.js", SCRIPT, "list", "site"),
    Route("account_script", "/assets/account.js", "assets/account.js", SCRIPT, "list", "site"),
    Route("editor_script", "/assets/editor.js", "assets/editor.js", SCRIPT, "list", "site"),
    Route(
        "prompt_text_script", "/assets/prompt_text.js", "assets/prompt_text.js",
        SCRIPT, "list", "site",
    ),
    Route(
        "text_field_script", "/assets/text_field.js", "assets/text_field.js",
        SCRIPT, "list", "site",
    ),
    Route(
        "marked_text_script", "/assets/marked_text.js", "assets/marked_text.js",
        SCRIPT, "list", "site",
    ),
    Route(
        "codemirror_script", "/assets/codemirror.js", "assets/codemirror.js",
        SCRIPT, "list", "site",
    ),
    Route("icon", "/assets/icon.svg", "assets/icon.svg", SVG, "list", "site"),
    # For programs that look for pages
    Route("feed", "/feed.xml", "feed.xml", ATOM, "list", "list"),
    Route("owner_feed", "/{owner}/feed.xml", "{owner}/feed.xml", ATOM, "list", "owner"),
    Route(
        "repo_feed", "/{owner}/{name}/feed.xml", "{owner}/{name}/feed.xml", ATOM, "list", "repo"
    ),
    Route("sitemap", "/sitemap.xml", "sitemap.xml", XML, "list", "site"),
    Route("sitemap_part", "/sitemap-{page}.xml", "sitemap-{page}.xml", XML, "list", "site"),
    Route("robots", "/robots.txt", "robots.txt", TEXT, "list", "site"),
    Route("llms", "/llms.txt", "llms.txt", TEXT, "list", "site"),
    Route("server_json", "/server.json", "server.json", JSON, "list", "site"),
    # The shell client
    Route("client", "/cli/hub", "cli/hub", TEXT, "list", "site"),
    Route(
        "client_release", f"/cli/releases/v{CLIENT_VERSION}/hub",
        f"cli/releases/v{CLIENT_VERSION}/hub", TEXT, "list", "site",
    ),
    Route(
        "client_checksum", f"/cli/releases/v{CLIENT_VERSION}/hub.sha256",
        f"cli/releases/v{CLIENT_VERSION}/hub.sha256", TEXT, "list", "site",
    ),
    # The clients for programs, each a module in one file
    Route(
        "python_client", "/clients/hub_prompts.py", "clients/hub_prompts.py", TEXT, "list", "site"
    ),
    # The TypeScript client: also browsers can import it from here
    Route("script_client", "/clients/hub.js", "clients/hub.js", SCRIPT, "list", "site"),
    Route("script_client_types", "/clients/hub.d.ts", "clients/hub.d.ts", TEXT, "list", "site"),
)  # fmt: skip

# Large, read often, written seldom: also compressed beforehand, for hosts that send such files.
_COMPRESSED = (
    "home", "connect", "search_page", "api_page", "openapi", "catalogue", "stylesheet",
    "site_script", "search_script", "catalogue_script", "prompt_script", "codemirror_script",
)  # fmt: skip


def _compressed(row: Route) -> Route:
    file = f"{row.file}.gz"
    return Route(f"{row.name}_gzip", f"/{file}", file, GZIP, row.cache, row.scope)


ROUTES = _ROWS + tuple(_compressed(row) for row in _ROWS if row.name in _COMPRESSED)
BY_NAME = {route.name: route for route in ROUTES}
# Those that have a URL of their own on every host.
READ_ROUTES = tuple(route for route in ROUTES if route.scope != "withdrawn")

# Texts of the latest version. A query asks for those of a version or of what a label names, which
# are the rows `version_raw`, `label_raw`, and so on.
ASKED_TEXTS = ("raw", "body")

# Paths whose end says that a program reads them, or whose beginning: as a regular expression.
PROGRAM_PATTERN = (
    rf"(?:{'|'.join(re.escape(root) for root in API_ROOTS)})(?:/.*)?"
    r"|/mcp/?|.*\.(?:gz|json|jsonl|md|txt|xml)"
)

# What the publish service answers: POST to the first, PUT and DELETE to the second.
PUBLISH_URL = BY_NAME["versions"].url
LABEL_URL = BY_NAME["label"].url
# As regular expressions: whatever the names in it, the service tells what is wrong with them.
PUBLISH_PATTERN = re.sub(r"\{\w+\}", "[^/]+", PUBLISH_URL)
LABEL_URL_PATTERN = re.sub(r"\{\w+\}", "[^/]+", LABEL_URL)
# By what matches a URL's path: the methods that write there.
WRITES = {PUBLISH_PATTERN: ("POST",), LABEL_URL_PATTERN: ("PUT", "DELETE")}
# GET: how the builds are doing, and whether all works.
HEALTH_URL = "/healthz"
READY_URL = "/readyz"
MONITOR_URLS = (HEALTH_URL, READY_URL)
# Where a job of a CI gets a token by what its own issuer says of it; POST as well.
TRUSTED_URL = f"{API}/trusted-publishing/token"
# The account settings: pages of the publish service, at this URL and all below it.
ACCOUNT_URL = "/account"
ACCOUNT_PATTERN = f"{ACCOUNT_URL}(?:/.*)?"
# GET: whether who sends the request may read a private hub. 204, or 401; 503 if nobody can tell.
ACCESS_URL = f"{ACCOUNT_URL}/access"
# Where people sign in; a page to go on to may follow as `?page=`, as it stands in its URL.
LOGIN_URL = f"{ACCOUNT_URL}/login"
# Among these, where owners write: the list of their prompts, and below it pages whose forms may be
# as large as a publication.
WRITING_URL = f"{ACCOUNT_URL}/prompts"
# Where `hubctl serve` speaks MCP.
MCP_URL = "/mcp"
MCP_URLS = (MCP_URL, f"{MCP_URL}/")

# What a host reads in the site's folder; `hubctl hosts` writes them, and no build touches them.
HOST_FILES = frozenset({"_headers", "_redirects", ".nojekyll"})

_max_age = re.compile(r"max-age=(\d+)")
_FIELD = re.compile(r"\{(\w+)\}")


def is_api_path(path: str) -> bool:
    """Whether a URL's path is for programs, also where nothing is."""
    return f"{path}/".startswith(tuple(f"{root}/" for root in API_ROOTS))


def is_page_path(path: str) -> bool:
    """Whether a URL's path is for people, also where nothing is: on a private hub, those who are
    not signed in are sent to sign in; programs get an error.
    """
    return re.fullmatch(PROGRAM_PATTERN, path, re.DOTALL) is None


def private_cache(cache_control: str) -> str:
    """What a private hub says instead of one of CACHE_CONTROL: only the reader's own cache may
    keep it.
    """
    return cache_control.replace("public", "private")


def max_age_seconds(cache: str) -> int:
    """How long an answer of a cache class is fresh."""
    found = _max_age.search(CACHE_CONTROL[cache])
    return int(found[1]) if found else 0


def write_methods(path: str) -> tuple[str, ...]:
    """The methods that write at a URL's path, whatever the names in it; none nearly everywhere."""
    return next((WRITES[one] for one in WRITES if re.fullmatch(one, path)), ())


def is_account_url(path: str) -> bool:
    """Whether a URL's path is one of the account settings, or would be."""
    return f"{path}/".startswith(f"{ACCOUNT_URL}/")


def list_api(tag: str | None, sort: str, page: int) -> "Match":
    """The row of one page of a list as JSON; ``tag`` None for the list of all repos."""
    name = "tag_list" if tag else "list"
    return _match(name, tag=tag, sort=sort, page=page)


def langfuse_page(tag: str | None, page: int) -> "Match":
    """The row of one page of a list for Langfuse's SDKs."""
    return _match("langfuse_tag_page" if tag else "langfuse_page", tag=tag, page=page)


def list_page(tag: str | None, sort: str, page: int) -> "Match":
    """The row of one page of a list for people; first pages have the short URLs."""
    if not tag:
        return _match("list_page" if page == 1 else "list_pages", sort=sort, page=page)
    if page > 1:
        return _match("tag_pages", tag=tag, sort=sort, page=page)
    return _match("tag_page" if sort == SORTS[0] else "tag_sort_page", tag=tag, sort=sort)


def _match(name: str, **params: object) -> "Match":
    return Match(BY_NAME[name], {key: str(value) for key, value in params.items() if value})


class Match(NamedTuple):
    """A row of the table, and the parameters that lead to it."""

    route: Route
    params: Mapping[str, str]

    @property
    def file(self) -> str:
        return self.route.file_for(**self.params)

    @property
    def url(self) -> str:
        return self.route.url_for(**self.params)


class _Matcher:
    """Finds the first row whose template a path fills, with every parameter in its grammar."""

    def __init__(self, templates: list[tuple[str, Route]]) -> None:
        self.templates = templates

    @cached_property
    def patterns(self) -> list[tuple[re.Pattern[str], Route]]:
        return [
            (re.compile(_FIELD.sub(r"(?P<\1>[^/]+)", re.escape(text).replace(r"\{", "{")
                                   .replace(r"\}", "}"))), route)
            for text, route in self.templates
        ]  # fmt: skip

    def match(self, path: str) -> Match | None:
        for pattern, route in self.patterns:
            found = pattern.fullmatch(path)
            if found and all(fits(key, value) for key, value in found.groupdict().items()):
                if route.url.startswith(("/{owner}", f"{API}/users/")) and (
                    found["owner"] in names.RESERVED_OWNERS
                ):
                    continue
                return Match(route, found.groupdict())
        return None


_GRAMMAR = {key: re.compile(pattern) for key, pattern in GRAMMAR.items()}


def fits(key: str, value: str) -> bool:
    """Whether a value is in the grammar of a parameter, and not too long."""
    return len(value) <= CHARS_MAX.get(key, 80) and bool(_GRAMMAR[key].fullmatch(value))


_urls = _Matcher([(route.url, route) for route in READ_ROUTES])
_read_files = _Matcher([(route.file, route) for route in READ_ROUTES])
_files = _Matcher([(route.file, route) for route in ROUTES])


def match_url(path: str) -> Match | None:
    """The row and parameters of a URL's path, or of a file's path as a URL; None if there is none.

    Inverse of ``Route.url_for``.
    """
    # Files first: `a.json` is the file of the label `a`, and cannot be a label itself.
    return _read_files.match(path.removeprefix("/")) or _urls.match(path)


def match_file(file: str) -> Match | None:
    """The row and parameters of a file below the site's folder. Inverse of ``Route.file_for``."""
    return _files.match(file)
