"""Readers of live servers during publications: none sees a part of a version, or an old one.

Publishers read what they have published at once, with the validators of the state before; readers
follow every link meanwhile.
"""

import random
import threading
from functools import partial

import pytest

from builder.model.names import Version
from builder.model.routes import SORTS
from builder.model.settings import Settings
from builder.pipeline.build import compare
from tests.publisher.write.clients import (
    OPTIONS,
    Client,
    Ledger,
    check_published,
    check_sha256,
    run_together,
)
from tests.support.depth import some_of
from tests.support.servers import Server, add_publisher, file_host, serving, wait_until

PUBLISHERS = 4
READERS = 4
# So that most of the machine is for the publishers.
READERS_PAUSE_SECONDS = 0.005
ROWS_FOLLOWED = 3
PUBLICATIONS = PUBLISHERS * some_of(60)


class Reader:
    """Reads at random, follows what it finds, and never forgets what it has seen."""

    def __init__(self, client: Client, ledger: Ledger, seed: int) -> None:
        self._client = client
        self._ledger = ledger
        self._random = random.Random(seed)
        self._newest: dict[str, Version] = {}

    def look(self) -> None:
        """A walk: a list, a repo of it, a version of that."""
        rows = self._client.read(f"/api/v1/repos/_/{self._random.choice(SORTS)}/1.json").data
        for row in self._random.sample(rows, min(len(rows), ROWS_FOLLOWED)):
            path = f"/api/v1/repos/{row['owner']}/{row['name']}.json"
            latest = self._client.read(path).data["latest_version"]
            self._see(path, latest)
            assert Version.parse(latest) >= Version.parse(row["latest_version"])
        if not rows:
            return
        row = self._random.choice(rows)
        repo = f"{row['owner']}/{row['name']}"
        api = f"/api/v1/repos/{repo}"
        latest = self._client.read(api).data
        self._see(api, latest["latest_version"])
        text = check_sha256(latest["content"], latest["sha256"])
        self._ledger.note(repo, latest["latest_version"], text)
        raw = self._client.follow(latest["raw_url"]).body.decode()
        self._ledger.note_latest(repo, raw, latest["latest_version"])
        rows = self._client.follow(latest["versions_url"]).data
        self._see(latest["versions_url"], rows[0]["version"])
        versions = [Version.parse(row["version"]) for row in rows]
        assert versions == sorted(set(versions), reverse=True)
        for row in (rows[0], self._random.choice(rows)):
            raw = self._client.follow(row["raw_url"]).body.decode()
            self._ledger.note(repo, row["version"], check_sha256(raw, row["sha256"]))
            assert self._client.read(f"{api}/versions/{row['version']}").data["content"] == raw
            if row["diff_url"]:
                self._client.follow(row["diff_url"])

    def _see(self, path: str, version: str) -> None:
        seen = Version.parse(version)
        assert seen >= self._newest.get(path, seen), f"{path} goes backwards"
        self._newest[path] = seen


@pytest.fixture
def settings(empty: Settings) -> Settings:
    """Empty folders of a hub that answers queries."""
    return empty._replace(queries=True)


def check_at_rest(server: Server, ledger: Ledger) -> None:
    """Once it is quiet: lists are complete, and the site is what a build makes of the content."""
    wait_until(
        lambda: server.get("/api/v1/hub.json").json()["data"]["serial"] >= ledger.serial, "lists"
    )
    wait_until(lambda: server.get("/healthz").json()["status"] == "ok", "the last build")
    ledger.check(server.settings)
    assert compare(server.settings._replace(base_url=server.url))[:3] == ([], [], [])
    assert '"level": "error"' not in server.process.text


def test_readers_and_publishers(settings: Settings):
    tokens = {owner: add_publisher(settings, owner) for owner in ("ann", "bob")}
    ledger = Ledger()
    is_over = threading.Event()

    def publish_some(server: Server, static: str, number: int) -> None:
        # Two share repos; each of the others has its own.
        owner = "ann" if number % 2 else "bob"
        with (
            Client(server.url, token=tokens[owner]) as live,
            Client(static, Client.TIME) as files,
        ):  # fmt: skip
            for count in range(PUBLICATIONS // PUBLISHERS):
                part = count // 20
                repo = f"ann/shared-{part}" if owner == "ann" else f"bob/r{number}-{part}"
                text = f"Text {count:03} of {number}."
                answer = live.publish(repo, text)
                ledger.acknowledge(answer, text)
                assert live.follow(answer.headers["location"]).data["content"] == text
                for client in (live, files):
                    check_published(client, ledger, repo, answer.data["version"], text)

    def publish_all(server: Server, static: str) -> None:
        try:
            run_together(
                *(partial(publish_some, server, static, number) for number in range(PUBLISHERS))
            )
        finally:
            is_over.set()

    def read_on(server: Server, number: int) -> None:
        with Client(server.url) as client:
            reader = Reader(client, ledger, number)
            while not is_over.wait(READERS_PAUSE_SECONDS):
                reader.look()

    with (
        serving(settings, *OPTIONS) as server,
        file_host(settings.out, "--protocol", "HTTP/1.1") as static,
    ):
        run_together(
            partial(publish_all, server, static),
            *(partial(read_on, server, number) for number in range(READERS)),
        )
        check_at_rest(server, ledger)
        for client in (Client(server.url), Client(static, Client.TIME)):
            with client:
                client.read("/api/v1/hub.json")
                assert client.is_unchanged("/api/v1/hub.json")  # they do compare states
    assert len(ledger.acknowledged) == PUBLICATIONS
