"""What Caddy does on the generated configuration, beside what the conformance suite asks of all."""

import grp
import gzip
import json
import os
import pwd
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from builder.hosts import caddy
from builder.hosts.rules import HostedSite
from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.conformance.caddy import started_caddy
from tests.hosts.redirects import check_redirects, make_certificate
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
    in_thread,
    read_answer,
    running,
    serve_command,
    wait_until,
)

SECRET = "not for readers"
REPO = "/api/v1/repos/ann/review"
NAME = "prompts.example.org"


def hosted(settings: Settings, folder: Path, **changes) -> HostedSite:
    """A site whose upstream is down; Caddy's own files are in ``folder``."""
    given = {
        "listen": f"127.0.0.1:{free_port()}", "upstream": f"127.0.0.1:{free_port()}",
        "base_url": settings.base_url,
    }  # fmt: skip
    return HostedSite(settings.out, str(folder), **(given | changes))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The small catalogue, built, with files around and in the site that nobody may read."""
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


def get(url: str, **options) -> requests.Response:
    return requests.get(url, timeout=DEADLINE_SECONDS, allow_redirects=False, **options)


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
    """Ask for exactly this target."""
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
            # What is acknowledged can be read, from the files.
            assert get(f"{url}/api/v1/repos/ada/hello/raw").text == "Hello {{name}}."
            assert get(f"{url}/api/v1/repos?q=care").json()["meta"]["total"] == 1
            told = get(f"{url}/api/v1/repos/Ada/hello").json()["error"]
            assert told["code"] == "invalid_name"
            assert "'ada'" in told["message"]
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
def test_what_needs_the_service_is_told_to_come_back(alone, path):
    answer = raw(alone, path)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "5"


@pytest.mark.parametrize(
    ("target", "code"),
    [("?page=0", "invalid_parameter"), ("?page", "invalid_parameter"),
     ("?page=1&page=1", "invalid_parameter"), ("?sort=top&x&sort=new", "invalid_parameter"),
     ("?sort=top+", "invalid_parameter"), ("?page=1;sort=new", "invalid_parameter"),
     ("?tag=a,", "invalid_parameter"), (f"?tag={'a' * 49}", "invalid_parameter"),
     # What the configuration calls values that are none.
     ("?tag=WRONG", "invalid_parameter"), ("?tag=ASK", "invalid_parameter"),
     ("?tag=wrong", "tag_not_found"), ("?tag=ask", "tag_not_found"),
     ("?q=", "invalid_parameter"),
     ("?q=a&page=0", "invalid_parameter"), (f"?{'&' * 50}", "invalid_parameter"),
     ("?tag=code&page=99", "page_not_found"), ("/ann/review/raw?version=1.0", "invalid_version"),
     ("/ann/review/raw?version=9.9.9", "version_not_found"),
     ("/ann/review/raw?version=1.0.0&version=1.0.0", "invalid_parameter"),
     ("/ann/review/raw?label=A", "invalid_label"), ("/ann/review/raw?label=", "invalid_label"),
     ("/ann/review/raw?label=nothing", "label_not_found"),
     ("/ann/review/raw?label=a&label=a", "invalid_parameter"),
     ("/ann/review/raw?label=a&version=1.0.0", "invalid_parameter"),
     ("/ann/review/raw?version=1.0.0&x&label=%61", "invalid_parameter"),
     ("/ann/review/labels/-a/history", "invalid_label"), ("/ann/review/labels/A", "invalid_label"),
     ("/ann/review/labels/nothing/history", "label_not_found"),
     ("/ann/review/labels/nothing.txt", "label_not_found"),
     # With the service's answer it would say how the name is spelt.
     ("/ann/Review", "invalid_name"), ("/-x/y", "invalid_name"),
     (f"/{'a' * 40}/b", "invalid_name"), (f"/a/{'b' * 65}/raw", "invalid_name"),
     ("/ann/review/versions/1.0/diff", "invalid_version"),
     ("/ann/review/versions/9.9.9/diff", "version_not_found"),
     ("/ann/review/versions/1.0.0/diff", "not_found"), ("/ann/none/raw.txt", "repo_not_found"),
     ("/ann/review/", "not_found")],
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

# At the root of an address: the conformance suite asks a Caddy below a path.
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


@pytest.mark.parametrize(
    ("query", "other"), [("a" * 15_000, 200), ("&a" * 7_500, 200), ("page&" * 3_000, 400)]
)
def test_a_query_that_is_huge(alone, query, other):
    for path, status in (("/api/v1/repos", 503), (f"{REPO}/raw", 503), ("/api/v1/tags", other)):
        assert raw(alone, f"{path}?{query}").status == status
        assert raw(alone, f"{path}?{query * 3}").status == 431


def test_a_part_of_a_text_that_there_is_not(alone):
    whole = get(f"{alone}{REPO}/raw", headers={"Accept-Encoding": "identity"})
    beyond = get(f"{alone}{REPO}/raw", headers={"Range": f"bytes={len(whole.content)}-"})
    check_refused(beyond, 416, "range_not_satisfiable")
    assert beyond.headers["Content-Range"] == f"bytes */{len(whole.content)}"
    part = get(
        f"{alone}{REPO}/raw", headers={"Range": "bytes=3-", "If-Range": whole.headers["ETag"]}
    )
    assert (part.status_code, part.content) == (206, whole.content[3:])
    for header in ("Content-Type", "Cache-Control", "ETag", "Access-Control-Allow-Origin"):
        assert part.headers[header] == whole.headers[header]
    several = get(f"{alone}{REPO}/raw", headers={"Range": "bytes=0-1,3-4"})
    assert (several.status_code, several.content) == (200, whole.content)


def test_conditions_that_are_for_writing_refuse_no_read(alone):
    for header in ({"If-Match": '"x"'}, {"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}):
        for path in (f"{REPO}/raw", "/api/v1/tags", "/"):
            assert get(alone + path, headers=header).status_code == 200
    for header in ({"If-None-Match": "*"}, {"Range": "bytes=0-3"}):
        nowhere = get(f"{alone}/nowhere", headers=header)
        assert (nowhere.status_code, nowhere.text) == (404, get(f"{alone}/404").text)


# What goes on to `hubctl serve`


class Told(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps({"path": self.path, "headers": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def telling() -> Iterator[str]:
    """Address of a server that tells what it is asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    with in_thread(server):
        yield f"127.0.0.1:{server.server_port}"


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize(
    ("trusted", "expected"), [((), "127.0.0.1"), (("127.0.0.0/8", "::1"), "192.0.2.1, 127.0.0.1")]
)
def test_the_service_learns_the_address_of_the_client(
    settings, tmp_path, telling, trusted, expected
):
    site = hosted(settings, tmp_path, upstream=telling, trusted_proxies=trusted)
    with started_caddy(site, tmp_path) as url:
        for path in (
            "/healthz",
            "/readyz",
            "/mcp",
            "/api/v1/repos?q=sql&x=%2e",
            "/api/v1/repos/A/b%20c?x=%2F",
        ):
            told = json.loads(raw(url, path, "X-Forwarded-For: 192.0.2.1").body)
            # As it came: what is decoded twice says something else.
            assert told["path"] == path
            assert told["headers"]["X-Forwarded-For"] == expected
            assert told["headers"]["Host"] == "x"


# What the operator may ask for


def adapt(site: HostedSite, folder: Path) -> dict:
    """Caddy's own reading of the configuration, which it finds valid and well-formatted."""
    os.makedirs(caddy.folder(site), exist_ok=True)
    config = folder / caddy.FILE
    config.write_text(caddy.files(site)[caddy.FILE], encoding="utf-8")
    environment = clean_environment(HOME=str(folder))
    done = subprocess.run(
        ["caddy", "adapt", "--validate", "--config", str(config)],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    formatted = subprocess.run(["caddy", "fmt", str(config)], capture_output=True, text=True)
    assert formatted.stdout == config.read_text(encoding="utf-8")
    return json.loads(done.stdout)


@pytest.mark.usefixtures("installed_tools")
def test_a_plain_address(tmp_path):
    read = adapt(HostedSite("/srv/site", str(tmp_path), listen="[::1]:8080"), tmp_path)
    assert read["admin"]["disabled"] is True
    assert [log["writer"]["roll"] for log in read["logging"]["logs"].values()] == [False, False]
    assert read["storage"] == {"module": "file_system", "root": f"{tmp_path}/caddy/data"}
    servers = {
        server["listen"][0].removeprefix("tcp/"): server
        for server in read["apps"]["http"]["servers"].values()
    }
    assert set(servers) == {"[::1]:8080", f"unix/{tmp_path}/caddy/ranges.sock"}
    assert servers["[::1]:8080"]["automatic_https"] == {"disable": True}
    # Nobody holds a connection by sending slowly.
    limits = [server["read_timeout"] for server in servers.values()]
    assert limits and all(0 < limit <= 60e9 for limit in limits)


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize(("listen", "port"), [(NAME, 443), (f"{NAME}:8443", 8443)])
def test_a_name_gets_tls(tmp_path, listen, port):
    read = adapt(HostedSite("/srv/site", str(tmp_path), listen=listen), tmp_path)
    [server] = [
        server for server in read["apps"]["http"]["servers"].values()
        if server["listen"] == [f":{port}"]
    ]  # fmt: skip
    assert server["routes"][0]["match"] == [{"host": [NAME]}]
    assert "automatic_https" not in server


@pytest.mark.usefixtures("installed_tools")
def test_every_option_at_once(tmp_path):
    certificate = make_certificate(tmp_path)
    site = HostedSite(
        "/srv/site", str(tmp_path), "https://example.org/some/prompts", "*:8443",
        "hub_1.internal:8000", trusted_proxies=("10.0.0.0/8", "fd00::/8"), certificate=certificate,
    )  # fmt: skip
    servers = adapt(site, tmp_path)["apps"]["http"]["servers"].values()
    assert [":8443"] in [server["listen"] for server in servers]


@pytest.mark.usefixtures("installed_tools")
def test_a_name_is_served_with_a_certificate_that_caddy_gets_itself(settings, tmp_path):
    """From a certification authority of its own: the public ones do not know this machine."""
    port = free_port()
    site = hosted(settings, tmp_path, listen=f"{NAME}:{port}")
    own = f"local_certs\n\tskip_install_trust\n\thttp_port {free_port()}\n\thttps_port {port}\n\t"
    os.makedirs(caddy.folder(site))
    config = tmp_path / caddy.FILE
    config.write_text(caddy.files(site)[caddy.FILE].replace("admin off", f"{own}admin off", 1))
    process = Process(
        "caddy", "run", "--config", str(config), env=clean_environment(HOME=str(tmp_path))
    )
    try:
        certificates = tmp_path / "caddy" / "data" / "certificates" / "local" / NAME
        wait_until((certificates / f"{NAME}.json").exists, "the certificate")
        root = tmp_path / "caddy" / "data" / "pki" / "authorities" / "local" / "root.crt"
        context = ssl.create_default_context(cafile=str(root))

        def ask() -> RawAnswer | None:
            try:
                plain = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
                with context.wrap_socket(plain, server_hostname=NAME) as connection:
                    lines = f"GET {REPO}/raw HTTP/1.1\r\nHost: {NAME}\r\nRange: bytes=0-3\r\n\r\n"
                    connection.sendall(lines.encode())
                    return read_answer(connection)
            except (ConnectionError, ssl.SSLError):
                return None

        assert wait_until(ask, "an answer").status == 206
    finally:
        process.stop()


@pytest.mark.usefixtures("installed_tools")
def test_an_address_is_served_with_a_given_certificate(settings, tmp_path):
    pair = make_certificate(tmp_path)
    with started_caddy(hosted(settings, tmp_path, certificate=pair), tmp_path) as url:
        assert url.startswith("https://")
        assert get(f"{url}{REPO}", verify=pair[0]).status_code == 200
        with pytest.raises(requests.exceptions.SSLError):
            get(f"{url}{REPO}")


@pytest.mark.usefixtures("installed_tools")
def test_http_leads_to_https(settings, tmp_path):
    check_redirects(settings, hosted(settings, tmp_path), started_caddy, tmp_path)


@pytest.mark.parametrize(
    ("listen", "place"), [("hub.example.org", "[::]:80"), ("[::]:443", "hub.example.org:80")]
)
def test_caddy_redirects_a_name_by_itself(listen, place):
    with pytest.raises(OperatorError, match="by itself"):
        caddy.files(HostedSite("/srv/site", "/srv/var", listen=listen, redirect_from=place))


@pytest.mark.usefixtures("installed_tools")
def test_a_site_below_a_path(small, tmp_path):
    small = small._replace(base_url="https://example.org/some/prompts")
    build(small, index=False)
    with started_caddy(hosted(small, tmp_path), tmp_path) as url:
        assert get(url).text == get(f"{url}/").text != ""
        assert get(f"{url}/ann/").headers["Location"] == "/some/prompts/ann"
        for outside in (REPO, "/", "/some", "/some/promptsx", "/SOME/prompts/", "/api/v1/repos"):
            answer = get(url.removesuffix("/some/prompts") + outside)
            assert (answer.status_code, answer.headers["Content-Type"]) == (
                404, "text/html; charset=utf-8",
            )  # fmt: skip


@pytest.mark.usefixtures("installed_tools")
def test_files_that_are_compressed_already(small, tmp_path):
    build(small, index=False)
    tags = Path(small.out, "api/v1/tags.json")
    packed = gzip.compress(tags.read_bytes(), 9)
    tags.with_suffix(".json.gz").write_bytes(packed)
    with started_caddy(hosted(small, tmp_path), tmp_path) as url:
        answer = raw(url, "/api/v1/tags", "Accept-Encoding: gzip")
        assert (answer.status, answer.body) == (200, packed)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["vary"] == "Accept-Encoding"
        assert raw(url, "/api/v1/tags.json.gz").status == 404


# What the log tells, and how long


def install_caddy(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Make the machine's Caddy one that says this of its version."""
    program = folder / caddy.PROGRAM
    program.write_text(f"#!/bin/sh\n[ $1 = version ] && echo '{version}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("version", "is_new"),
    [("2.6.2", False), ("v2.7.6 h1:w0NymbG2m9PcvKWsrXO6EEkY9Ru4FJK8uQbYcev1p3A=", False),
     ("v2.8.0-rc.1 h1:x=", True), ("v2.10.2 h1:x=", True), ("v3.0.0", True), ("unknown", True),
     ("", True)],
)  # fmt: skip
def test_the_log_tells_readers_apart_where_caddy_can(tmp_path, monkeypatch, version, is_new):
    install_caddy(tmp_path, monkeypatch, version)
    site = HostedSite("/srv/site", "/srv/var", trusted_proxies=("10.0.0.0/8", "::1"))
    text = caddy.files(site)[caddy.FILE]
    lines = "\t\ttrusted_proxies static 10.0.0.0/8 ::1\n\t\ttrusted_proxies_strict\n"
    assert (lines in text) is is_new
    assert ("trusted_proxies_strict" in text) is is_new
    warning = caddy.warning(site)
    assert warning is None if is_new else "older than 2.8" in warning
    alone = site._replace(trusted_proxies=())
    assert caddy.warning(alone) is None
    assert "trusted_proxies" not in caddy.files(alone)[caddy.FILE]


def test_without_a_caddy_on_this_machine_a_new_one_is_assumed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    site = HostedSite("/srv/site", "/srv/var", trusted_proxies=("10.0.0.0/8",))
    assert "trusted_proxies_strict" in caddy.files(site)[caddy.FILE]
    assert caddy.warning(site) is None


@pytest.mark.usefixtures("installed_tools")
def test_logs_are_rotated_while_caddy_writes_them(settings, tmp_path):
    assert shutil.which("logrotate"), (
        "logrotate is not there; install it: apt-get install logrotate"
    )
    rules = (PROJECT / "deploy" / "hub.logrotate").read_text(encoding="utf-8")
    # Nobody else's files are here, and logrotate trusts no folder of everybody's.
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

    def asked(path: Path) -> list[str]:
        return [json.loads(line)["request"]["uri"] for line in path.read_bytes().splitlines()]

    with started_caddy(site, tmp_path) as url:
        for path in ("/first", "/second"):
            get(url + path)
            wait_until(lambda path=path: path.encode() in log.read_bytes(), path)
            rotate()
        get(f"{url}/third")
        wait_until(lambda: log.stat().st_size, "/third")
        assert asked(log) == ["/third"]
        assert asked(Path(f"{log}.1")) == ["/second"]
        # After a quiet week nobody can tell any more who asked.
        for _ in range(8):
            rotate()
    left = b"".join(gzip.decompress(file.read_bytes()) for file in log.parent.glob("access*.gz"))
    assert left + log.read_bytes() + Path(f"{log}.1").read_bytes() == b""


# Hostile folders


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("name", ["a b#c'd;e$HOME", "ünï 語%2eb&c(d)~", "-x"])
def test_folders_may_have_odd_names(settings, name):
    with tempfile.TemporaryDirectory() as short:  # a socket's path must be
        folder = Path(short, name)
        folder.mkdir()
        (folder / "site").symlink_to(settings.out)
        site = hosted(settings._replace(out=f"{folder}/site"), folder)
        with started_caddy(site, Path(short)) as url:
            assert get(f"{url}{REPO}").status_code == 200
            assert get(f"{url}{REPO}/raw", headers={"Range": "bytes=0-3"}).status_code == 206
            assert get(f"{url}/nowhere").status_code == 404
        assert (folder / "caddy" / "access.log").exists()


@pytest.mark.parametrize(
    "name",
    ['a"b', "a`b", "a\nb", "a\rb", "a\0b", "a\\", "{env.HOME}", "{$HOME}", "a{b", "a}b", "a*", "a?",
     "a|0", "a[b]", 'a"\n\trespond "owned', "a\udcff"],
)  # fmt: skip
def test_folders_that_the_configuration_cannot_hold_are_refused(name):
    for site in (
        HostedSite(f"/srv/{name}", "/srv/var"),
        HostedSite("/srv/site", f"/srv/{name}"),
        HostedSite("/srv/site", "/srv/var", certificate=(f"/srv/{name}", "/srv/key")),
        HostedSite("/srv/site", "/srv/var", certificate=("/srv/cert", f"/srv/{name}")),
    ):
        with pytest.raises(OperatorError, match="cannot contain the path"):
            caddy.files(site)


def test_a_state_folder_whose_path_no_socket_can_have_is_refused():
    with pytest.raises(OperatorError, match="too long"):
        caddy.files(HostedSite("/srv/site", f"/srv/{'ü' * 50}"))


@pytest.mark.parametrize(
    "changes",
    [{"listen": "8080"}, {"listen": "127.0.0.1"}, {"listen": ""}, {"listen": ":0"},
     {"listen": "a:65536"}, {"listen": "[x]:80"}, {"listen": "x {\n}\n"}, {"listen": "{env.X}:80"},
     {"listen": "a b:80"}, {"listen": "_:80"}, {"upstream": "8000"}, {"upstream": "a b:80"},
     {"upstream": "{env.X}:80"}, {"upstream": "[x]:80"}, {"upstream": "a:80 b:80"},
     {"trusted_proxies": ("10.0.0.0/8 }",)}, {"trusted_proxies": ("example.org",)},
     {"base_url": "https://x.org/{env.HOME}"}, {"base_url": "https://x.org/a b"}],
    ids=str,
)  # fmt: skip
def test_other_settings_that_say_something_else_are_refused(changes):
    with pytest.raises(OperatorError):
        caddy.files(HostedSite("/srv/site", "/srv/var", **changes))


# Life


@pytest.mark.usefixtures("installed_tools")
def test_it_runs_without_root_as_the_command_says(small, tmp_path):
    """`hubctl hosts caddy`, then the line that it prints, as another user, also after a kill."""
    build(small, index=False)
    port = free_port()
    command = start_command("caddy", caddy.FILE, small, tmp_path, port)
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
    # As they were asked, not as they were rewritten.
    asked = [(entry["request"]["uri"], entry["status"]) for entry in entries]
    assert asked.count((f"{REPO}/raw?version=1.0.0", 206)) == 2
    assert {entry["request"]["remote_ip"] for entry in entries} == {"127.0.0.1"}
    counted = subprocess.run(
        [HUBCTL, "stats", "ingest", f"{small.state}/caddy/access.log", "--json", "--out",
         small.out, "--state", f"{tmp_path}/counts"],
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
        # In the same second, and of the same size.
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
