"""Lists by query, and the errors of the API."""

import re
from itertools import permutations

import pytest

from builder.model import answers
from builder.model.matching import list_api
from builder.model.routes import SORTS
from tests.conformance.catalogue import Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import LONG_QUERY_CHARS, Answer, Client
from tests.conformance.marks import area, each_path

pytestmark = pytest.mark.level("queries")


# Addresses that MCP clients request before they send a token (RFC 9728, RFC 8414).
METADATA = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration/",
)


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
def test_a_filter_is_applied_or_refused(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    """A host without a search index may refuse; it may not ignore the filter."""
    path = catalogue.fill(template)
    if path is None:
        return
    answer = client.get(path)
    check.that(answer, answer.status in (200, 400, 404, 501, 503), "an answer, or an error")
    found = check.rows(answer, answers.RepoSummary) if answer.status == 200 else None
    if found:
        parameter = "q" if "q=" in path else "tag"
        applied = getattr(found.meta, parameter)
        check.that(
            answer, applied is None or applied in path.replace("%2c", ","),
            f"a meta.{parameter} of the request, or null", f"meta.{parameter} {applied!r}",
        )  # fmt: skip
    elif answer.status >= 400:
        check.envelope(answer)


# Parameters


IGNORED = [
    "utm_source=x", "a=1&a=2&a", "__proto__=x&constructor=y", "page_size=1000", "Sort=new",
    "sorting=bad&pages=0&tags=x", "x=" + "y" * LONG_QUERY_CHARS, "x=%2e%2e%2f&y=%00", "=&&=",
]  # fmt: skip


@area("parameters")
@each_path(
    "/api/v1/repos", "/api/v1/repos?sort=new", "/api/v1/repos?tag={tag}", "{repo}", "{repo}/raw",
    "{repo}/raw?version={version}", "{repo}/body", "{repo}/body?version={version}",
    "{repo}/versions", "{repo}/versions/{version}", "/api/v1/tags",
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
    "{repo}/versions", "{repo}/versions.json", "{repo}/versions/{version}.txt", "{repo}/body.txt",
    "{repo}/versions/{version}.body.txt", "/api/v1/tags", "{repo}", "{repo}/labels",
    "{repo}/versions/{version}", "/api/v1/users/{owner}", "/api/v1/catalogue.jsonl",
    "/api/v1/hub.json", "{repo}/versions/{version}/diff",
)  # fmt: skip
def test_addresses_that_take_no_parameter(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        for query in (
            "page=2", "sort=bad&page=0&tag=", "version=x", "sort=new&tag=..%2f", "q=a", "label",
            "utm=x&version=1.0.0", "label=production&y", "version=1.0.0&label=production",
        ):  # fmt: skip
            check_misplaced(check, client.get(f"{path}?{query}"))


@area("parameters")
@each_path(
    "/api/v1/repos?version={version}", "/api/v1/repos?sort=new&label=production",
    "/api/v1/repos?q=a&version=1.0.0", "{repo}/raw?page=2", "{repo}/body?version={version}&tag=a",
    "{repo}/raw?q=x&utm=y", "{repo}/body?sort", "{repo}/raw?label=a&version={version}",
    "{repo}/body?version={version}&label=production",
)  # fmt: skip
def test_parameters_of_other_addresses(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        check_misplaced(check, client.get(path))


def check_misplaced(check: Check, answer: Answer) -> None:
    if check.error(answer, 400, "invalid_parameter"):
        message = answer.json["error"]["message"]
        for address in ("/versions/", "/raw?version=", "/labels/", "/raw?label=", "/api/v1/repos."):
            check.that(answer, address in message, f"a message that names {address}", message)


@area("parameters")
@each_path("/top", "/{owner}/{name}", "/{owner}/{name}/{version}")
def test_pages_take_no_query(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        for query in ("page=2", "version=x", "sort=new&tag=..%2f"):
            check.same_body(client.get(f"{path}?{query}"), client.get(path), path)


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


# Errors


ERRORS_BY_CODE = {
    (404, "not_found"): [
        "/api", "/api/", "/api/v1", "/api/v1/nothing", "/api/v2/repos", "/api/v1/repos/{nobody}",
        "{repo}/nothing",
    ],
    (404, "page_not_found"): [
        "/api/v1/repos?page=999999999", "/api/v1/repos?sort=new&page=999999999",
        "/api/v1/repos/_/top/999999999", "/api/v1/repos?tag={tag}&page=999999999",
    ],
    (404, "tag_not_found"): [
        "/api/v1/repos?tag={nobody}", "/api/v1/repos?tag={nobody}&sort=new&page=1",
        "/api/v1/tags/{nobody}/top/1", "/api/v1/repos?tag=" + "x" * 48,
    ],
    (404, "repo_not_found"): [
        "/api/v1/repos/{nobody}/nothing", "/api/v1/repos/{nobody}/nothing/versions",
        "/api/v1/repos/{nobody}/nothing/raw", "/api/v1/repos/{nobody}/nothing/raw?version=1.0.0",
        "/api/v1/repos/{nobody}/nothing/versions/1.0.0", "/api/v1/repos/{owner}/{nobody}",
        "/api/v1/repos/{owner}/" + "x" * 64, "/api/v1/repos/" + "x" * 39 + "/nothing/raw",
        "/api/v1/repos/{nobody}/nothing/body.txt", "/api/v1/repos/{nobody}/nothing/labels",
        "/api/v1/repos/{nobody}/nothing/labels/a", "/api/v1/repos/{nobody}/nothing/raw?label=a",
    ],
    (404, "user_not_found"): [
        "/api/v1/users/" + "x" * 39, "/api/v1/users/{nobody}",
    ],
    (404, "label_not_found"): [
        "{repo}/labels/" + "a" * 36, "{repo}/raw?label={nobody}", "{repo}/raw?label={version}",
        "{repo}/raw?label=a.json", "{repo}/labels/{nobody}", "{repo}/labels/{nobody}.txt",
        "{repo}/labels/{nobody}.body.txt", "{repo}/labels/{nobody}/history",
    ],
    (404, "version_not_found"): [
        "{repo}/versions/999999999.999999999.999999999",
        "{repo}/raw?version=999999999.999999999.999999999",
        "{repo}/versions/999999999.999999999.999999999/diff",
        "{repo}/versions/999999999.999999999.999999999.body.txt",
    ],
    (400, "invalid_name"): [
        "/api/v1/repos/{Owner}/{name}", "/api/v1/repos/{owner}/{Name}",
        "/api/v1/repos/{Owner}/{name}/versions", "/api/v1/repos/{Owner}/{name}/raw",
        "/api/v1/repos/{Owner}/{name}/raw?version={version}",
        "/api/v1/repos/{owner}/{Name}/versions/{version}", "/api/v1/users/{Owner}",
        "/api/v1/repos/-x/{name}", "/api/v1/repos/x_y/{name}", "/api/v1/repos/{owner}/a--b",
        "/api/v1/repos/{owner}/a-", "/api/v1/repos/{owner}/a%20b", "/api/v1/repos/{owner}/%C3%A9",
        "/api/v1/repos/{owner}/" + "x" * 65, "/api/v1/repos/" + "x" * 40 + "/{name}",
        "/api/v1/users/" + "x" * 40, "/api/v1/users/a--b",
    ],
    (400, "invalid_version"): [
        "{repo}/versions/1.0", "{repo}/versions/v1.0.0", "{repo}/versions/01.0.0",
        "{repo}/versions/1.0.0-beta", "{repo}/versions/latest", "{repo}/versions/1000000000.0.0",
        "{repo}/versions/1.0/diff", "{repo}/raw?version=1.0", "{repo}/raw?version=",
        "{repo}/raw?version", "{repo}/raw?version=latest", "{repo}/raw?version=v{version}",
        "{repo}/raw?version=0{version}", "{repo}/raw?version={version}%00",
        "{repo}/raw?version={version}%0A", "{repo}/raw?version={version}.json",
        "{repo}/raw?version=..%2F..%2Fversions", "{repo}/versions/1.0.body.txt",
    ],
    (400, "invalid_label"): [
        "{repo}/labels/A.body.txt", "{repo}/labels/A", "{repo}/labels/-a",
        "{repo}/labels/a-/history", "{repo}/labels/" + "a" * 37, "{repo}/raw?label=",
        "{repo}/raw?label", "{repo}/raw?label=A", "{repo}/raw?label=a.", "{repo}/raw?label=a%00",
        "{repo}/raw?label=a%0A", "{repo}/raw?label=a/b", "{repo}/raw?label=..%2F..%2Fversions",
        "{repo}/raw?label=" + "a" * 37,
    ],
    (400, "invalid_parameter"): [
        "{repo}/raw?label=a&label=a", "{repo}/raw?label=a&version={version}",
        "{repo}/raw?version={version}&x&label=a", "{repo}/raw?version=x&label=A",
        "{repo}/raw?version={version}&version={version}", "{repo}/raw?version=&version={version}",
    ],
}  # fmt: skip
ERRORS = [(path, *code) for code, paths in ERRORS_BY_CODE.items() for path in paths]
ERRORS += [
    (template.replace("/raw", "/body"), status, code)
    for template, status, code in ERRORS
    if "/raw" in template
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
        return  # no name to test, or a name of digits, which has no upper case
    answer = client.get(path)
    if check.error(answer, status, code):
        head = client.ask("HEAD", path)
        check.status(head, status)
        check.empty_body(head)
        check.same_headers(head, answer)


@area("errors")
@each_path("/api/v1/repos/{Owner}/{name}", "/api/v1/repos/{Owner}/{name}/raw",
           "/api/v1/users/{Owner}")  # fmt: skip
@pytest.mark.level("full")
def test_an_error_for_upper_case_has_the_right_spelling(
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
@each_path(*METADATA, "/{owner}/.well-known/x", "/mcp/.well-known/openid-configuration")
def test_metadata_that_is_not_there(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        check.error(client.get(path), 404, "not_found")


@area("errors")
def test_errors_to_other_origins(check: Check, client: Client) -> None:
    other = {"Origin": "https://elsewhere.example"}
    for path in ("/api/v1/nothing", "/api/v1/repos?page=0"):
        answer = client.ask("GET", path, other)
        check.cors(answer)
        origins = answer.headers.get_all("Access-Control-Allow-Origin") or []
        check.equal(answer, "times Access-Control-Allow-Origin", len(origins), 1)
