"""Behaviour of the Worker that is Cloudflare's own; tests/conformance holds it to the contract.

The Worker runs in workerd, Cloudflare's runtime, by way of miniflare. Upstreams are real processes,
or sockets that fail in ways that `hubctl serve` does not.
"""

import contextlib
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.hosts import cloudflare
from builder.hosts.rules import HostedSite
from builder.model.caching import CACHE_CONTROL
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.conformance.worker import started_worker
from tests.hosts.addresses import check_clients, made_up_addresses
from tests.hosts.standing_in import Answer, Asker, StandIn
from tests.node import PROGRAMS
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import DEADLINE_SECONDS, serving

SECRET = "not a file of the table"
SECRETS = (
    ".env", "secret.txt", "_headers", "_redirects", ".git/config", "api/v1/secret.json",
    "api/v1/repos/ann/review/notes.txt", "api/v1/repos/ann/review/versions/1.0.0.md",
    "api/v1/users/ann/review.json", "Ann.html", "__proto__.html", "ann/__proto__.html",
    "api/v1/repos/__proto__/x.json", "api/v1/tags/__proto__/top/1.json",
    "api/v1/repos/_/__proto__/1.json", "api/v1/repos/_/top/01.json", "undefined",
    "api/v1/repos/_/top/undefined.json",
)  # fmt: skip


@contextlib.contextmanager
def worker(settings: Settings, folder: Path, **options: Any) -> Iterator[Asker]:
    site = HostedSite(settings.out, settings.state, settings.base_url)
    with started_worker(site, folder, **options) as url:
        yield Asker("worker", url)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The small catalogue, built, and in the site's folder files that are none of its table."""
    folder = tmp_path_factory.mktemp("site")
    settings = settings_in(folder, queries=True)
    write_small_catalogue(settings.content)
    build(settings)
    for name in SECRETS:
        path = Path(settings.out, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET, encoding="utf-8")
    return settings


@pytest.fixture(scope="module", params=["r2", "assets"])
def alone(
    request: pytest.FixtureRequest,
    site: Settings,
    tmp_path_factory: pytest.TempPathFactory,
    installed_tools: None,
) -> Iterator[Asker]:
    """A Worker with the files and nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(site.out, folder / "site")
    if request.param == "assets":
        # Wrangler reads these two instead of uploading them.
        (folder / "site" / "_headers").unlink()
        (folder / "site" / "_redirects").unlink()
    copied = site._replace(out=str(folder / "site"))
    with worker(copied, folder, files=request.param) as ask:
        yield ask


@pytest.fixture
def before(_before: Asker, stand_in: StandIn) -> Asker:
    """A Worker before the stand-in, which reports each request."""
    stand_in.reply = None
    return _before


@pytest.fixture(scope="module")
def _before(
    site: Settings,
    stand_in: StandIn,
    tmp_path_factory: pytest.TempPathFactory,
    installed_tools: None,
) -> Iterator[Asker]:
    folder = tmp_path_factory.mktemp("before")
    with worker(
        site, folder, files="r2", variables={"UPSTREAM": f"http://{stand_in.address}/"}
    ) as ask:
        yield ask


# Files


def test_only_files_of_the_table_are_served(alone: Asker):
    for name in SECRETS:
        encoded = "".join(f"%{ord(letter):02x}" for letter in name)
        for path in (name, encoded, f"x/../{name}", f"./{name}", f"%2e/{name}", f"{name}?version"):
            answer = alone(f"/{path}")
            assert answer.status in (400, 404), path
            assert SECRET.encode() not in answer.body, path
        without_extension = alone(f"/{name.rpartition('.')[0]}")
        assert SECRET.encode() not in without_extension.body, name


def test_names_that_objects_have_anyway_are_ordinary(alone: Asker):
    plain = alone("/api/v1/repos")
    assert alone("/api/v1/repos?__proto__=x&constructor=y&hasOwnProperty=1&toString").body == (
        plain.body
    )
    assert alone("/api/v1/repos?tag=constructor").error == "tag_not_found"
    assert alone("/api/v1/repos?sort=constructor").error == "invalid_parameter"
    assert alone("/api/v1/repos/constructor/prototype").error == "repo_not_found"
    assert alone("/api/v1/users/constructor").error == "user_not_found"
    assert alone("/api/v1/repos/__proto__/constructor").error == "invalid_name"
    assert alone("/constructor/constructor").status == 404
    assert alone("/__proto__").status == 404


def test_without_an_upstream_searches_are_no_parameters(alone: Asker):
    for query in ("q=review", "q=", "tag=code,careful", "tag=code%2Ccareful&q=x"):
        answer = alone(f"/api/v1/repos?{query}")
        assert (answer.status, answer.error) == (400, "invalid_parameter")
        assert "/api/v1/catalogue.jsonl" in json.loads(answer.body)["error"]["message"]
    assert alone("/api/v1/repos?tag=code,code").body == alone("/api/v1/repos?tag=code").body


def test_without_an_upstream_nobody_publishes(alone: Asker):
    answer = alone("/api/v1/repos/ann/review/versions", "POST", "{}")
    assert (answer.status, answer.error) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    assert alone("/mcp").status == alone("/healthz").status == 404


@pytest.mark.usefixtures("installed_tools")
def test_a_bucket_without_a_site_has_nothing(site: Settings, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with worker(site._replace(out=str(tmp_path / "empty")), tmp_path, files="r2") as ask:
        assert ask("/api/v1/repos").error == "page_not_found"
        assert ask("/api/v1/repos/ann/review").error == "repo_not_found"
        assert (ask("/").status, ask("/").error) == (404, "not_found")


@pytest.mark.usefixtures("installed_tools")
def test_a_worker_that_is_bound_to_nothing_says_that_it_failed(site: Settings, tmp_path: Path):
    with worker(site, tmp_path) as ask:
        assert (ask("/api/v1/repos").status, ask("/api/v1/repos").error) == (500, "internal_error")
        assert ask("/").error == "internal_error"


# Limits


@pytest.mark.usefixtures("installed_tools")
def test_reads_of_the_api_are_limited_for_each_client(site: Settings, tmp_path: Path):
    def read(path: str, client: str = "192.0.2.1") -> Answer:
        return ask(path, CF_Connecting_IP=client)

    with worker(site, tmp_path, files="r2", reads=120) as ask:
        answers = []
        # A new minute may begin in between.
        while len(answers) < 241 and (not answers or answers[-1].status == 200):
            answers.append(read("/api/v1/repos"))
        last = answers.pop()
        assert (last.status, last.error) == (429, "rate_limited")
        assert last.headers["retry-after"] == "60"
        assert last.headers["ratelimit"] == '"read";r=0;t=60'
        assert last.headers["ratelimit-policy"] == '"read";q=120;w=60'
        assert len(answers) >= 120
        assert {one.headers["ratelimit-policy"] for one in answers} == {'"read";q=120;w=60'}
        other = read("/api/v1/repos", "192.0.2.2")
        assert other.status == 200
        page = read("/")
        assert page.status == 200 and "ratelimit-policy" not in page.headers


@pytest.mark.usefixtures("installed_tools")
def test_addresses_of_one_ipv6_network_share_a_limit(site: Settings, tmp_path: Path):
    with worker(site, tmp_path, files="r2", reads=1) as ask:
        for other in range(10):  # a new minute may begin in between
            ask("/api/v1/repos", CF_Connecting_IP=f"2001:db8::{other}")
        read = [
            ask("/api/v1/repos", CF_Connecting_IP=client).status
            for client in ("2001:db8::1:1", "2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1::3")
        ]
        assert read.count(429) >= 2


@pytest.mark.usefixtures("installed_tools")
def test_the_worker_tells_clients_apart_as_the_service_does(site: Settings, tmp_path: Path):
    worker = cloudflare.files(HostedSite(site.out, site.state, site.base_url))["worker.js"]
    addresses = [*made_up_addresses(500), "", "unknown", "fe80::1::2"]
    script = tmp_path / "network.mjs"
    script.write_text(
        f"{worker}\nconsole.log(JSON.stringify({json.dumps(addresses)}.map(network)));",
        encoding="utf-8",
    )
    done = subprocess.run(
        [PROGRAMS / "node", script], check=True, capture_output=True, timeout=DEADLINE_SECONDS
    )
    check_clients(addresses, json.loads(done.stdout))


def test_without_a_limit_no_header_names_one(alone: Asker):
    assert "ratelimit-policy" not in alone("/api/v1/repos").headers


# The upstream


@pytest.mark.parametrize(
    "method, target",
    [("GET", "/api/v1/repos?q=a+b&sort=new"), ("GET", "/api/v1/repos?tag=code%2Ccareful"),
     ("POST", "/api/v1/repos/ann/review/versions"), ("POST", "/api/v1/repos/Ann/x/versions?a=b"),
     ("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/mcp"), ("DELETE", "/mcp/"),
     ("OPTIONS", "/mcp")],
)  # fmt: skip
def test_what_no_file_answers_is_passed_on_as_it_came(before: Asker, method: str, target: str):
    sent = "{}" if method == "POST" else None
    answer = before(target, method, sent, Authorization="Bearer x")
    assert answer.report["line"] == f"{method} {target}"
    assert answer.report["body"] == (sent or "")
    assert answer.report["headers"]["authorization"] == "Bearer x"


@pytest.mark.parametrize("target", ["/api/v1/repos?q=x", "/healthz"])
def test_the_upstream_learns_who_asks_from_cloudflare_alone(before: Asker, target: str):
    answer = before(
        target, CF_Connecting_IP="192.0.2.7", X_Forwarded_For="198.51.100.1",
        Forwarded="for=198.51.100.1", X_Forwarded_Proto="ftp",
    )  # fmt: skip
    headers = answer.report["headers"]
    assert headers["x-forwarded-for"] == "192.0.2.7"
    assert headers["x-forwarded-proto"] == "http"
    assert "forwarded" not in headers


def test_everything_else_is_not_passed_on(before: Asker):
    for method, target in (
        ("POST", "/api/v1/repos"), ("PUT", "/api/v1/repos/ann/review/versions"),
        ("POST", "/api/v1/repos/ann/review/versions/1.0.0"), ("POST", "/"), ("DELETE", "/ann"),
    ):  # fmt: skip
        answer = before(target, method)
        assert (answer.status, answer.error) == (405, "method_not_allowed")
    for query in ("q=x&sort=best", "q=x&page=0", "q=x&q=y", "tag=a,B"):
        assert before(f"/api/v1/repos?{query}").error == "invalid_parameter"


def test_a_page_of_errors_becomes_an_envelope(before: Asker, stand_in: StandIn):
    stand_in.reply = 530, "text/html", "<h1>The tunnel is down</h1>"
    for method, target in (
        ("GET", "/api/v1/repos?q=never+asked"), ("GET", "/api/v1/repos?tag=careful,code"),
        ("POST", "/api/v1/repos/ann/review/versions"), ("POST", "/mcp"), ("GET", "/healthz"),
    ):  # fmt: skip
        answer = before(target, method)
        assert (answer.status, answer.error) == (503, "unavailable"), target
        assert answer.headers["retry-after"] == "5"
    assert before("/api/v1/repos/ann/review").status == 200


def test_an_error_that_the_upstream_explains_is_its_own(before: Asker, stand_in: StandIn):
    error = {"code": "storage_unavailable", "message": "The disk is full."}
    stand_in.reply = 503, "application/json", json.dumps({"error": error})
    answer = before("/api/v1/repos/ann/review/versions", "POST", "{}")
    assert answer.status == 503
    assert json.loads(answer.body)["error"]["code"] == "storage_unavailable"


@pytest.mark.usefixtures("installed_tools")
def test_an_upstream_that_does_not_answer_in_time(site: Settings, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        variables = {
            "UPSTREAM": f"http://127.0.0.1:{listener.getsockname()[1]}", "UPSTREAM_SECONDS": "0.2",
        }  # fmt: skip
        with worker(site, tmp_path, files="r2", variables=variables) as ask:
            assert ask("/api/v1/repos?q=x").error == "unavailable"
            answer = ask("/api/v1/repos/ann/review/versions", "POST", "{}")
            assert (answer.status, answer.error) == (503, "unavailable")
            assert ask("/api/v1/repos").status == 200


@pytest.mark.usefixtures("installed_tools")
def test_reads_go_on_and_searches_are_remembered_when_the_upstream_is_gone(
    site: Settings, tmp_path: Path
):
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(
            serving(site, "--base-url", site.base_url, "--trusted-proxy", "127.0.0.1")
        )
        ask = stack.enter_context(
            worker(site, tmp_path, files="r2", variables={"UPSTREAM": server.origin})
        )
        found = ask("/api/v1/repos?q=sql&sort=top")
        tagged = ask("/api/v1/repos?tag=code,careful")
        assert json.loads(found.body)["meta"]["q"] == "sql"
        nothing = ask("/api/v1/repos?q=never")
        assert (nothing.status, nothing.headers["cache-control"]) == (200, CACHE_CONTROL["nothing"])
        assert ask("/api/v1/repos?q=").error == "invalid_parameter"
        assert server.process.stop() == 0

        # Parameters in another order, and others that mean nothing, make no other search.
        again = ask("/api/v1/repos?sort=top&utm=1&q=sql")
        assert (again.status, again.body) == (200, found.body)
        for name in ("etag", "content-type", "access-control-allow-origin"):
            assert again.headers[name] == found.headers[name]
        assert again.headers["cache-control"] == CACHE_CONTROL["query"]
        again = ask("/api/v1/repos?q=never")
        assert (again.body, again.headers["cache-control"]) == (
            nothing.body, CACHE_CONTROL["nothing"]
        )  # fmt: skip
        again = ask("/api/v1/repos?tag=code,careful")
        assert (again.body, again.headers["cache-control"]) == (tagged.body, CACHE_CONTROL["list"])
        head = ask("/api/v1/repos?q=sql&sort=top", "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == str(len(found.body))
        not_modified = ask("/api/v1/repos?q=sql&sort=top", If_None_Match=found.headers["etag"])
        assert (not_modified.status, not_modified.body) == (304, b"")

        for target in ("/api/v1/repos?q=sql", "/api/v1/repos?q=", "/api/v1/repos?q=sql&page=2"):
            assert ask(target).error == "unavailable"
        answer = ask("/api/v1/repos/ann/review/versions", "POST", "{}")
        assert (answer.status, answer.error) == (503, "unavailable")
        assert ask("/mcp", "POST", "{}").error == "unavailable"
        for target in ("/", "/api/v1/repos?sort=new", "/api/v1/repos/ann/review/raw"):
            assert ask(target).status == 200
