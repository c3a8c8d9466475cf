"""The publish service inside `hubctl serve`."""

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest
import requests

from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from builder.model.service_urls import TRUSTED_URL
from builder.model.settings import Settings
from server.mount import PUBLISHERS_AT_ONCE
from tests.server.test_metrics_port import values
from tests.support.servers import (
    DEADLINE_SECONDS,
    Server,
    add_publisher,
    read_answer,
    serving,
    wait_until,
)

URL = "/api/v1/repos/zoe/hello/versions"
BODY = {"content": "Hello {{name}}.\r\n", "tags": ["fun"], "changelog": "First."}


@pytest.fixture
def hub(small: Settings) -> Iterator[tuple[Server, str]]:
    token = add_publisher(small, "zoe")
    # One address may have fewer connections than the strangers here; that of a proxy, any number.
    with serving(small, "--trusted-proxy", "127.0.0.1", "--metrics", "127.0.0.1:0") as server:
        server.session.headers["Authorization"] = f"Bearer {token}"
        yield server, token


def test_a_publication_shows_up_in_all_lists(hub: tuple[Server, str]) -> None:
    server, token = hub
    before = {path: server.get(path) for path in ("/api/v1/repos", "/new", "/", "/api/v1/tags")}
    answer = server.request("POST", URL, json=BODY)
    assert answer.status_code == 201
    data = answer.json()["data"]
    assert server.get("/api/v1/users/zoe").json()["data"]["repos_count"] == 1
    assert server.get("/api/v1/repos?tag=fun").json()["meta"]["total"] == 1
    assert {"name": "fun", "count": 1} in server.get("/api/v1/tags").json()["data"]
    for path in ("/zoe", "/zoe/hello", "/zoe/hello/1.0.0"):
        assert "hello" in server.get(path).text
    for path, old in before.items():
        changed = server.get(path, headers={"If-None-Match": old.headers["ETag"]})
        assert changed.status_code == 200
        assert ("fun" if "tags" in path else "hello") in changed.text
    # Lists may be late, but not for long.
    wait_until(
        lambda: server.get("/api/v1/hub.json").json()["data"]["serial"] == data["serial"],
        "the serial",
    )
    assert "zoe" in server.get("/api/v1/catalogue.jsonl").text
    assert server.get("/api/v1/repos?q=hello").json()["meta"]["total"] == 1
    assert server.get("/healthz").json()["status"] == "ok"
    assert token not in server.process.text and "Hello" not in server.process.text


def test_what_the_metrics_count(hub: tuple[Server, str]) -> None:
    server, _ = hub
    address = server.process.wait_for_line("Metrics at").split()[-1]
    wrong = {"Authorization": "Bearer nonsense"}
    for options in ({}, {}, {"json": {"content": 1}}, {"headers": wrong}):
        server.request("POST", URL, **{"json": BODY} | options)
    server.request("PUT", "/api/v1/repos/zoe/hello/labels/live", json={"version": "1.0.0"})
    for path in (
        "/", "/nowhere", "/api/v1/repos", "/api/v1/nowhere", "/api/v1/repos?q=hello", "/healthz",
        "/account",
    ):  # fmt: skip
        server.get(path)
    wait_until(lambda: server.get("/healthz").json()["status"] == "ok", "the lists")

    def counted() -> dict[str, float]:
        return values(requests.get(address, timeout=DEADLINE_SECONDS).text)

    serial = server.get("/api/v1/hub.json").json()["data"]["serial"]
    wait_until(lambda: counted().get("hub_serial") == serial, "a page since then")
    found = counted()
    expected = {
        "hub_publications_total,version,done": 1, "hub_publications_total,version,unchanged": 1,
        "hub_publications_total,version,refused": 2, "hub_publications_total,version,failed": 0,
        "hub_publications_total,label,done": 1, "hub_publications_late_total": 0,
        "hub_requests_total,publish,2xx": 3, "hub_requests_total,publish,4xx": 2,
        "hub_requests_total,page,2xx": 1, "hub_requests_total,page,4xx": 1,
        "hub_requests_total,read,2xx": 2, "hub_requests_total,read,4xx": 1,
        "hub_requests_total,search,2xx": 1, "hub_searches_total,computed": 1,
        "hub_requests_total,account,3xx": 1, "hub_failed_sign_ins_total,token": 1,
        "hub_request_duration_seconds_count,publish": 5, "hub_ready": 1, "hub_prompts": 4,
        "hub_builds_total,failed": 0, "hub_build_failures_in_row": 0,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert found["hub_request_duration_seconds_bucket,publish,+Inf"] == 5
    for name in (
        "hub_builds_total,succeeded", "hub_build_files_total,written",
        "hub_requests_total,other,2xx", "hub_disk_free_bytes,state",
    ):  # fmt: skip
        assert found[name] > 0, name
    assert "hub_connections" in found  # the client's may be closed by now
    assert not any("zoe" in name for name in found)


def post_head(length: str, token: str, *more: str) -> bytes:
    lines = [
        f"POST {URL} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}",
        "Content-Type: application/json", length, *more, "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode()


def test_a_large_body_is_refused_before_it_is_sent(hub: tuple[Server, str]) -> None:
    server, token = hub
    with server.connect() as connection:
        connection.sendall(
            post_head("Content-Length: 3000000000", token, "Expect: 100-continue")
        )  # and nothing more
        answer = read_answer(connection, "POST")
    assert answer.status == 413
    assert json.loads(answer.body)["error"]["code"] == "content_too_large"


def test_who_may_not_is_refused_before_the_body_is_sent(hub: tuple[Server, str]) -> None:
    server, _ = hub
    with server.connect() as connection:
        connection.sendall(post_head("Content-Length: 1000", "nonsense"))
        answer = read_answer(connection, "POST")
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def test_a_body_in_chunks(hub: tuple[Server, str]) -> None:
    server, token = hub
    raw = json.dumps(BODY).encode()
    with server.connect() as connection:
        connection.sendall(post_head("Transfer-Encoding: chunked", token))
        connection.sendall(chunk(raw[:10]) + chunk(raw[10:]) + chunk(b""))
        answer = read_answer(connection, "POST")
    assert answer.status == 201, answer.body
    with server.connect() as connection:
        connection.sendall(post_head("Transfer-Encoding: chunked", token))
        with contextlib.suppress(ConnectionError):
            for _ in range(PUBLICATION_BYTES_MAX // 65_536 + 1):
                connection.sendall(chunk(b" " * 65_536))
        assert read_answer(connection, "POST").status == 413


def test_a_client_that_goes_away_publishes_nothing(hub: tuple[Server, str]) -> None:
    server, token = hub
    raw = json.dumps(BODY).encode()
    with server.connect() as connection:
        connection.sendall(post_head(f"Content-Length: {len(raw)}", token) + raw[:20])
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    line = json.loads(server.process.wait_for_line('"event": "publish"'))
    assert line["status"] == 400
    assert server.get("/api/v1/repos/zoe/hello").status_code == 404
    assert server.request("POST", URL, json=BODY).status_code == 201


# More than the threads of any kind.
STRANGERS = PUBLISHERS_AT_ONCE + 16


def test_who_stalls_stops_nobody_else(hub: tuple[Server, str]) -> None:
    server, token = hub
    form = "Content-Type: application/x-www-form-urlencoded"
    login = f"POST /account/login HTTP/1.1\r\nHost: x\r\n{form}\r\nContent-Length: 99\r\n\r\nx"
    exchange = post_head("Content-Length: 99", "x").decode().replace(URL, TRUSTED_URL) + "{"
    publish = post_head("Content-Length: 99", token).decode() + "{"
    with contextlib.ExitStack() as stalled:
        for head, count in ((login, STRANGERS), (exchange, STRANGERS), (publish, 25)):
            for _ in range(count):
                connection = stalled.enter_context(server.connect())
                connection.sendall(head.encode())
        assert server.get("/api/v1/repos").status_code == 200
        assert server.get("/healthz").status_code == 200
        assert server.get("/account/login").status_code == 200
        assert server.request("POST", TRUSTED_URL, json={}).status_code == 422
        assert server.request("POST", URL, json=BODY).status_code == 201
    # Accounts work here, so the start logs nothing about them.
    assert "sign in" not in server.process.text


def test_monitors_and_visitors_do_not_wait_for_publishers(small: Settings) -> None:
    token = add_publisher(small, "zoe")
    with serving(small, "--publish-limit", "0") as server, contextlib.ExitStack() as stalled:
        for _ in range(STRANGERS):
            connection = stalled.enter_context(server.connect())
            connection.sendall(post_head("Content-Length: 99", token))
        assert server.get("/healthz").status_code == 200
        assert server.get("/account/login").status_code == 200
        assert server.request("POST", TRUSTED_URL, json={}).status_code == 422


def test_a_hub_without_https_says_that_nobody_can_sign_in(small: Settings) -> None:
    with serving(small, "--base-url", "http://hub.example") as server:
        assert "nobody can sign in" in server.process.text
    with serving(small, "--base-url", "https://hub.example") as server:
        assert "sign in" not in server.process.text


def test_account_pages_of_a_hub_without_https_are_for_this_machine(small: Settings) -> None:
    with serving(small, "--host", "0.0.0.0", "--trusted-proxy", "127.0.0.1") as server:
        line = server.process.wait_for_line("passwords would be sent unencrypted")
        assert "only on this machine" in line and "--base-url" in line
        assert server.get("/account/login").status_code == 200
        refused = server.get("/account/login", headers={"X-Forwarded-For": "192.0.2.7"})
        assert refused.status_code == 403 and "clear text" in refused.text
        assert server.get("/api/v1/repos", headers={"X-Forwarded-For": "192.0.2.7"}).ok
