"""Answers of `hubctl serve` during its first build, which waits for another build that the test
holds.
"""

import contextlib
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from builder.model.content_tree import PRIVATE_FILE
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store.locks import build_lock
from builder.store.state.serving import service_settings
from tests.cli.command import run as hubctl
from tests.support.catalogues import write_version
from tests.support.servers import (
    DEADLINE_SECONDS,
    HUBCTL,
    Process,
    Server,
    add_publisher,
    free_port,
    serve_command,
    serving,
    wait_until,
)

REQUESTS = [
    ("GET", "/"),
    ("HEAD", "/"),
    ("GET", "/bob/sql"),
    ("GET", "/api/v1/repos"),
    ("GET", "/api/v1/repos?q=sql"),
    ("GET", "/api/v1/repos/bob/sql/raw"),
    ("GET", "/api/v1/no/such/endpoint"),
    ("POST", "/api/v1/repos/bob/sql/versions"),
    ("POST", "/mcp"),
    ("GET", "/account"),
]


@contextlib.contextmanager
def waiting_to_build(settings: Settings, *options: str) -> Iterator[tuple[Process, str]]:
    """A server that has to wait with its first build as long as this context holds the lock; and
    its URL.
    """
    port = free_port()
    process = Process(*serve_command(settings), "--port", str(port), *options)
    try:
        process.wait_for_line("Waiting for another build")
        yield process, f"http://127.0.0.1:{port}"
    except BaseException:
        process.stop()
        raise


def ask(method: str, url: str) -> requests.Response:
    return requests.request(method, url, timeout=DEADLINE_SECONDS)


def test_without_a_site_all_get_503_at_once(small: Settings) -> None:
    with build_lock(small.state), waiting_to_build(small) as (process, url):
        for method, path in REQUESTS:
            answer = ask(method, url + path)
            assert answer.status_code == 503, path
            assert int(answer.headers["Retry-After"]) > 0
            if method != "HEAD":
                assert answer.json()["error"]["code"] == "unavailable"
        answer = ask("GET", f"{url}/healthz")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert (answer.json()["status"], answer.json()["serial"]) == ("building", None)
        answer = ask("GET", f"{url}/readyz")
        assert (answer.status_code, answer.json()["status"]) == (503, "unready")
        assert [reason["code"] for reason in answer.json()["reasons"]] == ["no_site"]
    server = Server(process, small)
    assert server.get("/healthz").status_code == 200
    wait_until(lambda: server.get("/readyz").status_code == 200, "the hub to be ready")
    assert server.get("/api/v1/repos").json()["meta"]["total"] == 3
    assert server.get("/api/v1/repos?q=sql").status_code == 200
    assert server.get("/bob/sql").status_code == 200
    assert server.close() == 0


def test_a_site_is_served_as_it_is_until_it_is_up_to_date(small: Settings) -> None:
    build(small)
    write_version(small.content, "bob", "sql", "2.0.0", "Write it anew.\n")
    with build_lock(small.state), waiting_to_build(small) as (process, url):
        assert "The previous site is shown" in process.text
        repo = ask("GET", f"{url}/api/v1/repos/bob/sql").json()["data"]
        assert repo["latest_version"] == "1.0.0"
        assert ask("GET", f"{url}/api/v1/repos?q=sql").json()["meta"]["total"] == 1
        health = ask("GET", f"{url}/healthz")
        assert (health.status_code, health.json()["status"]) == (200, "behind")
    server = Server(process, small)
    assert server.get("/api/v1/repos/bob/sql").json()["data"]["latest_version"] == "2.0.0"
    assert server.close() == 0


def test_who_publishes_meanwhile_loses_nothing(small: Settings) -> None:
    token = add_publisher(small, "carol")
    headers = {"Authorization": f"Bearer {token}"}
    body = {"content": "Say hello.\n"}
    with build_lock(small.state), waiting_to_build(small) as (process, url):
        address = f"{url}/api/v1/repos/carol/hello/versions"
        answer = requests.post(address, json=body, headers=headers, timeout=DEADLINE_SECONDS)
        assert answer.status_code == 503
        assert not Path(small.content, "carol", "hello").exists()
    server = Server(process, small)
    answer = server.request(
        "POST", "/api/v1/repos/carol/hello/versions", json=body, headers=headers
    )
    assert answer.status_code == 201
    assert server.close() == 0


def test_metrics_at_an_address_that_is_taken_or_none(small: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = Process(*serve_command(small, "--metrics", address))
        assert process.wait() == 1
    assert f"Cannot listen on {address}" in process.text and "HUB_METRICS" in process.text
    process = Process(*serve_command(small, "--metrics", "9108"))
    assert process.wait() == 1
    assert "like 127.0.0.1:9108" in process.text
    assert not Path(small.state).exists()


@pytest.mark.parametrize("is_built", [False, True])
def test_a_content_folder_that_is_gone(small: Settings, is_built: bool) -> None:
    if is_built:
        build(small)
    process = Process(*serve_command(small._replace(content=f"{small.content}/nowhere")))
    assert process.wait() == 1
    assert "--content" in process.text
    assert Path(small.state).exists() == is_built


@pytest.mark.parametrize("is_deployed", [False, True])
def test_the_catalogue_has_words_of_texts_only_for_hosts_without_the_service(
    small: Settings, tmp_path: Path, is_deployed: bool
):
    write_version(small.content, "ann", "heat", "1.0.0", "Wait.\n\nRead the thermometer.\n")
    options = ("--deploy", str(tmp_path / "public")) if is_deployed else ()
    with serving(small, *options) as server:
        wait_until(lambda: ask("GET", f"{server.url}/readyz").ok, "the first build")
        found = ask("GET", f"{server.url}/api/v1/catalogue.jsonl").text
        assert ("thermometer" in found, "heat" in found) == (is_deployed, True)


def test_a_private_hub_is_not_deployed(small: Settings, tmp_path: Path):
    target = tmp_path / "public"
    process = Process(*serve_command(small, "--private", "--deploy", str(target)))
    assert process.wait() == 1
    assert "Leave out --deploy" in process.text and not target.exists()


def test_marked_content_is_private_whatever_the_settings_leave_out(small: Settings):
    """As a restore leaves it on a machine that has no settings."""
    Path(small.content, PRIVATE_FILE).write_text("")
    with serving(small, "--port", "0") as server:
        wait_until(lambda: ask("GET", f"{server.url}/readyz").ok, "the first build")
        for url, status in (("/api/v1/repos/bob/sql/raw", 401), ("/bob/sql", 303)):
            answer = requests.get(server.url + url, allow_redirects=False, timeout=DEADLINE_SECONDS)
            assert answer.status_code == status


def publish(server: Server, token: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {token}"}
    url = "/api/v1/repos/carol/hello/versions"
    return server.request("POST", url, json={"content": "Say hello.\n"}, headers=headers)


def test_reads_continue_where_the_disk_takes_no_write(small: Settings):
    """Folders in the places of files stop all writes, also those of root."""
    token = add_publisher(small, "carol")
    build(small)
    state = Path(small.state)
    (state / "accounts.sqlite3").rename(state / "kept")
    for file in ("accounts.sqlite3", "service.lock", "build.number"):
        (state / file).unlink(missing_ok=True)
        (state / file).mkdir()
    with serving(small, "--port", "0") as server:
        assert server.get("/api/v1/repos/bob/sql").status_code == 200
        server.process.wait_for_line("Serving the previous site. The build is tried again.")
        reasons = {one["code"]: one["message"] for one in server.get("/readyz").json()["reasons"]}
        assert reasons.keys() == {"builds_failing", "accounts_unusable"}
        assert "reads continue" in reasons["accounts_unusable"]
        refused = publish(server, token)
        assert refused.status_code == 503
        for file in ("accounts.sqlite3", "service.lock", "build.number"):
            (state / file).rmdir()
        (state / "kept").rename(state / "accounts.sqlite3")
        wait_until(lambda: server.get("/readyz").ok, "the service is ready again")
        assert publish(server, token).status_code == 201
        assert service_settings(small.content, small.out, small.state).base_url == server.url
    assert "Other processes cannot build with the settings" in server.process.text


def test_accounts_that_are_lost_are_not_replaced(small: Settings):
    token = add_publisher(small, "carol")
    with serving(small, "--port", "0") as server:
        wait_until(lambda: server.get("/readyz").ok, "the first build")
    state = Path(small.state)
    (state / "accounts.sqlite3").rename(state / "kept")
    with serving(small, "--port", "0") as server:
        assert server.get("/api/v1/repos/bob/sql").status_code == 200
        (reason,) = server.get("/readyz").json()["reasons"]
        assert "The accounts database is missing" in reason["message"]
        assert publish(server, token).json()["error"]["message"] == reason["message"]
        for command in ("owner list", "token list", "team list", "token create carol --name x"):
            done = hubctl(*command.split(), "--state", str(state))
            assert (done.exit_code, "database is missing" in done.stderr) == (1, True), command
        assert not (state / "accounts.sqlite3").exists()
        (state / "kept").rename(state / "accounts.sqlite3")
        wait_until(lambda: server.get("/readyz").ok, "the restored accounts are used")
        assert publish(server, token).status_code == 201
    (state / "accounts.sqlite3").unlink()
    with serving(small, "--port", "0", "--new-accounts") as server:
        wait_until(lambda: server.get("/readyz").ok, "the hub begins anew")
        assert publish(server, token).status_code == 401


def test_a_second_service_of_one_folder_is_refused(small: Settings):
    first = Process(*serve_command(small, "--port", "0", "--private"))
    try:
        url = Server(first, small).url
        wait_until(lambda: ask("GET", f"{url}/readyz").ok, "the first build")
        second = Process(*serve_command(small, "--port", "0", "--no-private", "--new-accounts"))
        assert second.wait() == 1
        assert f"A service runs on the state folder {small.state} already" in second.text
        assert f"at {url}/. Stop it first" in second.text
        assert Path(small.content, PRIVATE_FILE).exists()
        assert ask("GET", f"{url}/api/v1/repos/bob/sql").status_code == 401
    finally:
        first.stop(signal.SIGKILL)
    with serving(small, "--port", "0") as after:
        service = service_settings(small.content, small.out, small.state)
        assert (service.base_url, service.private) == (after.url, True)
    assert not service_settings(small.content, small.out, small.state)


def test_a_full_disk_below_its_messages_stops_nothing(small: Settings) -> None:
    lossy = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"]
    for command, status in (
        (["build", "--content", small.content, "--out", small.out, "--state", small.state], 0),
        (["build", "--content", f"{small.content}/none"], 1),
        (["build", "--no-such-option"], 2),
    ):
        assert subprocess.run([*lossy, HUBCTL, *command], timeout=DEADLINE_SECONDS).returncode == (
            status
        )
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([*lossy, *serve_command(small, "--watch"), "--port", str(port)])
    try:
        wait_until(lambda: is_answered(f"{url}/api/v1/repos/bob/sql"), "the server answers")
        # Its build is logged from a thread of its own.
        write_version(small.content, "bob", "later", "1.0.0", "Later.\n")
        wait_until(lambda: is_answered(f"{url}/api/v1/repos/bob/later"), "the build ended")
    finally:
        server.terminate()
    assert server.wait(DEADLINE_SECONDS) == 0


def is_answered(url: str) -> bool:
    with contextlib.suppress(requests.ConnectionError):
        return ask("GET", url).status_code == 200
    return False
