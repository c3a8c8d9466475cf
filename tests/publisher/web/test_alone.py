"""The publish service alone, under gunicorn."""

import contextlib
import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from tests.support.catalogues import settings_in
from tests.support.hubs import URL
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    add_publisher,
    clean_environment,
    free_port,
    serving,
    wait_until,
)


@contextlib.contextmanager
def gunicorn(*options: str, path: str = "", **environment: str) -> Iterator[tuple[Process, str]]:
    """The service alone: its process, and its base URL, which ends with ``path``."""
    base_url = f"http://127.0.0.1:{free_port()}{path}"
    process = Process(
        sys.executable, "-m", "gunicorn", "--threads", "8", "--no-control-socket",
        # No worker is killed by time: one that does not stop fails the test.
        "--graceful-timeout", str(2 * DEADLINE_SECONDS),
        "--bind", base_url.split("/")[2], *options, "cli.wsgi:app",
        env=clean_environment(**{"HUB_BASE_URL": base_url} | environment),
    )  # fmt: skip
    try:
        process.wait_for_line("Booting worker")
        yield process, base_url
    finally:
        status = process.stop()
    assert status == 0, process.text


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[Process, str, str, str]]:
    """The service with settings in a file, its base URL, a token of ann's, and the address of its
    metrics.
    """
    metrics = f"127.0.0.1:{free_port()}"
    (tmp_path / "content").mkdir()
    token = add_publisher(settings_in(tmp_path), "ann")
    config = tmp_path / "settings/hub.toml"
    config.parent.mkdir()
    config.write_text(
        'content = "../content"\nout = "../site"\nstate = "../state"\npublish-limit = 1\n'
        "[publish-service]\ntrusted-proxies = 1\n"
    )
    environment = {"HUB_CONFIG": str(config), "HUB_PUBLISH_LIMIT": "2", "HUB_METRICS": metrics}
    with gunicorn(path="/prompts", **environment) as (process, base_url):
        yield process, base_url, token, metrics


def test_the_service_on_its_own(alone: tuple[Process, str, str, str], tmp_path: Path):
    process, base_url, token, metrics = alone

    def health() -> dict[str, Any] | None:
        try:
            return requests.get(f"{base_url}/healthz", timeout=DEADLINE_SECONDS).json()
        except requests.ConnectionError:
            return None

    wait_until(lambda: (health() or {}).get("serial") == 0, f"the first build:\n{process.text}")
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/json",
        "X-Forwarded-For": "203.0.113.9, 198.51.100.7",
    }  # fmt: skip
    chunks = (part for part in (b'{"content": ', b'"One."}'))
    created = requests.post(base_url + URL, data=chunks, headers=headers, timeout=DEADLINE_SECONDS)
    assert created.status_code == 201
    assert created.headers["Location"] == f"{base_url}{URL}/1.0.0"
    assert created.json()["data"]["serial"] == 1
    file = tmp_path / "site" / BY_NAME["version_raw"].file_for(
        owner="ann", name="story", version="1.0.0"
    )  # fmt: skip
    assert file.read_text() == "One."
    page = requests.get(f"http://{metrics}/metrics", timeout=DEADLINE_SECONDS).text
    assert 'hub_publications_total{kind="version",result="done"} 1.0' in page
    line = json.loads(process.wait_for_line('"event": "publish"'))
    assert (line["status"], line["address"]) == (201, "198.51.100.7")
    # A proxy may have taken the path of the base URL off.
    stripped = base_url.removesuffix("/prompts") + URL
    without_path = requests.post(stripped, b"{}", headers=headers, timeout=DEADLINE_SECONDS)
    assert without_path.status_code == 422
    limited = requests.post(base_url + URL, b"{}", headers=headers, timeout=DEADLINE_SECONDS)
    assert limited.status_code == 429 and int(limited.headers["Retry-After"]) > 0
    assert token not in process.text


def test_chunks_that_are_none(alone: tuple[Process, str, str, str]):
    process, base_url, token, _ = alone
    host, _, port = base_url.split("/")[2].partition(":")

    def connect() -> socket.socket | None:
        try:
            return socket.create_connection((host, int(port)), 20)
        except ConnectionRefusedError:
            return None

    with wait_until(connect, "the port") as connection:
        connection.sendall(
            f"POST /prompts{URL} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            "rubbish\r\n".encode()
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    line = json.loads(process.wait_for_line('"event": "publish"'))
    assert line["code"] == "invalid_json"


EVES = "/api/v1/repos/eve/hello/versions"


def test_alone_beside_a_server_of_reads(small: Settings) -> None:
    token = add_publisher(small, "eve")
    headers = {"Authorization": f"Bearer {token}"}
    folders = {
        "HUB_CONTENT": small.content, "HUB_OUT": small.out, "HUB_STATE": small.state,
        "HUB_BASE_URL": small.base_url, "HUB_QUERIES": "1",
    }  # fmt: skip
    with (
        serving(small, "--base-url", small.base_url) as server,
        gunicorn("--workers", "2", **folders) as (_, url),
    ):
        for number in range(1, 9):
            # Through both servers in turns; every reader sees it at once.
            where = url if number % 2 else server.url
            answer = requests.post(
                where + EVES, json={"content": f"Text {number}."}, headers=headers,
                timeout=DEADLINE_SECONDS,
            )  # fmt: skip
            assert answer.status_code == 201, answer.text
            assert server.get("/api/v1/repos/eve/hello/raw").text == f"Text {number}."
        assert answer.json()["data"]["version"] == "1.0.7"
        serial = answer.json()["data"]["serial"]
        wait_until(
            lambda: requests.get(f"{url}/healthz", timeout=DEADLINE_SECONDS).json()["serial"]
            == serial,
            "the lists",
        )  # fmt: skip
        reads = requests.get(f"{url}/api/v1/repos", timeout=DEADLINE_SECONDS)
        assert (reads.status_code, reads.json()["error"]["code"]) == (404, "not_found")


def test_alone_with_a_wrong_setting(small: Settings) -> None:
    process = Process(
        str(Path(sys.executable).with_name("gunicorn")), "--bind", "127.0.0.1:0",
        "cli.wsgi:app", env=clean_environment(HUB_PUBLISH_LIMIT="many"),
    )  # fmt: skip
    process.wait_for_line("HUB_PUBLISH_LIMIT")
    assert process.stop(signal.SIGKILL) != 0
