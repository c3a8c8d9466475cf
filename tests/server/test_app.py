"""The live server over real HTTP: every endpoint, header, error and hostile request."""

import asyncio
import contextlib
import gzip
import http.client
import json
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import OperatorError
from builder.model.metrics import REQUESTS
from builder.model.settings import Settings
from builder.pipeline.build import build
from server.app import ReadApp, Receive, Scope, Send
from server.lifespan import run_lifespan
from server.mount import Hub
from tests.support.catalogues import moment, write_owner, write_version
from tests.support.depth import searching
from tests.support.servers import (
    DEADLINE_SECONDS,
    HUBCTL,
    SAMPLE,
    Process,
    RawAnswer,
    Server,
    clean_environment,
    free_port,
    read_answer,
    sample_settings,
    serve_command,
    serving,
    wait_until,
)

# The contract's table, said again on purpose.
IMMUTABLE = "public, max-age=604800, immutable"
VERSION = "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400"
REPO = "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400"
LIST = "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"
QUERY = "public, max-age=60"
NOT_FOUND = "public, max-age=10"
NO_STORE = "no-store"

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"

DIFF_REVIEW = "/api/v1/repos/sam-ferreira/diff-review"
MEETING = "/api/v1/repos/yuki-tanabe/gijiroku-seiri"

ENDPOINTS = [
    ("/api/v1/repos", JSON, LIST),
    ("/api/v1/repos?page=1", JSON, LIST),
    ("/api/v1/repos?sort=top", JSON, LIST),
    ("/api/v1/repos?sort=trending", JSON, LIST),
    ("/api/v1/repos?sort=new&page=1", JSON, LIST),
    ("/api/v1/repos?tag=sql", JSON, LIST),
    ("/api/v1/repos?tag=sql&sort=new&page=1", JSON, LIST),
    ("/api/v1/repos?tag=sql,json", JSON, LIST),
    ("/api/v1/repos?q=review", JSON, QUERY),
    ("/api/v1/repos?q=review&tag=code&sort=new&page=1", JSON, QUERY),
    (DIFF_REVIEW, JSON, REPO),
    (f"{DIFF_REVIEW}/versions", JSON, REPO),
    (f"{DIFF_REVIEW}/versions/1.0.0", JSON, VERSION),
    (f"{DIFF_REVIEW}/raw", TEXT, REPO),
    (f"{DIFF_REVIEW}/raw?version=1.0.0", TEXT, IMMUTABLE),
    (f"{DIFF_REVIEW}/body", TEXT, REPO),
    (f"{DIFF_REVIEW}/body?version=1.0.0", TEXT, IMMUTABLE),
    (f"{DIFF_REVIEW}/versions/1.1.0/diff", TEXT, VERSION),
    (f"{MEETING}/raw", TEXT, REPO),
    ("/api/v1/tags", JSON, LIST),
    ("/api/v1/users/sam-ferreira", JSON, LIST),
    ("/api/v1/hub.json", JSON, LIST),
    ("/api/v1/openapi.json", JSON, LIST),
    ("/api/v1/catalogue.jsonl", "application/x-ndjson", LIST),
]
PAGES = [
    ("/", HTML, LIST),
    ("/new", HTML, LIST),
    ("/trending", HTML, LIST),
    ("/tags", HTML, LIST),
    ("/tags/sql", HTML, LIST),
    ("/tags/sql/new", HTML, LIST),
    ("/sam-ferreira", HTML, LIST),
    ("/sam-ferreira/diff-review", HTML, LIST),
    ("/sam-ferreira/diff-review/1.0.0", HTML, LIST),
    ("/assets/style.css", "text/css; charset=utf-8", LIST),
]
# A URL of the spec, and the file that the contract's table gives for it.
PATH_FORMS = [
    ("/api/v1/repos", "/api/v1/repos.json"),
    ("/api/v1/repos", "/api/v1/repos/_/top/1.json"),
    ("/api/v1/repos?sort=new&page=1", "/api/v1/repos/_/new/1.json"),
    ("/api/v1/repos?page=1&sort=trending", "/api/v1/repos/_/trending/1"),
    ("/api/v1/repos?tag=sql&sort=top", "/api/v1/tags/sql/top/1.json"),
    ("/api/v1/repos?tag=sql", "/api/v1/tags/sql/top/1"),
    (DIFF_REVIEW, f"{DIFF_REVIEW}.json"),
    (f"{DIFF_REVIEW}/versions", f"{DIFF_REVIEW}/versions.json"),
    (f"{DIFF_REVIEW}/versions/1.0.0", f"{DIFF_REVIEW}/versions/1.0.0.json"),
    (f"{DIFF_REVIEW}/raw", f"{DIFF_REVIEW}/raw.txt"),
    (f"{DIFF_REVIEW}/raw?version=1.1.0", f"{DIFF_REVIEW}/versions/1.1.0.txt"),
    (f"{DIFF_REVIEW}/body", f"{DIFF_REVIEW}/body.txt"),
    (f"{DIFF_REVIEW}/body?version=1.1.0", f"{DIFF_REVIEW}/versions/1.1.0.body.txt"),
    (f"{DIFF_REVIEW}/versions/1.1.0/diff", f"{DIFF_REVIEW}/versions/1.1.0.diff"),
    ("/api/v1/tags", "/api/v1/tags.json"),
    ("/api/v1/users/sam-ferreira", "/api/v1/users/sam-ferreira.json"),
    ("/", "/index.html"),
    ("/sam-ferreira", "/sam-ferreira.html"),
    ("/sam-ferreira/diff-review", "/sam-ferreira/diff-review.html"),
    ("/tags/sql", "/tags/sql.html"),
]

every_read = pytest.mark.parametrize(("path", "media", "cache"), ENDPOINTS + PAGES)


def check_common_headers(answer: requests.Response) -> None:
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    exposed = {name.strip() for name in answer.headers["Access-Control-Expose-Headers"].split(",")}
    assert exposed == {"ETag", "Location", "Retry-After", "RateLimit", "RateLimit-Policy"}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in answer.headers


def check_error(answer: requests.Response, status: int, code: str) -> str:
    """The envelope with its headers; returns the message."""
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["Content-Type"] == JSON
    assert answer.headers["Cache-Control"] == (NOT_FOUND if status == 404 else NO_STORE)
    assert list(answer.json()) == ["error"]
    message = answer.json()["error"]["message"]
    assert isinstance(message, str)
    assert message
    check_common_headers(answer)
    return message


# Reads


@every_read
def test_read(live: Server, path: str, media: str, cache: str) -> None:
    answer = live.get(path, headers={"Origin": "https://elsewhere.example"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == media
    assert answer.headers["Cache-Control"] == cache
    assert int(answer.headers["Content-Length"]) == len(answer.content) > 0
    assert answer.headers["ETag"].strip('"')
    assert "Content-Encoding" not in answer.headers
    check_common_headers(answer)
    if media == HTML:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    again = live.get(path)
    assert again.content == answer.content
    assert again.headers["ETag"] == answer.headers["ETag"]


@every_read
def test_head(live: Server, path: str, media: str, cache: str) -> None:
    get, head = live.get(path), live.request("HEAD", path)
    assert head.status_code == 200
    assert head.content == b""
    for answer in (get, head):
        del answer.headers["Date"]
    assert dict(head.headers) == dict(get.headers)


@every_read
def test_condition(live: Server, path: str, media: str, cache: str) -> None:
    etag = live.get(path).headers["ETag"]
    for condition in (etag, f"W/{etag}", f'"x", {etag}', f'W/"y",W/{etag} , "z"', "*"):
        for method in ("GET", "HEAD"):
            answer = live.request(method, path, headers={"If-None-Match": condition})
            assert answer.status_code == 304
            assert answer.content == b""
            assert answer.headers["ETag"] == etag
            assert answer.headers["Cache-Control"] == cache
            check_common_headers(answer)
    for condition in ('"x"', etag.strip('"'), etag[:-2] + '"', ""):
        assert live.get(path, headers={"If-None-Match": condition}).status_code == 200
    assert live.get(path, headers={"If-Modified-Since": "Wed, 01 Jan 2099 00:00:00 GMT"}).content


@every_read
def test_gzip(live: Server, path: str, media: str, cache: str) -> None:
    plain = live.get(path)
    packed = live.get(path, headers={"Accept-Encoding": "br, gzip"})
    assert packed.content == plain.content
    if len(plain.content) < 1024:
        assert "Content-Encoding" not in packed.headers
        return
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) < len(plain.content)
    for answer in (plain, packed):
        assert answer.headers["Vary"] == "Accept-Encoding"
    assert packed.headers["ETag"] != plain.headers["ETag"]
    for etag in (packed.headers["ETag"], plain.headers["ETag"]):
        for coding in ("gzip", "identity"):
            headers = {"Accept-Encoding": coding, "If-None-Match": etag}
            answer = live.get(path, headers=headers)
            assert (answer.status_code, answer.headers["ETag"]) == (304, etag)
            assert answer.headers["Vary"] == "Accept-Encoding"
    for refused in ("gzip;q=0", "identity", "br", "gzip;q=0.0, *", ""):
        answer = live.get(path, headers={"Accept-Encoding": refused})
        assert "Content-Encoding" not in answer.headers
        assert answer.content == plain.content


def test_gzip_is_the_same_each_time(live: Server) -> None:
    targets = [live.raw(b"/api/v1/repos", b"Accept-Encoding: gzip") for _ in range(2)]
    targets += [live.raw(b"/api/v1/repos?q=review", b"Accept-Encoding: gzip") for _ in range(2)]
    for target in targets:
        assert target.body[4:8] == bytes(4)  # the time in gzip's header
    assert targets[0].body == targets[1].body
    assert targets[2].body == targets[3].body
    assert json.loads(gzip.decompress(targets[2].body))["meta"]["q"] == "review"


@pytest.mark.parametrize(("path", "form"), PATH_FORMS)
def test_path_form_is_the_same(live: Server, static_url: str, path: str, form: str) -> None:
    expected, answer = live.get(path), live.get(form)
    assert (answer.status_code, answer.content) == (200, expected.content)
    for header in ("Content-Type", "Cache-Control", "ETag"):
        assert answer.headers[header] == expected.headers[header]
    # A query on a path form says nothing, and is not ignored.
    if form.startswith("/api/"):
        check_error(live.get(f"{form}?sort=new&x=1"), 400, "invalid_parameter")
    assert live.get(f"{form}?x=1&Version=2").content == expected.content
    if "." in form:
        static = live.session.get(static_url + form, timeout=DEADLINE_SECONDS)
        assert (static.status_code, static.content) == (200, expected.content)


def test_every_file_is_served(live: Server) -> None:
    site = Path(live.settings.out)
    files = [path for path in site.rglob("*") if path.is_file()]
    assert len(files) > 700
    for path in files:
        answer = live.get(f"/{path.relative_to(site)}")
        assert answer.status_code == 200, path
        assert answer.content == path.read_bytes()


def test_raw_text_is_the_published_bytes(live: Server) -> None:
    texts = sorted(SAMPLE.glob("*/*/*.md"))
    assert len(texts) > 80
    for path in texts:
        repo = f"/api/v1/repos/{path.parent.relative_to(SAMPLE)}"
        version = path.stem
        answer = live.get(f"{repo}/raw?version={version}")
        assert (answer.status_code, answer.content) == (200, path.read_bytes())
        single = live.get(f"{repo}/versions/{version}").json()["data"]
        assert single["content"].encode() == path.read_bytes()
        assert single["size"] == len(path.read_bytes())
    for folder in sorted({path.parent for path in texts}):
        repo = f"/api/v1/repos/{folder.relative_to(SAMPLE)}"
        latest = live.get(repo).json()["data"]
        stored = (folder / f"{latest['latest_version']}.md").read_bytes()
        assert live.get(f"{repo}/raw").content == stored == latest["content"].encode()


def test_links_lead_to_what_they_name(live: Server) -> None:
    for row in live.get("/api/v1/repos").json()["data"]:
        assert live.session.get(row["url"]).status_code == 200
        repo = live.get(f"/api/v1/repos/{row['owner']}/{row['name']}").json()["data"]
        assert live.session.get(repo["raw_url"]).text == repo["content"]
        entries = live.session.get(repo["versions_url"]).json()
        assert entries["meta"]["total"] == len(entries["data"]) == row["versions_count"]
        assert entries["data"][0]["diff_url"] is None or live.session.get(
            entries["data"][0]["diff_url"]
        ).text.startswith("--- ")
        assert entries["data"][-1]["diff_url"] is None


def test_unknown_parameters_are_ignored(live: Server) -> None:
    for path in (
        "/api/v1/repos", "/api/v1/repos?sort=new", "/api/v1/repos?q=sql", DIFF_REVIEW,
        f"{DIFF_REVIEW}/raw", f"{DIFF_REVIEW}/raw?version=1.0.0", "/api/v1/tags", "/",
    ):  # fmt: skip
        join = "&" if "?" in path else "?"
        for extra in ("utm_source=x", "a=1&a=2&a", "__proto__=x", "Version=9", "page_size=1000"):
            answer = live.get(f"{path}{join}{extra}")
            assert (answer.status_code, answer.content) == (200, live.get(path).content)


# Ranges


@pytest.mark.parametrize("path", [f"{DIFF_REVIEW}/raw", f"{MEETING}/raw?version=1.0.0"])
def test_range(live: Server, path: str) -> None:
    whole = live.get(path)
    assert whole.headers["Accept-Ranges"] == "bytes"
    data, size = whole.content, len(whole.content)
    for text, start, stop in (
        ("0-9", 0, 10), ("0-0", 0, 1), ("10-19", 10, 20), ("-5", size - 5, size),
        (f"-{size * 2}", 0, size), ("20-", 20, size), (f"{size - 1}-{size * 9}", size - 1, size),
    ):  # fmt: skip
        for coding in ("identity", "gzip"):
            headers = {"Range": f"bytes={text}", "Accept-Encoding": coding}
            part = live.get(path, headers=headers)
            assert (part.status_code, part.content) == (206, data[start:stop])
            assert part.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{size}"
            assert int(part.headers["Content-Length"]) == stop - start
            assert "Content-Encoding" not in part.headers
            for header in ("ETag", "Cache-Control", "Content-Type"):
                assert part.headers[header] == whole.headers[header]
            check_common_headers(part)


def test_range_beyond_the_end(live: Server) -> None:
    size = len(live.get(f"{DIFF_REVIEW}/raw").content)
    for text in (f"{size}-", f"{size * 2}-{size * 3}", "-0"):
        answer = live.get(f"{DIFF_REVIEW}/raw", headers={"Range": f"bytes={text}"})
        check_error(answer, 416, "range_not_satisfiable")
        assert answer.headers["Content-Range"] == f"bytes */{size}"


def test_range_that_is_ignored(live: Server) -> None:
    path = f"{DIFF_REVIEW}/raw"
    whole = live.get(path)
    for text in ("bytes=0-1,3-4", "lines=0-1", "bytes=5-3", "bytes=x", "bytes", ""):
        answer = live.get(path, headers={"Range": text})
        assert (answer.status_code, answer.content) == (200, whole.content)
    for other in ("/api/v1/tags", "/", DIFF_REVIEW):
        assert live.get(other, headers={"Range": "bytes=0-1"}).status_code == 200
    head = live.request("HEAD", path, headers={"Range": "bytes=0-1"})
    assert (head.status_code, head.headers["Content-Length"]) == (200, str(len(whole.content)))


def test_if_range(live: Server) -> None:
    path = f"{DIFF_REVIEW}/raw"
    whole = live.get(path)
    etag = whole.headers["ETag"]
    first = {"Range": "bytes=0-4"}
    part = live.get(path, headers=first | {"If-Range": etag})
    assert (part.status_code, part.content) == (206, whole.content[:5])
    for other in (f"W/{etag}", '"x"', "Wed, 01 Jan 2099 00:00:00 GMT"):
        answer = live.get(path, headers=first | {"If-Range": other})
        assert (answer.status_code, answer.content) == (200, whole.content)
    assert live.get(path, headers=first | {"If-None-Match": etag}).status_code == 304
    beyond = {"Range": "bytes=9999999-"}
    assert live.get(path, headers=beyond | {"If-Range": '"x"'}).status_code == 200


# Errors


ERRORS = [
    # any
    ("/api", 404, "not_found"),
    ("/api/", 404, "not_found"),
    ("/api/v1", 404, "not_found"),
    ("/api/v2/repos", 404, "not_found"),
    ("/api/v1/nothing", 404, "not_found"),
    ("/api/v1/repos/", 404, "not_found"),
    ("/api/v1/tags/", 404, "not_found"),
    ("/api/v1/repos/sam-ferreira", 404, "not_found"),
    (f"{DIFF_REVIEW}/nothing", 404, "not_found"),
    (f"{DIFF_REVIEW}/versions/1.0.0/diff", 404, "not_found"),
    # lists
    ("/api/v1/repos?page=0", 400, "invalid_parameter"),
    ("/api/v1/repos?page=one", 400, "invalid_parameter"),
    ("/api/v1/repos?page=", 400, "invalid_parameter"),
    ("/api/v1/repos?page=-1", 400, "invalid_parameter"),
    ("/api/v1/repos?page=1&page=2", 400, "invalid_parameter"),
    ("/api/v1/repos?sort=best", 400, "invalid_parameter"),
    ("/api/v1/repos?sort=NEW", 400, "invalid_parameter"),
    ("/api/v1/repos?tag=SQL", 400, "invalid_parameter"),
    ("/api/v1/repos?tag=", 400, "invalid_parameter"),
    ("/api/v1/repos?tag=..%2F..", 400, "invalid_parameter"),
    ("/api/v1/repos?q=", 400, "invalid_parameter"),
    ("/api/v1/repos?q=...", 400, "invalid_parameter"),
    ("/api/v1/repos?q=" + "x" * 501, 400, "invalid_parameter"),
    ("/api/v1/repos?q=%ff", 400, "invalid_parameter"),
    ("/api/v1/repos?page=2", 404, "page_not_found"),
    ("/api/v1/repos?sort=new&page=999999999", 404, "page_not_found"),
    ("/api/v1/repos?tag=sql&page=2", 404, "page_not_found"),
    ("/api/v1/repos?q=sql&page=2", 404, "page_not_found"),
    ("/api/v1/repos?q=zzzz&page=2", 404, "page_not_found"),
    ("/api/v1/repos/_/top/2", 404, "page_not_found"),
    ("/api/v1/repos?tag=no-such-tag", 404, "tag_not_found"),
    ("/api/v1/repos?tag=no-such-tag&page=7&sort=new", 404, "tag_not_found"),
    ("/api/v1/repos?tag=sql,no-such-tag", 404, "tag_not_found"),
    ("/api/v1/repos?tag=no-such-tag&q=sql", 404, "tag_not_found"),
    ("/api/v1/tags/no-such-tag/top/1", 404, "tag_not_found"),
    # repo
    ("/api/v1/repos/sam-ferreira/no-such-repo", 404, "repo_not_found"),
    ("/api/v1/repos/nobody/diff-review", 404, "repo_not_found"),
    ("/api/v1/repos/nobody/nothing/versions", 404, "repo_not_found"),
    ("/api/v1/repos/nobody/nothing/raw", 404, "repo_not_found"),
    ("/api/v1/repos/nobody/nothing/raw?version=1.0.0", 404, "repo_not_found"),
    ("/api/v1/repos/nobody/nothing/versions/1.0.0", 404, "repo_not_found"),
    ("/api/v1/repos/nobody/nothing/versions/1.0.0/diff", 404, "repo_not_found"),
    ("/api/v1/repos/api/tags", 404, "repo_not_found"),
    (f"{DIFF_REVIEW}/versions/99.0.0", 404, "version_not_found"),
    (f"{DIFF_REVIEW}/versions/999999999.999999999.999999999", 404, "version_not_found"),
    (f"{DIFF_REVIEW}/raw?version=99.0.0", 404, "version_not_found"),
    (f"{DIFF_REVIEW}/versions/99.0.0/diff", 404, "version_not_found"),
    ("/api/v1/users/nobody", 404, "user_not_found"),
    ("/api/v1/users/api", 404, "user_not_found"),
    ("/api/v1/repos/-x/diff-review", 400, "invalid_name"),
    ("/api/v1/repos/sam_ferreira/diff-review", 400, "invalid_name"),
    ("/api/v1/repos/sam-ferreira/diff--review", 400, "invalid_name"),
    ("/api/v1/repos/sam-ferreira/..", 400, "invalid_name"),
    ("/api/v1/repos/sam-ferreira/" + "x" * 65, 400, "invalid_name"),
    ("/api/v1/repos/" + "x" * 40 + "/y", 400, "invalid_name"),
    ("/api/v1/repos/Sam-Ferreira/diff-review/versions", 400, "invalid_name"),
    ("/api/v1/users/" + "x" * 40, 400, "invalid_name"),
    ("/api/v1/users/%C3%A9", 400, "invalid_name"),
    (f"{DIFF_REVIEW}/raw?version=1.0", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/raw?version=", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/raw?version=latest", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/raw?version=v1.0.0", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/raw?version=01.0.0", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/raw?version=1.0.0%0A", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/raw?version=1000000000.0.0", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/raw?version=1.0.0&version=1.1.0", 400, "invalid_parameter"),
    (f"{DIFF_REVIEW}/raw?label=", 400, "invalid_label"),
    (f"{DIFF_REVIEW}/raw?label=Production", 400, "invalid_label"),
    (f"{DIFF_REVIEW}/raw?label=a.", 400, "invalid_label"),
    (f"{DIFF_REVIEW}/raw?label=production%0A", 400, "invalid_label"),
    (f"{DIFF_REVIEW}/raw?label=..%2Fraw", 400, "invalid_label"),
    (f"{DIFF_REVIEW}/raw?label={'a' * 37}", 400, "invalid_label"),
    (f"{DIFF_REVIEW}/raw?label=nothing", 404, "label_not_found"),
    (f"{DIFF_REVIEW}/raw?label=2.0.0", 404, "label_not_found"),
    (f"{DIFF_REVIEW}/raw?label=production.json", 404, "label_not_found"),
    (f"{DIFF_REVIEW}?version=1.0.0", 400, "invalid_parameter"),
    (f"{DIFF_REVIEW}?%76ersion=1.0.0", 400, "invalid_parameter"),
    (f"{DIFF_REVIEW}/raw?label=production&version=2.0.0", 400, "invalid_parameter"),
    (f"{DIFF_REVIEW}/raw?version=x&label=Y", 400, "invalid_parameter"),
    (f"{DIFF_REVIEW}/body?version=1.0", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/body?label=nothing", 404, "label_not_found"),
    (f"{DIFF_REVIEW}/body?label=production&version=2.0.0", 400, "invalid_parameter"),
    (f"{DIFF_REVIEW}/versions/99.0.0.body.txt", 404, "version_not_found"),
    (f"{DIFF_REVIEW}/raw?label=production&label=production", 400, "invalid_parameter"),
    (f"{DIFF_REVIEW}/labels/nothing", 404, "label_not_found"),
    (f"{DIFF_REVIEW}/labels/nothing/history", 404, "label_not_found"),
    (f"{DIFF_REVIEW}/labels/production.txt.json", 404, "label_not_found"),
    (f"{DIFF_REVIEW}/labels/Production", 400, "invalid_label"),
    (f"{DIFF_REVIEW}/labels/-a/history", 400, "invalid_label"),
    ("/api/v1/repos/sam-ferreira/nothing/labels", 404, "repo_not_found"),
    ("/api/v1/repos/sam-ferreira/commit-message/labels", 404, "not_found"),
    ("/api/v1/repos/sam-ferreira/commit-message/labels/latest", 404, "label_not_found"),
    ("/api/v1/repos/sam-ferreira/commit-message/raw?label=latest", 404, "label_not_found"),
    (f"{DIFF_REVIEW}/versions/1.0", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/versions/1.0.0-beta", 400, "invalid_version"),
    (f"{DIFF_REVIEW}/versions/01.0.0/diff", 400, "invalid_version"),
]


@pytest.mark.parametrize(("path", "status", "code"), ERRORS)
def test_error(live: Server, path: str, status: int, code: str) -> None:
    # As a raw target, because a client library resolves dots.
    raw = live.raw(path.encode())
    assert (raw.status, json.loads(raw.body)["error"]["code"]) == (status, code)
    if ".." not in path:
        check_error(live.get(path), status, code)
        head = live.request("HEAD", path)
        assert (head.status_code, head.content) == (status, b"")
        assert int(head.headers["Content-Length"]) == len(raw.body)


def test_a_parameter_elsewhere_names_the_address_that_takes_it(live: Server) -> None:
    for path, told in {
        f"{DIFF_REVIEW}?version=1.0.0": f"{DIFF_REVIEW}/versions/1.0.0 ",
        f"{DIFF_REVIEW}/raw.txt?version=1.0.0": f"{DIFF_REVIEW}/raw?version=1.0.0)",
        f"{DIFF_REVIEW}.json?label=production": f"{DIFF_REVIEW}/labels/production ",
        f"{DIFF_REVIEW}?version=../1": f"{DIFF_REVIEW}/versions/X.Y.Z ",
        "/api/v1/repos?label=production": "/api/v1/repos/OWNER/NAME/raw?label=production)",
    }.items():
        assert told in check_error(live.get(path), 400, "invalid_parameter")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/repos/Sam-Ferreira/diff-review", "/api/v1/repos/SAM-FERREIRA/DIFF-REVIEW",
        "/api/v1/repos/Sam-Ferreira/diff-review/raw", "/api/v1/users/Sam-Ferreira",
        "/api/v1/repos/Sam-Ferreira/diff-review/versions/1.0.0",
    ],
)  # fmt: skip
def test_upper_case_gets_the_right_spelling(live: Server, path: str) -> None:
    assert "'sam-ferreira'" in check_error(live.get(path), 400, "invalid_name")
    message = check_error(live.get("/api/v1/repos/sam-ferreira/Diff-Review"), 400, "invalid_name")
    assert "'diff-review'" in message


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PROPFIND", "TRACE"])
@pytest.mark.parametrize(
    "path", ["/api/v1/repos", DIFF_REVIEW, "/api/v1/nothing", "/", "/sam-ferreira"]
)
def test_method_not_allowed(live: Server, method: str, path: str) -> None:
    answer = live.request(method, path, data=b"{}")
    check_error(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_method_not_allowed_where_one_can_publish(live: Server, method: str) -> None:
    answer = live.request(method, f"{DIFF_REVIEW}/versions", data=b"{}")
    check_error(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS, POST"


@pytest.mark.parametrize("path", ["/api/v1/repos", f"{DIFF_REVIEW}/versions", "/api/x", "/"])
def test_preflight(live: Server, path: str) -> None:
    answer = live.request(
        "OPTIONS", path,
        headers={
            "Origin": "https://elsewhere.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type, idempotency-key",
        },
    )  # fmt: skip
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert {"GET", "HEAD", "POST"} <= set(
        answer.headers["Access-Control-Allow-Methods"].split(", ")
    )
    allowed = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {"authorization", "content-type", "idempotency-key", "if-match"} <= set(allowed)


def test_page_that_is_not_there(live: Server) -> None:
    for path in ("/nobody", "/nobody/nothing", "/tags/no-such-tag", "/a/b/c/d", "/Sam-Ferreira",
                 "/api.html", "/.git/config", "/humans.txt", "/index", "/top/2"):  # fmt: skip
        answer = live.get(path)
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == HTML
        assert answer.headers["Cache-Control"] == NOT_FOUND
        assert answer.text == Path(live.settings.out, "404.html").read_text("utf-8")
        check_common_headers(answer)


@pytest.mark.parametrize(
    "path", ["/sam-ferreira", "/sam-ferreira/diff-review", "/tags", "/tags/sql", "/new"]
)
def test_slash_at_the_end_of_a_page(live: Server, path: str) -> None:
    for slashes in ("/", "//"):
        answer = live.get(path + slashes)
        assert (answer.status_code, answer.content) == (308, b"")
        assert answer.headers["Location"] == path
    assert live.get("/nobody/").status_code == 404


# Hostile requests


HOSTILE = [
    b"/../../etc/passwd", b"/..%2f..%2fetc%2fpasswd", b"/%2e%2e/%2e%2e/secret.txt",
    b"/../secret.txt", b"/%2e%2e/secret.txt", b"/..%5c..%5csecret.txt", b"/..\\secret.txt",
    b"/assets/../../secret.txt", b"/assets/..%2f..%2fsecret.txt",
    b"/assets/%2e%2e/%2e%2e/secret.txt",
    b"/assets/style.css/../../../secret.txt", b"/assets/style.css%00.html", b"/%00", b"/%00/x",
    b"/api/v1/../../../secret.txt", b"/api/v1/repos/../../../../secret.txt",
    b"/api/v1/repos/..%2f..%2f..%2f..%2fsecret.txt/x", b"/api/v1/users/..%2f..%2f..%2fsecret",
    b"/api/v1/users/%2e%2e", b"/api/v1/repos/%2e/%2e", b"/api/v1/repos/_/top/..%2f1",
    b"/api/v1/tags/..%2f..%2f/top/1", b"/api/v1/tags/%2e%2e/top/1",
    b"/api/v1/repos?tag=../../../secret", b"/api/v1/repos?tag=%2e%2e%2f&sort=..%2f&page=..",
    b"/api/v1/repos?sort=../../../../secret&page=1", b"/api/v1/repos?page=../../secret",
    b"/api/v1/repos/sam-ferreira/diff-review/raw?version=../../../../../../secret",
    b"/api/v1/repos/sam-ferreira/diff-review/raw?version=1.0.0%00",
    b"/api/v1/repos/sam-ferreira/diff-review/raw?version=1.0.0/../../secret",
    b"/api/v1/repos/sam-ferreira/diff-review%00/raw", b"/api/v1/repos/sam-ferreira%2fdiff-review",
    b"/api/v1/repos/sam-ferreira/diff-review%0a", b"/api/v1/repos/sam-ferreira/diff-review%20",
    b"//etc/passwd", b"//evil.example/", b"///", b"/.", b"/..", b"/./", b"/%2f%2fevil.example%2f",
    b"//sam-ferreira/", b"/%5cevil.example/", b"/%0d%0aX-Injected:%20yes/",
    b"/sam-ferreira%0d%0aX-Injected:%20yes/", b"/sam-ferreira/%0d%0aX-Injected:%20yes",
    b"/api/v1/repos?q=%0d%0aX-Injected:%20yes", b"/api/v1/repos?tag=%0d%0aX-Injected:%20yes",
    b"/api/v1/repos?q=%00%01%1f%7f", b"/api/v1/repos?q=%ff%fe", b"/api/v1/repos?%ff=%fe",
    b"/api/v1/repos?" + b"&".join(b"q=a" for _ in range(1000)),
    b"/api/v1/repos?" + b"a" * 60_000, b"/api/v1/repos?q=" + b"%C3%A9" * 10_000,
    b"/" + b"a" * 60_000, b"/" + b"a/" * 10_000, b"/api/v1/repos/" + b"a" * 10_000 + b"/b",
    b"/%ff%fe%fd", b"/api/v1/users/%ff", b"/api/v1/repos/%c0%af%c0%af/x", b"/%ed%a0%80",
    b"/.well-known/security.txt", b"/.git/HEAD", b"/404.html.tmp", b"/.404.html.tmp", b"/hub.json",
    b"/api/v1/hub.json/x", b"/api/v1/openapi.json?x=" + b"%00" * 100, b"/api/v1/tags.json/",
    b"/api/v1/repos.json%00", b"/%", b"/%zz", b"/api/v1/repos?q=%zz", b"/api/v1/repos?&&&===&",
    b"/api/v1/repos#fragment", b"/api/v1/repos?q=a#b", b"/state/build.sqlite3",
    b"/api/v1/repos?__proto__=1&constructor=2", b"http://evil.example/api/v1/tags", b"*",
    b"http://evil.example/../secret.txt", b"/api/v1/repos?q={{7*7}}${7*7}<%=7*7%>",
    b"/api/v1/repos;a=b", b"/api;/v1/repos", b"/api/v1//repos", b"//api/v1/repos", b"/API/v1/repos",
    "/api/v1/users/é".encode(), "/é/ü".encode(), "/api/v1/repos?q=é".encode(), b"/\x80\xff",
]  # fmt: skip

SECRET = b"nobody may read this"


@pytest.fixture(scope="module")
def guarded(live: Server) -> Server:
    """The live server, with secrets beside its site."""
    for place in (live.settings.out + "/..", live.settings.content, live.settings.state):
        Path(place, "secret.txt").write_bytes(SECRET)
        Path(place, "secret.json").write_bytes(SECRET)
    return live


def check_harmless(
    server: Server, target: bytes, answer: RawAnswer, method: bytes = b"GET"
) -> None:
    assert answer.status in (200, 204, 308, 400, 404, 405, 414, 431), target[:200]
    assert SECRET not in answer.body
    assert b"root:" not in answer.body
    assert b"Traceback" not in answer.body
    assert "x-injected" not in answer.headers
    if answer.status == 308:
        location = answer.headers["location"]
        assert location.startswith("/")
        assert not urlsplit(location).netloc
        assert server.get(location).status_code == 200
    # What is not HTTP at all the parser refuses, before anything knows of a path.
    if answer.status >= 400 and target.startswith(b"/api/") and target.isascii():
        assert answer.headers["content-type"] == JSON
        assert method == b"HEAD" or json.loads(answer.body)["error"]["code"]


@pytest.mark.parametrize("target", HOSTILE, ids=lambda target: repr(target[:60]))
def test_hostile_target(guarded: Server, target: bytes) -> None:
    for method in (b"GET", b"HEAD", b"OPTIONS", b"POST"):
        if target != b"*" or method == b"OPTIONS":
            check_harmless(guarded, target, guarded.raw(target, method=method), method)
    assert guarded.get("/api/v1/tags").status_code == 200


_pieces = st.sampled_from(
    [
        "/", "//", "..", "%2e%2e", "%2F", "%5c", "%00", "%0d%0a", "%ff", "%", "?", "&", "=", "#",
        ";", ".", "+", "api", "v1", "repos", "users", "tags", "hub.json", "sam-ferreira",
        "diff-review", "versions", "raw", "1.0.0", "diff", ".json", ".txt", ".html", "secret", "_",
        "top", "1", "page", "sort", "tag", "q", "version", "A", "é", "assets", "style.css",
        "content", "state",
    ]
)  # fmt: skip


_starts = st.sampled_from(["/", "/api/v1/", "/api/v1/repos/"])


@given(st.lists(_pieces, max_size=14).map("".join), _starts)
def test_hostile_target_made_of_pieces(guarded: Server, text: str, start: str) -> None:
    target = (start + text).encode()
    check_harmless(guarded, target, guarded.raw(target))


@searching(30)
@given(st.text(max_size=60), st.text(max_size=60))
def test_hostile_parameters(guarded: Server, key: str, value: str) -> None:
    for path in ("/api/v1/repos", f"{DIFF_REVIEW}/raw", "/api/v1/tags"):
        for params in (
            {key: value},
            {"q": value},
            {"tag": value, "sort": key},
            {"version": value},
            {"label": value},
        ):
            answer = guarded.get(path, params=params)
            assert answer.status_code in (200, 400, 404)
            if answer.status_code != 200:
                assert answer.json()["error"]["code"] in (
                    "invalid_parameter", "invalid_version", "version_not_found", "tag_not_found",
                    "invalid_label", "label_not_found",
                )  # fmt: skip


@pytest.mark.parametrize(
    "header",
    [
        b"If-None-Match: " + b'"' * 5000, b"If-None-Match: \xff\xfe",
        b"Range: bytes=" + b"9" * 9000,
        b"Range: bytes=\xff-", b"Accept-Encoding: " + b"gzip;q=" * 1000, b"Accept-Encoding: \xff",
        b"If-Range: \xff", b"Accept-Encoding: gzip;q=x", b"Content-Length: 0",
        b"Expect: 100-continue",
        b"Origin: \xff\x80", b"X-Forwarded-For: " + b"1.1.1.1," * 1000, b"Upgrade: websocket",
    ],
    ids=lambda header: repr(header[:40]),
)  # fmt: skip
def test_hostile_header(guarded: Server, header: bytes) -> None:
    answer = guarded.raw(f"{DIFF_REVIEW}/raw".encode(), header)
    assert answer.status in (200, 206, 304, 416)


def test_what_is_not_http(guarded: Server) -> None:
    for data in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 100):
        with guarded.connect() as connection:
            connection.sendall(data)
            assert read_answer(connection).status == 400
    assert guarded.get("/").status_code == 200


# A base URL with a path


@pytest.fixture(scope="module")
def below_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = free_port()
    settings = sample_settings(tmp_path_factory.mktemp("hub"))
    base_url = f"http://127.0.0.1:{port}/hub"
    with serving(settings, "--port", str(port), "--base-url", base_url) as server:
        assert server.url == base_url
        yield server


@pytest.mark.parametrize(("path", "media", "cache"), ENDPOINTS + PAGES)
def test_everything_is_below_the_base_path(
    below_path: Server, path: str, media: str, cache: str
) -> None:
    answer = below_path.get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, media)
    assert answer.headers["Cache-Control"] == cache
    outside = below_path.session.get(below_path.origin + path, timeout=DEADLINE_SECONDS)
    assert outside.status_code == 404


def test_errors_below_the_base_path(below_path: Server) -> None:
    check_error(below_path.get("/api/v1/nothing"), 404, "not_found")
    check_error(below_path.get("/api/v1/repos?page=2"), 404, "page_not_found")
    assert below_path.get("").status_code == 200
    answer = below_path.get("/sam-ferreira/")
    assert (answer.status_code, answer.headers["Location"]) == (308, "/hub/sam-ferreira")


@pytest.mark.parametrize(
    "target",
    [
        "/hubapi/v1/repos.json", "/hubapi/v1/repos", "/hubindex.html", "/hubtop.html", "/hub2/",
        "/",
        "/hubsam-ferreira.html", "/hub.html", "/top/", "/sam-ferreira/", "/HUB/", "/hubtop/",
        "/hub/../api/v1/repos", "/index.html", "/hub/hub/api/v1/repos",
    ],
)  # fmt: skip
def test_nothing_is_beside_the_base_path(below_path: Server, target: str) -> None:
    assert below_path.raw(target.encode()).status == 404


def test_links_have_the_base_path(below_path: Server) -> None:
    hub = below_path.get("/api/v1/hub.json").json()["data"]
    assert hub["base_url"] == below_path.url
    assert hub["queries"] is True
    row = below_path.get("/api/v1/repos?q=sql").json()["data"][0]
    assert row["url"].startswith(f"{below_path.url}/")
    assert below_path.session.get(row["url"]).status_code == 200
    assert 'href="/hub/assets/style.css"' in below_path.get("/").text


# Rebuilds while serving


def rebuild(server: Server) -> None:
    """As the publish service does: in another process than the server's, the same options."""
    build(server.settings._replace(base_url=server.url, queries=True))


def test_rebuild_by_another_process_is_seen_at_once(small: Settings) -> None:
    with serving(small) as server:
        assert server.get("/api/v1/repos?q=hasten").json()["meta"]["total"] == 0
        write_version(small.content, "ann", "story", "1.0.1", "Hasten slowly.\n", tags=["fresh"])
        write_version(small.content, "eve", "first", "1.0.0", "Hasten.\n", tags=["fresh", "code"])
        subprocess.run(
            [HUBCTL, "build", "--content", small.content, "--out", small.out,
             "--state", small.state, "--base-url", server.url, "--queries"],
            check=True, capture_output=True, env=clean_environment(),
        )  # fmt: skip
        assert server.get("/api/v1/repos/ann/story/raw").text == "Hasten slowly.\n"
        assert server.get("/api/v1/repos/ann/story").json()["data"]["latest_version"] == "1.0.1"
        assert server.get("/api/v1/repos/ann/story/versions").json()["meta"]["total"] == 2
        assert server.get("/api/v1/repos/ann/story/raw?version=1.0.0").text == "Tell a story.\n"
        assert server.get("/api/v1/repos/eve/first").status_code == 200
        assert server.get("/api/v1/repos").json()["meta"]["total"] == 4
        assert server.get("/api/v1/repos?tag=fresh").json()["meta"]["total"] == 2
        assert server.get("/api/v1/repos?tag=fresh,code").json()["meta"]["total"] == 1
        assert server.get("/api/v1/repos?q=hasten").json()["meta"]["total"] == 2
        assert server.get("/eve").status_code == 200


def test_no_stale_answer_in_the_same_second_and_size(small: Settings) -> None:
    paths = ("/api/v1/repos/bob/sql", "/api/v1/repos/bob/sql/raw")
    with serving(small) as server:
        before = {path: server.get(path) for path in paths}
        for patch in range(1, 5):
            text = f"Write SQL for {{{{question}}}}{patch}\n"
            write_version(
                small.content, "bob", "sql", f"1.0.{patch}", text, tags=["code"],
                published_at=moment(2000 + patch), changelog="",
            )  # fmt: skip
            rebuild(server)
            for path in paths:
                etag = before[path].headers["ETag"]
                answer = server.get(path, headers={"If-None-Match": etag})
                assert answer.status_code == 200
                if patch > 1:
                    assert len(answer.content) == len(before[path].content)
                assert answer.content != before[path].content
                before[path] = answer
            assert before[paths[1]].text == text


def test_repo_that_is_removed(small: Settings) -> None:
    with serving(small) as server:
        shutil.rmtree(Path(small.content, "ann"))
        # Files go one build later than what points to them.
        rebuild(server)
        assert server.get("/api/v1/repos").json()["meta"]["total"] == 1
        rebuild(server)
        check_error(server.get("/api/v1/repos/ann/story"), 404, "repo_not_found")
        check_error(server.get("/api/v1/users/ann"), 404, "user_not_found")
        check_error(server.get("/api/v1/repos?tag=careful"), 404, "tag_not_found")
        assert server.get("/api/v1/repos?q=story").json()["data"] == []


def test_watch(small: Settings) -> None:
    with serving(small, "--watch") as server:
        write_version(small.content, "ann", "story", "1.0.1", "Tell a longer story.\n")
        wait_until(
            lambda: server.get("/api/v1/repos/ann/story/raw").text == "Tell a longer story.\n",
            "the new version",
        )
        write_owner(small.content, "ann", bio="Writes no more.")
        wait_until(
            lambda: server.get("/api/v1/users/ann").json()["data"]["bio"] == "Writes no more.",
            "the new profile",
        )
        # A fault is told, leaves the site, and is no end.
        Path(small.content, "bob/sql/1.1.0.json").write_text("{")
        server.process.wait_for_line("bob/sql/1.1.0.json")
        assert server.get("/api/v1/repos/bob/sql").json()["data"]["latest_version"] == "1.0.0"
        write_version(small.content, "bob", "sql", "1.1.0", "Write it.\n")
        wait_until(
            lambda: server.get("/api/v1/repos/bob/sql").json()["data"]["versions_count"] == 2,
            "the mended version",
        )
        wait_until(
            lambda: server.get("/api/v1/repos?q=longer").json()["meta"]["total"] == 1, "the index"
        )


# Start and stop


def run_serve(settings: Settings, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*serve_command(settings), *options],
        capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=clean_environment(),
    )  # fmt: skip


def test_busy_port(live: Server, small: Settings) -> None:
    done = run_serve(small, "--port", str(live.port))
    assert done.returncode == 1
    assert f"127.0.0.1:{live.port}" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not Path(small.out).exists()


def test_unknown_host(small: Settings) -> None:
    done = run_serve(small, "--host", "no-such-host.invalid")
    assert done.returncode == 1
    assert "--host" in done.stderr
    assert "Traceback" not in done.stderr


def break_content(settings: Settings) -> None:
    Path(settings.content, "bob/sql/1.0.0.md").write_text("Changed after it was published.\n")


def test_faults_with_a_site(small: Settings) -> None:
    build(small)
    break_content(small)
    with serving(small) as server:
        assert "bob/sql/1.0.0.md" in server.process.text
        assert "Serving the previous site" in server.process.text
        assert server.get("/api/v1/repos/bob/sql/raw").text == "Write SQL for {{question}}.\n"
        assert server.get("/api/v1/repos?q=sql").json()["meta"]["total"] == 1


def test_faults_without_a_site(small: Settings) -> None:
    break_content(small)
    done = run_serve(small)
    assert done.returncode == 1
    assert "bob/sql/1.0.0.md" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_content_folder(small: Settings) -> None:
    done = run_serve(small._replace(content=f"{small.content}/nowhere"))
    assert done.returncode == 1
    assert "--content" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_finishes_what_is_under_way(small: Settings, number: int) -> None:
    process = Process(*serve_command(small))
    server = Server(process, small)
    # While another process has the state for itself, a search has to wait.
    state = sqlite3.connect(f"{small.state}/build.sqlite3", isolation_level=None)
    state.execute("PRAGMA locking_mode = EXCLUSIVE")
    state.execute("BEGIN EXCLUSIVE")
    asking, other = server.connect(), server.connect()
    try:
        asking.sendall(b"GET /api/v1/repos?q=care HTTP/1.1\r\nHost: x\r\n\r\n")
        # Answered later than the search was asked: that is under way now.
        other.sendall(b"GET /api/v1/tags HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(other).status == 200
        server.process.send(number)
        wait_until(lambda: is_refused(server), "the end of listening")
        assert not select.select([asking], [], [], 0)[0]
    finally:
        state.execute("ROLLBACK")
        state.close()
    answer = read_answer(asking)
    assert answer.status == 200
    assert json.loads(answer.body)["meta"]["total"] == 1
    for connection in (asking, other):
        connection.close()
    server.session.close()
    assert process.wait() == 0, process.text
    assert "Traceback" not in process.text
    assert "Aborted" not in process.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_at_the_start_is_not_lost(small: Settings, number: int) -> None:
    process = Process(sys.executable, *serve_command(small))
    process.wait_for_line("(stop with Ctrl-C)")
    assert process.stop(number) == 0, process.text
    assert "Traceback" not in process.text


def is_refused(server: Server) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    return False


# The whole application: reads, the publish service and MCP, in a server inside the test


class Mcp:
    """Stands for the MCP endpoint: says which path it was asked, and when it ran."""

    def __init__(self, failing: str = "") -> None:
        self.events: list[str] = []
        self._failing = failing

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._note("start")
        yield
        self._note("end")

    def _note(self, event: str) -> None:
        self.events.append(event)
        if event == self._failing:
            raise OperatorError(f"The {event} went wrong; mend it.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.events.append(f"{scope['method']} {scope['path']}")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"mcp"})


def publisher(environ: dict, start_response: Callable) -> list[bytes]:
    start_response("200 OK", [])
    return [f"publisher {environ['SCRIPT_NAME']}".encode()]


def make_server(app: Callable) -> uvicorn.Server:
    return uvicorn.Server(uvicorn.Config(app, port=0, http="httptools", log_config=None))


@contextlib.asynccontextmanager
async def running(app: Callable) -> AsyncIterator[uvicorn.Server]:
    """The application behind the server that `hubctl serve` uses, on a free port."""
    server = make_server(app)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.001)
        yield server
    finally:
        server.should_exit = True
        await serving


async def ask(server: uvicorn.Server, method: str, target: str) -> bytes:
    """The body of the answer."""
    port = server.servers[0].sockets[0].getsockname()[1]

    def request() -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, target)
            return connection.getresponse().read()

    return await asyncio.to_thread(request)


def query_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("queries")}


@pytest.mark.parametrize("root", ["", "/prompts", "/mcp"])
def test_who_answers(small: Settings, root: str) -> None:
    small = small._replace(base_url=f"https://hub.example{root}")
    build(small)
    publish, below = "/api/v1/repos/ann/story/versions", f"publisher {root}".encode()

    async def ask_all() -> None:
        mcp = Mcp()
        async with running(Hub(ReadApp(small), publisher, mcp)) as server:
            for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT"):
                for path in ("/mcp", "/mcp/", "/mcp?owner=ann", "/mcp/?x"):
                    assert await ask(server, method, root + path) == b"mcp"
                    asked = root + path.partition("?")[0]
                    assert mcp.events[-1] == f"{method} {asked}"
            before = len(mcp.events)
            assert await ask(server, "POST", root + publish) == below
            assert await ask(server, "GET", f"{root}/healthz") == below
            assert b'"total":1' in await ask(server, "GET", f"{root}/api/v1/repos?q=care")
            assert b"story" in await ask(server, "GET", root + publish)
            for path in ("/mcp/x", "/mcpx", "/mcp//", "/MCP", "/x/mcp", "//mcp"):
                assert b"not_found" in await ask(server, "GET", f"{root}/api{path}")
                assert await ask(server, "GET", root + path) not in (b"mcp", below)
            if root:
                for path in ("/healthz", publish):
                    assert await ask(server, "POST", path) not in (b"mcp", below)
            assert len(mcp.events) == before
        assert mcp.events[0] == "start"
        assert mcp.events[-1] == "end"

    asyncio.run(ask_all())


def test_a_request_is_counted_also_if_its_part_fails(small: Settings) -> None:
    build(small)

    def failing(environ: dict, start_response: Callable) -> list[bytes]:
        raise OSError("a defect")

    def counted() -> list[int]:
        counts = dict(REQUESTS.samples())
        return [counts[labels] for labels in (("mcp", "2xx"), ("publish", "5xx"), ("read", "2xx"))]

    async def ask_all(*, is_measured: bool) -> None:
        hub = Hub(ReadApp(small), failing, Mcp(), is_measured=is_measured)
        async with running(hub) as server:
            await ask(server, "POST", "/mcp")
            await ask(server, "POST", "/api/v1/repos/ann/story/versions")
            await ask(server, "GET", "/api/v1/repos")

    before = counted()
    asyncio.run(ask_all(is_measured=False))
    assert counted() == before
    asyncio.run(ask_all(is_measured=True))
    assert counted() == [count + 1 for count in before]


def test_without_mcp_its_address_is_a_read_like_others(small: Settings) -> None:
    build(small)

    async def ask_all() -> None:
        async with running(Hub(ReadApp(small), publisher)) as server:
            assert b"</html>" in await ask(server, "GET", "/mcp")
            assert b"method_not_allowed" in await ask(server, "POST", "/mcp")
            assert await ask(server, "GET", "/healthz") == b"publisher "

    asyncio.run(ask_all())


def test_the_end_closes_the_reads(small: Settings) -> None:
    build(small)
    before = query_threads()

    async def ask_one() -> None:
        async with running(Hub(ReadApp(small), publisher, Mcp())) as server:
            assert b'"total":1' in await ask(server, "GET", "/api/v1/repos?q=care")
            assert query_threads() > before

    asyncio.run(ask_one())
    assert query_threads() == before


def test_a_part_that_cannot_start_stops_the_server(
    small: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = Mcp(failing="start")
    before = query_threads()
    server = make_server(Hub(ReadApp(small), publisher, mcp))
    with pytest.raises(SystemExit) as caught:
        server.run()
    assert caught.value.code
    assert mcp.events == ["start"]
    assert "The start went wrong; mend it." in caplog.messages
    assert query_threads() == before


# The protocol of its life, with a server that is played


class Life:
    """A server's side of the lifespan protocol: asks to start, then to end, and notes answers."""

    def __init__(self) -> None:
        self.answers: list[dict] = []
        self._questions = iter(("lifespan.startup", "lifespan.shutdown"))

    async def receive(self) -> dict:
        return {"type": next(self._questions)}

    async def send(self, answer: dict) -> None:
        self.answers.append(answer)

    def told(self) -> list[str]:
        return [answer["type"].removeprefix("lifespan.") for answer in self.answers]


def test_life_of_an_application() -> None:
    life, mcp = Life(), Mcp()
    asyncio.run(run_lifespan(life.receive, life.send, mcp.running()))
    assert life.told() == ["startup.complete", "shutdown.complete"]
    assert mcp.events == ["start", "end"]


@pytest.mark.parametrize(
    ("failing", "told"),
    [("start", ["startup.failed"]), ("end", ["startup.complete", "shutdown.failed"])],
)
def test_failure_at_the_start_or_the_end(failing: str, told: list[str]) -> None:
    life = Life()
    with pytest.raises(OperatorError):
        asyncio.run(run_lifespan(life.receive, life.send, Mcp(failing).running()))
    assert life.told() == told
    assert life.answers[-1]["message"] == f"The {failing} went wrong; mend it."


def test_defect_at_the_start_is_told_with_its_place() -> None:
    @contextlib.asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        yield 1 // 0

    life = Life()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_lifespan(life.receive, life.send, broken()))
    assert life.told() == ["startup.failed"]
    assert "yield 1 // 0" in life.answers[0]["message"]


# Trouble


def test_internal_error_tells_readers_nothing(small: Settings) -> None:
    with serving(small) as server:
        broken = Path(small.out, "api/v1/tags.json")
        broken.unlink()
        broken.mkdir()
        answer = server.get("/api/v1/tags")
        message = check_error(answer, 500, "internal_error")
        for inside in ("Traceback", "Error", small.out, ".py"):
            assert inside not in message
        server.process.wait_for_line("IsADirectoryError")
        assert server.get("/api/v1/users/ann").status_code == 200
        broken.rmdir()
        check_error(server.get("/api/v1/tags"), 404, "not_found")


def test_site_that_is_gone(small: Settings) -> None:
    with serving(small) as server:
        assert server.get("/api/v1/repos?q=care").status_code == 200
        shutil.rmtree(small.out)
        for path in ("/api/v1/repos", "/api/v1/tags", "/api/v1/repos/ann/story"):
            answer = server.get(path)
            check_error(answer, 503, "unavailable")
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
        rebuild(server)
        assert server.get("/api/v1/repos/ann/story").status_code == 200


def test_search_index_and_state_that_are_gone(small: Settings) -> None:
    with serving(small) as server:
        shutil.rmtree(small.state)
        answer = server.get("/api/v1/repos?q=care")
        check_error(answer, 503, "unavailable")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert server.get("/api/v1/repos").status_code == 200
        rebuild(server)
        assert server.get("/api/v1/repos?q=care").json()["meta"]["total"] == 1


def test_many_readers_at_once(live: Server) -> None:
    """Every one gets the answer to its own question."""
    questions = ["sql", "review", "act as interviewer", "議事録", "лист", "the"] * 8
    expected = {q: live.get("/api/v1/repos", params={"q": q}).content for q in set(questions)}
    wrong = []

    def ask(q: str) -> None:
        answer = requests.get(f"{live.url}/api/v1/repos", params={"q": q}, timeout=DEADLINE_SECONDS)
        if answer.content != expected[q]:
            wrong.append((q, answer.status_code))

    threads = [threading.Thread(target=ask, args=(q,)) for q in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
