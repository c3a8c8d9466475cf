"""nginx with the generated configuration, apart from the conformance suite's tests of all hosts."""

import json
import shutil
import socket
from pathlib import Path

import pytest
import requests

from builder.model.messages import BAD_REQUEST
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from tests.conformance.nginx import started_nginx
from tests.hosts.hosted import get, hosted
from tests.support.servers import (
    DEADLINE_SECONDS,
    add_publisher,
    free_port,
    read_answer,
    running,
    sample_settings,
    serve_command,
    serving,
)

SECRET = "not for readers"
REPO = "/api/v1/repos/mara-okafor/sql-review"


@pytest.fixture(scope="module")
def settings(built_sample: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The site of the sample catalogue, with private files around and in it."""
    site = tmp_path_factory.mktemp("nginx") / "site"
    shutil.copytree(built_sample.out, site)
    for file in ("../secret.json", "../secret.txt", ".env", "_redirects", "api/v1/.hidden.json"):
        (site / file).write_text(SECRET)
    return built_sample._replace(out=str(site))


@pytest.fixture(scope="module")
def alone(settings: Settings, tmp_path_factory: pytest.TempPathFactory, installed_tools: None):
    """The URL of nginx while `hubctl serve` is down."""
    folder = tmp_path_factory.mktemp("alone")
    with started_nginx(hosted(settings, folder), folder) as url:
        yield url


def code_of(response: requests.Response) -> str:
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    return response.json()["error"]["code"]


def test_reads_go_on_without_the_service(alone):
    for path in (
        "/", "/mara-okafor/sql-review", "/api/v1/repos", "/api/v1/repos?sort=new&page=1",
        "/api/v1/repos?tag=sql", REPO, f"{REPO}/raw?version=1.0.0", "/api/v1/tags",
    ):  # fmt: skip
        assert get(alone + path).status_code == 200, path
    for path, code in {
        f"{REPO}/versions/9.9.9": "version_not_found",
        f"{REPO}/labels": "not_found",
        f"{REPO}/labels/nothing/history": "label_not_found",
        f"{REPO}/raw?label=nothing": "label_not_found",
        f"{REPO}/raw?label=A": "invalid_label",
        f"{REPO}/raw?label": "invalid_label",
        f"{REPO}/raw?x&label=a&version=1.0.0": "invalid_parameter",
        f"{REPO}/raw?version=1.0.0&label=": "invalid_parameter",
        f"{REPO}/raw?label=a&label=a": "invalid_parameter",
        "/api/v1/repos?sort=old": "invalid_parameter",
        "/api/v1/repos?page=99": "page_not_found",
    }.items():
        assert code_of(get(alone + path)) == code


@pytest.mark.parametrize(
    "path",
    ["/api/v1/repos?q=sql", "/api/v1/repos?tag=sql,data", "/api/v1/repos?tag=sql%2Cdata", "/mcp",
     "/healthz", "/readyz", "/api/v1/repos/Mara/x"],
)  # fmt: skip
def test_what_needs_the_service_is_unavailable(alone, path):
    response = get(alone + path)
    assert (response.status_code, code_of(response)) == (503, "unavailable")
    assert response.headers["Retry-After"] == "5"
    assert response.headers["Cache-Control"] == "no-store"


def test_a_publication_without_the_service_is_unavailable(alone):
    response = requests.post(f"{alone}{REPO}/versions", json={"content": "x"})
    assert (response.status_code, code_of(response)) == (503, "unavailable")


@pytest.mark.parametrize(
    "target",
    ["/api/v1/repos?SORT=../../../secret", "/api/v1/repos?sort=top&SORT=../../../../secret",
     "/api/v1/repos?PAGE=../../../../secret&page=1", "/api/v1/repos?tag=sql&TAG=../../../secret",
     f"{REPO}/raw?Tag=../../secret", f"{REPO}/raw?version=1.0.0&VERSION=../../../../secret"],
)  # fmt: skip
def test_a_parameter_of_another_case_is_none(alone, target):
    # nginx's own $arg_page does not mind the case.
    response = get(f"{alone}{target}")
    assert response.status_code == 200
    assert SECRET not in response.text


@pytest.mark.parametrize(
    "target",
    ["/../secret.json", "/api/v1/../../../secret.json", "/api/v1/repos/%2e%2e/%2e%2e/secret.json",
     "/.env", "/_redirects", "/api/v1/.hidden.json", "/api/v1/.hidden", "/%2e%2e/secret.txt",
     "/api/v1/repos/..%2f..%2f../secret", "//../secret.json", "/-/ask", "/-/missing/repo",
     "/api/v1/repos/mara-okafor/..%2f..%2f..%2f..%2fsecret.json"],
)  # fmt: skip
def test_nothing_outside_of_the_table_is_served(alone, target):
    host, _, port = alone.removeprefix("http://").rpartition(":")
    answer = raw(host, int(port), f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.status in (400, 404, 503)
    assert SECRET.encode() not in answer.body


def raw(host: str, port: int, request: str):
    with socket.create_connection((host, port), DEADLINE_SECONDS) as connection:
        connection.sendall(request.encode("latin-1"))
        return read_answer(connection, request.split()[0])


@pytest.mark.parametrize(
    "request_text",
    ["GET /" + "x" * 70_000 + " HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /api/v1/repos HTTP/1.1\r\nHost: x\r\nX: " + "x" * 70_000 + "\r\n\r\n",
     "GET /api/v1/repos%00.json HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /api/v1/repos HTTP/1.1\r\n\r\n",
     "GET /api/v1/%zz HTTP/1.1\r\nHost: x\r\n\r\n"],
    ids=["long target", "long header", "zero byte", "no host", "no percent encoding"],
)  # fmt: skip
def test_what_nginx_itself_refuses_gets_the_envelope(alone, request_text):
    host, _, port = alone.removeprefix("http://").rpartition(":")
    answer = raw(host, int(port), request_text)
    assert 400 <= answer.status < 500
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.body)["error"]["message"] == BAD_REQUEST


@pytest.mark.parametrize("name", ["home", "catalogue", "stylesheet"])
def test_what_is_compressed_already_is_sent_as_it_is(settings, alone, name):
    route = BY_NAME[name]
    with get(alone + route.url, headers={"Accept-Encoding": "gzip"}, stream=True) as response:
        sent = response.raw.read(decode_content=False)
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["Content-Type"] == route.media
    assert response.headers["Vary"] == "Accept-Encoding"
    assert sent == Path(settings.out, route.compressed.file).read_bytes()
    plain = get(alone + route.url, headers={"Accept-Encoding": "identity"})
    assert plain.content == Path(settings.out, route.file).read_bytes()
    assert plain.headers["ETag"] != response.headers["ETag"]


def test_a_body_that_is_too_long_never_reaches_the_disk(settings, alone):
    response = requests.post(f"{alone}{REPO}/versions", data=b"x" * (4 << 20))
    assert (response.status_code, code_of(response)) == (413, "content_too_large")


@pytest.mark.usefixtures("installed_tools")
def test_searches_that_were_asked_before_outlive_the_service(tmp_path):
    settings = sample_settings(tmp_path)
    token = add_publisher(settings, "ada")
    command = serve_command(settings, "--rate-limit", "0", "--trusted-proxy", "127.0.0.1")
    upstream = f"127.0.0.1:{free_port()}"
    command[command.index("--port") + 1] = upstream.rpartition(":")[2]
    with (
        running(command, settings) as server,
        started_nginx(hosted(settings, tmp_path, upstream=upstream), tmp_path) as url,
    ):
        first = get(f"{url}/api/v1/repos?q=sql")
        assert first.json()["meta"]["q"] == "sql"
        for accepted in ("gzip", "gzip, deflate, br", "identity", None):
            again = get(f"{url}/api/v1/repos?q=sql", headers={"Accept-Encoding": accepted})
            assert (again.headers["X-Cache"], again.content) == ("HIT", first.content)
        published = requests.post(
            f"{url}/api/v1/repos/ada/hello/versions", json={"content": "Hello {{name}}."},
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip
        assert published.status_code == 201
        # nginx serves an acknowledged version from the files.
        assert get(f"{url}/api/v1/repos/ada/hello/raw").text == "Hello {{name}}."
        server.close()
        expire(tmp_path)
        stale = get(f"{url}/api/v1/repos?q=sql")
        assert (stale.status_code, stale.content) == (200, first.content)
        assert stale.headers["X-Cache"] == "STALE"
        assert get(f"{url}/api/v1/repos?q=never+asked").status_code == 503
        assert get(f"{url}/api/v1/repos/ada/hello/raw").status_code == 200


def expire(folder: Path) -> None:
    """Make what is in nginx's cache a day old, by the time until which a file says it is valid."""
    for path in (folder / "nginx" / "cache").iterdir():
        with path.open("r+b") as file:
            file.seek(8)  # after the version: seconds since 1970, 64 bits
            file.write((1).to_bytes(8, "little"))


@pytest.mark.usefixtures("installed_tools")
def test_a_search_that_is_no_longer_fresh_is_asked_again(tmp_path):
    settings = sample_settings(tmp_path)
    with serving(settings, "--trusted-proxy", "127.0.0.1") as server:
        upstream = f"127.0.0.1:{server.port}"
        with started_nginx(hosted(settings, tmp_path, upstream=upstream), tmp_path) as url:
            assert get(f"{url}/api/v1/repos?q=sql").headers["X-Cache"] == "MISS"
            expire(tmp_path)
            again = get(f"{url}/api/v1/repos?q=sql")
            assert again.headers["X-Cache"] in ("EXPIRED", "REVALIDATED")


@pytest.mark.usefixtures("installed_tools")
def test_a_host_without_a_service(settings, tmp_path):
    with started_nginx(hosted(settings, tmp_path, upstream=""), tmp_path) as url:
        assert get(f"{url}/api/v1/repos?tag=sql&sort=new").status_code == 200
        for query in ("q=sql", "tag=sql,data", "tag=sql%2Cdata"):
            response = get(f"{url}/api/v1/repos?{query}")
            assert (response.status_code, code_of(response)) == (400, "invalid_parameter")
            assert "catalogue.jsonl" in response.json()["error"]["message"]
        for path in ("/api/v1/nothing", "/api/v1/repos/Ada/x", "/api/v1/repos/a/b/c/d"):
            response = get(f"{url}{path}")
            assert (response.status_code, code_of(response)) == (404, "not_found")
        response = requests.post(f"{url}{REPO}/versions", json={"content": "x"})
        assert (response.status_code, code_of(response)) == (405, "method_not_allowed")
        assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
        for path in ("/mcp", "/healthz"):
            assert get(f"{url}{path}").status_code == 404
