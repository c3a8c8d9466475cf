"""What nginx and Caddy do with the configurations of `hubctl hosts` while the service is away, and
where a hub has become private.
"""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from builder.hosts.configuration import SERVERS, HostedSite, configuration
from builder.model.matching import match_file
from builder.model.request_bodies import publication_bytes_max
from builder.model.settings import Settings
from builder.model.version_files import BYTES_HARD_MAX, BYTES_MAX
from tests.conformance.caddy import started_caddy
from tests.conformance.hosts import BASE_URL, BELOW_PATH, Workshop
from tests.conformance.nginx import started_nginx
from tests.support.servers import (
    DEADLINE_SECONDS,
    HUBCTL,
    Server,
    clean_environment,
    free_port,
    serving,
)

pytestmark = pytest.mark.usefixtures("installed_tools")

Started = Callable[[HostedSite, Path], AbstractContextManager[str]]
STARTED: dict[str, Started] = {"nginx": started_nginx, "caddy": started_caddy}
LINES_MAX = {"nginx": 120, "caddy": 110}
STRANGERS_REQUESTS = 2000


_session = requests.Session()


class Served(NamedTuple):
    """A hub behind a web server. ``url``: the web server's, with the base path."""

    url: str
    hub: Server
    site: HostedSite

    def ask(self, method: str, path: str, **more: object) -> requests.Response:
        return _session.request(
            method, self.url + path, timeout=DEADLINE_SECONDS, allow_redirects=False, **more
        )


@contextlib.contextmanager
def served(started: Started, folder: Path, base_url: str, *options: str) -> Iterator[Served]:
    workshop = Workshop(folder)
    content = workshop.content(folder / "hub")
    settings = Settings(content, f"{folder}/hub/site", f"{folder}/hub/state", base_url)
    options = ("--base-url", base_url, "--langfuse", "--trusted-proxy", "127.0.0.1", *options)
    with serving(settings, *options, rate_limit=0) as hub:
        site = HostedSite(
            settings.out, base_url, listen=f"127.0.0.1:{free_port()}",
            upstream=f"127.0.0.1:{hub.port}", reads_per_minute=0,
        )  # fmt: skip
        with started(site, workshop.folder()) as url:
            yield Served(url, hub, site)


def files_of(out: str) -> Iterator[str]:
    for folder, _, names in os.walk(out):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), out)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("base_url", [BASE_URL, BELOW_PATH])
def test_reads_go_on_while_the_service_is_away(tmp_path: Path, server: str, base_url: str) -> None:
    """Without this, no test could tell a file from the answer of the service."""
    with served(STARTED[server], tmp_path, base_url) as hub:
        hub.hub.process.stop()
        read = 0
        for file in files_of(hub.site.out):
            found = match_file(file)
            if not found or found.route.cache in ("none", "not_found"):
                continue
            urls = {f"/{file}"}
            if found.route.name not in ("version_file", "version_text_file"):
                urls.add(found.url)
            if found.route.query:
                urls.add(found.route.query.format_map(found.params))
            for url in urls:
                answer = hub.ask("GET", url, headers={"Accept-Encoding": "identity"})
                assert answer.status_code == 200, url
                assert answer.content == Path(hub.site.out, file).read_bytes(), url
                assert answer.headers["Content-Type"] == found.route.media, url
                read += 1
        assert read > 500
        check_away(hub)


def check_away(hub: Served) -> None:
    """What needs the service is 503: JSON for programs, a page for people."""
    page, api = (Path(hub.site.out, name).read_bytes() for name in ("503.html", "api/503.json"))
    for method, path in (
        ("GET", "/api/v1/repos?q=sql"), ("GET", "/api/v1/repos?tag=a,b"), ("GET", "/api/v1/no"),
        ("GET", "/api/v1/repos?sort=new&sort=top"), ("POST", "/api/v1/repos/a/b/versions"),
        ("GET", "/langfuse/no"), ("POST", "/mcp"), ("GET", "/account/login"), ("GET", "/no/no"),
        ("POST", "/account/login"), ("GET", "/healthz"),
    ):  # fmt: skip
        answer = hub.ask(method, path, data=b"{}" if method == "POST" else None)
        is_api = path.startswith(("/api", "/langfuse", "/mcp"))
        assert (answer.status_code, answer.content) == (503, api if is_api else page), path
        assert (
            answer.headers["Retry-After"] == "5" and "no-store" in answer.headers["Cache-Control"]
        )
    for path in ("/", "/api/v1/repos?page=1", "/?utm_source=x", "/api/v1/repos?utm_source=x"):
        assert hub.ask("GET", path).status_code == 200, path
    assert hub.ask("HEAD", "/api/v1/repos").status_code == 200


def test_caddy_expands_no_address(tmp_path: Path) -> None:
    """Caddy fills in names in braces, in some releases twice. The service gets no such request."""
    with served(started_caddy, tmp_path, BASE_URL) as hub:
        assert "X-Content-Type-Options" in hub.ask("POST", "/no").headers
        for path in ("/x{env.HOME}", "/{http.request.body}", "/api/v1/a{b", "/%7Benv.HOME%7D"):
            answer = hub.ask("POST", path, data=b"x" * 100_000)
            assert (answer.status_code, answer.content) == (404, b""), path
            assert "X-Content-Type-Options" not in answer.headers


def test_caddy_behind_another_proxy_takes_any_name(tmp_path: Path) -> None:
    with served(started_caddy, tmp_path, BASE_URL) as hub:
        answer = hub.ask("GET", "/api/v1/tags", headers={"Host": "prompts.example.org"})
        assert answer.json()["data"]


def test_a_hub_that_becomes_private_is_closed_at_the_file_system() -> None:
    """The web server keeps the configuration of the public hub."""

    @contextlib.contextmanager
    def as_nobody(site: HostedSite, folder: Path) -> Iterator[str]:
        # Otherwise the folders of the test, not those of the hub, would be closed.
        for path in (Path(temporary), folder, Path(site.out).parent):
            path.chmod(0o755)
        with started_nginx(site, folder, "nobody nogroup") as url:
            yield url

    with (
        tempfile.TemporaryDirectory() as temporary,
        served(as_nobody, Path(temporary), BASE_URL, "--private") as hub,
    ):
        files = [file for file in files_of(hub.site.out) if match_file(file)]
        closed = [file for file in files if not match_file(file).route.is_open]
        asked = 0
        while asked < STRANGERS_REQUESTS:
            for file in closed:
                answer = hub.ask("GET", f"/{file}")
                assert answer.status_code in (303, 401, 403, 404), file
                asked += 1
        hub.hub.process.stop()
        for file in closed[:50]:
            assert hub.ask("GET", f"/{file}").status_code in (403, 404, 502, 503), file


@pytest.mark.parametrize("private", [False, True])
def test_no_log_has_the_code_of_a_sign_in(tmp_path: Path, private: bool) -> None:
    with served(started_nginx, tmp_path, BASE_URL, *(["--private"] if private else [])) as hub:
        for _ in range(2):  # the second time, the service is away
            hub.ask("GET", "/account/openid/callback?code=SECRET-CODE&state=SECRET-STATE")
            hub.ask("GET", "/api/v1/tags")
            hub.hub.process.stop()
    logged = "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert "SECRET" not in logged and logged.count("/api/v1/tags") >= 2


# The command


def hosts(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HUBCTL, "hosts", *words], cwd=folder, capture_output=True, text=True,
        env=clean_environment(), timeout=DEADLINE_SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_printed_is_short(tmp_path: Path, server: str) -> None:
    for words in (
        [], ["--no-upstream"], ["--listen", "127.0.0.1:8080"], ["--certificate", "a.pem", "b.key"],
    ):  # fmt: skip
        done = hosts(tmp_path, server, "--base-url", "https://hub.example.org/p", *words)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) <= LINES_MAX[server]
        assert f"{tmp_path}/site_out" in done.stdout
    private = hosts(tmp_path, server, "--base-url", "https://hub.example.org", "--private")
    assert len(private.stdout.splitlines()) <= 30 and "site_out" not in private.stdout


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("file_bytes", [100, BYTES_MAX, BYTES_HARD_MAX])
@pytest.mark.parametrize("server", SERVERS)
def test_bodies_pass_that_the_service_reads(server: str, file_bytes: int, private: bool) -> None:
    text = configuration(server, HostedSite("/site", file_bytes=file_bytes, private=private))
    (megabytes,) = re.findall(r"(?:client_max_body_size |max_size )(\d+)(?:m;|MiB)", text)
    spare = int(megabytes) * 2**20 - publication_bytes_max(file_bytes)
    assert 2**20 < spare < 5 * 2**20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nginx"], "No site in site_out"),
        (["nginx", "--base-url", "ftp://x"], "base URL"),
        (["nginx", "--listen", "x"], "is not HOST:PORT"),
        (["nginx", "--listen", "a:99999"], "is not HOST:PORT"),
        (["nginx", "--log", "a b;"], "characters that configurations reserve"),
        (["nginx", "--certificate", "a;", "b"], "characters that configurations reserve"),
        (["nginx", "--out", "a {b}"], "characters that configurations reserve"),
        (["caddy", "--base-url", "https://a.example", "--whole"], "--whole is for nginx"),
        (["caddy", "--private", "--no-upstream"], "A private hub needs `hubctl serve`"),
        (["nginx", "--base-url", "https://a.example", "--listen", "127.0.0.1:8000"],
         "Give one of them another port"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    done = hosts(tmp_path, *words)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert not done.stdout


def test_a_whole_file_is_valid(tmp_path: Path) -> None:
    done = hosts(
        tmp_path, "nginx", "--whole", "--base-url", "http://hub.example.org", "--log",
        f"{tmp_path}/log",
    )  # fmt: skip
    (tmp_path / "nginx.conf").write_text(done.stdout)
    checked = subprocess.run(
        ["nginx", "-t", "-c", f"{tmp_path}/nginx.conf", "-g", f"pid {tmp_path}/pid;"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr


def test_names_of_a_certificate() -> None:
    text = configuration("nginx", HostedSite("/srv/site", "https://hub.example.org"))
    assert "/etc/letsencrypt/live/hub.example.org/fullchain.pem" in text
    assert "listen 443 ssl http2; listen [::]:443 ssl http2;" in text
