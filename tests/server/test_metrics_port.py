"""The port of the metrics: what it shows, and what strangers at it can do."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from builder.model.errors import OperatorError
from builder.model.metrics import LIMITS_HIT, Reading
from operate.deploy.follower import DEPLOY_BEHIND, DEPLOY_FAILURES, DEPLOY_TURN
from server import metrics_port
from server.access import parse_address
from server.connections import CONNECTIONS
from server.listening import address_of, listen_for_metrics
from server.metrics_port import CONNECTIONS_MAX, MetricsPort
from server.throttle import Throttle
from tests.support.clock import Clock, StopClock
from tests.support.servers import DEADLINE_SECONDS, wait_until


@pytest.fixture
def clock(stop_clock: StopClock) -> Clock:
    return stop_clock(metrics_port)


@contextlib.contextmanager
def serving_metrics(*sources: metrics_port.Source) -> Iterator[int]:
    """The port of a running one."""
    listener = listen_for_metrics("127.0.0.1", 0)
    port = listener.getsockname()[1]
    with MetricsPort(listener, sources):
        yield port


def ask(port: int, method: str = "GET", path: str = "/metrics") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def values(page: str) -> dict[str, float]:
    """Each sample's value by its name and the values of its labels, joined by commas."""
    return {
        ",".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_it_shows_counts_and_gauges_and_nothing_else(clock: Clock) -> None:
    asked = []

    def source() -> Iterator[Reading]:
        asked.append(threading.current_thread().name)
        yield Reading(CONNECTIONS, 7)

    with serving_metrics(source) as port:
        before = values(ask(port)[1])
        assert before["hub_connections"] == 7
        assert (
            before["hub_search_duration_seconds_bucket,+Inf"]
            == (before["hub_search_duration_seconds_count"])
        )
        assert "process_cpu_seconds_total" in before and "hub_ready" not in before
        limited = Throttle(1, "publish")
        assert [bool(limited.hit("ann")) for _ in range(3)] == [False, True, True]
        assert values(ask(port)[1]) == before  # kept for a second
        assert asked == ["metrics"]
        clock.now += 1
        after = values(ask(port)[1])
        assert after["hub_limits_hit_total,publish"] == before["hub_limits_hit_total,publish"] + 2
        assert ask(port, "HEAD") == (200, "")
        assert ask(port, path="/")[0] == 404
        assert ask(port, "POST")[0] == 405


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"behind_seconds": 2.5, "failures": 3, "has_turn": True}, [2.5, 3.0, 1.0]),
        ({"behind_seconds": "no number", "failures": 3}, [None, 3.0, None]),
    ],
)
def test_parts_add_gauges_of_their_status(status: dict, shown: list[float | None]) -> None:
    with listen_for_metrics("127.0.0.1", 0) as listener:
        page = MetricsPort(listener, [], {"deploy": lambda: status}).page()
    found = values(page.decode())
    gauges = (DEPLOY_BEHIND, DEPLOY_FAILURES, DEPLOY_TURN)
    assert [found.get(gauge.name) for gauge in gauges] == shown
    assert "hub_git" not in page.decode()


def test_who_holds_connections_gets_half_of_the_few_places() -> None:
    with serving_metrics() as port, contextlib.ExitStack() as open_ones:
        for _ in range(CONNECTIONS_MAX // 2):
            stranger = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
            open_ones.enter_context(stranger)
            stranger.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
        wait_until(lambda: ask(port)[0] == 429, "the refusal")
        assert dict(LIMITS_HIT.samples())["client-connections",] > 0


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9108", ("127.0.0.1", 9108)), ("[::1]:0", ("::1", 0)), ("hub:80", ("hub", 80))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "9108", ":9108", "127.0.0.1:", "127.0.0.1:x", "::1:9108", "hub:65536", "hub:١"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(OperatorError, match=r"Give host and port, like 127\.0\.0\.1:9108"):
        parse_address(text)


def test_an_address_that_is_taken() -> None:
    with listen_for_metrics("127.0.0.1", 0) as listener:
        port = int(address_of(listener, "127.0.0.1").rpartition(":")[2])
        with pytest.raises(OperatorError, match=f"127.0.0.1:{port}.*in use.*--metrics"):
            listen_for_metrics("127.0.0.1", port)
