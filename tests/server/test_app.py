"""The live server over real HTTP, where the conformance suite leaves a choice to a host."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.support.depth import searching
from tests.support.servers import (
    RawAnswer,
    Server,
    free_port,
    read_answer,
    sample_settings,
    serving,
)

# The contract's table, stated again on purpose.
CACHES = {
    "/api/v1/repos": "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400",
    "/api/v1/repos?tag=sql,json":
        "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400",
    "/tags/sql": "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400",
    "/api/v1/repos?q=review": "public, max-age=60",
    "/api/v1/repos?q=zzqxjzz": "public, max-age=5",
    "{repo}": "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400",
    "{repo}/raw": "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400",
    "{repo}/versions/1.0.0":
        "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400",
    "{repo}/raw?version=1.0.0": "public, max-age=604800, immutable",
    "{repo}/body?version=1.0.0": "public, max-age=604800, immutable",
}  # fmt: skip
NOT_FOUND = "public, max-age=10"

DIFF_REVIEW = "/api/v1/repos/sam-ferreira/diff-review"


def check_common_headers(answer: requests.Response) -> None:
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    exposed = {name.strip() for name in answer.headers["Access-Control-Expose-Headers"].split(",")}
    assert exposed == {"ETag", "Location", "Retry-After", "RateLimit", "RateLimit-Policy"}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in answer.headers


def check_error(answer: requests.Response, status: int, code: str) -> str:
    """The envelope with its headers; returns the message."""
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == (NOT_FOUND if status == 404 else "no-store")
    assert list(answer.json()) == ["error"]
    message = answer.json()["error"]["message"]
    assert isinstance(message, str)
    assert message
    check_common_headers(answer)
    return message


@pytest.mark.parametrize("path", CACHES)
def test_caches_keep_each_answer_as_long_as_it_holds(
    live: Server, below_path: Server, path: str
) -> None:
    for server in (live, below_path):
        answer = server.get(path.format(repo=DIFF_REVIEW))
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, CACHES[path])
        check_common_headers(answer)


def test_gzip_is_the_same_each_time(live: Server) -> None:
    targets = [live.raw(b"/api/v1/repos", b"Accept-Encoding: gzip") for _ in range(2)]
    targets += [live.raw(b"/api/v1/repos?q=review", b"Accept-Encoding: gzip") for _ in range(2)]
    for target in targets:
        assert target.body[4:8] == bytes(4)  # the time in gzip's header
    assert targets[0].body == targets[1].body
    assert targets[2].body == targets[3].body
    assert json.loads(gzip.decompress(targets[2].body))["meta"]["q"] == "review"


@pytest.mark.parametrize("path", ["/account/login", "/account/tokens", "/account/nothing"])
def test_no_other_site_and_no_cache_gets_the_account_pages(live: Server, path: str) -> None:
    headers = {"Origin": "https://elsewhere.example", "Accept-Encoding": "gzip"}
    answer = live.request("GET", path, headers=headers, allow_redirects=False)
    shared = [name for name in answer.headers if name.lower().startswith("access-control-")]
    assert not shared and "no-store" in answer.headers["Cache-Control"]
    # How well a page packs would tell of the secrets in it.
    assert "Content-Encoding" not in answer.headers


# Hostile requests


SECRET = b"nobody may read this"


@pytest.fixture(scope="module")
def guarded(live: Server) -> Server:
    """The live server, with secrets beside its site."""
    for place in (live.settings.out + "/..", live.settings.content, live.settings.state):
        Path(place, "secret.txt").write_bytes(SECRET)
        Path(place, "secret.json").write_bytes(SECRET)
    return live


def check_harmless(server: Server, target: bytes, answer: RawAnswer) -> None:
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
    if answer.status >= 400 and target.startswith(b"/api/") and target.isascii():
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.body)["error"]["code"]


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
        b"Range: bytes=0-4", b"Accept-Encoding: " + b"gzip;q=" * 1000, b"Accept-Encoding: \xff",
        b"Accept-Encoding: gzip;q=x", b"Content-Length: 0",
        b"Expect: 100-continue",
        b"Origin: \xff\x80", b"X-Forwarded-For: " + b"1.1.1.1," * 1000, b"Upgrade: websocket",
    ],
    ids=lambda header: repr(header[:40]),
)  # fmt: skip
def test_hostile_header(guarded: Server, header: bytes) -> None:
    answer = guarded.raw(f"{DIFF_REVIEW}/raw".encode(), header)
    assert answer.status in (200, 304)


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
