"""Publications while servers stop, are killed, or share folders: none is lost, none is doubled."""

import hashlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from builder.model.names import Version
from builder.model.settings import Settings
from builder.store import content
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    add_publisher,
    free_port,
    serve_command,
    wait_until,
)

PUBLISHERS = 4
KILLS = 5
OPTIONS = ("--publish-limit", "0", "--rate-limit", "0")


class Client(requests.Session):
    """One kept connection to one hub."""

    def __init__(self, url: str, token: str = "") -> None:
        super().__init__()
        self._url, self._token = url, token

    def read(self, path: str) -> requests.Response:
        answer = self.get(self._url + urlsplit(path).path, timeout=DEADLINE_SECONDS)
        assert answer.status_code == 200, f"a pointer into nothing: {path}: {answer}"
        return answer

    def data(self, path: str) -> Any:
        return self.read(path).json()["data"]

    def publish(self, repo: str, text: str) -> requests.Response:
        """Publish with a key that follows from the text, so that it can be sent again."""
        headers = {"Authorization": f"Bearer {self._token}", "Idempotency-Key": text}
        address = f"{self._url}/api/v1/repos/{repo}/versions"
        return self.post(address, json={"content": text}, headers=headers, timeout=DEADLINE_SECONDS)


class Ledger:
    """Acknowledged texts by repo and version. Each text is published once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acknowledged: dict[tuple[str, str], str] = {}

    def acknowledge(self, answer: requests.Response, text: str) -> None:
        assert answer.status_code == 201, answer.text
        data = answer.json()["data"]
        place = (f"{data['owner']}/{data['name']}", data["version"])
        with self._lock:
            assert place not in self.acknowledged, f"{place} twice"
            self.acknowledged[place] = text

    def check(self, settings: Settings) -> None:
        """All that was acknowledged is stored, once."""
        stored = {}
        for owner in content.list_owners(settings.content):
            for name in content.list_repos(settings.content, owner):
                for version in content.list_versions(settings.content, owner, name).versions:
                    _, text = content.read_version(settings.content, owner, name, version)
                    stored[f"{owner}/{name}", str(version)] = text
        assert stored == self.acknowledged
        assert len(set(stored.values())) == len(stored)


def check_published(client: Client, repo: str, version: str, text: str) -> None:
    """Every endpoint of a repo has a version, or a later one where it shows the latest."""

    def check_new(row: dict[str, Any], key: str = "latest_version") -> None:
        assert Version.parse(row[key]) >= Version.parse(version), f"{row} is older than {version}"

    api = f"/api/v1/repos/{repo}"
    owner, _, name = repo.partition("/")
    latest = client.data(f"{api}.json")
    check_new(latest)
    assert client.read(f"{api}/raw.txt").content.decode() == latest["content"]
    rows = client.data(f"{api}/versions.json")
    check_new(rows[0], "version")
    (row,) = (row for row in rows if row["version"] == version)
    one = client.data(f"{api}/versions/{version}.json")
    assert one["content"] == text and row.items() <= one.items()
    assert row["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert client.read(row["raw_url"]).content == text.encode()
    assert (row["diff_url"] is None) == (version == "1.0.0")
    if row["diff_url"]:
        assert f"+{text}" in client.read(row["diff_url"]).text
    user = client.data(f"/api/v1/users/{owner}.json")
    check_new(*(row for row in user["repos"] if row["name"] == name))
    for row in client.data("/api/v1/repos/_/top/1.json"):
        if (row["owner"], row["name"]) == (owner, name):
            check_new(row)
    assert text in client.read(f"/{repo}/{version}.html").text
    assert client.read(f"/{repo}.html").text


def run_together(*jobs: Callable[[], object]) -> list[Any]:
    """Run jobs in threads; raises what one of them has raised."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


@pytest.fixture
def settings(empty: Settings) -> Settings:
    """Empty folders of a hub that answers queries."""
    return empty._replace(queries=True)


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

    def publish(self, repo: str, text: str) -> requests.Response | None:
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
                check_published(client, repo, version, text)


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

    def publish(text: str) -> requests.Response | None:
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
