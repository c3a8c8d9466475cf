"""Caddy with the generated configuration, apart from the conformance suite's tests of all hosts."""

import grp
import gzip
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from builder.hosts import caddy
from builder.hosts.rules import HostedSite
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.conformance.caddy import started_caddy
from tests.hosts.hosted import get, hosted
from tests.hosts.rootless import start_command
from tests.support.catalogues import settings_in, write_small_catalogue, write_version
from tests.support.servers import (
    DEADLINE_SECONDS,
    HUBCTL,
    PROJECT,
    Process,
    RawAnswer,
    add_publisher,
    clean_environment,
    free_port,
    read_answer,
    running,
    serve_command,
    wait_until,
)

SECRET = "not for readers"
REPO = "/api/v1/repos/ann/review"
NAME = "prompts.example.org"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The small catalogue, built, with private files around and in the site."""
    settings = settings_in(tmp_path_factory.mktemp("caddy"))
    write_small_catalogue(settings.content)
    build(settings, index=False)
    for file in (
        "../secret", "../secret.json", "../secret.txt", "../secret.html", "../site.json", ".env",
        "_redirects", "_headers", ".nojekyll", "api/v1/.hidden.json", "ann/.hidden.html",
        "api/v1/repos/ann/notes.txt", "api/v1/repos/_/old.json",
    ):  # fmt: skip
        Path(settings.out, file).write_text(SECRET)
    return settings


@pytest.fixture(scope="module")
def alone(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory, installed_tools: None
) -> Iterator[str]:
    """The URL of Caddy while `hubctl serve` is down."""
    folder = tmp_path_factory.mktemp("alone")
    with started_caddy(hosted(settings, folder), folder) as url:
        yield url


def check_refused(answer: requests.Response, status: int, code: str) -> None:
    """The envelope, with its headers."""
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == (
        "public, max-age=10" if status == 404 else "no-store"
    )
    assert answer.headers.get("Retry-After") == ("5" if status == 503 else None)
    assert "Server" not in answer.headers


def raw(url: str, target: str, *headers: str) -> RawAnswer:
    """Request exactly this target."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    lines = [f"GET {target} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]
    with socket.create_connection((host, int(port)), DEADLINE_SECONDS) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1"))
        return read_answer(connection)


# While `hubctl serve` is down


@pytest.mark.usefixtures("installed_tools")
def test_reads_go_on_when_the_service_has_died(small, tmp_path):
    token = add_publisher(small, "ada")
    versions, publish = "/api/v1/repos/ada/hello/versions", {"content": "Hello {{name}}."}
    with running(serve_command(small, "--trusted-proxy", "127.0.0.1"), small) as server:
        site = hosted(small, tmp_path, upstream=f"127.0.0.1:{server.port}")
        with started_caddy(site, tmp_path) as url, requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {token}"
            assert session.post(url + versions, json=publish).status_code == 201
            # Caddy serves an acknowledged version from the files.
            assert get(f"{url}/api/v1/repos/ada/hello/raw").text == "Hello {{name}}."
            assert get(f"{url}/api/v1/repos?q=care").json()["meta"]["total"] == 1
            error = get(f"{url}/api/v1/repos/Ada/hello").json()["error"]
            assert error["code"] == "invalid_name"
            assert "'ada'" in error["message"]
            server.close()
            for path in (
                "/", "/ada/hello", "/api/v1/repos", "/api/v1/repos?sort=new&page=1", "/api/v1/tags",
                "/api/v1/repos?tag=code", "/api/v1/repos/ada/hello/raw?version=1.0.0", versions,
            ):  # fmt: skip
                assert get(url + path).status_code == 200, path
            check_refused(get(f"{url}/api/v1/repos?q=sql"), 503, "unavailable")
            check_refused(session.post(url + versions, json=publish), 503, "unavailable")


@pytest.mark.parametrize(
    "path",
    ["/api/v1/repos?q=sql", "/api/v1/repos?tag=sql,data", "/api/v1/repos?tag=sql%2Cdata", "/mcp",
     "/mcp/", "/healthz", "/api/v1/repos?s%6frt=new", "/api/v1/repos?sort=n%65w",
     f"{REPO}/raw?version=1%2E0.0", f"/api/v1/repos?x={'x' * 500}"],
)  # fmt: skip
def test_what_needs_the_service_is_unavailable(alone, path):
    answer = raw(alone, path)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "5"


@pytest.mark.parametrize(
    ("target", "code"),
    [("?page=0", "invalid_parameter"), ("?page=1;sort=new", "invalid_parameter"),
     # The configuration uses these words for invalid values.
     ("?tag=WRONG", "invalid_parameter"), ("?tag=ASK", "invalid_parameter"),
     ("?tag=wrong", "tag_not_found"), ("?tag=ask", "tag_not_found"),
     ("?q=", "invalid_parameter"),
     ("?q=a&page=0", "invalid_parameter"), (f"?{'&' * 50}", "invalid_parameter"),
     ("?tag=code&page=99", "page_not_found"), ("/ann/review/raw?version=1.0", "invalid_version"),
     ("/ann/review/raw?label=A", "invalid_label"),
     ("/ann/review/raw?label=none", "label_not_found"),
     ("/ann/review/raw?version=1.0.0&x&label=%61", "invalid_parameter"),
     # The service's answer would suggest the right spelling.
     ("/ann/Review", "invalid_name"), ("/ann/review/versions/9.9.9/diff", "version_not_found"),
     ("/ann/none/raw.txt", "repo_not_found"), ("/ann/review/", "not_found")],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_caddy_itself(alone, target, code):
    answer = get(f"{alone}/api/v1/repos{target}")
    check_refused(answer, 404 if "found" in code else 400, code)


@pytest.mark.parametrize(
    "query",
    ["SORT=../../../secret", "PAGE=../../../../secret&page=1", "tag=code&TAG=../../../secret",
     "version[]=1&page[]=2", "x=%ff&x=%00&x=$1&x={path}", "utm%5Fsource=x&filter%5B%5D=y&%=z"],
)  # fmt: skip
def test_what_only_looks_like_a_parameter_is_none(alone, query):
    is_of_lists = re.search("(page|tag)=", query)
    for path in ("/api/v1/repos", f"{REPO}/raw"):
        answer = raw(alone, f"{path}?{query}")
        assert answer.status == (400 if is_of_lists and path.endswith("raw") else 200)
        assert SECRET.encode() not in answer.body


# Hostile readers

# Tested at the root of an address: the conformance suite tests a Caddy below a path.
TARGETS = [
    "/../secret.json", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/..%5csecret.txt", "//../secret",
    "/%252e%252e/secret.txt", "/x/../../secret.txt", "/secret.json%00", "/../site.json", "/..",
    "/api/v1/repos/%2e%2e/%2e%2e/secret.json", f"{REPO}/..%2f..%2f..%2f..%2fsecret.json",
    "http://x/../secret.txt",
    "/.env", "/%2eenv", "/x/../.env", "/_redirects", "/%5fredirects", "/_redirects%20", "/_headers",
    "/.nojekyll", "/api/v1/.hidden", "/api/v1/.hidden.json", "/ann/.hidden", "/ann/.hidden.html",
    "/api/v1/repos/ann/notes.txt", "/api/v1/repos/_/old", "/api/v1/repos/_/old.json",
    "/api/v1/repos?tag=../../../../secret", "/api/v1/repos?page=../../secret",
    "/api/v1/repos?sort=top/../../../../../../secret&page=1", f"{REPO}/raw?version=../../notes",
    f"{REPO}/raw%3fversion=1.0.0", "/api/v1/repos/ann%3f/sql-review/raw?version=1.0.0",
    "/{env.HOME}", "/{system.wd}", "/api/v1/repos/{host}/{path}", "/*", "/api/v1/*.json",
    "/api/v1/hub.jso?", "/api/v1/hub.jso%3f", "/API/v1/tags", "//api/v1/tags", "/api/v1/x/../tags",
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_outside_of_the_table_is_served(alone, target):
    answer = raw(alone, target)
    assert answer.status in (400, 404, 503)
    assert SECRET.encode() not in answer.body
    assert SECRET.encode() not in gzip_decoded(raw(alone, target, "Accept-Encoding: gzip"))
    assert SECRET.encode() not in raw(alone, target, "Range: bytes=0-3").body


def gzip_decoded(answer: RawAnswer) -> bytes:
    packed = answer.headers.get("content-encoding") == "gzip"
    return gzip.decompress(answer.body) if packed else answer.body


def test_conditions_that_are_for_writing_refuse_no_read(alone):
    for header in ({"If-Match": '"x"'}, {"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}):
        for path in (f"{REPO}/raw", "/api/v1/tags", "/"):
            assert get(alone + path, headers=header).status_code == 200
    for header in ({"If-None-Match": "*"}, {"Range": "bytes=0-3"}):
        nowhere = get(f"{alone}/nowhere", headers=header)
        assert (nowhere.status_code, nowhere.text) == (404, get(f"{alone}/404").text)


# Requests that are passed on to `hubctl serve`


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize(
    ("trusted", "expected"), [((), "127.0.0.1"), (("127.0.0.0/8", "::1"), "192.0.2.1, 127.0.0.1")]
)
def test_the_service_learns_the_address_of_the_client(
    settings, tmp_path, stand_in, trusted, expected
):
    site = hosted(settings, tmp_path, upstream=stand_in.address, trusted_proxies=trusted)
    with started_caddy(site, tmp_path) as url:
        for path in (
            "/healthz",
            "/readyz",
            "/mcp",
            "/api/v1/repos?q=sql&x=%2e",
            "/api/v1/repos/A/b%20c?x=%2F",
        ):
            answer = raw(url, path, "X-Forwarded-For: 192.0.2.1")
            report = json.loads(answer.body.partition(b"\n")[0])
            # Unchanged, as decoding twice would change the meaning.
            assert report["line"] == f"GET {path}"
            assert report["headers"]["x-forwarded-for"] == expected
            assert report["headers"]["host"] == "x"


# Contents of the log, and how long it is kept


@pytest.mark.usefixtures("installed_tools")
def test_logs_are_rotated_while_caddy_writes_them(settings, tmp_path):
    assert shutil.which("logrotate"), (
        "logrotate is not there; install it: apt-get install logrotate"
    )
    rules = (PROJECT / "deploy" / "hub.logrotate").read_text(encoding="utf-8")
    # The files have this user, and logrotate trusts no folder that all users can write to.
    own = f"{pwd.getpwuid(os.geteuid()).pw_name} {grp.getgrgid(os.getegid()).gr_name}"
    config = tmp_path / "logrotate.conf"
    config.write_text(rules.replace("/srv/hub", str(tmp_path)).replace("hub hub", own))
    config.chmod(0o644)
    site = hosted(settings, tmp_path / "var")
    log = tmp_path / "var" / "caddy" / "access.log"

    def rotate() -> None:
        subprocess.run(
            ["logrotate", "--force", "--state", f"{tmp_path}/rotated", str(config)], check=True
        )

    def targets(path: Path) -> list[str]:
        return [json.loads(line)["request"]["uri"] for line in path.read_bytes().splitlines()]

    with started_caddy(site, tmp_path) as url:
        for path in ("/first", "/second"):
            get(url + path)
            wait_until(lambda path=path: path.encode() in log.read_bytes(), path)
            rotate()
        get(f"{url}/third")
        wait_until(lambda: log.stat().st_size, "/third")
        assert targets(log) == ["/third"]
        assert targets(Path(f"{log}.1")) == ["/second"]
        # After a quiet week no log contains a client's address.
        for _ in range(8):
            rotate()
    left = b"".join(gzip.decompress(file.read_bytes()) for file in log.parent.glob("access*.gz"))
    assert left + log.read_bytes() + Path(f"{log}.1").read_bytes() == b""


# Life


@pytest.mark.usefixtures("installed_tools")
def test_it_runs_without_root_as_the_command_says(open_folder):
    """`hubctl hosts caddy`, then the line that it prints, as another user, also after a kill."""
    small = settings_in(open_folder)
    write_small_catalogue(small.content)
    build(small, index=False)
    port = free_port()
    command = start_command("caddy", caddy.FILE, small, open_folder, port)
    url = f"http://127.0.0.1:{port}"
    for number in (signal.SIGKILL, signal.SIGTERM):
        # A home folder that cannot be written to, as that of many services.
        process = Process(*command, env=clean_environment(HOME="/nonexistent"))
        try:
            wait_until(lambda process=process: is_up(url, process), "an answer")
            whole = get(f"{url}{REPO}/raw?version=1.0.0")
            part = get(f"{url}{REPO}/raw?version=1.0.0", headers={"Range": "bytes=1-"})
            assert (part.status_code, part.content) == (206, whole.content[1:])
        finally:
            status = process.stop(number)
    assert status == 0, process.text
    lines = Path(small.state, "caddy", "access.log").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    # As requested, before rewriting.
    requested = [(entry["request"]["uri"], entry["status"]) for entry in entries]
    assert requested.count((f"{REPO}/raw?version=1.0.0", 206)) == 2
    assert {entry["request"]["remote_ip"] for entry in entries} == {"127.0.0.1"}
    counted = subprocess.run(
        [HUBCTL, "stats", "ingest", f"{small.state}/caddy/access.log", "--json", "--out",
         small.out, "--state", f"{open_folder}/counts"],
        capture_output=True, text=True, env=clean_environment(),
    )  # fmt: skip
    assert counted.returncode == 0, counted.stderr
    assert json.loads(counted.stdout)["counted"] == 1


def is_up(url: str, process: Process) -> bool:
    assert process.is_alive, process.text
    try:
        return get(url).ok
    except requests.exceptions.ConnectionError:
        return False


@pytest.mark.usefixtures("installed_tools")
def test_a_build_is_seen_at_once(small, tmp_path):
    build(small, index=False)
    with started_caddy(hosted(small, tmp_path), tmp_path) as url:
        before = get(f"{url}{REPO}")
        # The same second, and the same size.
        write_version(
            small.content, "ann", "review", "1.1.1", "Review {{code}} with CARE.\n",
            tags=["code", "careful"], description="A careful review.", changelog="With care.",
        )  # fmt: skip
        build(small, index=False)
        again = get(f"{url}{REPO}", headers={"If-None-Match": before.headers["ETag"]})
        assert (again.status_code, again.json()["data"]["latest_version"]) == (200, "1.1.1")


def test_the_configuration_is_the_same_each_time():
    site = HostedSite("/srv/site", "/srv/var")
    assert caddy.files(site) == caddy.files(site)
