"""The table: every URL, file, media type, cache rule and scope of the site, stated once.

The builder, the embedded server, the OpenAPI document and docs/reference/endpoints.md read it, as
do generated host configurations and the tool server's reader.

A URL here is a path below the base URL. A file is a path below the site's folder: the URL plus
an extension. A query becomes path segments, so that a host that ignores queries serves everything
by path. Both directions come from one template: ``Route.url_for`` and ``Route.file_for``
make paths from parameters, ``match_url`` and ``match_file`` find the route and parameters of a
path.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from builder import VERSION
from builder.model import names, version_files

SORTS = ("top", "trending", "new")
PAGE_SIZE = 50
# The most pages of a list for people, who search rather than turn more pages. Programs get all
# pages.
LIST_PAGES_MAX = 20
QUERY_CHARS_MAX = 500
# The parameters in the query of a list or of a text; each at most once.
LIST_PARAMETERS = ("page", "sort", "tag", "q")
TEXT_PARAMETERS = ("version", "label")
PARAMETERS = (*LIST_PARAMETERS, *TEXT_PARAMETERS)
PARAMETERS_MAX = 50
# Filters that Langfuse's API has for lists and this hub lacks. They are refused, because a list
# that ignored one would be wrong.
LANGFUSE_NOT_FILTERS = ("name", "label", "version", "fromUpdatedAt", "toUpdatedAt")

API = "/api/v1"
# The path for Langfuse's SDKs, if the site was built for them.
LANGFUSE_ROOT = "/langfuse"
LANGFUSE = f"{LANGFUSE_ROOT}/api/public/v2/prompts"
# Below these paths, errors are JSON, and reads are limited.
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
PNG = "image/png"
XML = "application/xml; charset=utf-8"
ATOM = "application/atom+xml; charset=utf-8"
GZIP = "application/gzip"
MARKDOWN = "text/markdown; charset=utf-8"
ZIP = "application/zip"
BYTES = "application/octet-stream"
FORM = "multipart/form-data"

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

# Files at these paths depend only on code and settings: signing in needs the assets, and new
# members download their client here.
OPEN_ROOTS = ("/assets/", "/cli/", "/clients/", "/robots.txt")

# The Content-Security-Policy of pages. Prompts are untrusted text, so a page runs only the site's
# own files and loads nothing from elsewhere.
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'self'"
)

# The grammar of each parameter of a template. A reader's value that does not match never becomes
# part of a path.
GRAMMAR = {
    "owner": names.NAME_PATTERN,
    "name": names.NAME_PATTERN,
    "tag": names.NAME_PATTERN,
    "version": names.VERSION_PATTERN,
    # As few characters as possible: the rest may be an extension, and no label ends like one.
    "label": names.LABEL_PATTERN,
    "ordinal": names.ORDINAL_PATTERN,
    # In `owner/name@ref`: a version, a number of publication, or a label. All match the grammar of
    # labels.
    "ref": names.LABEL_PATTERN,
    "sort": "|".join(SORTS),
    "page": "[1-9][0-9]{0,8}",
    # The file of a version. The row of texts comes before that of other files. In Caddy, `path`
    # has a meaning of its own.
    "text_path": version_files.TEXT_PATTERN,
    "file_path": version_files.PATH_PATTERN,
}
# Parameters whose values may contain slashes.
PATHS = ("text_path", "file_path")
# The limits of lengths that the grammar does not set. A longer value matches no route.
CHARS_MAX = {
    "owner": names.OWNER_CHARS_MAX,
    "name": names.REPO_CHARS_MAX,
    "tag": names.TAG_CHARS_MAX,
    "text_path": version_files.PATH_CHARS_MAX,
    "file_path": version_files.PATH_CHARS_MAX,
}

# "versions": a repo with at least two versions, which can be compared. "langfuse": a repo or a list
# of a site that was built for Langfuse's SDKs. "files": a version that has files.
Scope = Literal[
    "withdrawn",
    "files",
    "version",
    "versions",
    "label",
    "langfuse",
    "repo",
    "owner",
    "tag",
    "list",
    "site",
]


class Route(NamedTuple):
    """A row of the table.

    ``scope`` names the one object that the file is rendered from, and so the changes that affect
    it.
    ``query``: the same address with a query, for the endpoints that have one.
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
    def has_json_errors(self) -> bool:
        return has_json_errors(self.url)

    @property
    def is_open(self) -> bool:
        """True if a private hub serves it to everyone: it has nothing from the content."""
        return f"/{self.file}".startswith(OPEN_ROOTS)

    @property
    def compressed(self) -> "Route | None":
        """The row of the same file in compressed form, or None."""
        return BY_NAME.get(f"{self.name}_gzip")


# The extension that a file has and its URL lacks, by media type.
_EXTENSIONS = {JSON: ".json", TEXT: ".txt", HTML: ".html"}
_REPO = API + "/repos/{owner}/{name}"
_PAGE = "/{owner}/{name}"
_VERSION_FILES = _REPO + "/versions/{version}/files/"
_SKILL = "SKILL.md"
_SKILL_INDEX = "/.well-known/agent-skills/index.json"

_FILES_OF_VERSION = API[1:] + "/repos/{owner}/{name}/versions/{version}.files/"

# Files that are not their URL plus that extension, by the route's name.
_FILES = {
    "diff": API[1:] + "/repos/{owner}/{name}/versions/{version}.diff",
    "version_skill_archive": API[1:] + "/repos/{owner}/{name}/versions/{version}.skill.zip",
    "version_plugin": API[1:] + "/repos/{owner}/{name}/versions/{version}.plugin.zip",
    "version_text_file": f"{_FILES_OF_VERSION}{{text_path}}{version_files.TEXT_SUFFIX}",
    "version_file": f"{_FILES_OF_VERSION}{{file_path}}{version_files.DATA_SUFFIX}",
    "langfuse_ref": LANGFUSE[1:] + "/{owner}/{name}@{ref}",
    "langfuse_prompt": LANGFUSE[1:] + "/{owner}/{name}",
    "home": "index.html",
    "client": "cli/hub",
    "client_release": f"cli/releases/v{CLIENT_VERSION}/hub",
}
# The same address with a query, by the route's name.
_QUERIES = {
    "list": API + "/repos?sort={sort}&page={page}",
    "tag_list": API + "/repos?tag={tag}&sort={sort}&page={page}",
    "version_raw": _REPO + "/raw?version={version}",
    "version_body": _REPO + "/body?version={version}",
    "label_body": _REPO + "/body?label={label}",
    "label_raw": _REPO + "/raw?label={label}",
}
# The endpoints in the API document.
_SUMMARIES = {
    "repos": "Repos: filtered, sorted, one page at a time",
    "list": "One page of all repos, by path",
    "tag_list": "One page of the repos with a tag, by path",
    "repo": "One repo with its latest content, variables and parameters",
    "versions": "All versions of a repo, newest first",
    "version": "One version with its content",
    "raw": "The text of the latest version",
    "version_raw": "The text of one version; never changes",
    "body": "The text of the latest version after its front matter",
    "version_body": "The text of one version after its front matter; never changes",
    "diff": "Unified diff from the previous version",
    "version_skill_archive": "One version as the archive of a skill, with all files; never changes",
    "version_plugin": "One version with its files as the archive of a plugin; never changes",
    "version_file": "A file of one version, as text or as bytes; never changes",
    "labels": "All labels of a repo with the version that each names",
    "label_body": "The text of the version that a label names, after its front matter",
    "label_raw": "The text of the version that a label names",
    "label": "The version that a label names, with its content",
    "label_history": "All moves of a label, newest first",
    "tags": "All tags, with the number of repos",
    "user": "A user's profile, with their repos",
    "hub": "This service: its name, features, serial and URLs",
    "catalogue": "All repos, one line of JSON each",
    "openapi": "This API as an OpenAPI 3.1 document",
}


def _row(name: str, url: str, media: str, cache: str, scope: Scope) -> Route:
    """A row whose file is its URL, plus the extension of its media type unless the URL has one."""
    path = url.removeprefix("/")
    extension = "" if "." in path.rpartition("/")[2] else _EXTENSIONS.get(media, "")
    file = _FILES.get(name, path + extension)
    query, summary = _QUERIES.get(name, ""), _SUMMARIES.get(name, "")
    return Route(name, url, file, media, cache, scope, query, summary)


_ROWS = (
    # The API
    _row("repos", API + "/repos", JSON, "list", "list"),
    _row("list", API + "/repos/_/{sort}/{page}", JSON, "list", "list"),
    _row("tag_list", API + "/tags/{tag}/{sort}/{page}", JSON, "list", "list"),
    _row("repo", _REPO, JSON, "repo", "repo"),
    _row("versions", _REPO + "/versions", JSON, "repo", "repo"),
    _row("version", _REPO + "/versions/{version}", JSON, "version", "version"),
    _row("raw", _REPO + "/raw", TEXT, "repo", "repo"),
    _row("version_raw", _REPO + "/versions/{version}.txt", TEXT, "immutable", "version"),
    _row("body", _REPO + "/body", TEXT, "repo", "repo"),
    _row("version_body", _REPO + "/versions/{version}.body.txt", TEXT, "immutable", "version"),
    _row("diff", _REPO + "/versions/{version}/diff", TEXT, "version", "version"),
    _row("version_skill_archive", _REPO + "/versions/{version}/skill", ZIP, "immutable", "version"),
    _row("version_plugin", _REPO + "/versions/{version}/plugin", ZIP, "immutable", "files"),
    _row("version_text_file", _VERSION_FILES + "{text_path}", TEXT, "immutable", "files"),
    _row("version_file", _VERSION_FILES + "{file_path}", BYTES, "immutable", "files"),
    _row("labels", _REPO + "/labels", JSON, "repo", "label"),
    # Order matters: the label in a later row would also match the extension of an earlier one.
    _row("label_body", _REPO + "/labels/{label}.body.txt", TEXT, "repo", "label"),
    _row("label_raw", _REPO + "/labels/{label}.txt", TEXT, "repo", "label"),
    _row("label", _REPO + "/labels/{label}", JSON, "repo", "label"),
    _row("label_history", _REPO + "/labels/{label}/history", JSON, "repo", "label"),
    # The notes on withdrawals. A host sends them with status 410 in place of the removed files; a
    # plain file host serves them only at their own paths.
    _row("withdrawn_version", _REPO + "/versions/{version}/withdrawn", JSON, "none", "withdrawn"),
    _row("withdrawn_repo", _REPO + "/withdrawn", JSON, "none", "withdrawn"),
    _row("tags", API + "/tags", JSON, "list", "tag"),
    _row("user", API + "/users/{owner}", JSON, "list", "owner"),
    _row("hub", API + "/hub.json", JSON, "list", "site"),
    _row("catalogue", API + "/catalogue.jsonl", JSON_LINES, "list", "site"),
    _row("openapi", API + "/openapi.json", JSON, "list", "site"),
    # Langfuse's API. Its lists have the order of the first of SORTS. A host without rules serves
    # these files as they are. So each file has the name of its URL, and no URL of a prompt is also
    # a folder of other files.
    _row("langfuse_list", LANGFUSE, JSON, "list", "langfuse"),
    _row("langfuse_page", LANGFUSE + "/_/{page}", JSON, "list", "langfuse"),
    _row("langfuse_tag_page", LANGFUSE + "/_/{tag}/{page}", JSON, "list", "langfuse"),
    _row("langfuse_ref", LANGFUSE + "/{owner}/{name}@{ref}", JSON, "repo", "langfuse"),
    _row("langfuse_prompt", LANGFUSE + "/{owner}/{name}", JSON, "repo", "langfuse"),
    # Pages for people
    _row("home", "/", HTML, "list", "site"),
    _row("list_page", "/{sort}", HTML, "list", "list"),
    _row("list_pages", "/{sort}/{page}", HTML, "list", "list"),
    _row("connect", "/connect", HTML, "list", "site"),
    _row("tags_page", "/tags", HTML, "list", "tag"),
    _row("tag_page", "/tags/{tag}", HTML, "list", "list"),
    _row("tag_sort_page", "/tags/{tag}/{sort}", HTML, "list", "list"),
    _row("tag_pages", "/tags/{tag}/{sort}/{page}", HTML, "list", "list"),
    _row("owner_page", "/{owner}", HTML, "list", "owner"),
    _row("repo_page", "/{owner}/{name}", HTML, "list", "repo"),
    _row("version_page", "/{owner}/{name}/{version}", HTML, "list", "version"),
    # A page that reads its query in the browser, so one file is enough for all pairs of versions.
    _row("compare_page", "/{owner}/{name}/compare", HTML, "list", "versions"),
    _row("versions_page", "/{owner}/{name}/versions", HTML, "list", "versions"),
    _row(
        "withdrawn_version_page", "/{owner}/{name}/{version}/withdrawn", HTML, "none", "withdrawn"
    ),
    _row("withdrawn_repo_page", "/{owner}/{name}/withdrawn", HTML, "none", "withdrawn"),
    # Skills, for agents. Channels follow the latest version or a label, or are pinned to one
    # version.
    _row("skill", _PAGE + f"/{_SKILL}", MARKDOWN, "repo", "repo"),
    _row("skill_index", _PAGE + _SKILL_INDEX, JSON, "repo", "repo"),
    _row("version_skill", _PAGE + f"/{{version}}/{_SKILL}", MARKDOWN, "immutable", "version"),
    _row("version_skill_index", _PAGE + "/{version}" + _SKILL_INDEX, JSON, "version", "version"),
    _row("label_skill", _PAGE + f"/labels/{{label}}/{_SKILL}", MARKDOWN, "repo", "label"),
    _row("label_skill_index", _PAGE + "/labels/{label}" + _SKILL_INDEX, JSON, "repo", "label"),
    _row("owner_skill_index", "/{owner}" + _SKILL_INDEX, JSON, "list", "owner"),
    _row("marketplace", "/{owner}/marketplace.json", JSON, "list", "owner"),
    _row("search_page", "/search", HTML, "list", "site"),
    _row("api_page", "/docs", HTML, "list", "site"),
    _row("not_found_page", "/404", HTML, "not_found", "site"),
    # The page that a host sends for the account settings while their service is down.
    _row("unavailable_page", "/503", HTML, "none", "site"),
    _row("stylesheet", "/assets/style.css", CSS, "list", "site"),
    _row("site_script", "/assets/site.js", SCRIPT, "list", "site"),
    _row("search_script", "/assets/search.js", SCRIPT, "list", "site"),
    _row("catalogue_script", "/assets/catalogue.js", SCRIPT, "list", "site"),
    _row("prompt_script", "/assets/prompt.js", SCRIPT, "list", "site"),
    _row("version_script", "/assets/version.js", SCRIPT, "list", "site"),
    _row("compare_script", "/assets/compare.js", SCRIPT, "list", "site"),
    _row("changes_script", "/assets/changes.js", SCRIPT, "list", "site"),
    _row("changes_table_script", "/assets/changes_table.js", SCRIPT, "list", "site"),
    _row("compare_files_script", "/assets/compare_files.js", SCRIPT, "list", "site"),
    _row("jsdiff_script", "/assets/jsdiff.js", SCRIPT, "list", "site"),
    _row("account_script", "/assets/account.js", SCRIPT, "list", "site"),
    _row("editor_script", "/assets/editor.js", SCRIPT, "list", "site"),
    _row("editor_files_script", "/assets/editor_files.js", SCRIPT, "list", "site"),
    _row("prompt_text_script", "/assets/prompt_text.js", SCRIPT, "list", "site"),
    _row("text_field_script", "/assets/text_field.js", SCRIPT, "list", "site"),
    _row("marked_text_script", "/assets/marked_text.js", SCRIPT, "list", "site"),
    _row("codemirror_script", "/assets/codemirror.js", SCRIPT, "list", "site"),
    _row("icon", "/assets/icon.svg", SVG, "list", "site"),
    _row("picture", "/assets/picture.png", PNG, "list", "site"),
    # For crawlers and feed readers
    _row("feed", "/feed.xml", ATOM, "list", "list"),
    _row("owner_feed", "/{owner}/feed.xml", ATOM, "list", "owner"),
    _row("repo_feed", "/{owner}/{name}/feed.xml", ATOM, "list", "repo"),
    _row("sitemap", "/sitemap.xml", XML, "list", "site"),
    _row("sitemap_part", "/sitemap-{page}.xml", XML, "list", "site"),
    _row("robots", "/robots.txt", TEXT, "list", "site"),
    _row("llms", "/llms.txt", TEXT, "list", "site"),
    _row("server_json", "/server.json", JSON, "list", "site"),
    # The shell client
    _row("client", "/cli/hub", TEXT, "list", "site"),
    _row("client_release", f"/cli/releases/v{CLIENT_VERSION}/hub", TEXT, "list", "site"),
    _row("client_checksum", f"/cli/releases/v{CLIENT_VERSION}/hub.sha256", TEXT, "list", "site"),
    # The Python client: a module in one file
    _row("python_client", "/clients/hub_prompts.py", TEXT, "list", "site"),
    # The TypeScript client, which browsers can also import from here
    _row("script_client", "/clients/hub.js", SCRIPT, "list", "site"),
    _row("script_client_types", "/clients/hub.d.ts", TEXT, "list", "site"),
)

# Large files that are read often and written seldom. They are also stored compressed, for hosts
# that send such files.
_COMPRESSED = (
    "home",
    "connect",
    "search_page",
    "api_page",
    "openapi",
    "catalogue",
    "stylesheet",
    "site_script",
    "search_script",
    "catalogue_script",
    "prompt_script",
    "codemirror_script",
)


def _compressed(row: Route) -> Route:
    file = f"{row.file}.gz"
    return Route(f"{row.name}_gzip", f"/{file}", file, GZIP, row.cache, row.scope)


ROUTES = _ROWS + tuple(_compressed(row) for row in _ROWS if row.name in _COMPRESSED)
BY_NAME = {route.name: route for route in ROUTES}
# Routes that have a URL of their own on every host.
READ_ROUTES = tuple(route for route in ROUTES if route.scope != "withdrawn")

# Texts of the latest version. A query requests the text of a version, or of the version that a
# label names: the rows `version_raw`, `label_raw`, and so on.
LATEST_TEXTS = ("raw", "body")

# The paths that programs read, by their end or beginning, as a regular expression.
PROGRAM_PATTERN = (
    rf"(?:{'|'.join(re.escape(root) for root in API_ROOTS)})(?:/.*)?"
    r"|/mcp/?|.*\.(?:gz|json|jsonl|md|txt|xml)|.*/\.well-known/.*"
)
# Programs look here for metadata of a host (RFC 8615). At the root there are none, not even for
# members. MCP clients request OAuth's metadata there (RFC 9728), and need a 404 to know that there
# is none.
WELL_KNOWN = "/.well-known/"

# Answered by the publish service: POST to the first, PUT and DELETE to the second.
PUBLISH_URL = BY_NAME["versions"].url
LABEL_URL = BY_NAME["label"].url
# As regular expressions that accept any names, because the service reports what is wrong with a
# name.
PUBLISH_PATTERN = re.sub(r"\{\w+\}", "[^/]+", PUBLISH_URL)
LABEL_URL_PATTERN = re.sub(r"\{\w+\}", "[^/]+", LABEL_URL)
# The methods that write, by the pattern of the URL's path.
WRITES = {PUBLISH_PATTERN: ("POST",), LABEL_URL_PATTERN: ("PUT", "DELETE")}
# GET: the state of the builds, and the health of the service.
HEALTH_URL = "/healthz"
READY_URL = "/readyz"
MONITOR_URLS = (HEALTH_URL, READY_URL)
# A CI job exchanges its issuer's ID token for a token here, by POST.
TRUSTED_URL = f"{API}/trusted-publishing/token"
# POST: the result that a publication would have. It writes nothing and needs no token.
CHECK_URL = f"{_REPO}/check"
CHECK_PATTERN = re.sub(r"\{\w+\}", "[^/]+", CHECK_URL)
# Paths that the service alone answers, for every method.
POST_ONLY_PATTERN = f"(?:{re.escape(TRUSTED_URL)}|{CHECK_PATTERN})"
# The account settings: pages of the publish service, at this URL and below it.
ACCOUNT_URL = "/account"
ACCOUNT_PATTERN = f"{ACCOUNT_URL}(?:/.*)?"
# GET: 204 if the sender of the request may read a private hub, otherwise 401; 503 if the service
# cannot decide.
ACCESS_URL = f"{ACCOUNT_URL}/access"
# The page to sign in. `?page=` may name the page to continue with, as it is written in its URL.
LOGIN_URL = f"{ACCOUNT_URL}/login"
# The pages where owners write: the list of their prompts, and pages below it, whose forms may be as
# large as a publication.
WRITING_URL = f"{ACCOUNT_URL}/prompts"
# The address of `hubctl serve` for MCP.
MCP_URL = "/mcp"
MCP_URLS = (MCP_URL, f"{MCP_URL}/")

# Files in the site's folder that a host reads. `hubctl hosts` writes them, and no build touches
# them.
HOST_FILES = frozenset({"_headers", "_redirects", ".nojekyll"})

_max_age = re.compile(r"max-age=(\d+)")
_FIELD = re.compile(r"\{(\w+)\}")


def is_api_path(path: str) -> bool:
    """True if a URL's path is for programs, even if nothing exists there."""
    return f"{path}/".startswith(tuple(f"{root}/" for root in API_ROOTS))


def has_json_errors(path: str) -> bool:
    """True if errors at a URL's path are JSON, even if nothing exists there."""
    return is_api_path(path) or WELL_KNOWN in path


def is_page_path(path: str) -> bool:
    """True if a URL's path is for people, even if nothing exists there. On a private hub, readers
    without a session are redirected to sign in there; programs get an error.
    """
    return re.fullmatch(PROGRAM_PATTERN, path, re.DOTALL) is None


def private_cache(cache_control: str) -> str:
    """The private form of a value of CACHE_CONTROL, for a private hub: only the reader's own cache
    may keep the response.
    """
    return cache_control.replace("public", "private")


def max_age_seconds(cache: str) -> int:
    """The seconds for which a response of a cache class is fresh."""
    found = _max_age.search(CACHE_CONTROL[cache])
    return int(found[1]) if found else 0


def write_methods(path: str) -> tuple[str, ...]:
    """The methods that write at a URL's path, whatever names it contains; empty for most paths."""
    return next((WRITES[one] for one in WRITES if re.fullmatch(one, path)), ())


def is_check_url(path: str) -> bool:
    """True if drafts are checked at a URL's path, whatever names it contains."""
    return path.endswith("/check") and re.fullmatch(CHECK_PATTERN, path) is not None


def is_account_url(path: str) -> bool:
    """True if a URL's path is in the account settings, even if nothing exists there."""
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


def version_file(owner: str, name: str, version: object, path: str) -> "Match":
    """The route and parameters of the file of a version."""
    if version_files.is_text(path):
        return _match("version_text_file", owner=owner, name=name, version=version, text_path=path)
    return _match("version_file", owner=owner, name=name, version=version, file_path=path)


def _match(route: str, /, **params: object) -> "Match":
    return Match(BY_NAME[route], {key: str(value) for key, value in params.items() if value})


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
            (
                re.compile(
                    _FIELD.sub(
                        lambda found: f"(?P<{found[1]}>{'.+' if found[1] in PATHS else '[^/]+'})",
                        re.escape(text).replace(r"\{", "{").replace(r"\}", "}"),
                    )
                ),
                route,
            )
            for text, route in self.templates
        ]

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
    """True if a value matches the grammar of a parameter and is not too long."""
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
