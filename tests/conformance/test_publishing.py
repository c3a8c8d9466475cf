"""Publishing: who may, and with a token what becomes of it."""

import hashlib
import json
import secrets
import time
from typing import Any

import pytest

from builder.model import answers
from builder.model.caching import CACHE_CONTROL
from builder.model.names import Version
from builder.model.routes import JSON
from builder.model.service_urls import CHECK_URL
from tests.conformance.catalogue import NOBODY, Catalogue, file_of
from tests.conformance.checks import Check
from tests.conformance.client import Client, header_list
from tests.conformance.marks import area
from tests.conformance.publisher import Publisher, publish_path

pytestmark = pytest.mark.level("full")

token_needed = pytest.mark.needs("token")

LISTED_SECONDS = 300


# Permissions


@area("publishing, errors")
@pytest.mark.needs("publishing")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_token"),
        ({"Authorization": "Basic YTpi"}, "missing_token"),
        ({"Authorization": "Bearer"}, "missing_token"),
        ({"Authorization": "Bearer x"}, "invalid_token"),
        ({"Authorization": "Bearer hub_" + "A" * 38}, "invalid_token"),
    ],
    ids=["no token", "another scheme", "an empty token", "a word", "a wrong token"],
)
@pytest.mark.parametrize("body", [b'{"content": "x"}', b"{"], ids=["", "and a bad body"])
def test_who_may_not_publish(
    check: Check, client: Client, headers: dict[str, str], code: str, body: bytes
) -> None:
    # Faults of the contents are reported only to permitted publishers.
    headers = {"Content-Type": JSON, "Origin": "https://elsewhere.example", **headers}
    answer = client.ask("POST", publish_path(NOBODY, "nothing"), headers, body)
    if check.error(answer, 401, code):
        scheme = answer.headers.get("WWW-Authenticate", "")
        check.that(answer, scheme.startswith("Bearer"), "WWW-Authenticate: Bearer",
                   f"401, WWW-Authenticate: {scheme}")  # fmt: skip


@area("publishing, errors")
@pytest.mark.needs("publishing")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods_where_one_publishes(
    check: Check, client: Client, catalogue: Catalogue, method: str
) -> None:
    path = catalogue.fill("{repo}/versions") or publish_path(NOBODY, "nothing")
    answer = client.ask(method, path, {"Content-Type": JSON}, b"{}")
    if check.error(answer, 405, "method_not_allowed"):
        allowed = header_list(answer, "Allow")
        check.that(answer, allowed >= {"get", "head", "post"}, "Allow with GET, HEAD and POST",
                   f"405, Allow: {sorted(allowed)}")  # fmt: skip


# Checks


@area("publishing")
@pytest.mark.needs("publishing")
def test_a_draft_is_checked_without_a_token(
    check: Check, client: Client, catalogue: Catalogue
) -> None:
    owner, name = catalogue.repos[0]
    path = CHECK_URL.format(owner=owner, name=name)
    headers = {"Content-Type": JSON, "Origin": "https://elsewhere.example"}
    raw = catalogue.fill("{repo}/raw")
    text = client.get(raw).body.decode() + "\nAnd {{one_more_variable}}."
    for _ in range(2):  # the first does not become a version
        answer = client.ask("POST", path, headers, json.dumps({"content": text}).encode())
        found = check.single(answer, answers.Checked, 200)
        if found:
            added = (found.unchanged, found.bump, found.variables.added)
            check.equal(answer, "said", added, (False, "major", ["one_more_variable"]))
            check.that(answer, "+And {{one_more_variable}}." in (found.diff or ""), "the diff")
            before = client.get(catalogue.fill("{repo}/versions")).json["data"][0]["version"]
            check.equal(answer, "previous version", found.previous_version, before)
        check.header(answer, "Cache-Control", CACHE_CONTROL["none"])
        check.cors(answer)
    wrong = {**headers, "Authorization": "Bearer hub_" + "A" * 38}
    check.error(client.ask("POST", path, wrong, b"{"), 401, "invalid_token")
    check.error(client.ask("POST", path, headers, b"{"), 400, "invalid_json")
    check.error(client.ask("POST", path, headers, b'{"contents": "x"}'), 422, "validation_failed")


@area("publishing, errors")
@pytest.mark.needs("publishing")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_methods_where_drafts_are_checked(check: Check, client: Client, method: str) -> None:
    path = CHECK_URL.format(owner=NOBODY, name="nothing")
    answer = client.ask(method, path, {"Content-Type": JSON}, b"{}" if method == "PUT" else b"")
    if check.error(answer, 405, "method_not_allowed"):
        allowed = header_list(answer, "Allow")
        check.that(answer, "post" in allowed and "get" not in allowed, "Allow with POST alone")


# With a token


@pytest.fixture
def publisher(client: Client) -> Publisher:
    return Publisher(client)


@area("publishing")
@token_needed
def test_a_publication_is_readable_at_once(
    check: Check, client: Client, publisher: Publisher
) -> None:
    text = f"Conformance, {secrets.token_hex(8)}: ü 語 🎉 {{{{thing}}}}\r\nEnd without a newline."
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    body = {"content": text, "changelog": "By the conformance suite"}
    answer = publisher.post(body)
    record = check.single(answer, answers.Publication, 201)
    if not record:
        return
    version = record.version
    facts = (record.owner, record.name, record.sha256, record.size, record.unchanged)
    wanted = (publisher.owner, publisher.name, digest, len(data), False)
    check.equal(answer, "the publication", facts, wanted)
    check.header(answer, "Cache-Control", CACHE_CONTROL["none"])
    check.cors(answer)
    location = client.path_of(answer.headers.get("Location", ""))
    check.equal(answer, "Location", location, publisher.url("version", version=version))
    path = client.path_of(record.raw_url)
    check.equal(answer, "raw_url", path, publisher.file("version_raw", version=version))

    for path in (
        publisher.url("raw"), publisher.file("raw"), publisher.file("version_raw", version=version),
        f"{publisher.url('raw')}?version={version}",
    ):  # fmt: skip
        raw = client.ask("GET", path)
        check.that(raw, raw.body == data, f"the text of {version}, byte for byte")
    for path in (
        publisher.url("body"), publisher.file("body"),
        publisher.file("version_body", version=version),
        f"{publisher.url('body')}?version={version}",
    ):  # fmt: skip
        answer = client.ask("GET", path)
        check.that(answer, answer.body == data, f"the body of {version}, byte for byte")
    for path in (publisher.url("repo"), publisher.file("repo")):
        repo = check.single(client.ask("GET", path), answers.Repo)
        if repo:
            came = (repo.latest_version, repo.content, repo.sha256)
            check.equal(answer, f"repo at {path}", came, (version, text, digest))
    for path in (publisher.url("versions"), publisher.file("versions")):
        rows = client.ask("GET", path)
        found = check.rows(rows, answers.VersionEntry)
        if found:
            first = found.data[0]
            wanted = (version, record.previous_version, record.changelog)
            check.equal(rows, "first row", (first.version, first.previous, first.changelog), wanted)
    for at in (publisher.url, publisher.file):
        answer = client.ask("GET", at("version", version=version))
        if one := check.single(answer, answers.Version):
            check.equal(answer, "text", one.content, text)
    for name in ("repo_page", "version_page"):
        page = client.ask("GET", publisher.url(name, version=version))
        check.that(page, version.encode() in page.body, f"a page about {version}")
    if record.previous_version:
        check.status(client.ask("GET", publisher.url("diff", version=version)), 200)
    check_listed(check, client, publisher, record)
    again = check.single(publisher.post(body), answers.Publication)
    if again:
        came = (again.version, again.unchanged)
        check.equal(answer, "sent again", came, (version, True))


def check_listed(
    check: Check, client: Client, publisher: Publisher, record: answers.Publication
) -> None:
    """Check that lists have a publication once ``serial`` says so, which takes seconds at most."""
    end = time.monotonic() + LISTED_SECONDS
    while True:
        hub = client.ask("GET", file_of("hub"))
        serial = hub.json["data"]["serial"]
        if serial >= record.serial or time.monotonic() > end:
            break
        time.sleep(0.2)  # a remote deployment should not get requests as fast as it answers
    if check.that(hub, serial >= record.serial, f"serial {record.serial} within a minute"):
        lines = client.ask("GET", file_of("catalogue"))
        found = [
            line["latest_version"]
            for line in map(json.loads, lines.body.splitlines())
            if (line["owner"], line["name"]) == (publisher.owner, publisher.name)
        ]
        check.equal(lines, "its versions", found, [record.version])
        user = client.ask("GET", file_of("user", owner=publisher.owner))
        names = [row["name"] for row in user.json["data"]["repos"]]
        check.that(user, publisher.name in names, f"the repo {publisher.name}", str(names))


@area("publishing")
@token_needed
def test_an_idempotency_key(check: Check, publisher: Publisher) -> None:
    key, mark = f"conformance-{secrets.token_hex(8)}", secrets.token_hex(8)
    body = {"content": f"Once, {mark}", "bump": "minor"}
    first = publisher.post(body, Idempotency_Key=key)
    check.status(first, 201)
    other = publisher.post({"content": f"Between, {mark}"})
    check.status(other, 201)
    again = publisher.post(body, Idempotency_Key=key)
    check.status(again, 201, 200)
    came = [answer.json and answer.json.get("data", {}).get("version") for answer in (first, again)]
    check.equal(again, "the first answer again, version", came[1], came[0])
    reused = publisher.post({"content": f"Another, {mark}"}, Idempotency_Key=key)
    check.error(reused, 422, "idempotency_key_reused")


@area("publishing")
@token_needed
def test_bumps(check: Check, publisher: Publisher) -> None:
    before: Version | None = None
    for bump in ("patch", "minor", "major"):
        answer = publisher.post({"content": f"{bump} {secrets.token_hex(8)}", "bump": bump})
        record = check.single(answer, answers.Publication, 201)
        if record:
            version = Version.parse(record.version)
            # If the repo had no version, the first one is 1.0.0 with any bump.
            wanted = before.bump(bump) if before else version
            check.equal(answer, "version", version, wanted)
            before = version


@area("publishing")
@token_needed
def test_a_bump_that_the_variables_ask_for(check: Check, publisher: Publisher) -> None:
    mark = secrets.token_hex(8)
    publisher.post({"content": f"For {{{{who}}}}, {mark}", "bump": "auto"})
    breaking = {"content": f"For {{{{whom}}}}, {mark}"}
    for bump, is_warned in (("patch", True), ("auto", False)):
        before = publisher.post({"content": f"For {{{{who}}}}, {bump} {mark}", "bump": "major"})
        answer = publisher.post({**breaking, "bump": bump})
        record = check.single(answer, answers.Publication, 201)
        base = check.single(before, answers.Publication, 201)
        if record and base:
            wanted = str(Version.parse(base.version).bump("patch" if is_warned else "major"))
            check.equal(answer, "version", record.version, wanted)
            warnings = [one for one in record.warnings if one.startswith("breaking_variables")]
            check.equal(answer, "a warning", bool(warnings), is_warned)


@area("publishing")
@token_needed
def test_a_publication_over_the_work_of_another_is_refused(
    check: Check, publisher: Publisher
) -> None:
    text = secrets.token_hex(8)
    first = check.single(publisher.post({"content": text}), answers.Publication, 201)
    if not first:
        return
    for field, headers in (({"base_version": "0.0.1"}, {}), ({}, {"If_Match": '"0.0.1"'})):
        answer = publisher.post({"content": f"{text} again", **field}, **headers)
        if check.error(answer, 412, "base_version_mismatch"):
            said = first.version.encode() in answer.body
            check.that(answer, said, f"the current version {first.version}")
    body = {"content": f"{text} again", "base_version": first.version}
    check.status(publisher.post(body), 201)


BAD_BODIES = [
    ("no JSON", b"{", {}, 400, "invalid_json"),
    ("no UTF-8", b'{"content": "\xff"}', {}, 400, "invalid_json"),
    ("no object", b"[]", {}, 400, "invalid_json"),
    ("nothing", {}, {}, 422, "validation_failed"),
    ("empty", {"content": ""}, {}, 422, "validation_failed"),
    ("white space", {"content": " \n\t"}, {}, 422, "validation_failed"),
    ("NUL", {"content": "a\0b"}, {}, 422, "validation_failed"),
    ("lone surrogate", b'{"content": "a\\ud800"}', {}, 422, "validation_failed"),
    ("unknown field", {"content": "x", "titel": "x"}, {}, 422, "validation_failed"),
    ("bad bump", {"content": "x", "bump": "huge"}, {}, 422, "validation_failed"),
    ("bad tags", {"content": "x", "tags": ["UP"]}, {}, 422, "validation_failed"),
    ("reserved tag", {"content": "x", "tags": ["nul"]}, {}, 422, "name_reserved"),
    ("too large", {"content": "x" * (256 * 1024 + 1)}, {}, 413, "content_too_large"),
    ("larger than a request", {"content": "x" * (2 * 1024 * 1024)}, {}, 413, "content_too_large"),
    ("no media type", {"content": "x"}, {"Content_Type": "text/plain"}, 415,
     "unsupported_media_type"),
]  # fmt: skip


@area("publishing")
@token_needed
@pytest.mark.parametrize(
    ("body", "headers", "status", "code"), [case[1:] for case in BAD_BODIES],
    ids=[case[0] for case in BAD_BODIES],
)  # fmt: skip
def test_bad_bodies(
    check: Check, publisher: Publisher, body: Any, headers: dict[str, str], status: int, code: str
) -> None:
    check.refused(publisher.post(body, **headers), status, code)


@area("publishing")
@token_needed
def test_secrets_and_strangers(check: Check, publisher: Publisher) -> None:
    secret = publisher.client.deployment.token
    answer = publisher.post({"content": f"My token is {secret}"})
    check.error(answer, 422, "secret_detected")
    check.that(answer, secret.encode() not in answer.body, "an answer without the token",
               "the token")  # fmt: skip
    elsewhere = publisher.post({"content": "x"}, publish_path(NOBODY, "nothing"))
    check.error(elsewhere, 403, "not_owner", "insufficient_scope")
    upper = publisher.post({"content": "x"}, publish_path(publisher.owner, "Upper-Case"))
    check.that(
        upper, upper.status in (400, 403), "400 invalid_name, or 403 for a token of one repo"
    )
