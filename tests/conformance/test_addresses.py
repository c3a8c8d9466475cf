"""The addresses of the spec: what they lead to, with which headers, how, and in what form."""

import re

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.routes import BY_NAME, HTML, JSON, LIST_PAGES_MAX, PAGE_SIZE, SORTS, TEXT, Route
from builder.model.service_urls import HEALTH_URL, READY_URL, is_account_url
from tests.conformance.catalogue import FILES, Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Client, header_list
from tests.conformance.conditions import check_conditions
from tests.conformance.marks import area, each_path, each_route

pytestmark = pytest.mark.level("queries")

# Below this, some hosts think compression not worth while.
LARGE_BYTES = 4096
MADE_UP = "BREW"
PAGES = [route for route in FILES if route.media == HTML]


# Every address


@area("addresses")
@each_route("GET")
def test_every_address_is_its_file(
    check: Check, client: Client, catalogue: Catalogue, route: Route
) -> None:
    for url, file in catalogue.urls(route):
        answer = client.get(url)
        if check.status(answer, 200) and url != file:
            check.same_body(answer, client.get(file), file)


@area("headers")
@each_route("GET")
def test_headers(check: Check, client: Client, catalogue: Catalogue, route: Route) -> None:
    for url, file in list(catalogue.urls(route))[-4:]:
        for path in dict.fromkeys((url, file)):
            answer = client.get(path)
            if answer.status >= 400:
                continue  # reported by the test above
            check.header(answer, "Content-Type", route.media)
            check.header(answer, "Cache-Control", CACHE_CONTROL[route.cache])
            check.header(answer, "X-Content-Type-Options", "nosniff")
            check.cors(answer)
            length = answer.headers.get("Content-Length", "")
            if length:
                check.equal(answer, "length", length, str(len(answer.body)))
            etag = answer.headers.get("ETag", "")
            check.that(answer, re.fullmatch(r'(W/)?"[!#-~]+"', etag), "an ETag", f"ETag: {etag}")
            check.that(
                answer, "Content-Encoding" not in answer.headers,
                "no Content-Encoding for who accepts identity alone",
            )  # fmt: skip
            if route.media == HTML:
                check.page_headers(answer)


@area("raw text")
def test_raw_text_cannot_run(check: Check, client: Client, catalogue: Catalogue) -> None:
    for name in ("raw", "version_raw", "label_raw", "body", "version_body", "label_body", "diff"):
        for url, _ in catalogue.urls(BY_NAME[name]):
            answer = client.get(url)
            check.header(answer, "Content-Type", TEXT)
            check.header(answer, "X-Content-Type-Options", "nosniff")


@area("HEAD")
@each_route("HEAD")
def test_head(check: Check, client: Client, catalogue: Catalogue, route: Route) -> None:
    url = catalogue.url(route)
    if url is not None:
        get, head = client.get(url), client.ask("HEAD", url)
        check.status(head, get.status)
        check.empty_body(head)
        check.same_headers(head, get)


@area("conditional requests")
@each_route("GET", *FILES)
def test_conditions(check: Check, client: Client, catalogue: Catalogue, route: Route) -> None:
    url = catalogue.url(route)
    if url is not None:
        check_conditions(check, client, url)


# Methods


@area("methods")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST", "TRACE", MADE_UP])
@each_path("/api/v1/repos", "{repo}", "{repo}/raw", "/api/v1/tags", "/api/v1/nothing", "/",
           "/{owner}/{name}")  # fmt: skip
def test_other_methods(
    check: Check, client: Client, catalogue: Catalogue, template: str, method: str
) -> None:
    path = catalogue.fill(template)
    if path is None:
        return
    # An answer to TRACE must not repeat the request's headers: they contain cookies and tokens.
    headers = {"Content-Type": JSON, "X-Conformance": "is not sent back"}
    answer = client.ask(method, path, headers, None if method == "TRACE" else b"{}")
    check.that(answer, b"is not sent back" not in answer.body, "nothing of the request's headers")
    if method == MADE_UP and answer.status in (400, 501):
        # The parser of some servers has a fixed list of methods, and closes the connection for
        # others.
        return
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
    requested = ["authorization", "content-type", "idempotency-key", "if-match"]
    answer = client.ask(
        "OPTIONS", path,
        {
            "Origin": "https://elsewhere.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": ", ".join(requested),
        },
    )  # fmt: skip
    check.status(answer, 200, 204)
    check.header(answer, "Access-Control-Allow-Origin", "*")
    methods = header_list(answer, "Access-Control-Allow-Methods")
    check.that(answer, methods >= {"get", "head", "post"}, "GET, HEAD and POST allowed",
               f"{answer.status}, {sorted(methods)}")  # fmt: skip
    allowed = header_list(answer, "Access-Control-Allow-Headers")
    check.that(answer, allowed >= set(requested), f"the headers {', '.join(requested)} allowed",
               f"{answer.status}, {sorted(allowed)}")  # fmt: skip


# Pages for people


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
            check.equal(answer, "Location", client.path_of(location, f"{url}/"), url)


@area("pages")
@each_route("GET", *(one for one in FILES if one.media != HTML and not one.has_json_errors))
def test_nothing_has_a_slash_at_its_end_but_pages(
    check: Check, client: Client, catalogue: Catalogue, route: Route
) -> None:
    url = catalogue.url(route)
    if url is not None:
        check.status(client.get(f"{url}/"), 404)


@area("skills")
def test_a_skill_is_there_for_any_query(check: Check, client: Client, catalogue: Catalogue) -> None:
    url = catalogue.url(BY_NAME["skill"])
    if url is not None:
        answer = client.get(f"{url}?version=1.0.0&label=x")
        check.same_body(answer, client.get(url), url)


@area("pages")
@each_path("?from=1.0.0&to=latest", "?from=%3Cb%3E&to=..%2f..", "?version=x&page=0&q=&label=%00",
           f"?from={'a' * 2000}")  # fmt: skip
def test_a_page_that_compares_is_there_for_any_query(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    url = catalogue.url(BY_NAME["compare_page"])
    if url is not None:
        answer = client.get(url + template)
        if check.status(answer, 200):
            check.same_body(answer, client.get(url), url)
            check.header(answer, "Cache-Control", CACHE_CONTROL["list"])


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
        check.page_headers(answer)
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
                if path is None or path in seen or is_the_services(path):
                    continue
                seen.add(path)
                linked = client.get(path)
                check.that(linked, linked.status == 200, f"the page that {page.target} links to")


def is_the_services(path: str) -> bool:
    """True if a link leads to an address that is tested from the level full on."""
    return path.startswith(("/mcp", HEALTH_URL, READY_URL)) or is_account_url(
        path.partition("?")[0]
    )


@area("pages")
def test_lists_for_people_end(check: Check, client: Client, catalogue: Catalogue) -> None:
    last = min(LIST_PAGES_MAX, max(1, -(-len(catalogue.ids) // PAGE_SIZE)))
    for sort in SORTS:
        check.status(client.get(f"/{sort}/{last + 1}"), 404)


# Compression and parts


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
            check.equal(packed, "decoded", packed.plain_body, plain.body)
            check.that(packed, len(packed.body) < len(plain.body), "less than without")
            varies = "accept-encoding" in header_list(packed, "Vary")
            check.that(packed, varies, "Vary: Accept-Encoding")
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
            is_plain = "Content-Encoding" not in answer.headers
            check.that(answer, is_plain, f"no Content-Encoding for Accept-Encoding {refused!r}")
            check.that(answer, answer.body == plain.body, "the same bytes")


def large_ones(client: Client, catalogue: Catalogue) -> list[str]:
    """An address of each media type whose answer is large enough to compress."""
    found: dict[str, str] = {}
    for name in ("repos", "openapi", "catalogue", "repo", "version", "raw", "home", "repo_page",
                 "stylesheet", "client"):  # fmt: skip
        for url, _ in catalogue.urls(BY_NAME[name]):
            if len(client.get(url).body) >= LARGE_BYTES:
                found.setdefault(name, url)
                break
    return list(found.values())
