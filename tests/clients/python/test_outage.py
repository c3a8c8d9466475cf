"""Hubs that are down, slow, broken or lying; copies on disk; several addresses."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import hub_prompts
import pytest
from hub_prompts import AsyncHub, Got, Hub, NotFound, Unavailable, Withdrawn

from tests.clients.python.fake import (
    LABELLED,
    LATEST,
    OF_A_LABEL,
    PINNED,
    Clock,
    FakeHub,
    answer,
    record,
    refusal,
    sources,
)  # fmt: skip
from tests.support.servers import DEADLINE_SECONDS, free_port, wait_until


@pytest.mark.parametrize("status", [500, 502, 503, 429, 401, 403, 304])
def test_in_an_outage_the_copy_is_used_and_one_call_waits(fake: FakeHub, clock: Clock, status: int):
    fake.has(LATEST, answer(), Cache_Control=OF_A_LABEL)
    hub = Hub(fake.url)
    hub.get("ada/hello")
    fake.fails(status)
    clock.pass_by(15 + 60 + 1)
    assert [hub.get("ada/hello").version for _ in range(20)] == ["1.0.0"] * 20
    assert len(fake.asked) == 2
    # From now on, requests go to the hub in the background.
    fake.on_request = fake.stall
    clock.pass_by(hub_prompts.RETRY_SECONDS + 1)
    assert [hub.get("ada/hello").version for _ in range(20)] == ["1.0.0"] * 20
    fake.has(LATEST, answer("New."), Cache_Control=OF_A_LABEL)
    fake.let_go.set()
    wait_until(lambda: hub.get("ada/hello").content == "New.", "the end of the outage")
    assert len(fake.asked) == 3


def test_a_copy_of_a_label_ends_as_the_hub_says_and_of_a_version_never(fake: FakeHub, clock: Clock):
    fake.has(LABELLED, answer(label="production"), Cache_Control=OF_A_LABEL)
    fake.has(PINNED, answer(), Cache_Control=OF_A_LABEL)
    hub = Hub(fake.url)
    for reference in ("ada/hello@production", "ada/hello@1.0.0"):
        hub.get(reference)
    fake.fails()
    clock.pass_by(15 + 86400 + 1)
    for one in (hub, hub, Hub(fake.url)):
        assert one.get("ada/hello@1.0.0").version == "1.0.0"
        with pytest.raises(Unavailable, match=r"status 500$"):
            one.get("ada/hello@production")


def test_without_a_copy_a_failure_is_remembered(fake: FakeHub, clock: Clock):
    fake.has(LATEST, refusal("unavailable", "Try again.\x1b"), 503)
    hub = Hub(fake.url)
    for _ in range(5):
        with pytest.raises(Unavailable, match=r"^Cannot read ada/hello: Try again\.$"):
            hub.get("ada/hello")
    assert len(fake.asked) == 1
    fake.has(LATEST, answer())
    clock.pass_by(hub_prompts.RETRY_SECONDS + 1)
    assert hub.get("ada/hello").version == "1.0.0"


def deep(body: bytes) -> bytes:
    return body.replace(b'"parameters": {"temperature": 0.5}', b'"parameters": ' + b"[" * 200_000)


FRONT = "---\ntitle: Hello\n---\nHello.\n"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"null", b"[]", b"<html>", b"\xff\xfe", b'{"data": null}', answer()[:-20],
        answer(sha256="0" * 64), answer(content="Other.") .replace(b"Other.", b"Others"),
        answer(owner="eve"), answer(name="other"), answer(version="1.0.1"), answer(version="x"),
        answer(version=None), answer(label="production"), answer(body=7),
        answer(body="Hello"), answer(body="}.\n"), answer(body=""), answer(body="Obey."),
        answer(FRONT, body="lo.\n"), answer(FRONT, body="---\nHello.\n"),
        answer(variables=None), answer(variables=[7]), answer(variables=[{"name": 7}]),
        answer(variables=[{"name": "a b"}]), answer(variables={"name": "a"}), answer(variables=7),
        answer(variables={}), answer(parameters=None), answer(parameters=[]), deep(answer()),
        json.dumps({"data": record() | {"content": "\ud800"}}).encode(),
        json.dumps({"data": record() | {"content": 7}}).encode(),
    ],
)  # fmt: skip
def test_a_lie_is_an_outage(fake: FakeHub, other: FakeHub, body: bytes):
    fake.has(PINNED, body)
    with pytest.raises(Unavailable, match="no record of ada/hello with the expected SHA-256"):
        Hub(fake.url).get("ada/hello@1.0.0")
    # Nothing of it is kept, and another address may know better.
    with pytest.raises(Unavailable):
        Hub(f"http://127.0.0.1:{free_port()}").get("ada/hello@1.0.0")
    other.has(PINNED, answer())
    assert Hub([fake.url, other.url]).get("ada/hello@1.0.0").version == "1.0.0"


def test_the_body_is_what_follows_the_front_matter(fake: FakeHub):
    fake.has(LATEST, answer(FRONT, body="Hello.\n"))
    assert Hub(fake.url).get("ada/hello").fill() == "Hello.\n"


def test_older_hubs_have_no_body(fake: FakeHub):
    body = record("Hello.\n")
    del body["body"]
    fake.has(LATEST, json.dumps({"data": body}).encode())
    assert Hub(fake.url).get("ada/hello").fill() == "Hello.\n"


def test_no_more_is_read_than_the_largest_record(fake: FakeHub):
    sent = 0

    def flood(handler: Any) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        while True:
            sent += handler.connection.send(b" " * 65536)

    fake.on_request = flood
    with pytest.raises(Unavailable, match="is too large"):
        Hub(fake.url, timeout=60).get("ada/hello")
    # The sockets between them hold at most a few megabytes.
    assert sent < hub_prompts.ANSWER_BYTES_MAX + 16 * 1024 * 1024


def test_an_answer_that_is_cut_off_is_an_outage(fake: FakeHub):
    def cut(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(answer())))
        handler.end_headers()
        handler.wfile.write(answer()[:100])

    fake.on_request = cut
    with pytest.raises(Unavailable):
        Hub(fake.url).get("ada/hello")


def test_who_waits_for_a_silent_hub_gets_the_copy(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer(), Cache_Control=OF_A_LABEL)
    hub = Hub(fake.url)
    hub.get("ada/hello")
    fake.on_request = fake.stall  # to the end of the test
    clock.pass_by(100)
    hub.timeout = 0.2
    assert [hub.get("ada/hello").version for _ in range(3)] == ["1.0.0"] * 3
    with pytest.raises(Unavailable, match=r"^Cannot read ada/hello: "):
        Hub(fake.url, timeout=0.2, disk=False).get("ada/hello")
    # Another process reads it from disk, within its timeout.
    assert sources(fake.url, "ada/hello", timeout=3) == ["disk"]

    async def main() -> str:
        return (await AsyncHub(fake.url, timeout=3).get("ada/hello")).version

    assert asyncio.run(main()) == "1.0.0"


def test_a_name_server_that_is_silent_holds_up_nobody(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch
):
    def resolve(*_: Any, **__: Any) -> Any:
        fake.let_go.wait()
        raise OSError("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    hub = Hub("http://hub.example", timeout=0.2)
    with pytest.raises(Unavailable, match=r"no answer within"):
        hub.get("ada/hello")


def test_bytes_that_trickle_in_hold_up_no_thread(fake: FakeHub):
    """Each byte comes within the timeout, and the answer never ends."""
    left = []

    def trickle(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while not fake.let_go.wait(0.01):
                handler.wfile.write(b" ")
        except OSError:
            left.append(handler)

    fake.on_request = trickle
    with pytest.raises(Unavailable):
        Hub(fake.url, timeout=0.5).get("ada/hello")
    wait_until(lambda: left, "the end of the connection")


def test_headers_that_trickle_in_are_given_up(fake: FakeHub, other: FakeHub, clock: Clock):
    """No status line, or headers without end: other addresses are asked, more prompts than there
    are threads, and each of them again.
    """
    left = []

    def trickle(handler: Any) -> None:
        part = b"HTTP/1.1 200 OK\r\n"
        try:
            while not fake.let_go.wait(0.01):
                handler.connection.sendall(part)
                part = b"x"
        except OSError:
            left.append(handler)

    fake.on_request = trickle
    names = [f"p{number}" for number in range(hub_prompts.FLIGHTS_MAX + 4)]
    for name in names:
        other.has(f"/api/v1/repos/ada/{name}.json", answer(name=name))
    hub = Hub(fake.url, timeout=0.1)
    for name in names:
        with pytest.raises(Unavailable):
            hub.get(f"ada/{name}")
    wait_until(lambda: len(left) == len(fake.asked) > 0, "the end of each connection")
    asked = len(fake.asked)
    clock.pass_by(hub_prompts.RETRY_SECONDS + 1)
    hub.timeout = 1
    with pytest.raises(Unavailable):
        hub.get("ada/p0")
    assert fake.paths[asked:] == ["/api/v1/repos/ada/p0.json"]
    both = Hub([fake.url, other.url], timeout=4)
    assert [both.get(f"ada/{name}").version for name in names] == ["1.0.0"] * len(names)


HELD = """
import sys, threading
import hub_prompts
hub = hub_prompts.Hub(sys.argv[1], timeout=3600)
threading.Thread(target=hub.get, args=["ada/hello"], daemon=True).start()
sys.stdin.readline()
"""


def test_a_process_ends_while_an_answer_is_on_its_way(fake: FakeHub):
    fake.on_request = fake.stall  # to the end of the test
    place = Path(hub_prompts.__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, fake.url], stdin=subprocess.PIPE, cwd=place
    )
    wait_until(lambda: fake.asked, "the request")
    process.communicate(b"\n", timeout=DEADLINE_SECONDS)
    assert process.returncode == 0


def test_on_get_has_the_reason_of_an_outage(
    fake: FakeHub, clock: Clock, caplog: pytest.LogCaptureFixture
):
    fake.has(LATEST, answer(), Cache_Control=OF_A_LABEL)
    told: list[Got] = []
    hub = Hub(fake.url, on_get=told.append)
    hub.get("ada/hello")
    fake.fails(503)
    clock.pass_by(100)
    hub.get("ada/hello")
    hub.get("ada/hello")
    assert [(one.source, str(one.error)[-10:]) for one in told] == [
        ("network", "None"), ("memory", "status 503"), ("memory", "status 503"),
    ]  # fmt: skip
    assert caplog.text.count("(using the last copy)") == 1
    fake.has(LATEST, answer(), Cache_Control=OF_A_LABEL)
    clock.pass_by(hub_prompts.RETRY_SECONDS + 1)
    hub.get("ada/hello")
    wait_until(lambda: hub.get("ada/hello") and not told[-1].error, "the end of the outage")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_no_proxy_leads_to_this_machine(
    fake: FakeHub, other: FakeHub, name: str, monkeypatch: pytest.MonkeyPatch
):
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, other.url)
    fake.has(LATEST, answer())
    url = fake.url.replace("127.0.0.1", name)
    assert Hub(url, token="hub_secret").get("ada/hello").version == "1.0.0"
    assert not other.asked


def test_the_next_address_is_asked_when_one_fails(fake: FakeHub, other: FakeHub, clock: Clock):
    for number in range(4):
        path, body = f"/api/v1/repos/ada/p{number}.json", answer(name=f"p{number}")
        fake.has(path, b"", 500)
        other.has(path, body)
    hub = Hub([fake.url, other.url + "/"])
    for number in range(3):
        assert hub.get(f"ada/p{number}").version == "1.0.0"
    # The working address comes first, for some time.
    assert (len(fake.asked), len(other.asked)) == (1, 3)
    clock.pass_by(hub_prompts.DOWN_SECONDS + 1)
    fake.has(path, body)
    assert hub.get("ada/p3").version == "1.0.0"
    assert (len(fake.asked), len(other.asked)) == (2, 3)


def test_one_address_that_is_silent_leaves_time_for_the_next(fake: FakeHub, other: FakeHub):
    fake.on_request = fake.stall
    other.has(LATEST, answer())
    assert Hub([fake.url, other.url], timeout=6).get("ada/hello").version == "1.0.0"


def test_not_found_is_not_the_word_of_a_mirror_alone(fake: FakeHub, other: FakeHub, clock: Clock):
    other.has(LATEST, answer(), Cache_Control=OF_A_LABEL)
    hub = Hub([other.url, fake.url])
    assert hub.get("ada/hello").version == "1.0.0"
    # The address that had it is down, and the other does not have it yet.
    other.fails()
    for seconds in (100, hub_prompts.RETRY_SECONDS + 1, hub_prompts.RETRY_SECONDS + 1):
        clock.pass_by(seconds)
        assert hub.get("ada/hello").version == "1.0.0"
        wait_until(lambda: hub._entries["ada/hello"].flight.done(), "the check in the background")
    assert len(other.asked) == len(fake.asked) + 1 == 4
    with pytest.raises(Unavailable):
        Hub([other.url, fake.url], disk=False).get("ada/hello")
    other.has(LATEST, refusal("repo_not_found"), 404)
    with pytest.raises(NotFound):
        Hub([other.url, fake.url]).get("ada/hello")
    fake.has(LATEST, refusal("withdrawn"), 410)
    with pytest.raises(Withdrawn):
        Hub([other.url, fake.url]).get("ada/hello")


@pytest.mark.parametrize(
    "location", ["/moved.json", "{other}/x", "file:///etc/hosts", "ftp://{host}/x"]
)
def test_redirects_are_not_followed(fake: FakeHub, other: FakeHub, location: str):
    target = location.format(other=other.url, host=other.url.partition("//")[2])
    fake.has(LATEST, b"", 302, Location=target)
    with pytest.raises(Unavailable, match=f": status 302 {target}$"):
        Hub(fake.url, headers={"X-Secret": "s"}).get("ada/hello")
    assert other.asked == [] and len(fake.asked) == 1
    assert fake.asked[0][1]["X-Secret"] == "s"


def test_no_token_is_sent(fake: FakeHub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HUB_TOKEN", "hub_secret")
    fake.has(LATEST, answer())
    Hub(fake.url).get("ada/hello")
    ((_, headers),) = fake.asked
    assert "hub_secret" not in str(headers) and headers["User-Agent"] == "hub-prompts/1.0.0"


def test_a_proxy_of_the_environment_is_used(fake: FakeHub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", fake.url)
    fake.has(f"http://hub.example{LATEST}", answer())
    assert Hub("http://hub.example").get("ada/hello").version == "1.0.0"
