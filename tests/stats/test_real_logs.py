"""Logs that real servers wrote for the same requests count alike."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from builder.model.settings import Settings
from builder.stats.ingest import Outcome, ingest
from builder.stats.pulls import Pulls
from builder.store.site import read_hub
from tests.conformance.caddy import CADDY
from tests.support import servers
from tests.support.servers import (
    DEADLINE_SECONDS,
    PROJECT,
    Process,
    clean_environment,
    free_port,
    sample_settings,
    serving,
    wait_until,
)

REPO = "/api/v1/repos/mara-okafor/sql-review"
OTHER = "/api/v1/repos/mara-okafor/text-to-sql"
# Target, headers, and whether it is a pull. Files, which any host has, and plain URLs.
REQUESTS = (
    (f"{REPO}.json", {}, True),
    (f"{REPO}/raw.txt", {}, True),
    (f"{REPO}/raw.txt", {"Range": "bytes=0-9"}, True),
    (f"{REPO}/versions/1.0.0.txt", {}, True),
    (f"{REPO}/raw.txt?from=docs", {}, True),
    ("/api/v1/repos/mara%2Dokafor/sql-review/raw.txt", {}, True),
    (f"{REPO}/versions.json", {}, False),
    (f"{REPO}/raw.txt", {"Range": "bytes=9999999-"}, False),
    ("/api/v1/repos/no/such/raw.txt", {}, False),
    ("/mara-okafor/sql-review.html", {}, False),
    ('/?a="b"', {}, False),
    (f"{REPO}/raw.txt", {"User-Agent": 'Googlebot/2.1 "x"'}, None),
)


def read_all(url: str) -> None:
    """Request everything, the last time with a condition that holds."""
    with requests.Session() as session:
        session.headers["User-Agent"] = "tests/1"
        for target, headers, _ in REQUESTS:
            session.get(url + target, headers=headers, timeout=DEADLINE_SECONDS)
        etag = session.get(url + f"{REPO}.json", timeout=DEADLINE_SECONDS).headers["etag"]
        again = session.get(
            url + f"{REPO}.json", headers={"If-None-Match": etag}, timeout=DEADLINE_SECONDS
        )
        assert again.status_code == 304
        head = session.head(url + f"{OTHER}.json", timeout=DEADLINE_SECONDS)
        assert head.status_code == 200


PULLED = sum(is_pull is True for *_, is_pull in REQUESTS) + 2
BOTS = sum(is_pull is None for *_, is_pull in REQUESTS)
OTHERS = len(REQUESTS) + 3 - PULLED - BOTS
EXPECTED = Outcome(lines=len(REQUESTS) + 3, counted=1, repeated=PULLED - 1, bots=BOTS, other=OTHERS)


def check(log: Path, settings: Settings, state: Path, wanted: Outcome = EXPECTED) -> None:
    assert read_hub(settings.out)
    assert ingest([str(log)], str(state), settings.base_path) == wanted
    with Pulls(str(state)) as pulls:
        assert pulls.changed_since(0) == ["mara-okafor/sql-review"]
        assert pulls.of("mara-okafor/sql-review").total == 1


@pytest.fixture
def copied(built_sample: Settings, tmp_path: Path) -> Settings:
    """The built sample at a place that other users may read."""
    shutil.copytree(built_sample.out, tmp_path / "site")
    tmp_path.chmod(0o755)
    return built_sample._replace(out=f"{tmp_path}/site")


def wait_for_lines(log: Path) -> None:
    wait_until(
        lambda: log.exists() and log.read_bytes().count(b"\n") == EXPECTED.lines, "the whole log"
    )


def test_our_embedded_server_below_a_path(tmp_path):
    settings = sample_settings(tmp_path)
    log = tmp_path / "access.log"
    with serving(
        settings, "--access-log", str(log), "--base-url", "http://127.0.0.1/some/prompts"
    ) as server:
        read_all(server.url)
    settings = settings._replace(base_url=read_hub(settings.out).base_url)
    # Our host sends a whole text for any range, also for one that starts behind its end.
    wanted = replace(EXPECTED, repeated=EXPECTED.repeated + 1, other=EXPECTED.other - 1)
    check(log, settings, tmp_path / "counted", wanted)


# The log format of the generated configuration.
FORM = """\
log_format hub '$remote_addr - - [$time_local] "$request" $status $body_bytes_sent '
    '"$http_referer" "$http_user_agent"';
"""


@pytest.mark.usefixtures("installed_tools")
def test_nginx(tmp_path, copied, monkeypatch):
    monkeypatch.setattr(servers, "NGINX", servers.NGINX.replace("http {{", "http {{" + FORM))
    log = tmp_path / "hub.log"
    with servers.nginx(tmp_path, f"root {copied.out}; access_log {log} hub;") as (url,):
        read_all(url)
        wait_for_lines(log)
    check(log, copied, tmp_path / "counted")


CADDY_FILE = """\
{{
    admin off
    auto_https off
    storage file_system {folder}/caddy
}}
http://127.0.0.1:{port} {{
    root * {site}
    file_server
    log {{
        output file {folder}/access.log
    }}
}}
"""


@pytest.mark.usefixtures("installed_tools")
def test_caddy(tmp_path, copied):
    port, log, config = free_port(), tmp_path / "access.log", tmp_path / "Caddyfile"
    config.write_text(CADDY_FILE.format(folder=tmp_path, port=port, site=copied.out))
    process = Process(
        CADDY, "run", "--config", str(config), "--adapter", "caddyfile",
        env=clean_environment(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path)),
    )  # fmt: skip
    try:
        process.wait_for_line("serving initial configuration")
        read_all(f"http://127.0.0.1:{port}")
        wait_for_lines(log)
    finally:
        process.stop()
    recipe = Path(PROJECT, "docs/operate/stats.md").read_text()
    command = re.search(r"^jq -r '.+'(?= /var/log/caddy)", recipe, re.MULTILINE)[0]
    combined = tmp_path / "combined.log"
    with log.open() as given, combined.open("wb") as made:
        subprocess.run(["sh", "-c", command], stdin=given, stdout=made, check=True)
    check(combined, copied, tmp_path / "counted")
