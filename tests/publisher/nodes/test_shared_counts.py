"""Limits that nodes count together in a real Redis, and what they do while it is away."""

import contextlib
import importlib
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from publisher.accounts.people.attempts import Attempts
from publisher.nodes import shared_counts
from publisher.nodes.shared_counts import SharedCounts
from server.throttle import Throttle
from tests.support.catalogues import BASE_URL, settings_in, write_small_catalogue
from tests.support.redis import PASSWORD, Redis
from tests.support.servers import (
    Server,
    add_publisher,
    free_port,
    running,
    serve_command,
    wait_until,
)

SECRETS = (PASSWORD, "s3cret")
Node = Callable[[str], SharedCounts]


@pytest.fixture
def redis(tmp_path: Path, installed_tools: None) -> Iterator[Redis]:
    redis = Redis(tmp_path)
    yield redis
    redis.kill()


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Makes a node of a hub, for a URL; all are closed at the end."""
    # A machine that is busy otherwise answers late.
    monkeypatch.setattr(shared_counts, "ANSWER_SECONDS", 30.0)
    made = []

    def make(url: str, hub: str = BASE_URL) -> SharedCounts:
        made.append(SharedCounts(url, hub))
        return made[-1].__enter__()

    yield make
    for counts in made:
        counts.__exit__()


def hits(throttle: Throttle, client: str = "ann", count: int = 1) -> int:
    """The number of allowed requests among ``count``."""
    return sum(throttle.hit(client) == 0 for _ in range(count))


def is_back(counts: SharedCounts, throttle: Throttle) -> None:
    """Wait until requests are counted together again; those of this client are not limited."""
    wait_until(lambda: throttle.hit("somebody") == 0 and counts.status()["status"] == "ok", "Redis")
    throttle.forget("somebody")


def test_nodes_share_a_count(redis: Redis, node: Node) -> None:
    first, second = node(redis.url), node(redis.url)
    one = Throttle(4, "publish", 60, shared=first)
    other = Throttle(4, "publish", 60, shared=second)
    assert hits(one, count=3) == 3
    assert hits(other, count=3) == 1
    assert 1 <= one.hit("ann") <= 3600
    assert hits(other, "bob") == 1
    # Refused requests do not count, and returned ones no longer do, on any node.
    one.give_back("ann")
    other.give_back("nobody")
    assert hits(other, count=3) == 1
    one.forget("ann")
    assert hits(other, count=9) == 4
    assert first.status() == second.status()
    assert first.status()["status"] == "ok"


def test_limits_and_hubs_are_apart(redis: Redis, node: Node) -> None:
    counts = node(redis.url)
    other_hub = SharedCounts(redis.url, "https://other.example.org")
    with other_hub:
        limits = [
            Throttle(1, "publish", 60, shared=counts),
            Throttle(1, "openid", what="start", shared=counts),
            Throttle(1, "openid", what="answer", shared=counts),
            Throttle(1, "publish", 60, shared=other_hub),
        ]
        assert [hits(limit, count=2) for limit in limits] == [1, 1, 1, 1]


def test_a_window_ends(redis: Redis, node: Node) -> None:
    counts = node(redis.url)
    limit = Throttle(1, "publish", 60, shared=counts)
    assert hits(limit, count=2) == 1
    # Every key expires: Redis keeps no client for longer than the window.
    client = counts._client
    keys = client.keys("hub:*")
    assert len(keys) == 1 and 0 < client.ttl(keys[0]) <= 3600
    client.pexpire(keys[0], 1)
    wait_until(lambda: not client.exists(keys[0]), "the end of the window")
    limit.give_back("ann")
    assert hits(limit, count=2) == 1


def test_guesses_on_all_nodes_count_together(redis: Redis, node: Node) -> None:
    nodes = [Attempts(visitor_limit=3, shared=node(redis.url)) for _ in range(2)]
    taken = [nodes[number % 2].take("ann", "192.0.2.1") for number in range(4)]
    assert [seconds > 0 for seconds in taken] == [False, False, False, True]
    nodes[0].succeeded("ann", "192.0.2.1")
    assert nodes[1].take("ann", "192.0.2.1") == 0


def test_redis_is_killed_and_comes_back(
    redis: Redis, node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared_counts, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(logging.getLogger("hub"), "propagate", True)
    caplog.set_level(logging.INFO, "hub.limits")
    nodes = [node(redis.url) for _ in range(2)]
    throttles = [Throttle(2, "publish", 60, shared=counts) for counts in nodes]
    assert [hits(throttle) for throttle in throttles] == [1, 1]
    redis.kill()
    # Each node counts alone, from zero; a second failure is not logged again.
    assert [hits(throttle, count=5) for throttle in throttles] == [2, 2]
    wait_until(lambda: throttles[0].hit("ann") and nodes[0].status()["failures"] > 2, "trials")
    status = nodes[0].status()
    assert status["status"] == "alone" and status["failing_since"]
    redis.start()
    for counts, throttle in zip(nodes, throttles, strict=True):
        is_back(counts, throttle)
    assert hits(throttles[0], count=2) == 2 and hits(throttles[1]) == 0
    statuses = [record.fields["status"] for record in caplog.records]
    assert statuses == ["alone", "alone", "ok", "ok"]
    assert not any(secret in caplog.text + str(status) for secret in SECRETS)


def test_a_redis_that_hangs_holds_up_one_request(
    redis: Redis, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = node(redis.url)
    throttle = Throttle(3, "publish", 60, shared=counts)
    assert hits(throttle) == 1
    monkeypatch.setattr(shared_counts, "ANSWER_SECONDS", 0.25)
    monkeypatch.setattr(shared_counts, "RETRY_SECONDS", 10_000.0)
    redis.pause()
    try:
        assert hits(throttle, count=500) == 3
        # Only the first request has waited.
        assert counts.status()["failures"] == 1
    finally:
        redis.resume()
    monkeypatch.setattr(shared_counts, "ANSWER_SECONDS", 30.0)
    monkeypatch.setattr(shared_counts, "RETRY_SECONDS", 0.05)
    counts._again_at = 0.0
    is_back(counts, throttle)


def test_a_name_server_that_hangs_holds_up_one_request(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counts, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(shared_counts, "RETRY_SECONDS", 10_000.0)
    answers = threading.Event()

    def resolve(*_: object, **__: object) -> list:
        assert answers.wait(300)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    try:
        counts = node("redis://redis.example.org")
        assert hits(Throttle(3, "publish", 60, shared=counts), count=500) == 3
        assert counts.status()["failures"] == 1
    finally:
        answers.set()


def test_a_wrong_password_is_reported(
    redis: Redis, node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("hub"), "propagate", True)
    for login in ("", ":gu3ss@", "ann:gu3ss@"):
        caplog.clear()
        counts = node(f"redis://{login}127.0.0.1:{redis.port}")
        assert "Correct user and password in --limits" in caplog.records[0].fields["reason"]
        assert hits(Throttle(1, "publish", 60, shared=counts), count=2) == 1
        assert "gu3ss" not in str(caplog.records[0].__dict__) + str(counts.status())


@pytest.mark.parametrize(
    "url",
    [
        "redis", "http://:s3cret@127.0.0.1:6379", "redis://:s3cret@127.0.0.1:port",
        "redis://:s3c#ret@[::1", "unix://s3cret", "redis+cluster://s3cret", "memory://",
        "redis://:s3cret@h?socket_timeout=s3cret", "redis://h/ s3cret",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(OperatorError, match="Give one such as redis://") as refused:
        SharedCounts(url, BASE_URL)
    assert "s3c" not in str(refused.value) and refused.value.__cause__ is None


@pytest.mark.parametrize("scheme", ["redis", "rediss", "valkey", "valkeys", "unix"])
def test_every_scheme_finds_its_way(scheme: str, node: Node, tmp_path: Path) -> None:
    where = f"{tmp_path}/none.sock" if scheme == "unix" else f"127.0.0.1:{free_port()}"
    counts = node(f"{scheme}://{where}")
    assert counts.status()["status"] == "alone"


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.backoff", None)
    monkeypatch.delitem(sys.modules, "publisher.nodes.shared_counts")
    with pytest.raises(OperatorError, match=r"pip install redis"):
        importlib.import_module("publisher.nodes.shared_counts")


# The whole service

# A machine that is busy otherwise answers late.
PATIENT = (
    "from publisher.nodes import shared_counts; shared_counts.ANSWER_SECONDS = 30.0; "
    "from cli.hubctl import main; main()"
)


def serving_patiently(
    settings: Settings, *options: str
) -> contextlib.AbstractContextManager[Server]:
    command = [sys.executable, "-c", PATIENT, *serve_command(settings, *options)[1:]]
    return running(command, settings)


def publish(server: Server, token: str, name: str) -> int:
    """The status of the answer."""
    return server.request(
        "POST", f"/api/v1/repos/ann/{name}/versions", json={"content": "Say hello."},
        headers={"Authorization": f"Bearer {token}"},
    ).status_code  # fmt: skip


def test_two_services_share_a_limit_until_redis_is_gone(tmp_path: Path, redis: Redis) -> None:
    options = ("--limits", redis.url, "--publish-limit", "3", "--base-url", BASE_URL)
    first, second = settings_in(tmp_path / "first"), settings_in(tmp_path / "second")
    for settings in (first, second):
        write_small_catalogue(settings.content)
    tokens = [add_publisher(settings, "ann") for settings in (first, second)]
    with serving_patiently(first, *options) as one, serving_patiently(second, *options) as other:
        assert one.get("/readyz").json()["parts"]["limits"]["status"] == "ok"
        assert [publish(one, tokens[0], f"p{number}") for number in range(2)] == [201, 201]
        assert [publish(other, tokens[1], f"p{number}") for number in range(2)] == [201, 429]
        assert publish(one, tokens[0], "p2") == 429
        redis.kill()
        answers = [publish(one, tokens[0], f"q{number}") for number in range(4)]
        assert answers == [201, 201, 201, 429]
        ready = one.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert ready.json()["parts"]["limits"]["status"] == "alone"
        one.process.wait_for_line('"event": "limits"')
        shown = one.process.text + other.process.text + ready.text
        assert not any(secret in shown for secret in (*SECRETS, "s3cret%2F"))
