"""A server's life: builds while it is asked, a site that comes late or is exchanged, its end."""

import json
import os
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
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.mcp.wire import (
    HANDSHAKE,
    STATELESS,
    Message,
    Wire,
    built_catalogue,
    call,
    error_of,
    message,
    serving_mcp,
)
from tests.support.catalogues import settings_in, write_version
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
    """No request fails, none is answered from before what its sender knows, in two processes."""
    settings = built_catalogue(tmp_path)
    token = add_publisher(settings, "ann")
    with (
        serving(settings, "--publish-limit", "0") as hub,
        serving_mcp(settings, "--base-url", hub.url) as alone,
        Wire(hub) as hub_wire,
        Wire(alone) as alone_wire,
    ):
        publish(hub, token, "1.0.0")
        wait_until(
            lambda: hub_wire.ask(*call("search_prompts", query="grows")).given["prompts"],
            "the search for a new prompt",
        )
        acknowledged = ["1.0.0"]
        is_over = threading.Event()
        askers = [
            Asker((hub, alone)[number % 2], (HANDSHAKE, STATELESS)[number // 2])
            for number in range(ASKERS)
        ]
        with ThreadPoolExecutor(ASKERS) as threads:
            running = [threads.submit(asker.run, acknowledged, is_over) for asker in askers]
            try:
                for minor in range(1, VERSIONS + 1):
                    version = f"1.{minor}.0"
                    publish(hub, token, version)
                    acknowledged.append(version)
                    for wire in (hub_wire, alone_wire):
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


# A site that is exchanged


@pytest.fixture
def two_sites(tmp_path: Path) -> Settings:
    """Settings whose site is a link to ``first``; ``second`` is another site beside it."""
    for name, text in (("first", "The first.\n"), ("second", "Second.\n")):
        settings = settings_in(tmp_path / name)
        write_version(settings.content, "ann", "same", "1.0.0", text, tags=[name])
        if name == "second":
            write_version(settings.content, "ann", "new", "1.0.0", "New.\n", tags=[name])
        build(settings)
    os.symlink(tmp_path / "first" / "site", tmp_path / "site")
    return Settings("", f"{tmp_path}/site", f"{tmp_path}/state", "https://hub.example")


def point(link: Path, target: Path) -> None:
    """Let a link name something else, without a moment in which it names nothing."""
    other = link.with_name("other")
    os.symlink(target, other)
    other.replace(link)


def test_a_site_that_is_exchanged_while_it_is_asked(two_sites: Settings):
    link = Path(two_sites.out)
    sites = [link.with_name(name) / "site" for name in ("first", "second")]
    texts = {"The first.\n", "Second.\n"}
    seen: set[str] = set()
    is_over = threading.Event()

    def exchange() -> None:
        number = 0
        while not is_over.wait(0.002):
            number += 1
            point(link, sites[number % 2])

    with serving_mcp(two_sites) as server, Wire(server) as wire, ThreadPoolExecutor(1) as threads:
        exchanging = threads.submit(exchange)
        try:
            for number in range(600):
                era = (HANDSHAKE, STATELESS)[number % 2]
                given = wire.ask(*call("get_prompt", id="ann/same", version=era)).given
                seen.add(given["text"])
                assert (given["text"] == "The first.\n") is (given["tags"] == ["first"])
                assert len(wire.ask(*call("list_tags", version=era)).given["tags"]) == 1
        finally:
            is_over.set()
        exchanging.result()
        assert seen == texts
        point(link, sites[1])
        assert wire.ask(*call("get_prompt", id="ann/new")).given["text"] == "New.\n"
        point(link, sites[0])
        assert wire.ask(*call("get_prompt", id="ann/new")).result["isError"]


# A site that comes late


def told(result: Any) -> str:
    """The text of a tool's result that is an error."""
    assert result["isError"] is True
    assert "structuredContent" not in result
    (content,) = result["content"]
    return content["text"]


CALLS = [
    call("get_prompt", id="ann/review"), call("list_versions", id="ann/review"),
    call("list_tags"), call("search_prompts"), call("search_prompts", query="review"),
    call("search_prompts", owner="ann"), call("search_prompts", tags=["code"]),
]  # fmt: skip
OTHERS = [
    message("prompts/list"), message("resources/list"),
    message("prompts/get", {"name": "ann/review", "arguments": {"code": "x"}}),
    message("resources/read", {"uri": "prompt://ann/review"}),
]  # fmt: skip


def test_a_site_that_comes_after_the_server(tmp_path: Path):
    other = built_catalogue(tmp_path / "other")
    settings = Settings("", f"{tmp_path}/site", f"{tmp_path}/state", other.base_url)
    with serving_mcp(settings) as server, Wire(server) as wire:
        assert f"No site in {settings.out} yet" in server.process.text
        for era in (None, HANDSHAKE, STATELESS):
            assert wire.ask(*message("tools/list", version=era)).result["tools"]
        for valid in CALLS:
            assert "not built yet" in told(wire.ask(*valid).result), valid
        for valid in OTHERS:
            assert "ry again in a moment" in error_of(wire.ask(*valid))["message"], valid
        # Nothing is created in a missing folder.
        assert sorted(os.listdir(tmp_path)) == ["other"]

        os.rename(other.out, settings.out)
        for valid in CALLS[:4]:
            assert wire.ask(*valid).given
        for valid in OTHERS:
            assert wire.ask(*valid).result
        without_state = wire.ask(*CALLS[4]).result
        assert "ry again" in told(without_state)

        os.rename(other.state, settings.state)
        for valid in CALLS:
            assert wire.ask(*valid).given, valid
        found = wire.ask(*call("search_prompts", query="review")).given
        assert [prompt["id"] for prompt in found["prompts"]] == ["ann/review"]


# The end


def is_refused(server: Server) -> bool:
    """True if no server listens any more."""
    with socket.socket() as probe:
        return probe.connect_ex((server.host, server.port)) != 0


@pytest.fixture(params=[serving, serving_mcp], ids=["serve", "mcp"])
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with request.param(built_catalogue(tmp_path)) as server:
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
