"""Level ``queries``: the URLs of the spec, with the headers and errors of the contract."""

import re
import zlib
from collections.abc import Iterator
from itertools import permutations
from urllib.parse import quote

import pytest

from builder import records
from builder.routes import (
    BY_NAME,
    CACHE_CONTROL,
    HTML,
    JSON,
    LIST_PAGES_MAX,
    PAGE_SIZE,
    SORTS,
    TEXT,
    Route,
    list_api,
)
from tests.conformance.catalogue import Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client, NoAnswer, header_list
from tests.conformance.test_files import FILES, FOUND, check_harmless

pytestmark = pytest.mark.level("queries")

area = pytest.mark.area

# Below this, some hosts think compression not worth while.
LARGE_BYTES = 4096
# The smallest that a host must take (RFC 9112 recommends 8,000 bytes for the whole line).
LONG_QUERY_CHARS = 4000

# Of these, HEAD says what GET does.
HEADERS = [
    "Content-Type", "Content-Length", "Content-Encoding", "Cache-Control", "ETag", "Vary",
    "Last-Modified", "Accept-Ranges", "X-Content-Type-Options", "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers", "Content-Security-Policy", "Referrer-Policy", "Location",
    "Allow", "Retry-After", "Content-Range",
]  # fmt: skip


def spec_url(route: Route) -> str:
    return route.query or route.url


def each_route(what: str, *routes: Route) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "route", routes or FILES, ids=lambda route: f"{what} {spec_url(route)}"
    )


def each_path(*templates: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("template", templates, ids=lambda text: f"GET {text}"[:90])


# Every URL


def urls_of(catalogue: Catalogue, route: Route) -> Iterator[tuple[str, str]]:
    """Each URL of a route, with the path of its file, for all that is looked at."""
    for params in catalogue.params(route):
        file = "/" + route.file_for(**params)
        yield route.url_for(**params), file
        if route.query:
            yield route.query.format_map(params), file


@area("addresses")
@each_route("GET")
def test_every_address_is_its_file(
    check: Check, client: Client, catalogue: Catalogue, route: Route
) -> None:
    for url, file in urls_of(catalogue, route):
        answer = client.get(url)
        if route.name == "not_found_page":
            check.status(answer, 404, 200)
        elif check.status(answer, 200) and url != file:
            check.same_body(answer, client.get(file), file)


@area("headers")
@each_route("GET")
def test_headers(check: Check, client: Client, catalogue: Catalogue, route: Route) -> None:
    for url, file in list(urls_of(catalogue, route))[-4:]:
        for path in dict.fromkeys((url, file)):
            answer = client.get(path)
            if answer.status >= 400 and route.name != "not_found_page":
                continue  # told by the test above
            check.header(answer, "Content-Type", route.media)
            check.header(answer, "Cache-Control", CACHE_CONTROL[route.cache])
            check.header(answer, "X-Content-Type-Options", "nosniff")
            check.cors(answer)
            length = answer.headers.get("Content-Length", "")
            check.that(
                answer, length in ("", str(len(answer.body))), f"length {len(answer.body)}", length
            )
            if route.name != "not_found_page":
                etag = answer.headers.get("ETag", "")
                check.that(
                    answer, re.fullmatch(r'(W/)?"[!#-~]+"', etag), "an ETag", f"ETag: {etag}"
                )
                check.that(
                    answer, "Content-Encoding" not in answer.headers,
                    "no Content-Encoding for who accepts identity alone",
                )  # fmt: skip
            if route.media == HTML:
                check_page_headers(check, answer)


def check_page_headers(check: Check, answer: Answer) -> None:
    policy = answer.headers.get("Content-Security-Policy", "")
    for directive in ("default-src 'none'", "frame-ancestors 'none'"):
        check.that(
            answer, directive in policy, f"Content-Security-Policy with {directive}",
            f"{answer.status}, Content-Security-Policy: {policy}",
        )  # fmt: skip
    check.that(answer, answer.headers.get("Referrer-Policy"), "a Referrer-Policy")


def check_same_headers(check: Check, head: Answer, get: Answer) -> None:
    """Whether HEAD says what GET does. A length may be left out."""
    for name in HEADERS:
        came, wanted = head.headers.get(name), get.headers.get(name)
        if name == "Content-Length" and came is None:
            continue
        check.that(head, came == wanted, f"{name}: {wanted}, as GET says", f"{name}: {came}")


@area("HEAD")
@each_route("HEAD")
def test_head(check: Check, client: Client, catalogue: Catalogue, route: Route) -> None:
    url = catalogue.url(route)
    if url is not None:
        get, head = client.get(url), client.ask("HEAD", url)
        check.status(head, get.status)
        check.empty_body(head)
        check_same_headers(check, head, get)


@area("conditional requests")
@each_route("GET", *FOUND)
def test_conditions(check: Check, client: Client, catalogue: Catalogue, route: Route) -> None:
    url = catalogue.url(route)
    if url is not None:
        check_conditions(check, client, url)


def check_conditions(check: Check, client: Client, url: str) -> None:
    """Whether one who has an answer is told so, and one who has another gets it."""
    plain = client.get(url)
    etag = plain.headers.get("ETag")
    if not check.that(plain, etag, "an ETag"):
        return
    opaque = etag.removeprefix("W/")
    again = client.ask("GET", url)
    check.header(again, "ETag", etag)
    for condition in (etag, f"W/{opaque}", f'"x", {etag}', f'W/"y", W/{opaque} ,"z"', "*"):
        answer = client.ask("GET", url, {"If-None-Match": condition})
        if check.status(answer, 304):
            check.empty_body(answer)
            check.that(
                answer, answer.headers.get("ETag", "").removeprefix("W/") == opaque,
                f"ETag: {etag}", f"ETag: {answer.headers.get('ETag')}",
            )  # fmt: skip
            check.header(answer, "Cache-Control", plain.headers.get("Cache-Control", ""))
            check.cors(answer)
    head = client.ask("HEAD", url, {"If-None-Match": etag})
    check.status(head, 304)
    for condition in ('"conformance-another"', f'"conformance-{opaque[1:]}'):
        answer = client.ask("GET", url, {"If-None-Match": condition})
        check.same_body(answer, plain, "without the condition, as the ETag is another")
    # A date says less than an ETag (RFC 9110, 13.1.3).
    both = {
        "If-None-Match": '"conformance-another"',
        "If-Modified-Since": "Tue, 01 Jan 2036 00:00:00 GMT",
    }
    check.status(client.ask("GET", url, both), 200)


# Lists by query


@area("lists by query")
@pytest.mark.parametrize("sort", [None, *SORTS])
@pytest.mark.parametrize("with_tag", [False, True], ids=["", "tag={tag}"])
def test_lists_by_query(
    check: Check, client: Client, catalogue: Catalogue, with_tag: bool, sort: str | None
) -> None:
    for tag in catalogue.tags if with_tag else [None]:
        for page in catalogue.pages(tag, sort or SORTS[0]):
            wanted = client.get("/" + list_api(*page).file)
            given = [f"page={page.number}"]
            given += [f"sort={sort}"] if sort else []
            given += [f"tag={tag}"] if tag else []
            orders = list(permutations(given)) if page.number == 1 else [given]
            queries = ["&".join(order) for order in orders]
            if page.number == 1:
                queries.append("&".join(given[1:]))
            for query in queries:
                path = f"/api/v1/repos?{query}".removesuffix("?")
                check.same_body(client.get(path), wanted, wanted.target)


@area("lists by query")
@each_path(
    "/api/v1/repos?s%6Frt=new", "/api/v1/repos?sort=n%65w", "/api/v1/repos?sort=%6e%65%77&page=%31",
    "/api/v1/repos?%73%6f%72%74=new&p%61ge=1",
)  # fmt: skip
def test_percent_encoded(check: Check, client: Client, template: str) -> None:
    # Encoded or not, it is the same URL. A host that cannot decode has to say so.
    answer = client.get(template)
    if answer.status == 400:
        check.error(answer, 400, "invalid_parameter")
        check.note("refuses parameters that are percent-encoded without need")
    else:
        wanted = client.get("/" + list_api(None, "new", 1).file)
        check.same_body(answer, wanted, wanted.target)


@area("lists by query")
def test_percent_encoded_tag(check: Check, client: Client, catalogue: Catalogue) -> None:
    if catalogue.tags:
        tag = catalogue.tags[0]
        encoded = "".join(f"%{ord(char):02x}" for char in tag)
        answer = client.get(f"/api/v1/repos?tag={encoded}")
        if answer.status == 400:
            check.error(answer, 400, "invalid_parameter")
        else:
            wanted = client.get("/" + list_api(tag, SORTS[0], 1).file)
            check.same_body(answer, wanted, wanted.target)


@area("lists by query")
@each_path(
    "/api/v1/repos?q=a", "/api/v1/repos?q=&sort=new", "/api/v1/repos?tag={tag},{nobody}",
    "/api/v1/repos?tag={tag}%2c{tag}&sort=new",
)  # fmt: skip
def test_a_filter_is_applied_or_told(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    """What takes a search index, a host may refuse; it may not pretend."""
    path = catalogue.fill(template)
    if path is None:
        return
    answer = client.get(path)
    check.that(answer, answer.status in (200, 400, 404, 501, 503), "an answer, or an error")
    found = check.rows(answer, records.RepoSummary) if answer.status == 200 else None
    if found:
        asked = "q" if "q=" in path else "tag"
        applied = getattr(found.meta, asked)
        check.that(
            answer, applied is None or applied in path.replace("%2c", ","),
            f"a meta.{asked} that was asked for, or null", f"meta.{asked} {applied!r}",
        )  # fmt: skip
    elif answer.status >= 400:
        check.envelope(answer)


IGNORED = [
    "utm_source=x", "a=1&a=2&a", "__proto__=x&constructor=y", "page_size=1000", "Sort=new",
    "sorting=bad&pages=0&tags=x", "x=" + "y" * LONG_QUERY_CHARS, "x=%2e%2e%2f&y=%00", "=&&=",
]  # fmt: skip


@area("parameters")
@each_path(
    "/api/v1/repos", "/api/v1/repos?sort=new", "/api/v1/repos?tag={tag}", "{repo}", "{repo}/raw",
    "{repo}/raw?version={version}", "{repo}/versions", "{repo}/versions/{version}", "/api/v1/tags",
    "/api/v1/users/{owner}", "/api/v1/hub.json", "/", "/{owner}/{name}",
)  # fmt: skip
def test_unknown_parameters_are_ignored(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        wanted = client.get(path)
        for extra in IGNORED:
            answer = client.get(f"{path}{'&' if '?' in path else '?'}{extra}")
            check.same_body(answer, wanted, path)


@area("parameters")
@each_path(
    "/api/v1/repos.json", "/api/v1/repos/_/new/1.json", "{repo}.json", "{repo}/raw.txt",
    "{repo}/versions", "{repo}/versions.json", "{repo}/versions/{version}.txt", "/api/v1/tags",
    "/api/v1/users/{owner}", "/api/v1/catalogue.jsonl", "/top",
)  # fmt: skip
def test_addresses_that_take_no_query(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        for query in ("page=2", "sort=bad&page=0&tag=", "version=x", "sort=new&tag=..%2f"):
            answer = client.get(f"{path}?{query}")
            check.same_body(answer, client.get(path), path)


# Errors


BAD_PARAMETERS = [
    *(f"page={page}" for page in (
        "0", "-1", "01", "1e9", "x", "", "1.5", "%201", "%2B1", "1000000000", "9" * 40, "1,2",
        "%D9%A1", "1%00", "1%0A", "..", "null",
    )),
    *(f"sort={sort}" for sort in (
        "best", "", "NEW", "top,new", "new%00", "new%20", "..%2F..", "_", "new/1", "new%2f1",
    )),
    *(f"tag={tag}" for tag in (
        "", "SQL", "-x", "x-", "a--b", "a_b", "x" * 49, "..", "..%2F..", "a%20b", "a/b", "%C3%A9",
        "a%00",
    )),
    "page=1&page=2", "page=1&page=1", "sort=new&sort=top", "sort=new&sort=new", "page=1&page=",
    "tag=a&tag=a", "sort=&sort=new", "sort=new&page=0", "tag=a&sort=bad",
    "page=1&utm=x&sort=new&tag=UP", "page", "sort", "tag",
]  # fmt: skip


@area("parameters")
@each_path(*(f"/api/v1/repos?{query}" for query in BAD_PARAMETERS))
def test_bad_parameters(check: Check, client: Client, template: str) -> None:
    check.error(client.get(template), 400, "invalid_parameter")


ERRORS = [
    ("/api", 404, "not_found"),
    ("/api/", 404, "not_found"),
    ("/api/v1", 404, "not_found"),
    ("/api/v1/nothing", 404, "not_found"),
    ("/api/v2/repos", 404, "not_found"),
    ("/api/v1/repos/{nobody}", 404, "not_found"),
    ("/api/v1/repos?page=999999999", 404, "page_not_found"),
    ("/api/v1/repos?sort=new&page=999999999", 404, "page_not_found"),
    ("/api/v1/repos/_/top/999999999", 404, "page_not_found"),
    ("/api/v1/repos?tag={tag}&page=999999999", 404, "page_not_found"),
    ("/api/v1/repos?tag={nobody}", 404, "tag_not_found"),
    ("/api/v1/repos?tag={nobody}&sort=new&page=1", 404, "tag_not_found"),
    ("/api/v1/tags/{nobody}/top/1", 404, "tag_not_found"),
    ("/api/v1/repos/{nobody}/nothing", 404, "repo_not_found"),
    ("/api/v1/repos/{nobody}/nothing/versions", 404, "repo_not_found"),
    ("/api/v1/repos/{nobody}/nothing/raw", 404, "repo_not_found"),
    ("/api/v1/repos/{nobody}/nothing/raw?version=1.0.0", 404, "repo_not_found"),
    ("/api/v1/repos/{nobody}/nothing/versions/1.0.0", 404, "repo_not_found"),
    ("/api/v1/repos/{owner}/{nobody}", 404, "repo_not_found"),
    ("{repo}/versions/999999999.999999999.999999999", 404, "version_not_found"),
    ("{repo}/raw?version=999999999.999999999.999999999", 404, "version_not_found"),
    ("{repo}/versions/999999999.999999999.999999999/diff", 404, "version_not_found"),
    ("{repo}/nothing", 404, "not_found"),
    ("/api/v1/users/{nobody}", 404, "user_not_found"),
    ("/api/v1/repos/{Owner}/{name}", 400, "invalid_name"),
    ("/api/v1/repos/{owner}/{Name}", 400, "invalid_name"),
    ("/api/v1/repos/{Owner}/{name}/versions", 400, "invalid_name"),
    ("/api/v1/repos/{Owner}/{name}/raw", 400, "invalid_name"),
    ("/api/v1/repos/{Owner}/{name}/raw?version={version}", 400, "invalid_name"),
    ("/api/v1/repos/{owner}/{Name}/versions/{version}", 400, "invalid_name"),
    ("/api/v1/users/{Owner}", 400, "invalid_name"),
    ("/api/v1/repos/-x/{name}", 400, "invalid_name"),
    ("/api/v1/repos/x_y/{name}", 400, "invalid_name"),
    ("/api/v1/repos/{owner}/a--b", 400, "invalid_name"),
    ("/api/v1/repos/{owner}/a-", 400, "invalid_name"),
    ("/api/v1/repos/{owner}/a%20b", 400, "invalid_name"),
    ("/api/v1/repos/{owner}/%C3%A9", 400, "invalid_name"),
    ("/api/v1/repos/{owner}/" + "x" * 65, 400, "invalid_name"),
    ("/api/v1/repos/" + "x" * 40 + "/{name}", 400, "invalid_name"),
    ("/api/v1/users/" + "x" * 40, 400, "invalid_name"),
    ("/api/v1/users/a--b", 400, "invalid_name"),
    ("{repo}/versions/1.0", 400, "invalid_version"),
    ("{repo}/versions/v1.0.0", 400, "invalid_version"),
    ("{repo}/versions/01.0.0", 400, "invalid_version"),
    ("{repo}/versions/1.0.0-beta", 400, "invalid_version"),
    ("{repo}/versions/latest", 400, "invalid_version"),
    ("{repo}/versions/1000000000.0.0", 400, "invalid_version"),
    ("{repo}/versions/1.0/diff", 400, "invalid_version"),
    ("{repo}/raw?version=1.0", 400, "invalid_version"),
    ("{repo}/raw?version=", 400, "invalid_version"),
    ("{repo}/raw?version", 400, "invalid_version"),
    ("{repo}/raw?version=latest", 400, "invalid_version"),
    ("{repo}/raw?version=v{version}", 400, "invalid_version"),
    ("{repo}/raw?version=0{version}", 400, "invalid_version"),
    ("{repo}/raw?version={version}%00", 400, "invalid_version"),
    ("{repo}/raw?version={version}%0A", 400, "invalid_version"),
    ("{repo}/raw?version={version}.json", 400, "invalid_version"),
    ("{repo}/raw?version=..%2F..%2Fversions", 400, "invalid_version"),
    ("{repo}/raw?version={version}&version={version}", 400, "invalid_parameter"),
    ("{repo}/raw?version=&version={version}", 400, "invalid_parameter"),
]


@area("errors")
@pytest.mark.parametrize(
    ("template", "status", "code"), ERRORS, ids=lambda part: str(part)[:90]
)  # fmt: skip
def test_errors(
    check: Check, client: Client, catalogue: Catalogue, template: str, status: int, code: str
) -> None:
    path = catalogue.fill(template)
    if path is None or (re.search("{Owner}|{Name}", template) and path == path.lower()):
        return  # nothing to ask for, or a name of digits, which has no upper case
    answer = client.get(path)
    if check.error(answer, status, code):
        head = client.ask("HEAD", path)
        check.status(head, status)
        check.empty_body(head)
        check_same_headers(check, head, answer)


@area("errors")
@each_path("/api/v1/repos/{Owner}/{name}", "/api/v1/repos/{Owner}/{name}/raw",
           "/api/v1/users/{Owner}")  # fmt: skip
@pytest.mark.level("full")
def test_upper_case_is_told_the_right_spelling(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None and path != path.lower():
        answer = client.get(path)
        owner = catalogue.names["owner"]
        check.that(
            answer, owner.encode() in answer.body, f"the lower-case spelling {owner} in the message"
        )


@area("errors")
def test_errors_to_other_origins(check: Check, client: Client) -> None:
    other = {"Origin": "https://elsewhere.example"}
    for path in ("/api/v1/nothing", "/api/v1/repos?page=0"):
        answer = client.ask("GET", path, other)
        check.cors(answer)
        check.that(
            answer, len(answer.headers.get_all("Access-Control-Allow-Origin") or []) == 1,
            "Access-Control-Allow-Origin once",
        )  # fmt: skip


# Methods


@area("methods")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST"])
@each_path("/api/v1/repos", "{repo}", "{repo}/raw", "/api/v1/tags", "/api/v1/nothing", "/",
           "/{owner}/{name}")  # fmt: skip
def test_other_methods(
    check: Check, client: Client, catalogue: Catalogue, template: str, method: str
) -> None:
    path = catalogue.fill(template)
    if path is None:
        return
    answer = client.ask(method, path, {"Content-Type": JSON}, b"{}")
    if template.endswith("nothing"):
        check.status(answer, 404, 405)
    else:
        check.status(answer, 405)
    if answer.status == 405:
        allowed = header_list(answer, "Allow")
        check.that(
            answer, allowed >= {"get", "head"}, "Allow with GET and HEAD",
            f"405, Allow: {answer.headers.get('Allow')}",
        )  # fmt: skip
    if template != "/" and "{owner}/" not in template and answer.status >= 400:
        check.envelope(answer)
        check.that(answer, answer.code in ("method_not_allowed", "not_found"),
                   "the code method_not_allowed")  # fmt: skip


@area("CORS")
@each_path("/api/v1/repos", "{repo}/versions", "{repo}/raw", "/api/v1/nothing")
def test_preflight(check: Check, client: Client, catalogue: Catalogue, template: str) -> None:
    path = catalogue.fill(template)
    if path is None:
        return
    asked = ["authorization", "content-type", "idempotency-key", "if-match"]
    answer = client.ask(
        "OPTIONS", path,
        {
            "Origin": "https://elsewhere.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": ", ".join(asked),
        },
    )  # fmt: skip
    check.status(answer, 200, 204)
    check.header(answer, "Access-Control-Allow-Origin", "*")
    methods = header_list(answer, "Access-Control-Allow-Methods")
    check.that(answer, methods >= {"get", "head", "post"}, "GET, HEAD and POST allowed",
               f"{answer.status}, {sorted(methods)}")  # fmt: skip
    allowed = header_list(answer, "Access-Control-Allow-Headers")
    check.that(answer, allowed >= set(asked), f"the headers {', '.join(asked)} allowed",
               f"{answer.status}, {sorted(allowed)}")  # fmt: skip


# Pages for people


PAGES = [route for route in FILES if route.media == HTML and route.url != "/404"]


@area("pages")
@each_route("GET", *(route for route in PAGES if route.url != "/"))
def test_a_slash_at_the_end_of_a_page(
    check: Check, client: Client, catalogue: Catalogue, route: Route
) -> None:
    url = catalogue.url(route)
    if url is not None:
        answer, page = client.get(f"{url}/"), client.get(url)
        if answer.status == 200:
            check.same_body(answer, page, url)
        elif check.status(answer, 301, 308):
            location = answer.headers.get("Location", "")
            check.that(
                answer, client.path_of(location, f"{url}/") == url, f"Location: {url}",
                f"{answer.status}, Location: {location}",
            )  # fmt: skip


@area("pages")
@each_path("/{nobody}", "/{nobody}/nothing", "/tags/{nobody}", "/{owner}/{nobody}", "/a/b/c/d",
           "/{nobody}/", "/assets/nothing.css", "/{owner}/{name}/999999999.0.0")  # fmt: skip
def test_page_that_is_not_there(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        answer = client.get(path)
        check.status(answer, 404)
        check.header(answer, "Content-Type", HTML)
        check.header(answer, "Cache-Control", CACHE_CONTROL["not_found"])
        check.header(answer, "X-Content-Type-Options", "nosniff")
        check_page_headers(check, answer)
        page = client.get("/" + BY_NAME["not_found_page"].file)
        check.that(answer, answer.body == page.body, "the site's page for what is not there")


@area("pages")
def test_links_of_pages_lead_somewhere(check: Check, client: Client, catalogue: Catalogue) -> None:
    seen: set[str] = set()
    for route in PAGES:
        for params in list(catalogue.params(route))[:3]:
            page = client.get(route.url_for(**params))
            for link in re.findall(rb'(?:href|src)="([^"]+)"', page.body):
                url = link.decode().replace("&amp;", "&")
                path = client.path_of(url, route.url_for(**params))
                if path is None or path in seen or path.startswith(("/mcp", "/healthz")):
                    continue
                seen.add(path)
                linked = client.get(path)
                check.that(linked, linked.status == 200, f"the page that {page.target} links to")


# Compression and parts


def large_ones(client: Client, catalogue: Catalogue) -> list[str]:
    """An address of each media type whose answer is worth compressing."""
    found: dict[str, str] = {}
    for name in ("repos", "openapi", "catalogue", "repo", "version", "raw", "home", "repo_page",
                 "stylesheet", "client"):  # fmt: skip
        for url, _ in urls_of(catalogue, BY_NAME[name]):
            if len(client.get(url).body) >= LARGE_BYTES:
                found.setdefault(name, url)
                break
    return list(found.values())


@area("compression")
@pytest.mark.needs("gzip")
def test_gzip(check: Check, client: Client, catalogue: Catalogue) -> None:
    for path in large_ones(client, catalogue):
        plain = client.get(path)
        check.that(
            plain, "accept-encoding" in header_list(plain, "Vary"), "Vary: Accept-Encoding",
            f"{plain.status}, Vary: {plain.headers.get('Vary')}",
        )  # fmt: skip
        for accepted in ("gzip", "br;q=0, gzip;q=0.5", "deflate, gzip, *;q=0"):
            packed = client.ask("GET", path, {"Accept-Encoding": accepted})
            if not check.header(packed, "Content-Encoding", "gzip"):
                continue
            check.that(
                packed, unpack(packed.body) == plain.body, "the same bytes after decoding",
                f"{len(packed.body)} bytes that decode to others",
            )  # fmt: skip
            check.that(packed, len(packed.body) < len(plain.body), "less than without")
            check.that(
                packed, "accept-encoding" in header_list(packed, "Vary"), "Vary: Accept-Encoding"
            )
            etag = packed.headers.get("ETag", "")
            check.that(
                packed, etag.startswith("W/") or etag != plain.headers.get("ETag"),
                "an ETag of its own, or a weak one (RFC 9110, 8.8.3)", f"ETag: {etag}",
            )  # fmt: skip
            for name in ("Content-Type", "Cache-Control", "Access-Control-Allow-Origin"):
                check.header(packed, name, plain.headers.get(name, ""))
            again = client.ask("GET", path, {"Accept-Encoding": "gzip", "If-None-Match": etag})
            check.status(again, 304)
        for refused in ("gzip;q=0", "identity", "gzip;q=0.0, identity", ""):
            answer = client.ask("GET", path, {"Accept-Encoding": refused})
            check.that(
                answer, "Content-Encoding" not in answer.headers,
                f"no Content-Encoding for Accept-Encoding {refused!r}",
                f"Content-Encoding: {answer.headers.get('Content-Encoding')}",
            )  # fmt: skip
            check.that(answer, answer.body == plain.body, "the same bytes")


def unpack(data: bytes) -> bytes | None:
    try:
        return zlib.decompress(data, zlib.MAX_WBITS | 16)
    except zlib.error:
        return None


@area("ranges")
@pytest.mark.needs("ranges")
@each_path("{repo}/raw", "{repo}/raw?version={version}", "{repo}/raw.txt",
           "{repo}/versions/{version}.txt")  # fmt: skip
def test_ranges(check: Check, client: Client, catalogue: Catalogue, template: str) -> None:
    path = catalogue.fill(template)
    if path is None:
        return
    whole = client.get(path)
    data, size = whole.body, len(whole.body)
    middle = min(2, size - 1)
    parts = [
        ("0-0", 0, 1), (f"{middle}-", middle, size), ("-1", size - 1, size),
        (f"0-{size * 9}", 0, size), (f"-{size * 2}", 0, size),
        (f"{middle}-{middle}", middle, middle + 1),
    ]  # fmt: skip
    for text, start, stop in parts:
        part = client.ask("GET", path, {"Range": f"bytes={text}"})
        if check.status(part, 206):
            check.header(part, "Content-Range", f"bytes {start}-{stop - 1}/{size}")
            check.that(part, part.body == data[start:stop], f"bytes {start} to {stop - 1}")
            for name in ("ETag", "Cache-Control", "Content-Type", "Access-Control-Allow-Origin"):
                check.header(part, name, whole.headers.get(name, ""))
    beyond = client.ask("GET", path, {"Range": f"bytes={size}-"})
    if check.error(beyond, 416, "range_not_satisfiable"):
        check.header(beyond, "Content-Range", f"bytes */{size}")
    for ignored in ("lines=0-1", "bytes=5-3", "bytes=x", "bytes"):
        answer = client.ask("GET", path, {"Range": ignored})
        # Which of these a host takes for malformed, and which for a range that is empty, is its.
        if answer.status != 416:
            check.same_body(answer, whole, "without the Range")
    etag = whole.headers.get("ETag", "")
    if not etag.startswith("W/"):
        part = client.ask("GET", path, {"Range": "bytes=0-0", "If-Range": etag})
        check.status(part, 206)
    for other in ('"conformance-another"', 'W/"x"'):
        answer = client.ask("GET", path, {"Range": "bytes=0-0", "If-Range": other})
        check.same_body(answer, whole, "without the Range, as If-Range names another")
    head = client.ask("HEAD", path, {"Range": "bytes=0-0"})
    check.status(head, 200, 206)


# What means no good


VALUES = [
    "../", "..", "../../../../etc/passwd", "%2e%2e/", "%2e%2e%2f%2e%2e%2fcanary", "..%2Fcanary",
    "..%5ccanary", "%00", "1%00", "$", "$uri", "${jndi:x}", "$(id)", "`id`", "%0a", "%0d%0a",
    "%0d%0aX-Injected:%20yes", "1%0d%0aX-Injected:%20yes", "'", "%22", "'%20OR%201=1--",
    "%3Cscript%3E",
    "{{7*7}}", "%ff%fe", "%c0%ae%c0%ae%2f", "%", "%zz", "*", "~", "|", "a;b", "a%26b=c", "a%3db",
    "%F0%9F%8E%89", "-", "_", ".", "/", "//", "\\", "x" * LONG_QUERY_CHARS, "..%2f" * 800,
]  # fmt: skip


@area("hostile queries")
@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value[:50])[1:-1])
def test_hostile_values(check: Check, client: Client, catalogue: Catalogue, value: str) -> None:
    raw = catalogue.fill("{repo}/raw") or "/api/v1/repos/{nobody}/nothing/raw"
    targets = [f"/api/v1/repos?{name}={value}" for name in ("page", "sort", "tag", "q")]
    targets += [f"/api/v1/repos?sort=new&page=1&tag={value}", f"/api/v1/repos?sort={value}&page=1"]
    targets += [f"{raw}?version={value}", f"/api/v1/repos?{value}", f"/api/v1/tags?{value}"]
    targets += [f"/?{value}", f"/api/v1/users/{quote(value, safe='%')}"[:6000]]
    for target in targets:
        try:
            answer = client.raw(target.encode("latin-1"))
        except NoAnswer:
            check.held += 1
            continue
        check_harmless(check, client, answer)
        check.that(
            answer, answer.status in (200, 301, 308, 400, 404, 405, 414, 431),
            "an answer, or an error of the client",
        )  # fmt: skip


@area("hostile queries")
@pytest.mark.parametrize("size", [8_000, 60_000, 1_000_000], ids=lambda size: f"{size} bytes")
def test_very_long_queries(check: Check, client: Client, size: int) -> None:
    for start in ("/api/v1/repos?x=", "/api/v1/repos?tag=", "/api/v1/tags?", "/?"):
        try:
            answer = client.raw((start + "y" * size).encode())
        except NoAnswer:
            check.held += 1
            continue
        check_harmless(check, client, answer)
        check.that(
            answer, answer.status in (200, 400, 414, 431), "an answer, or that it is too long"
        )
    check.status(client.ask("GET", "/api/v1/tags"), 200)


# How deep lists for people go


@area("pages")
def test_lists_for_people_end(check: Check, client: Client, catalogue: Catalogue) -> None:
    last = min(LIST_PAGES_MAX, max(1, -(-len(catalogue.ids) // PAGE_SIZE)))
    for sort in SORTS:
        check.status(client.get(f"/{sort}/{last + 1}"), 404)


@area("raw text")
def test_raw_text_cannot_run(check: Check, client: Client, catalogue: Catalogue) -> None:
    for name in ("raw", "version_raw", "diff"):
        for url, _ in urls_of(catalogue, BY_NAME[name]):
            answer = client.get(url)
            check.header(answer, "Content-Type", TEXT)
            check.header(answer, "X-Content-Type-Options", "nosniff")
