"""nginx with the generated configuration, apart from the conformance suite's tests of all hosts."""

import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from builder.hosts import nginx
from builder.hosts.rules import HostedSite
from builder.model.errors import OperatorError
from builder.model.messages import BAD_REQUEST
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.pipeline.build import build
from cli.hubctl import main
from tests.conformance.nginx import started_nginx
from tests.hosts.addresses import check_clients, made_up_addresses
from tests.hosts.redirects import check_challenge, check_redirects, make_certificate
from tests.hosts.rootless import start_command
from tests.support.servers import (
    DEADLINE_SECONDS,
    add_publisher,
    free_port,
    read_answer,
    running,
    sample_settings,
    serve_command,
    serving,
    wait_until,
)

SECRET = "not for readers"
REPO = "/api/v1/repos/mara-okafor/sql-review"


def hosted(settings: Settings, folder: Path, **changes) -> HostedSite:
    """A site whose upstream is down, without a limit; nginx's own files are in ``folder``."""
    given = {
        "listen": f"127.0.0.1:{free_port()}", "upstream": f"127.0.0.1:{free_port()}",
        "reads_per_minute": 0, "base_url": settings.base_url,
    }  # fmt: skip
    return HostedSite(settings.out, str(folder), **(given | changes))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The sample catalogue, built, with private files around and in the site."""
    settings = sample_settings(tmp_path_factory.mktemp("nginx"))
    build(settings)
    for file in ("../secret.json", "../secret.txt", ".env", "_redirects", "api/v1/.hidden.json"):
        Path(settings.out, file).write_text(SECRET)
    return settings


@pytest.fixture(scope="module")
def alone(settings: Settings, tmp_path_factory: pytest.TempPathFactory, installed_tools: None):
    """The URL of nginx while `hubctl serve` is down."""
    folder = tmp_path_factory.mktemp("alone")
    with started_nginx(hosted(settings, folder), folder) as url:
        yield url


def get(url: str, **options) -> requests.Response:
    return requests.get(url, timeout=DEADLINE_SECONDS, allow_redirects=False, **options)


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
def test_what_needs_the_service_is_told_to_come_back(alone, path):
    response = get(alone + path)
    assert (response.status_code, code_of(response)) == (503, "unavailable")
    assert response.headers["Retry-After"] == "5"
    assert response.headers["Cache-Control"] == "no-store"


def test_a_publication_without_the_service_is_told_to_come_back(alone):
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
def test_a_host_below_a_path(tmp_path):
    settings = sample_settings(tmp_path, "https://example.org/some/prompts")
    build(settings)
    with started_nginx(hosted(settings, tmp_path), tmp_path) as url:
        assert url.endswith("/some/prompts")
        assert get(f"{url}{REPO}").status_code == 200
        assert get(url).text == get(f"{url}/").text != ""
        assert get(f"{url}/mara-okafor/").headers["Location"] == "/some/prompts/mara-okafor"
        assert get(f"{url}/api/v1/repos?tag=sql").json()["meta"]["tag"] == "sql"
        outside = url.removesuffix("/some/prompts")
        assert get(f"{outside}{REPO}").status_code == 404


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


@pytest.mark.usefixtures("installed_tools")
def test_all_of_ipv6_has_ipv4_in_it(settings, tmp_path):
    port = free_port()
    with started_nginx(hosted(settings, tmp_path, listen=f"[::]:{port}"), tmp_path):
        for host in ("127.0.0.1", "[::1]"):
            assert get(f"http://{host}:{port}{REPO}").status_code == 200


@pytest.mark.parametrize(
    "options",
    [["--listen", "127.0.0.1:70000"], ["--listen", "a b"], ["--listen", "x;y"],
     ["--upstream", ":8000"], ["--upstream", "*:8000"], ["--upstream", "8000"],
     ["--trusted-proxy", "localhost"]],
)  # fmt: skip
def test_addresses_that_nginx_would_refuse_are_refused(settings, tmp_path, options):
    result = CliRunner().invoke(
        main, ["hosts", "nginx", "--target", str(tmp_path), "--out", settings.out,
               "--state", str(tmp_path), *options],
    )  # fmt: skip
    assert result.exit_code == 2
    assert options[1] in result.output
    assert not (tmp_path / "nginx.conf").exists()


@pytest.mark.usefixtures("installed_tools")
def test_clients_behind_a_trusted_proxy_have_limits_of_their_own(settings, tmp_path):
    site = hosted(settings, tmp_path, reads_per_minute=1, trusted_proxies=("127.0.0.0/8",))
    with started_nginx(site, tmp_path) as url:
        for client in ("192.0.2.1", "192.0.2.2"):
            # An address that the client adds is to the left of the address that the proxy saw.
            headers = {"X-Forwarded-For": f"203.0.113.9, {client}"}
            statuses = [get(f"{url}{REPO}", headers=headers).status_code for _ in range(2)]
            assert statuses == [200, 429]


@pytest.mark.usefixtures("installed_tools")
def test_addresses_of_one_ipv6_network_share_a_limit(settings, tmp_path):
    site = hosted(settings, tmp_path, reads_per_minute=1, trusted_proxies=("127.0.0.0/8",))
    with started_nginx(site, tmp_path) as url:

        def read(client: str) -> int:
            return get(f"{url}{REPO}", headers={"X-Forwarded-For": client}).status_code

        for same in (
            ("2001:db8::1", "2001:0DB8:0:0::2", "2001:db8::ffff:192.0.2.9", "2001:db8::a:a:a:a"),
            ("2001:db8:0:1::1", "2001:db8::1:0:0:0:1"),
            ("2001:a0a:a0a:a0a:a0a:a0a:a0a:a0a", "2001:a0a:a0a:a0a::"),
            ("::1", "::"),
            ("192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201"),
            ("192.0.2.2",),
            ("10.10.10.10", "::ffff:10.10.10.10"),
        ):  # fmt: skip
            assert [read(client) for client in same] == [200] + [429] * (len(same) - 1)


def test_its_map_tells_clients_apart_as_the_service_does(settings):
    conf = nginx.files(HostedSite(settings.out, settings.state))[nginx.FILE]
    block = conf[conf.index("map $binary_remote_addr ") :].partition("}\n    #")[0]
    patterns = [
        re.compile(found.replace("(?<", "(?P<").replace(r"\z", r"\Z").encode())
        for found in re.findall('"~(.*)"', block)
    ]
    assert len(patterns) == 2

    def key(address: str) -> bytes:
        # The value of nginx's $binary_remote_addr.
        packed = ipaddress.ip_address(address).packed
        found = next(filter(None, (pattern.match(packed) for pattern in patterns)), None)
        return found["network"] if found else packed

    addresses = made_up_addresses(2000)
    check_clients(addresses, map(key, addresses))


@pytest.mark.usefixtures("installed_tools")
def test_it_speaks_tls(settings, tmp_path):
    pair = make_certificate(tmp_path)
    site = hosted(settings, tmp_path, certificate=pair)
    with started_nginx(site, tmp_path) as url:
        assert url.startswith("https://")
        answer = get(f"{url}{REPO}", verify=pair[0])
        assert answer.status_code == 200 and "Strict-Transport-Security" not in answer.headers
        with pytest.raises(requests.exceptions.SSLError):
            get(f"{url}{REPO}")


@pytest.mark.usefixtures("installed_tools")
def test_http_leads_to_https(settings, tmp_path):
    check_redirects(settings, hosted(settings, tmp_path), started_nginx, tmp_path)


@pytest.mark.usefixtures("installed_tools")
def test_a_first_certificate_can_be_asked_for(settings, tmp_path):
    site = hosted(settings, tmp_path)
    with started_nginx(site, tmp_path) as url:
        check_challenge(site, url)


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("name", ["a b", "ünï", "a-(b)[c]*?"])
def test_folders_may_have_odd_names(tmp_path, name):
    settings = sample_settings(tmp_path / name)
    build(settings)
    with started_nginx(hosted(settings, tmp_path), tmp_path) as url:
        assert get(f"{url}{REPO}").status_code == 200


@pytest.mark.parametrize("name", ['a"b', "a$b", "a\nb", "a;b", "a{b", "a\\b", "a'b", "a#b"])
def test_folders_that_the_configuration_cannot_hold_are_refused(name):
    with pytest.raises(OperatorError, match="nginx"):
        nginx.files(HostedSite(f"/srv/{name}", "/srv/var"))
    with pytest.raises(OperatorError, match="nginx"):
        nginx.files(HostedSite("/srv/site", f"/srv/{name}"))


@pytest.mark.usefixtures("installed_tools")
def test_it_runs_without_root_as_the_command_says(open_folder):
    """`hubctl hosts nginx`, then the line that it prints, as another user."""
    settings = sample_settings(open_folder)
    build(settings)
    port = free_port()
    command = start_command("nginx", nginx.FILE, settings, open_folder, port)
    pid = Path(settings.state, "nginx", "nginx.pid")
    subprocess.run(command, check=True, capture_output=True)
    try:
        wait_until(pid.exists, "nginx")
        wait_until(lambda: get(f"http://127.0.0.1:{port}{REPO}").ok, "an answer")
    finally:
        os.kill(int(wait_until(lambda: pid.read_text().strip(), "its id")), signal.SIGQUIT)
        wait_until(lambda: not pid.exists(), "its end")
    log = Path(settings.state, "nginx", "access.log").read_text()
    assert f'"GET {REPO} HTTP/1.1" 200' in log


def test_the_configuration_is_the_same_each_time(settings):
    site = HostedSite(settings.out, settings.state)
    assert nginx.files(site) == nginx.files(site)
