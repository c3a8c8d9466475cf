"""The table: every URL, file, media type, cache rule and scope of the site, stated once.

The builder, the embedded server, the OpenAPI document, docs/reference/endpoints.md and the tool
server's reader read it.

A URL here is a path below the base URL. A file is a path below the site's folder: the URL plus
an extension. A query becomes path segments, so that a host that ignores queries serves everything
by path. Both directions come from one template: ``Route.url_for`` and ``Route.file_for``
make paths from parameters, ``matching`` finds the route and parameters of a path.
"""

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
COMPUTED_PARAMETERS = ("q", "owner", "explain")  # No file answers a list with one of these.
LIST_PARAMETERS = ("page", "sort", "tag", *COMPUTED_PARAMETERS)
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

# Files at these paths depend only on code and settings: signing in needs the assets, and new
# members download their client here.
OPEN_ROOTS = ("/assets/", "/cli/", "/clients/", "/robots.txt")

# The Content-Security-Policy of pages. Prompts are untrusted text, so a page runs only the site's
# own files and loads nothing from elsewhere.
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'self'"
)

# The scripts of pages that are served as they are in `assets/`.
SCRIPTS = """
    site search results prompt version compare changes account editor editor_files marked_text
    codemirror
""".split()

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
_FILE_PAGE = _PAGE + "/{version}/files/{file_path}"
_SKILL = "SKILL.md"
_SKILL_INDEX = "/.well-known/agent-skills/index.json"

_FILES_OF_VERSION = API[1:] + "/repos/{owner}/{name}/versions/{version}.files/"

# Files that are not their URL plus that extension, by the route's name.
_FILES = {
    "diff": API[1:] + "/repos/{owner}/{name}/versions/{version}.diff",
    "version_skill": API[1:] + "/repos/{owner}/{name}/versions/{version}.skill.md",
    "version_skill_archive": API[1:] + "/repos/{owner}/{name}/versions/{version}.skill.zip",
    "version_plugin": API[1:] + "/repos/{owner}/{name}/versions/{version}.plugin.zip",
    "version_text_file": f"{_FILES_OF_VERSION}{{text_path}}{version_files.TEXT_SUFFIX}",
    "version_file": f"{_FILES_OF_VERSION}{{file_path}}{version_files.DATA_SUFFIX}",
    "langfuse_ref": LANGFUSE[1:] + "/{owner}/{name}@{ref}",
    "langfuse_prompt": LANGFUSE[1:] + "/{owner}/{name}",
    "file_page": f"{_FILE_PAGE[1:]}.html",
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
    "version_skill": "One version as the text of a skill; never changes",
    "version_skill_archive": "A version with files, or the latest one, as the archive of a skill",
    "version_plugin": "The latest version with its files as the archive of a plugin; never changes",
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
    "withdrawn": "All withdrawals, one line of JSON each",
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
    _row("version_skill", _REPO + "/versions/{version}/skill.md", MARKDOWN, "immutable", "version"),
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
    _row("withdrawn", API + "/withdrawn.jsonl", JSON_LINES, "repo", "site"),
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
    _row("file_page", _FILE_PAGE, HTML, "list", "files"),
    # A page that reads its query in the browser, so one file is enough for all pairs of versions.
    _row("compare_page", "/{owner}/{name}/compare", HTML, "list", "versions"),
    _row("versions_page", "/{owner}/{name}/versions", HTML, "list", "versions"),
    _row(
        "withdrawn_version_page", "/{owner}/{name}/{version}/withdrawn", HTML, "none", "withdrawn"
    ),
    _row("withdrawn_repo_page", "/{owner}/{name}/withdrawn", HTML, "none", "withdrawn"),
    # Skills, for agents. Channels follow the latest version or a label.
    _row("skill", _PAGE + f"/{_SKILL}", MARKDOWN, "repo", "repo"),
    _row("skill_index", _PAGE + _SKILL_INDEX, JSON, "repo", "repo"),
    _row("label_skill", _PAGE + f"/labels/{{label}}/{_SKILL}", MARKDOWN, "repo", "label"),
    _row("label_skill_index", _PAGE + "/labels/{label}" + _SKILL_INDEX, JSON, "repo", "label"),
    _row("owner_skill_index", "/{owner}" + _SKILL_INDEX, JSON, "list", "owner"),
    _row("marketplace", "/{owner}/marketplace.json", JSON, "list", "owner"),
    _row("search_page", "/search", HTML, "list", "site"),
    _row("api_page", "/docs", HTML, "list", "site"),
    _row("not_found_page", "/404", HTML, "not_found", "site"),
    # What a web server sends while the service is down, and for programs.
    _row("unavailable_page", "/503", HTML, "none", "site"),
    _row("not_found_error", "/api/404", JSON, "not_found", "site"),
    _row("unavailable_error", "/api/503", JSON, "none", "site"),
    # Without this file, GitHub Pages leaves out paths that begin with an underscore.
    _row("no_jekyll", "/.nojekyll", TEXT, "list", "site"),
    _row("stylesheet", "/assets/style.css", CSS, "list", "site"),
    *(_row(f"{one}_script", f"/assets/{one}.js", SCRIPT, "list", "site") for one in SCRIPTS),
    # This script has the rules of searches in it.
    _row("catalogue_script", "/assets/catalogue.js", SCRIPT, "list", "site"),
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
_COMPRESSED = """
    home connect search_page api_page openapi catalogue stylesheet site_script search_script
    catalogue_script prompt_script codemirror_script
""".split()


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
# Programs look here for metadata of a host (RFC 8615). At the root there are none, not even for
# members. MCP clients request OAuth's metadata there (RFC 9728), and need a 404 to know that there
# is none.
WELL_KNOWN = "/.well-known/"

# Files in the site's folder that a host reads. An operator writes them, and no build touches them.
HOST_FILES = frozenset({"_headers", "_redirects"})


def is_api_path(path: str) -> bool:
    """True if a URL's path is for programs, even if nothing exists there."""
    return f"{path}/".startswith(tuple(f"{root}/" for root in API_ROOTS))


def has_json_errors(path: str) -> bool:
    """True if errors at a URL's path are JSON, even if nothing exists there."""
    return is_api_path(path) or WELL_KNOWN in path
