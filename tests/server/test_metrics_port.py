"""The port of the metrics: what it shows, and what strangers at it can do."""

import contextlib
import http.client
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from builder.model.errors import OperatorError
from builder.model.metrics import Reading
from operate.deploy.follower import DEPLOY_BEHIND
from server import metrics_port
from server.access import parse_address
from server.connections import CONNECTIONS
from server.metrics_port import Collector, MetricsPort
from server.throttle import Throttle
from tests.support.servers import DEADLINE_SECONDS


@contextlib.contextmanager
def serving_metrics(*sources: metrics_port.Source) -> Iterator[int]:
    """The port of a running one."""
    with contextlib.closing(MetricsPort("127.0.0.1", 0)) as monitor:
        monitor.show(sources, {})
        yield int(monitor.url.removesuffix("/metrics").rpartition(":")[2])


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


def test_it_shows_counts_and_gauges_and_nothing_else() -> None:
    with serving_metrics(lambda: [Reading(CONNECTIONS, 7)]) as port:
        before = values(ask(port)[1])
        assert before["hub_connections"] == 7
        assert (
            before["hub_search_duration_seconds_bucket,+Inf"]
            == (before["hub_search_duration_seconds_count"])
        )
        assert "process_cpu_seconds_total" in before and "hub_ready" not in before
        limited = Throttle(1, "publish")
        assert [bool(limited.hit("ann")) for _ in range(3)] == [False, True, True]
        after = values(ask(port)[1])
        assert after["hub_limits_hit_total,publish"] == before["hub_limits_hit_total,publish"] + 2


@pytest.mark.parametrize(("seconds", "shown"), [(2.5, 2.5), ("no number", None)])
def test_parts_add_gauges_of_their_status(seconds: object, shown: float | None) -> None:
    families = Collector([], {"deploy": lambda: {"behind_seconds": seconds}}).collect()
    found = {sample.name: sample.value for one in families for sample in one.samples}
    assert found.get(DEPLOY_BEHIND.name) == shown


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
    with serving_metrics() as port, pytest.raises(OperatorError, match=r"in use.*--metrics"):
        MetricsPort("127.0.0.1", port)
