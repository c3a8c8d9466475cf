"""A server's life: builds while it is asked, a site that comes late or is exchanged, its end."""

import json
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from builder.model.names import Version
from tests.mcp.wire import HANDSHAKE, STATELESS, Message, Wire, built_catalogue, call, message
from tests.support.servers import Server, add_publisher, serving, wait_until

VERSIONS = 10
ASKERS = 4
CALLS_MIN = 1000


class Asker:
    """Asks for the same prompt again and again, on one connection, and checks what it is given."""

    def __init__(self, server: Server, version: str) -> None:
        self._server = server
        self._protocol = version
        self.calls = 0

    def run(self, acknowledged: list[str], is_over: threading.Event) -> None:
        """``acknowledged``: the versions that readers must see by now; grows meanwhile."""
        with Wire(self._server) as wire:
            while not is_over.is_set():
                known = list(acknowledged)
                latest = self._given(wire, "get_prompt", id="ann/grows")
                assert latest["is_latest"] is True
                assert latest["text"] == text_of(latest["version"])
                assert order(latest["version"]) >= order(known[-1])
                old = self._given(wire, "get_prompt", id=f"ann/grows@{known[0]}")
                assert (old["version"], old["text"]) == (known[0], text_of(known[0]))
                assert not (old["is_latest"] and len(known) > 1)
                listed = self._given(wire, "list_versions", id="ann/grows", limit=100)["versions"]
                assert {version["version"] for version in listed} >= set(known)
                tags = self._given(wire, "list_tags", prefix="of-")["tags"]
                assert len(tags) == 1
                found = self._given(wire, "search_prompts", query="grows", limit=1)["prompts"]
                assert found[0]["id"] == "ann/grows"

    def _given(self, wire: Wire, tool: str, **arguments: Any) -> Any:
        self.calls += 1
        valid = call(tool, request_id=self.calls, version=self._protocol, **arguments)
        reply = wire.ask(*valid)
        assert reply.json["id"] == self.calls
        return reply.given


def order(version: str) -> Version:
    return Version.parse(version)


def text_of(version: str) -> str:
    return f"The text of {version}.\n" * (int(version.split(".")[1]) + 1)


def publish(server: Server, token: str, version: str) -> None:
    tag = "of-" + version.replace(".", "-")
    body = {"content": text_of(version), "tags": [tag], "bump": "minor"}
    answer = server.request(
        "POST", "/api/v1/repos/ann/grows/versions", json=body,
        headers={"Authorization": f"Bearer {token}"},
    )  # fmt: skip
    assert answer.status_code == 201, answer.text
    assert answer.json()["data"]["version"] == version


def test_builds_while_it_is_asked(tmp_path: Path):
    """No request fails, none is answered from before what its sender knows."""
    settings = built_catalogue(tmp_path)
    token = add_publisher(settings, "ann")
    with serving(settings, "--publish-limit", "0", "--rate-limit", "0") as hub, Wire(hub) as wire:
        publish(hub, token, "1.0.0")
        wait_until(
            lambda: wire.ask(*call("search_prompts", query="grows")).given["prompts"],
            "the search for a new prompt",
        )
        acknowledged = ["1.0.0"]
        is_over = threading.Event()
        askers = [Asker(hub, (HANDSHAKE, STATELESS)[number % 2]) for number in range(ASKERS)]
        with ThreadPoolExecutor(ASKERS) as threads:
            running = [threads.submit(asker.run, acknowledged, is_over) for asker in askers]
            try:
                for minor in range(1, VERSIONS + 1):
                    version = f"1.{minor}.0"
                    publish(hub, token, version)
                    acknowledged.append(version)
                    for era in (None, STATELESS):
                        valid = call("get_prompt", id="ann/grows", version=era)
                        assert wire.ask(*valid).given["version"] == version
                wait_until(
                    lambda: (
                        sum(asker.calls for asker in askers) >= CALLS_MIN
                        or any(one.done() for one in running)
                    ),
                    "the calls",
                )
            finally:
                is_over.set()
            for one in running:
                one.result()


# The end


def is_refused(server: Server) -> bool:
    """True if no server listens any more."""
    with socket.socket() as probe:
        return probe.connect_ex((server.host, server.port)) != 0


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Server]:
    with serving(built_catalogue(tmp_path)) as server:
        yield server


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_under_way_are_answered_at_the_end(started: Server, number: int):
    valid: list[Message] = [
        call("get_prompt", id="ann/review", version=HANDSHAKE),
        call("list_tags", version=STATELESS),
        message("tools/list"),
    ]
    with ExitStack() as open_wires:
        with Wire(started) as idle:
            assert idle.ask(*message("ping")).result == {}
            # Only now: the server closes a connection on which no request comes in time, and the
            # first answer takes long on a busy machine.
            wires = [open_wires.enter_context(Wire(started)) for _ in valid]
            for wire, one in zip(wires, valid, strict=True):
                length = str(len(one.body))
                headers = one.headers | {"Content-Length": length, "Expect": "100-continue"}
                wire.send(headers=headers)
            for wire, one in zip(wires, valid, strict=True):
                # A client that gets 100 Continue is being answered.
                assert wire.socket.recv(25, socket.MSG_WAITALL) == b"HTTP/1.1 100 Continue\r\n\r\n"
                wire.socket.sendall(one.body[:10])
            started.process.send(number)
            assert idle.is_ended()
        wait_until(lambda: is_refused(started), "the end of listening")
        for wire, one in zip(wires, valid, strict=True):
            wire.socket.sendall(one.body[10:])
            assert "result" in json.loads(wire.read().body)
            assert wire.is_ended()
    assert started.process.wait() == 0
    assert "Traceback" not in started.process.text
