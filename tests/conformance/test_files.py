"""Every file of the site by its path, and what of HTTP any host has that can serve a folder."""

import hashlib
import io
import re
import xml.etree.ElementTree as ET
import zipfile

import jsonschema
import pytest

from builder.model import answers
from builder.model.routes import (
    ATOM,
    BY_NAME,
    BYTES,
    HTML,
    JSON,
    JSON_LINES,
    PAGE_SIZE,
    PNG,
    READ_ROUTES,
    XML,
    ZIP,
)
from builder.search.telling_words import BYTES_MAX, WORDS_MAX
from tests.conformance.catalogue import FILES, Catalogue, file_of
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area

pytestmark = pytest.mark.level("files")


# All files


@area("files")
@pytest.mark.parametrize("route", FILES, ids=lambda route: f"GET /{route.file}")
def test_every_file_is_there(check: Check, client: Client, catalogue: Catalogue, route) -> None:
    for path in catalogue.files(route):
        answer = client.get(path)
        if not check.status(answer, 200):
            continue
        check_is_whole(check, answer, route.media)
        length = answer.headers.get("Content-Length")
        if length is not None:
            check.that(answer, int(length) == len(answer.body), f"{length} bytes")


def check_is_whole(check: Check, answer: Answer, media: str) -> None:
    """Check that a body is of its media type, to the end."""
    if media == HTML:
        text = answer.body.strip().lower()
        is_whole = text.startswith(b"<!doctype html>") and text.endswith(b"</html>")
        check.that(answer, is_whole, "a whole HTML document")
    elif media == JSON:
        check.that(answer, isinstance(answer.json, dict), "an object as JSON")
    elif media == ZIP:
        with zipfile.ZipFile(io.BytesIO(answer.body)) as file:
            check.that(answer, file.testzip() is None, "a whole archive")
    elif media == PNG:
        check.that(answer, answer.body.endswith(b"IEND\xaeB`\x82"), "a whole picture")
    elif media in (XML, ATOM):
        root = parse_xml(answer.body)
        check.that(answer, root is not None, "well-formed XML")
    elif media not in (JSON_LINES, BYTES):
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
    hub = check.single(answer, answers.Hub)
    if hub:
        check.that(answer, hub.api_version == "v1", "api_version v1")
        check.equal(answer, "repos_count", hub.repos_count, len(catalogue.lines))
        check.that(answer, not hub.base_url.endswith("/"), "a base_url without a slash at its end")
        is_below = hub.publish_url.startswith(f"{hub.base_url}/")
        check.that(answer, is_below, "publish_url below base_url")
        for name in hub.paths.__struct_fields__:
            wanted = "/" + BY_NAME[name].file
            check.equal(answer, f"paths.{name}", getattr(hub.paths, name), wanted)


@area("service")
def test_answers_fit_the_api_document(check: Check, client: Client, catalogue: Catalogue) -> None:
    document = client.get(file_of("openapi")).json
    for route in READ_ROUTES:
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


_shared_fields = {*answers.CatalogueLine.__struct_fields__} & {*answers.Repo.__struct_fields__}
_shared_fields -= {"labels"}  # names alone


@area("catalogue")
def test_catalogue_lines(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = client.get(file_of("catalogue"))
    lines = answer.body.split(b"\n")
    check.that(answer, lines.pop() == b"", "a newline at the end of each line")
    found = [check.record(answer, line, answers.CatalogueLine) for line in lines]
    ids = [(line.owner, line.name) for line in found if line]
    check.that(answer, len(ids) == len(set(ids)), "each repo once")
    for line in found:
        words = line.words.split() if line else []
        is_short = len(words) <= WORDS_MAX and len(" ".join(words).encode()) <= BYTES_MAX
        check.that(answer, words == sorted({*words}) and is_short, "few words, sorted", str(words))
    for line in found:
        if line and (line.owner, line.name) in catalogue.repos:
            repo_answer = client.get(file_of("repo", owner=line.owner, name=line.name))
            repo = check.single(repo_answer, answers.Repo)
            for field in _shared_fields if repo else ():
                check.equal(repo_answer, field, getattr(repo, field), getattr(line, field))
            if repo:
                check.equal(repo_answer, "labels", [*(repo.labels or ())], line.labels or [])


# Lists for people and programs


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
@pytest.mark.parametrize("route", FILES, ids=lambda route: f"GET /{route.file}")
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


NOT_THERE = [
    "/api/v1/nothing.json", "/api/v1/repos/{nobody}/nothing.json",
    "/api/v1/repos/{nobody}/nothing/raw.txt", "/api/v1/repos/{nobody}/nothing/versions.json",
    "/api/v1/repos/{nobody}/nothing/versions/1.0.0.json", "/api/v1/users/{nobody}.json",
    "/api/v2/hub.json", "/{nobody}.html", "/{nobody}/nothing.html", "/tags/{nobody}.html",
    "/assets/nothing.css", "/cli/releases/v0.0.0/hub",
    "{repo}/versions/999999999.999999999.999999999.txt",
    "{repo}/versions/999999999.999999999.999999999.json", "{repo}/nothing.json",
]  # fmt: skip


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
