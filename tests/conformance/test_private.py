"""A private hub: anonymous requests learn nothing of it, not even which prompts exist; members read
all.
"""

import base64
import json
from collections.abc import Iterator
from itertools import islice

import pytest

from builder.model.matching import is_page_path
from builder.model.routes import BY_NAME, JSON, LANGFUSE, WELL_KNOWN, Route
from builder.model.service_urls import (
    ACCOUNT_URL,
    CHECK_URL,
    HEALTH_URL,
    LOGIN_URL,
    MCP_URL,
    TRUSTED_URL,
)
from tests.conformance.catalogue import FILES, NOBODY, Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client, asking
from tests.conformance.marks import area
from tests.conformance.test_queries import METADATA

pytestmark = [pytest.mark.level("private"), area("private")]

OPEN = [route for route in FILES if route.is_open]
GUARDED = [route for route in FILES if not route.is_open]
# Nothing is here; to a stranger, nothing else is anywhere.
NOTHING = f"/api/v1/repos/{NOBODY}/{NOBODY}"


@pytest.fixture(scope="module")
def stranger(client: Client) -> Iterator[Client]:
    """A client of the same deployment, without a token."""
    with asking(client.deployment._replace(member=""), client.say) as stranger:
        yield stranger


def check_shut(check: Check, answer: Answer, nothing: Answer) -> None:
    """Check that an answer says only that the hub is private.

    ``nothing``: the answer for an address that does not exist.
    """
    path = answer.target.partition("?")[0]
    if answer.status == 303:
        check.that(answer, is_page_path(path), "401 for a program")
        location = answer.headers.get("Location", "")
        check.that(answer, LOGIN_URL in location, "the way to sign in", f"to {location!r}")
        check.that(answer, len(answer.body) < 300, "no page", f"{len(answer.body)} bytes")
    elif check.status(answer, 401):
        check.header(answer, "WWW-Authenticate", "Bearer")
        if answer.method != "HEAD":
            check.same_body(answer, nothing, "where nothing is")
    check_hidden(check, answer)
    check.header(answer, "Cache-Control", "no-store")
    for name in ("ETag", "Last-Modified"):
        check.that(answer, name not in answer.headers, f"no {name}", answer.headers.get(name, ""))


def check_hidden(check: Check, answer: Answer) -> None:
    """Check that no other origin reads an answer, and that no shared cache keeps it."""
    shared = [name for name in answer.headers if name.lower().startswith("access-control-")]
    check.that(answer, not shared, "no CORS", ", ".join(shared))
    directives = answer.headers.get("Cache-Control", "")
    is_shared = "public" in directives or "s-maxage" in directives
    check.that(answer, not is_shared, "private", directives)


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: f"GET /{route.file}")
def test_strangers_get_nothing(
    check: Check, client: Client, stranger: Client, catalogue: Catalogue, route: Route
) -> None:
    nothing = stranger.get(NOTHING)
    for path in islice(catalogue.files(route), 2):
        for method in ("GET", "HEAD"):
            check_shut(check, stranger.ask(method, path), nothing)
        known = client.get(path)
        if route in FILES:
            check.status(known, 200)
        check_hidden(check, known)
        etag = known.headers.get("ETag", '"x"')
        check_shut(check, stranger.ask("GET", path, {"If-None-Match": etag}), nothing)


@pytest.mark.parametrize("route", OPEN, ids=lambda route: f"GET /{route.file}")
def test_what_sign_in_and_clients_need_is_open(
    check: Check, client: Client, stranger: Client, catalogue: Catalogue, route: Route
) -> None:
    for path in catalogue.files(route):
        answer = stranger.get(path)
        check.status(answer, 200)
        check.same_body(answer, client.get(path), "what members get")
        check_hidden(check, answer)
        for owner, name in catalogue.repos:
            words = f"{owner}/{name}".encode()
            check.that(answer, words not in answer.body, "nothing of the content", str(words))


def test_queries_are_for_members(
    check: Check, client: Client, stranger: Client, catalogue: Catalogue
) -> None:
    nothing = stranger.get(NOTHING)
    owner, name = catalogue.repos[0]
    repo = f"/api/v1/repos/{owner}/{name}"
    for path in (
        "/api/v1/repos?q=review", "/api/v1/repos?sort=new", "/api/v1/repos?page=x",
        "/api/v1/repos?tag=a,b", f"{repo}/raw?version=1.0.0", f"{repo}/raw?label=latest",
        f"{repo}/raw?version=x", f"{repo}/versions/9.9.9", f"/{owner}/{name}/", f"/{owner}/", "/",
        f"/{owner}/{name}/versions/", "/api", "/langfuse", f"/api/v1/repos/{owner.upper()}/{name}",
        f"{LANGFUSE}/{owner}/{name}", f"{LANGFUSE}/{owner}%2F{name}?label=latest",
        f"/search?q=a&b={'x' * 3000}", f"/{owner}/.well-known/agent-skills/index.json",
    ):  # fmt: skip
        check_shut(check, stranger.ask("GET", path), nothing)


def test_members_ask_as_everybody_asks_elsewhere(
    check: Check, client: Client, catalogue: Catalogue
) -> None:
    owner, name = catalogue.repos[0]
    repo = f"/api/v1/repos/{owner}/{name}"
    version = catalogue.versions(owner, name)[0]["version"]
    for address, file in (
        ("/api/v1/repos?sort=new&page=1", "/api/v1/repos/_/new/1.json"),
        (f"{repo}/raw?version={version}", f"{repo}/versions/{version}.txt"),
        (f"{repo}/body", f"{repo}/body.txt"),
        ("/", "/index.html"),
        (f"/{owner}/{name}?x=1", f"/{owner}/{name}.html"),
    ):
        check.same_body(client.ask("GET", address), client.get(file), file)
    raw = client.get(f"{repo}/raw")
    etag = {"If-None-Match": raw.headers.get("ETag", "")}
    check.status(client.ask("GET", f"{repo}/raw", etag), 304)
    check.status(client.ask("GET", "/api/v1/repos?q=review"), 200)
    for path, status in (("/api/v1/repos?page=x", 400), (NOTHING, 404), (f"/{NOBODY}", 404)):
        answer = client.ask("GET", path)
        check.status(answer, status)
        check_hidden(check, answer)
    slash = client.ask("GET", f"/{owner}/{name}/")
    check.status(slash, 308)
    check.header(slash, "Location", f"{client.root}/{owner}/{name}")


@pytest.mark.parametrize(
    "path",
    [
        "//api/v1/repos", "/%61pi/v1/repos", "/api/v1/../v1/repos", "/assets/../api/v1/repos.json",
        "/assets/%2e%2e/api/v1/repos.json", "/cli/..%2fapi/v1/catalogue.jsonl", "/API/v1/repos",
        "/account/../api/v1/repos.json", "/account/%2e%2e/api/v1/repos", "/account//../feed.xml",
        "/healthz/../feed.xml", "/mcp/../feed.xml", "/assets/style.css/../../feed.xml",
        "/.well-known/../feed.xml", "/.well-known/%2e%2e/feed.xml", "/robots.txt/../feed.xml",
        "/./feed.xml", "/feed.xml%00", "/feed.xml/", "/feed.xml?x=/cli/",
        "/assets//style.css/../../feed.xml.gz", "/index.html.gz", "/api/v1/catalogue.jsonl.gz",
        "/-/page", "/-/guard", "/-/access", "/-/ask", "/-/service", "/-/missing/repo", "/-/account",
        "/-/withdrawn/api", "/-/unavailable", "/ranges.sock", "/healthz/x", "/assets/", "/cli/hub/",
    ],
)  # fmt: skip
def test_no_path_leads_around_the_guard(
    check: Check, client: Client, stranger: Client, catalogue: Catalogue, path: str
) -> None:
    answer = stranger.raw(path.encode())
    check.that(answer, answer.status in (303, 400, 401, 404), "a refusal")
    check_hidden(check, answer)
    for owner, name in catalogue.ids:
        is_named = f"{owner}/{name}".encode() in answer.body
        check.that(answer, not is_named, "nothing of the content")
    if answer.status == 404:
        # The account's own 404 page is public, and so is the answer that metadata does not exist.
        check.that(answer, path.startswith((ACCOUNT_URL, WELL_KNOWN)), "401 or 303")


def test_no_method_tells_what_there_is(
    check: Check, stranger: Client, catalogue: Catalogue
) -> None:
    owner, name = catalogue.repos[0]
    for method in ("OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
        there, nowhere = (
            stranger.ask(method, f"/api/v1/repos/{one}", {"Origin": "https://elsewhere.example"})
            for one in (f"{owner}/{name}", f"{NOBODY}/{NOBODY}")
        )
        check.same_body(there, nowhere, "where nothing is")
        check_hidden(check, there)


def test_mcp_asks_for_a_token(check: Check, client: Client, stranger: Client) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    headers = {"Content-Type": JSON, "Accept": "application/json, text/event-stream"}
    answer = stranger.ask("POST", MCP_URL, headers, body)
    if check.status(answer, 401):
        check.header(answer, "WWW-Authenticate", "Bearer")
        check.that(answer, answer.code == "missing_token", "missing_token")
    check.status(client.ask("POST", MCP_URL, headers, body), 200)


@pytest.mark.needs("publishing")
def test_only_members_check_drafts(
    check: Check, client: Client, stranger: Client, catalogue: Catalogue
) -> None:
    owner, name = catalogue.repos[0]
    path, body = CHECK_URL.format(owner=owner, name=name), b'{"content": "Another."}'
    answer = stranger.ask("POST", path, {"Content-Type": JSON}, body)
    if check.status(answer, 401):
        check.that(answer, answer.code == "missing_token", "missing_token")
        check_hidden(check, answer)
    answer = client.ask("POST", path, {"Content-Type": JSON}, body)
    # Another owner's token reads, and may not publish here.
    if check.status(answer, 200, 403):
        check_hidden(check, answer)


def test_clients_learn_that_there_is_no_metadata_to_sign_in(
    check: Check, client: Client, stranger: Client
) -> None:
    for path in METADATA:
        for who in (client, stranger):
            answer = who.get(path)
            check.that(answer, (answer.status, answer.code) == (404, "not_found"), "not_found")
            check_hidden(check, answer)


@pytest.mark.needs("langfuse")
def test_a_secret_key_of_langfuse_is_a_token(
    check: Check, client: Client, stranger: Client, catalogue: Catalogue
) -> None:
    owner, name = catalogue.repos[0]
    path = f"{LANGFUSE}/{owner}/{name}"
    for key, status in ((client.deployment.member, 200), ("hub_" + "A" * 38, 401), ("", 401)):
        pair = base64.b64encode(f"pk-lf-x:{key}".encode()).decode()
        check.status(stranger.ask("GET", path, {"Authorization": f"Basic {pair}"}), status)


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer", "Bearer x", "Bearer hub_" + "A" * 38, "Basic !", "Basic YTpi", "Digest x",
        "x" * 900,
    ],
)  # fmt: skip
def test_what_is_no_token_opens_nothing(check: Check, stranger: Client, authorization: str) -> None:
    for path in ("/api/v1/hub.json", NOTHING):
        sent = {"Authorization": authorization, "Cookie": "hub-member=x"}
        answer = stranger.ask("GET", path, sent)
        check.status(answer, 401)
        check.that(answer, answer.code in ("missing_token", "invalid_token"), "why")


def test_the_way_in_is_open(check: Check, stranger: Client, client: Client) -> None:
    check.status(stranger.get(LOGIN_URL), 200)
    check.status(stranger.ask("GET", HEALTH_URL), 200)
    check.status(stranger.ask("POST", TRUSTED_URL, {"Content-Type": JSON}, b"{}"), 422, 401, 400)
    robots = stranger.get("/" + BY_NAME["robots"].file)
    check.that(robots, robots.body == b"User-agent: *\nDisallow: /\n", "nothing for crawlers")
    hub = client.get("/" + BY_NAME["hub"].file)
    check.that(hub, (hub.json or {}).get("data", {}).get("private") is True, "private: true")
    home = client.get("/")
    check.that(home, b'<meta name="robots" content="noindex">' in home.body, "noindex")
