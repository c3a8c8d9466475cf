"""Withdrawn versions are gone, and a host that is more than a store of files says why."""

import json

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.errors import STATUS
from builder.model.routes import BY_NAME, HTML, JSON, Route
from tests.conformance.catalogue import FILES, Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area
from tests.conformance.sample import SECRET, WITHDRAWN

pytestmark = [pytest.mark.level("files"), area("withdrawn")]

OF_VERSIONS = [route for route in FILES if route.scope == "version"]
OF_REPOS = [route for route in FILES if route.scope in ("version", "label", "repo")]


def paths_of(client: Client, route: Route, params: dict[str, str]) -> list[str]:
    found = ["/" + route.file_for(**params)]
    if not client.deployment.has_queries:
        return found  # the URL may be that of a folder
    found.append(route.url_for(**params))
    return found + ([route.query.format_map(params)] if route.query else [])


@pytest.mark.parametrize("route", OF_VERSIONS, ids=lambda route: f"GET {route.url}")
def test_withdrawn_versions(
    check: Check, client: Client, catalogue: Catalogue, route: Route
) -> None:
    for owner, name in catalogue.repos:
        for row in catalogue.withdrawn(owner, name):
            at = {"owner": owner, "name": name, "version": row["version"]}
            facts = (row["changelog"], row["diff_url"], row.get("labels") or [])
            listed = client.get("/" + BY_NAME["versions"].file_for(**at))
            check.that(listed, facts == ("", None, []), "nothing of what was written in it")
            for path in paths_of(client, route, at):
                check_gone(check, client, route, path, row["withdrawn"]["note"])


@pytest.mark.parametrize("route", OF_REPOS, ids=lambda route: f"GET {route.url}")
def test_a_withdrawn_repo(check: Check, client: Client, catalogue: Catalogue, route: Route) -> None:
    if WITHDRAWN[0] not in catalogue.owners:
        return  # the withdrawals of other hubs are unknown
    at = dict(zip(("owner", "name"), WITHDRAWN, strict=True))
    at |= {"version": "1.0.0", "label": "latest"}
    for path in paths_of(client, route, at):
        check_gone(check, client, route, path)


def test_no_list_shows_what_was_withdrawn(
    check: Check, client: Client, catalogue: Catalogue
) -> None:
    for route in FILES:
        for path in catalogue.files(route):
            answer = client.get(path)
            found = [text for text in (SECRET, "/".join(WITHDRAWN)) if text.encode() in answer.body]
            check.that(answer, not found, "nothing of what was withdrawn", f"{found}")


def check_gone(check: Check, client: Client, route: Route, path: str, note: str = "") -> None:
    for method, headers in (
        ("GET", {}), ("HEAD", {}), ("GET", {"Range": "bytes=0-3"}), ("GET", {"If-None-Match": "*"}),
    ):  # fmt: skip
        answer = client.ask(method, path, headers=headers)
        if not client.deployment.has_queries:
            check.status(answer, 404, STATUS["withdrawn"])
        elif check.status(answer, STATUS["withdrawn"]):
            check_told(check, answer, route, note)


def check_told(check: Check, answer: Answer, route: Route, note: str) -> None:
    check.header(answer, "Cache-Control", CACHE_CONTROL["none"])
    check.cors(answer)
    check.header(answer, "Content-Type", JSON if route.has_json_errors else HTML)
    if answer.method == "HEAD":
        check.empty_body(answer)
    elif route.has_json_errors:
        error = json.loads(answer.body)["error"]
        check.that(answer, error["code"] == "withdrawn", "the code withdrawn")
        check.that(answer, note in error["message"], f"the note {note!r}")
    else:
        check.that(answer, b"withdrawn" in answer.body, "a page that says so")
        check.page_headers(answer)
