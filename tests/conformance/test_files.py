"""Level ``files``: all of the site by path, on any host that can serve a folder."""

import hashlib
import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from urllib.parse import quote, unquote, urljoin, urlsplit

import jsonschema
import pytest

from builder import records
from builder.names import Version
from builder.routes import (
    ATOM,
    BY_NAME,
    GZIP,
    HTML,
    JSON,
    JSON_LINES,
    PAGE_SIZE,
    ROUTES,
    SORTS,
    XML,
    list_api,
)
from tests.conformance import orders
from tests.conformance.catalogue import NOBODY, Catalogue, rows_of
from tests.conformance.checks import Check, Rows
from tests.conformance.client import Answer, Client, NoAnswer
from tests.conformance.sample import CANARY

pytestmark = pytest.mark.level("files")

area = pytest.mark.area

# Compressed files are for the host alone.
FILES = [route for route in ROUTES if route.media != GZIP]
# The page for what is not there may come as what it is, a 404.
FOUND = [route for route in FILES if route.name != "not_found_page"]


def file_of(name: str, /, **params: object) -> str:
    """The path of a route's file."""
    return "/" + BY_NAME[name].file_for(**params)


# All files


@area("files")
@pytest.mark.parametrize("route", FILES, ids=lambda route: f"GET /{route.file}")
def test_every_file_is_there(check: Check, client: Client, catalogue: Catalogue, route) -> None:
    for path in catalogue.files(route):
        answer = client.get(path)
        if route.name == "not_found_page":
            # Some hosts give their page for what is not there with that status, whoever asks.
            check.status(answer, 200, 404)
        elif not check.status(answer, 200):
            continue
        check_is_whole(check, answer, route.media)
        length = answer.headers.get("Content-Length")
        if length is not None:
            check.that(answer, int(length) == len(answer.body), f"{length} bytes")


def check_is_whole(check: Check, answer: Answer, media: str) -> None:
    """Whether a body is of its media type, to the end."""
    if media == HTML:
        text = answer.body.strip().lower()
        is_whole = text.startswith(b"<!doctype html>") and text.endswith(b"</html>")
        check.that(answer, is_whole, "a whole HTML document")
    elif media == JSON:
        check.that(answer, isinstance(answer.json, dict), "an object as JSON")
    elif media in (XML, ATOM):
        root = parse_xml(answer.body)
        check.that(answer, root is not None, "well-formed XML")
    elif media != JSON_LINES:
        check.that(answer, is_utf8(answer.body), "UTF-8")


def parse_xml(body: bytes) -> ET.Element | None:
    try:
        return ET.fromstring(body)
    except ET.ParseError:
        return None


def is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


# The service


@area("service")
def test_hub_json(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = client.get(file_of("hub"))
    hub = check.single(answer, records.Hub)
    if hub:
        check.that(answer, hub.api_version == "v1", "api_version v1")
        check.that(
            answer, hub.repos_count == len(catalogue.lines),
            f"repos_count {len(catalogue.lines)}, the lines of catalogue.jsonl",
            f"repos_count {hub.repos_count}",
        )  # fmt: skip
        check.that(answer, not hub.base_url.endswith("/"), "a base_url without a slash at its end")
        check.that(
            answer, hub.publish_url.startswith(f"{hub.base_url}/"), "publish_url below base_url"
        )
        for name in hub.paths.__struct_fields__:
            path, wanted = getattr(hub.paths, name), "/" + BY_NAME[name].file
            check.that(answer, path == wanted, f"paths.{name} {wanted}", f"paths.{name} {path}")


@area("service")
def test_answers_fit_the_api_document(check: Check, client: Client, catalogue: Catalogue) -> None:
    document = client.get(file_of("openapi")).json
    for route in ROUTES:
        params = catalogue.example(route)
        if not route.summary or route.media != JSON or params is None:
            continue
        answer = client.get("/" + route.file_for(**params))
        try:
            schema = document["paths"][route.url]["get"]["responses"]["200"]["content"][JSON]
        except (KeyError, TypeError) as error:
            about = client.get(file_of("openapi"))
            check.that(about, False, f"the answer's schema of GET {route.url}", f"no {error}")
            continue
        validator = jsonschema.Draft202012Validator(
            {**schema["schema"], "components": document["components"]}
        )
        error = next(validator.iter_errors(answer.json), None)
        check.that(
            answer, error is None, "what openapi.json says of it",
            f"{error.json_path}: {error.message}" if error else "",
        )  # fmt: skip


@area("catalogue")
def test_catalogue_lines(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = client.get(file_of("catalogue"))
    lines = answer.body.split(b"\n")
    check.that(answer, lines.pop() == b"", "a newline at the end of each line")
    found = [check.record(answer, line, records.CatalogueLine) for line in lines]
    ids = [(line.owner, line.name) for line in found if line]
    check.that(answer, len(ids) == len(set(ids)), "each repo once")
    for line in found:
        if line and (line.owner, line.name) in catalogue.repos:
            repo_answer = client.get(file_of("repo", owner=line.owner, name=line.name))
            repo = check.single(repo_answer, records.Repo)
            for field in line.__struct_fields__ if repo else ():
                check.that(
                    repo_answer, getattr(line, field) == getattr(repo, field),
                    f"{field} {getattr(line, field)!r} as in catalogue.jsonl",
                    f"{field} {getattr(repo, field)!r}",
                )  # fmt: skip


# Lists


@area("lists")
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"sort={sort}")
def test_all_repos_are_in_each_order(
    check: Check, client: Client, catalogue: Catalogue, sort: str
) -> None:
    check_list(check, client, catalogue, None, sort)


@area("lists")
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"sort={sort}")
def test_all_repos_with_a_tag_are_in_each_order(
    check: Check, client: Client, catalogue: Catalogue, sort: str
) -> None:
    for tag in catalogue.tags:
        check_list(check, client, catalogue, tag, sort)


def check_list(
    check: Check, client: Client, catalogue: Catalogue, tag: str | None, sort: str
) -> None:
    total = catalogue.tag_counts[tag] if tag else len(catalogue.ids)
    pages = max(1, -(-total // PAGE_SIZE))
    rows: list[records.RepoSummary] = []
    before: records.RepoSummary | None = None
    for page in catalogue.pages(tag, sort):
        answer = client.get("/" + list_api(tag, sort, page.number).file)
        found = check.rows(answer, records.RepoSummary)
        if not found:
            continue
        wanted = records.ListMeta(page.number, pages, total, PAGE_SIZE, sort, tag, None)
        check.that(answer, found.meta == wanted, f"meta {wanted}", f"meta {found.meta}")
        count = min(PAGE_SIZE, total - (page.number - 1) * PAGE_SIZE)
        check.that(answer, len(found.data) == count, f"{count} rows", f"{len(found.data)} rows")
        follows = [before, *found.data] if before and catalogue.has_all_pages(tag) else found.data
        for one, next_one in pairwise(follows):
            reason = orders.is_wrong(client, sort, one, next_one)
            check.that(answer, not reason, f"the order of sort={sort}", reason)
        before = found.data[-1] if found.data else None
        rows += found.data
    ids = [(row.owner, row.name) for row in rows]
    answer = client.get("/" + list_api(tag, sort, 1).file)
    check.that(answer, len(set(ids)) == len(ids), "no repo twice on the list's pages")
    if catalogue.has_all_pages(tag):
        wanted_ids = {
            (line["owner"], line["name"])
            for line in catalogue.lines
            if not tag or tag in line["tags"]
        }
        different = sorted(wanted_ids.symmetric_difference(ids))
        check.that(
            answer, not different, "the list's pages together with just the repos of "
            "catalogue.jsonl", f"differ in {different[:3]}",
        )  # fmt: skip


@area("lists")
def test_the_short_list_is_the_first_page(check: Check, client: Client) -> None:
    first = client.get("/" + list_api(None, SORTS[0], 1).file)
    check.same_body(client.get(file_of("repos")), first, first.target)


@area("lists")
def test_a_list_ends(check: Check, client: Client, catalogue: Catalogue) -> None:
    for tag in (None, *catalogue.tags):
        total = catalogue.tag_counts[tag] if tag else len(catalogue.ids)
        last = max(1, -(-total // PAGE_SIZE))
        check.status(client.get("/" + list_api(tag, SORTS[0], last + 1).file), 404)
    check.status(client.get("/" + list_api(NOBODY, SORTS[0], 1).file), 404)


@area("tags")
def test_tags_are_counted_and_sorted(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = client.get(file_of("tags"))
    found = check.rows(answer, records.Tag)
    if found:
        counted = sorted(catalogue.tag_counts.items(), key=lambda one: (-one[1], one[0]))
        came = [(tag.name, tag.count) for tag in found.data]
        different = next((pair for pair in zip(came, counted, strict=False) if len(set(pair)) > 1),
                         (len(came), len(counted)))  # fmt: skip
        check.that(
            answer, came == counted, "the tags of catalogue.jsonl, most used first, then by name",
            f"{different[0]} and not {different[1]}",
        )  # fmt: skip
        check_whole_list(check, answer, found)


def check_whole_list(check: Check, answer: Answer, found: Rows) -> None:
    """The meta of a list that is all on one page."""
    meta, count = found.meta, len(found.data)
    is_whole = (meta.page, meta.pages, meta.total) == (1, 1, count)
    says = f"meta of one page with all {count} rows, without filters"
    filters = (meta.sort, meta.tag, meta.q)
    check.that(answer, is_whole and not any(filters), says, f"{meta}")


# Repos, versions, texts


@area("repos")
def test_repos(check: Check, client: Client, catalogue: Catalogue) -> None:
    summaries = {
        (row["owner"], row["name"]): row
        for page in catalogue.all_pages
        for row in rows_of(client.get("/" + list_api(*page).file))
    }
    for owner, name in catalogue.repos:
        answer = client.get(file_of("repo", owner=owner, name=name))
        repo = check.single(answer, records.Repo)
        if not repo:
            continue
        check.that(answer, (repo.owner, repo.name) == (owner, name), f"the repo {owner}/{name}")
        summary = summaries.get((owner, name))
        if summary:
            data = answer.json["data"]
            differing = [key for key in summary if data.get(key) != summary[key]]
            check.that(
                answer, not differing, "the same as the summary in lists",
                f"other: {', '.join(differing)}",
            )  # fmt: skip
        check_text(check, answer, repo)
        raw = client.get(file_of("raw", owner=owner, name=name))
        check_raw(check, raw, repo)
        check_link(check, client, answer, "raw_url", repo.raw_url, raw)
        versions = client.get(file_of("versions", owner=owner, name=name))
        check_link(check, client, answer, "versions_url", repo.versions_url, versions)
        page = client.get(file_of("repo_page", owner=owner, name=name))
        check_page_link(check, client, answer, repo.url, page)


def check_text(check: Check, answer: Answer, record: records.Repo | records.Version) -> None:
    """Whether a record's content is what its hash and size are of."""
    data = record.content.encode(errors="surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    check.that(
        answer, record.sha256 == digest, f"sha256 {digest}, that of content",
        f"sha256 {record.sha256}",
    )  # fmt: skip
    check.that(
        answer, record.size == len(data), f"size {len(data)}, that of content",
        f"size {record.size}",
    )  # fmt: skip


def check_raw(check: Check, raw: Answer, record: records.Repo | records.Version) -> None:
    """Whether a raw text is a record's content, byte for byte."""
    check.that(
        raw, raw.status == 200 and raw.body == record.content.encode(errors="surrogatepass"),
        f"the {record.size} bytes of the record's content: {record.content[:40]!r}",
        f"{len(raw.body)} bytes: {raw.brief}",
    )  # fmt: skip


def check_link(
    check: Check, client: Client, answer: Answer, field: str, url: str, wanted: Answer
) -> None:
    """Whether a URL in a record leads to what it names, on any host."""
    path = client.path_of(url)
    if check.that(answer, path, f"{field} below {client.base_url}", f"{field} {url}"):
        linked = client.get(path)
        check.same_body(linked, wanted, f"{wanted.target}, as {field} of {answer.target} says")


def check_page_link(check: Check, client: Client, answer: Answer, url: str, wanted: Answer) -> None:
    """Whether a URL of a page leads to it; on a host of files alone, to its file."""
    if client.deployment.has_queries:
        check_link(check, client, answer, "url", url, wanted)
    else:
        check_link(check, client, answer, "url", f"{url}.html", wanted)


@area("versions")
def test_lists_of_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for owner, name in catalogue.repos:
        answer = client.get(file_of("versions", owner=owner, name=name))
        found = check.rows(answer, records.VersionEntry)
        if not found:
            continue
        check_whole_list(check, answer, found)
        versions = [Version.parse(entry.version) for entry in found.data]
        check.that(
            answer, versions == sorted(set(versions), reverse=True), "newest version first",
            ", ".join(map(str, versions[:8])),
        )  # fmt: skip
        previous = [entry.previous for entry in found.data]
        wanted = [*map(str, versions[1:]), None]
        check.that(answer, previous == wanted, "previous: the version below", f"{previous}")
        for entry in found.data:
            check.that(
                answer, (entry.diff_url is None) == (entry.previous is None),
                "diff_url null for the first version alone", f"{entry.version} {entry.diff_url}",
            )  # fmt: skip
        repo = check.single(client.get(file_of("repo", owner=owner, name=name)), records.Repo)
        if repo and found.data:
            latest, times = found.data[0], [entry.published_at for entry in found.data]
            facts = (
                ("latest_version", repo.latest_version, latest.version),
                ("versions_count", repo.versions_count, len(found.data)),
                ("created_at", repo.created_at, min(times)),
                ("updated_at", repo.updated_at, latest.published_at),
                ("sha256", repo.sha256, latest.sha256),
                ("changelog", repo.changelog, latest.changelog),
            )
            for field, has, wanted in facts:
                check.that(answer, has == wanted, f"{field} {has!r} as in the repo", f"{wanted!r}")


@area("versions")
def test_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        owner, name, number = params["owner"], params["name"], params["version"]
        answer = client.get(file_of("version", **params))
        version = check.single(answer, records.Version)
        if not version:
            continue
        place = (version.owner, version.name, version.version)
        check.that(answer, place == (owner, name, number), f"{owner}/{name} {number}", f"{place}")
        data = answer.json["data"]
        row = next(row for row in catalogue.versions(owner, name) if row["version"] == number)
        differing = [key for key in row if data.get(key) != row[key]]
        check.that(
            answer, not differing, "the same as in the list of versions",
            f"other: {', '.join(differing)}",
        )  # fmt: skip
        check_text(check, answer, version)
        if number == rows_of(client.get(file_of("versions", **params)))[0]["version"]:
            repo = client.get(file_of("repo", **params)).json["data"]
            shared = ("content", "variables", "parameters", "sha256", "size", "changelog")
            differing = [key for key in shared if data.get(key) != repo.get(key)]
            check.that(
                answer, not differing, "the latest version's fields as in the repo",
                f"other: {', '.join(differing)}",
            )  # fmt: skip


@area("raw text")
def test_raw_texts_of_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        answer = client.get(file_of("version", **params))
        version = check.single(answer, records.Version)
        if version:
            raw = client.get(file_of("version_raw", **params))
            check_raw(check, raw, version)
            check_link(check, client, answer, "raw_url", version.raw_url, raw)


@area("diffs")
def test_diffs(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        version = client.get(file_of("version", **params)).json["data"]
        diff = client.get(file_of("diff", **params))
        if version["previous"] is None:
            check.status(diff, 404)
            continue
        check_link(check, client, diff, "diff_url", version["diff_url"], diff)
        old = client.get(file_of("version_raw", **{**params, "version": version["previous"]}))
        new = client.get(file_of("version_raw", **params))
        if old.body == new.body:
            check.empty_body(diff)
            continue
        removed = re.findall(rb"^-(?!--)(.*)$", diff.body, re.MULTILINE)
        added = re.findall(rb"^\+(?!\+\+)(.*)$", diff.body, re.MULTILINE)
        check.that(
            diff,
            diff.body.startswith(b"--- ") and b"\n+++ " in diff.body and b"\n@@ " in diff.body
            and all(line.strip() in old.body for line in removed)
            and all(line.strip() in new.body for line in added),
            f"a unified diff from {version['previous']}",
        )  # fmt: skip


@area("users")
def test_users(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["user"]):
        owner = params["owner"]
        answer = client.get(file_of("user", owner=owner))
        user = check.single(answer, records.User)
        if not user:
            continue
        check.that(answer, user.handle == owner, f"handle {owner}", f"handle {user.handle}")
        names = sorted(name for repo_owner, name in catalogue.ids if repo_owner == owner)
        came = sorted(repo.name for repo in user.repos)
        check.that(answer, came == names, "the owner's repos of catalogue.jsonl", f"{came[:9]}")
        check.that(answer, user.repos_count == len(names), f"repos_count {len(names)}")
        times = [repo.updated_at for repo in user.repos]
        check.that(answer, times == sorted(times, reverse=True), "the latest updated first")
        check.that(answer, b"@" not in answer.body or not has_address(answer), "no e-mail address")


def has_address(answer: Answer) -> bool:
    profile = {key: value for key, value in answer.json["data"].items() if key != "repos"}
    return bool(re.search(r"[\w.+-]+@[\w-]+\.\w", json.dumps(profile)))


# For people and programs


@area("pages")
def test_pages_say_what_they_are_about(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["repo_page"]):
        page = client.get(file_of("repo_page", **params))
        canonical = client.base_url + BY_NAME["repo_page"].url_for(**params)
        check.that(page, canonical.encode() in page.body, f"the canonical address {canonical}")


@area("feeds")
def test_feeds(check: Check, client: Client, catalogue: Catalogue) -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    for name in ("feed", "owner_feed", "repo_feed"):
        for path in catalogue.files(BY_NAME[name]):
            answer = client.get(path)
            root = parse_xml(answer.body)
            if not check.that(answer, root is not None and root.tag == f"{atom}feed", "Atom"):
                continue
            entries = root.findall(f"{atom}entry")
            ids = [entry.findtext(f"{atom}id") for entry in entries]
            check.that(answer, len(set(ids)) == len(ids) <= PAGE_SIZE, "at most 50 entries")
            updated = [child.findtext(f"{atom}updated") for child in (root, *entries)]
            check.that(answer, all(updated), "a time for the feed and each entry")


@area("feeds")
def test_the_sitemap_leads_to_its_parts(check: Check, client: Client) -> None:
    answer = client.get(file_of("sitemap"))
    parts = re.findall(rb"<loc>([^<]+)</loc>", answer.body)
    check.that(answer, parts, "at least one part")
    for part in parts:
        path = client.path_of(part.decode())
        if check.that(answer, path, f"parts below {client.base_url}", part.decode()):
            check.status(client.get(path), 200)


@area("client")
def test_the_client_is_the_one_of_its_checksum(check: Check, client: Client) -> None:
    script = client.get(file_of("client_release"))
    checksum = client.get(file_of("client_checksum"))
    wanted = f"{hashlib.sha256(script.body).hexdigest()}  hub\n"
    check.that(checksum, checksum.body == wanted.encode(), f"{wanted!r}, for sha256sum -c")
    check.same_body(client.get(file_of("client")), script, script.target)
    check.that(script, script.body.startswith(b"#!/bin/sh\n"), "a shell script")
    check.that(script, client.base_url.encode() in script.body, f"{client.base_url} in it")


# HTTP that every host has


@area("HEAD")
@pytest.mark.parametrize("route", FILES, ids=lambda route: f"HEAD /{route.file}")
def test_head_of_a_file(check: Check, client: Client, catalogue: Catalogue, route) -> None:
    path = next(catalogue.files(route), None)
    if path is not None:
        get, head = client.get(path), client.ask("HEAD", path)
        check.status(head, get.status)
        check.empty_body(head)
        for name in ("Content-Type", "Content-Length"):
            if name in get.headers:
                check.header(head, name, get.headers[name])


@area("conditional requests")
@pytest.mark.parametrize("route", FOUND, ids=lambda route: f"GET /{route.file}")
def test_a_file_that_one_has(check: Check, client: Client, catalogue: Catalogue, route) -> None:
    path = next(catalogue.files(route), None)
    if path is None:
        return
    answer = client.get(path)
    for given, condition in (("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since")):
        validator = answer.headers.get(given)
        if validator is not None:
            again = client.ask("GET", path, {condition: validator})
            check.status(again, 304)
            check.empty_body(again)
    if "ETag" in answer.headers:
        other = client.ask("GET", path, {"If-None-Match": '"conformance-another"'})
        check.same_body(other, answer, "without the condition, as the ETag is another")
    elif "Last-Modified" in answer.headers:
        old = {"If-Modified-Since": "Sun, 01 Jan 1995 00:00:00 GMT"}
        check.same_body(client.ask("GET", path, old), answer, "without the condition")
    else:
        check.note("has no ETag and no Last-Modified: clients fetch all again each time")


NOT_THERE = [
    "/api/v1/nothing.json",
    "/api/v1/repos/{nobody}/nothing.json",
    "/api/v1/repos/{nobody}/nothing/raw.txt",
    "/api/v1/repos/{nobody}/nothing/versions.json",
    "/api/v1/repos/{nobody}/nothing/versions/1.0.0.json",
    "/api/v1/users/{nobody}.json",
    "/api/v2/hub.json",
    "/{nobody}.html",
    "/{nobody}/nothing.html",
    "/tags/{nobody}.html",
    "/assets/nothing.css",
    "/cli/releases/v0.0.0/hub",
    "{repo}/versions/999999999.999999999.999999999.txt",
    "{repo}/versions/999999999.999999999.999999999.json",
    "{repo}/nothing.json",
]


@area("not there")
@pytest.mark.parametrize("template", NOT_THERE, ids=lambda template: f"GET {template}")
def test_what_is_not_there(
    check: Check, client: Client, catalogue: Catalogue, template: str
) -> None:
    path = catalogue.fill(template)
    if path is not None:
        answer = client.get(path)
        check.status(answer, 404)
        check.status(client.ask("HEAD", path), 404)


# Paths that mean no good


UP = [
    "/..", "/../", "/../../../../../../../../etc/passwd", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd", "/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/%252e%252e%252f%252e%252e%252fetc%252fpasswd", "/..%5c..%5c..%5cetc%5cpasswd",
    "/..\\..\\..\\etc\\passwd", "/.%2e/.%2e/etc/passwd", "/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "/..%c0%af..%c0%afetc/passwd", "/..%ef%bc%8f..%ef%bc%8fetc/passwd", "/..;/..;/etc/passwd",
    "/;/../../etc/passwd", "/....//....//etc/passwd", "/assets/../../../../etc/passwd",
    "/assets/..%2f..%2f..%2f..%2fetc/passwd", "/assets../etc/passwd", "/assets../canary.txt",
    "/assets/style.css/../../../canary.txt", "/../canary.txt", "/%2e%2e/canary.txt",
    "/..%2fcanary.txt", "/%2e%2e%2fcanary.json", "/..%5ccanary.txt", "/..;/canary.txt",
    "/api/v1/../../../canary.txt", "/api/v1/..%2f..%2f..%2fcanary.json",
    "/api/v1/%2e%2e/%2e%2e/%2e%2e/canary", "/api/v1/repos/..%2f..%2f..%2f..%2fcanary/x",
    "/api/v1/repos/../../../../canary", "/api/v1/users/..%2f..%2f..%2f..%2fcanary",
    "/api/v1/users/%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fcanary.json",
    "/api/v1/tags/..%2f..%2f..%2f..%2fcanary/top/1", "/api/v1/tags/%2e%2e/top/1",
    "/api/v1/repos/_/top/..%2f..%2f..%2f..%2f..%2f..%2fcanary", "/top/..%2f..%2fcanary",
    "/tags/..%2f..%2fcanary", "/api/v1/repos/%2e/%2e", "/cli/..%2f..%2fcanary",
]  # fmt: skip
ODD = [
    "//etc/passwd", "///etc/passwd", "/etc/passwd", "//canary.txt", "/%2fetc/passwd",
    "/%2f%2fetc%2fpasswd", "/.%00/etc/passwd", "/%00", "/index.html%00.txt",
    "/canary.txt%00.html", "/assets/style.css%00", "/api/v1/hub.json%00",
    "/.git/config", "/.git/HEAD", "/.env", "/.htaccess", "/.ssh/id_rsa", "/.DS_Store",
    "/.%67it/config",
    "/%2egit/config", "/content/", "/state/build.sqlite3", "/var/accounts.sqlite3",
    "/accounts.sqlite3", "/../state/accounts.sqlite3", "/..%2fstate%2faccounts.sqlite3",
    "/proc/self/environ", "/file:///etc/passwd", "/C:/Windows/win.ini", "/c:%5cwindows%5cwin.ini",
    "/~root/", "/server-status", "/nginx_status", "/.404.html.tmp", "/404.html~", "/index.html.bak",
    "/%", "/%zz", "/%u002e%u002e/canary.txt", "/%ff%fe%fd", "/%ed%a0%80", "/\x80\xff",
    "/a%0d%0aX-Injected:%20yes", "/%0d%0aX-Injected:%20yes/", "/%0aX-Injected:yes",
    "//evil.example/", "//evil.example/%2e%2e", "/%5cevil.example/", "/\\evil.example/",
    "///evil.example//", "/%2f%2fevil.example%2f", "/.evil.example/", "/@evil.example/",
    "/api/v1/hub.json/", "/api/v1/hub.json/x", "/api/v1/hub.json/..%2f..%2f..%2f..%2fcanary.txt",
    "/" + "a" * 5000, "/" + "a/" * 4000, "/" + "../" * 2000 + "etc/passwd", "/" + "%2e%2e%2f" * 800,
    "/api/v1/repos/" + "a" * 5000 + "/b.json", "/" + "%00" * 1000, "/?" + "a" * 7000,
    "/index.html?/../../canary.txt", "/index.html?file=../canary.txt", "/index.html#/../canary.txt",
]  # fmt: skip

OUTSIDE = {
    "the canary beside the site": re.compile(re.escape(CANARY).encode()),
    "a file of passwords": re.compile(rb"root:[^:\n]*:0:0:"),
    "a git repository": re.compile(rb"repositoryformatversion|^ref: refs/heads/"),
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "a database": re.compile(rb"^SQLite format 3\0"),
    "a Windows configuration": re.compile(rb"^\[fonts\]", re.MULTILINE),
    "a process's environment": re.compile(rb"(^|\0)(PATH|HOME|PWD)=/[^\0]*\0"),
    "a failure's trace": re.compile(rb"Traceback \(most recent call last\)"),
}


@area("hostile paths")
@pytest.mark.parametrize("target", UP + ODD, ids=lambda target: ascii(target[:60])[1:-1])
def test_hostile_path(check: Check, client: Client, target: str) -> None:
    try:
        answer = client.raw(target.encode("latin-1"))
    except NoAnswer:
        check.held += 1  # to hang up on what is no HTTP is an answer, too
        return
    check_harmless(check, client, answer)
    if answer.status == 200:
        meant = meant_path(client, target)
        if meant is not None:
            own = [client.get(path).body for path in ("/", meant)]
            check.that(answer, answer.body in own, f"nothing, or what is at / or {meant}")


def meant_path(client: Client, target: str) -> str | None:
    """The path that a lenient host may take a target for; None for one that is not of the site:
    where that is below a path, it leaves to others what is beside it.
    """
    plain = unquote(client.root + target.split("?")[0].split("#")[0]).replace("\\", "/")
    segments: list[str] = []
    for segment in plain.split("\0")[0].split("/"):
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    path = "/" + "/".join(segments)
    if not f"{path}/".startswith(f"{client.root}/"):
        return None
    return quote(path[len(client.root) :]) or "/"


def check_harmless(check: Check, client: Client, answer: Answer) -> None:
    """Whether an answer to something hostile gives nothing away, and nobody a hold."""
    for what, pattern in OUTSIDE.items():
        check.that(answer, not pattern.search(answer.body), f"nothing from outside, as {what}")
    check.that(answer, answer.status < 500, "no failure of the server")
    check.that(answer, "X-Injected" not in answer.headers, "no header out of the path")
    location = answer.headers.get("Location")
    if 300 <= answer.status < 400 and location is not None:
        target = urljoin(answer.url, location.replace("\\", "/"))
        own = {urlsplit(url).netloc for url in (client.address, client.base_url)}
        check.that(
            answer, urlsplit(target).netloc in own, "no redirect to another site",
            f"{answer.status}, Location: {location}",
        )  # fmt: skip
