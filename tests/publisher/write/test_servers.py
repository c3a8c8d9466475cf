"""Publications while servers stop, are killed, or share folders: none is lost, none is doubled."""

import random
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from builder.model.settings import Settings
from tests.publisher.write.clients import (
    OPTIONS,
    Answer,
    Client,
    Ledger,
    check_published,
    run_together,
)
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
