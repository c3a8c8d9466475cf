"""Readers of live servers during publications: none sees a part of a version, or an old one.

Publishers read what they have published at once, with the validators of the state before; readers
follow every link meanwhile. Servers are stopped, killed and doubled.
"""

import fcntl
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from builder.model.names import Version
from builder.model.routes import SORTS
from builder.model.settings import Settings
from builder.pipeline.build import compare
from builder.store import content
from tests.support.catalogues import read_tree, settings_in
from tests.support.depth import some_of
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    Server,
    add_publisher,
    file_host,
    free_port,
    serve_command,
    serving,
    wait_until,
)

OPTIONS = ("--publish-limit", "0", "--rate-limit", "0")
PUBLISHERS = 4
READERS = 4
# So that most of the machine is for the publishers.
READERS_PAUSE_SECONDS = 0.005
ROWS_FOLLOWED = 3
PUBLICATIONS = PUBLISHERS * some_of(60)
KILLS = 5


@dataclass
class Answer:
    """An answer as it came. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @cached_property
    def data(self) -> Any:
        return json.loads(self.body)["data"]


class Client:
    """One kept connection to one host, with a cache that validates each time, as browsers do.

    ``validator``: the header of an answer that identifies its state, and the header of a
    conditional request. A plain socket is used, as a client library takes longer than the server.
    """

    ETAG = ("etag", "If-None-Match")
    TIME = ("last-modified", "If-Modified-Since")

    def __init__(self, url: str, validator: tuple[str, str] = ETAG, token: str = "") -> None:
        host, _, port = urlsplit(url).netloc.partition(":")
        self._socket = socket.create_connection((host, int(port)), DEADLINE_SECONDS)
        self._answers = self._socket.makefile("rb")
        self._said, self._ask = validator
        self._token = token
        self._kept: dict[str, Answer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()

    def read(self, path: str) -> Answer:
        """The current answer, or the last one if the host says that it is unchanged."""
        kept = self._kept.get(path)
        answer = self._ask_for(path, kept)
        if kept and answer.status == 304:
            return kept
        assert answer.status == 200, f"a pointer into nothing: {path}: {answer}"
        self._kept[path] = answer
        return answer

    def is_unchanged(self, path: str) -> bool:
        """True if the host says that the last answer is unchanged."""
        return self._ask_for(path, self._kept[path]).status == 304

    def follow(self, url: str) -> Answer:
        return self.read(urlsplit(url).path)

    def publish(self, repo: str, text: str) -> Answer:
        """Publish with a key that follows from the text, so that it can be sent again."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Idempotency-Key": text,
        }
        body = json.dumps({"content": text}).encode()
        return self._send("POST", f"/api/v1/repos/{repo}/versions", headers, body)

    def _ask_for(self, path: str, kept: Answer | None) -> Answer:
        return self._send("GET", path, {self._ask: kept.headers[self._said]} if kept else {})

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        """Raises OSError where the connection is gone."""
        sent = {"Host": "x", "Content-Length": str(len(body)), **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{key}: {sent[key]}" for key in sent), "", ""]
        self._socket.sendall("\r\n".join(lines).encode() + body)
        # A host that sends head and body apart waits for the head to be acknowledged.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        status = self._read_line().split()[1]
        received = {}
        while line := self._read_line():
            key, _, value = line.partition(":")
            received[key.lower()] = value.strip()
        length = int(received.get("content-length", 0)) if status != "304" else 0
        data = self._answers.read(length)
        if len(data) < length:
            raise ConnectionResetError("closed within a body")
        return Answer(int(status), received, data)

    def _read_line(self) -> str:
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("closed within a head")
        return line[:-2].decode("latin-1")


class Ledger:
    """Acknowledged and seen texts by repo and version. Each text is published once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acknowledged: dict[tuple[str, str], str] = {}
        self.serial = 0
        self._seen: dict[tuple[str, str], str] = {}
        self._seen_latest: list[tuple[str, str, str]] = []

    def acknowledge(self, answer: Answer, text: str) -> None:
        assert answer.status == 201, answer
        place = (f"{answer.data['owner']}/{answer.data['name']}", answer.data["version"])
        with self._lock:
            assert place not in self.acknowledged, f"{place} twice"
            self.acknowledged[place] = text
            self.serial = max(self.serial, answer.data["serial"])

    def note(self, repo: str, version: str, text: str) -> None:
        """Note that a reader has seen this text as this version."""
        with self._lock:
            assert self._seen.setdefault((repo, version), text) == text

    def note_latest(self, repo: str, text: str, version: str) -> None:
        """Note that a reader who knew this version has seen this text as the latest."""
        self._seen_latest.append((repo, text, version))

    def check(self, settings: Settings) -> None:
        """All that was acknowledged is stored, once, and all that was seen is of it."""
        stored = {}
        for owner in content.list_owners(settings.content):
            for name in content.list_repos(settings.content, owner):
                for version in content.list_versions(settings.content, owner, name).versions:
                    _, text = content.read_version(settings.content, owner, name, version)
                    stored[f"{owner}/{name}", str(version)] = text
        assert stored == self.acknowledged
        assert len(set(stored.values())) == len(stored)
        assert self._seen.items() <= stored.items()
        version_of = {(repo, text): version for (repo, version), text in stored.items()}
        for repo, text, version in self._seen_latest:
            assert Version.parse(version_of[repo, text]) >= Version.parse(version)


def check_sha256(text: str, expected: str) -> str:
    assert hashlib.sha256(text.encode()).hexdigest() == expected
    return text


def check_published(client: Client, ledger: Ledger, repo: str, version: str, text: str) -> None:
    """Every endpoint of a repo has a version, or a later one where it shows the latest."""

    def check_new(row: dict[str, Any], key: str = "latest_version") -> None:
        assert Version.parse(row[key]) >= Version.parse(version), f"{row} is older than {version}"

    api = f"/api/v1/repos/{repo}"
    owner, _, name = repo.partition("/")
    ledger.note_latest(repo, client.read(f"{api}/raw.txt").body.decode(), version)
    latest = client.read(f"{api}.json").data
    check_new(latest)
    ledger.note(repo, latest["latest_version"], check_sha256(latest["content"], latest["sha256"]))
    rows = client.read(f"{api}/versions.json").data
    check_new(rows[0], "version")
    (row,) = (row for row in rows if row["version"] == version)
    one = client.read(f"{api}/versions/{version}.json").data
    assert one["content"] == text and row.items() <= one.items()
    assert check_sha256(client.follow(row["raw_url"]).body.decode(), row["sha256"]) == text
    assert (row["diff_url"] is None) == (version == "1.0.0")
    if row["diff_url"]:
        assert f"+{text}" in client.follow(row["diff_url"]).body.decode()
    user = client.read(f"/api/v1/users/{owner}.json").data
    check_new(*(row for row in user["repos"] if row["name"] == name))
    for row in client.read("/api/v1/repos/_/top/1.json").data:
        if (row["owner"], row["name"]) == (owner, name):
            check_new(row)
    assert text in client.read(f"/{repo}/{version}.html").body.decode()
    assert client.read(f"/{repo}.html").body


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
def settings() -> Iterator[Settings]:
    """Empty folders in memory, where the system offers it: a publication waits for the disk."""
    folder = tempfile.mkdtemp(prefix="hub-")
    yield settings_in(folder, queries=True)
    shutil.rmtree(folder)


def run_together(*jobs: Callable[[], object]) -> list[Any]:
    """Run jobs in threads; raises what one of them has raised."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


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


# Servers that end


class Hub:
    """A hub at one address; its server stops and starts at any moment."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.token = add_publisher(settings, "ann")
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.process: Process

    def start(self) -> None:
        """Start a server; it answers when this returns."""
        command = serve_command(self.settings, *OPTIONS, "--port", str(self._port))
        self.process = Process(*command)
        self.process.wait_for_line("(stop with Ctrl-C)")
        with Client(self.url) as client:
            client.read("/api/v1/repos")

    def publish(self, repo: str, text: str) -> Answer | None:
        """The answer; None if the connection fails."""
        try:
            with Client(self.url, token=self.token) as client:
                return client.publish(repo, text)
        except OSError:
            return None

    def check(self, ledger: Ledger) -> None:
        """Check that all acknowledged versions can be read, and that none exists twice."""
        ledger.check(self.settings)
        with Client(self.url) as client:
            for (repo, version), text in ledger.acknowledged.items():
                check_published(client, ledger, repo, version, text)


@pytest.fixture
def hub(settings: Settings) -> Iterator[Hub]:
    made = Hub(settings)
    made.start()
    yield made
    assert made.process.stop() == 0, made.process.text


def count_records(settings: Settings) -> int:
    return sum(1 for path in Path(settings.content).glob("*/*/*.json"))


def test_stopped_while_publications_are_under_way(hub: Hub):
    ledger = Ledger()
    repos = {f"Text {number}.": f"ann/r{number % 3}" for number in range(20)}

    def publish(text: str) -> Answer | None:
        return hub.publish(repos[text], text)

    with ThreadPoolExecutor(len(repos)) as pool:
        futures = {text: pool.submit(publish, text) for text in repos}
        wait_until(lambda: count_records(hub.settings), "a publication")
        hub.process.send(signal.SIGTERM)
        answers = {text: future.result() for text, future in futures.items()}
    assert hub.process.wait() == 0
    assert any(answers.values())
    hub.start()
    for text, answer in answers.items():
        ledger.acknowledge(answer or publish(text), text)
    hub.check(ledger)


def test_killed_while_publications_are_under_way(hub: Hub):
    ledger = Ledger()
    is_over = threading.Event()
    is_up = threading.Event()
    moments = random.Random(4)

    def publish_on(number: int) -> None:
        count = 0
        while not is_over.is_set():
            text = f"Text {count} of {number}."
            repo = f"ann/r{(number + count) % 3}"
            while not (answer := hub.publish(repo, text)):
                is_up.wait(DEADLINE_SECONDS)
            ledger.acknowledge(answer, text)
            count += 1

    def kill_often() -> None:
        try:
            for _ in range(KILLS):
                is_up.set()
                expected = len(ledger.acknowledged) + moments.randrange(1, 12)
                wait_until(lambda: len(ledger.acknowledged) >= expected, "publications")  # noqa: B023
                is_up.clear()
                hub.process.stop(signal.SIGKILL)
                hub.start()
        finally:
            is_over.set()
            is_up.set()

    run_together(*(partial(publish_on, number) for number in range(PUBLISHERS)), kill_often)
    hub.check(ledger)


# Two servers


@contextmanager
def build_lock(settings: Settings) -> Iterator[Callable[[], int]]:
    """Hold the lock that builds take; gives a function that counts who waits for it."""
    with open(f"{settings.state}/build.lock", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        inode = f":{os.fstat(file.fileno()).st_ino} "

        def count_waiting() -> int:
            lines = Path("/proc/locks").read_text().splitlines()
            return sum(1 for line in lines if "->" in line and inode in line)

        yield count_waiting


def test_two_servers_of_the_same_folders(settings: Settings):
    token = add_publisher(settings, "ann")
    ledger = Ledger()
    common = (*OPTIONS, "--base-url", "https://hub.example")

    def publish_some(servers: list[Server], number: int) -> None:
        with (
            Client(servers[number % 2].url, token=token) as mine,
            Client(servers[1 - number % 2].url) as other,
        ):
            for count in range(25):
                repo, text = f"ann/r{count % 2}", f"Text {count} of {number}."
                answer = mine.publish(repo, text)
                ledger.acknowledge(answer, text)
                for client in (mine, other):
                    check_published(client, ledger, repo, answer.data["version"], text)

    def publish_one(server: Server, text: str) -> None:
        with Client(server.url, token=token) as client:
            ledger.acknowledge(client.publish("ann/r0", text), text)

    with serving(settings, *common) as one, serving(settings, *common) as other:
        servers = [one, other]
        run_together(*(partial(publish_some, servers, number) for number in range(PUBLISHERS)))
        for server in servers:
            wait_until(lambda: server.get("/healthz").json()["status"] == "ok", "its builds")  # noqa: B023
        # Never two builds at once: each waits for the lock, and does nothing without it.
        with ThreadPoolExecutor(2) as pool:
            with build_lock(settings) as count_waiting:
                before = read_tree(settings.out)
                jobs = [pool.submit(publish_one, each, each.url) for each in servers]
                wait_until(lambda: count_waiting() == 2, "both to wait")
                assert read_tree(settings.out) == before
            for job in jobs:
                job.result()
        ledger.check(settings)
        for server in servers:
            wait_until(lambda: server.get("/healthz").json()["status"] == "ok", "its builds")  # noqa: B023
            assert '"level": "error"' not in server.process.text
    assert compare(settings)[:3] == ([], [], [])
