"""Builds while a server is asked."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from builder.model.names import Version
from tests.mcp.wire import HANDSHAKE, STATELESS, Wire, built_catalogue, call
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
