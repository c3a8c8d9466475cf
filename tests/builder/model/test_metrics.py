"""The table of metrics keeps to Prometheus' conventions, and counting to the table."""

import re

import pytest

import cli.service  # noqa: F401
from builder.model import metrics
from builder.model.metrics import METRICS, Counter, Gauge, Histogram


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the metrics of these tests out of those of the hub."""
    monkeypatch.setattr(metrics, "METRICS", [])


def test_names_and_labels():
    assert len(METRICS) > 20
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"hub(_[a-z]+)+", metric.name)
        assert isinstance(metric, Counter) == metric.name.endswith("_total")
        assert not isinstance(metric, Histogram) or metric.name.endswith("_seconds")
        assert metric.help.endswith(".")
        # A gauge with a part needs its key too; one without the other shows nothing.
        assert not isinstance(metric, Gauge) or bool(metric.part) == bool(metric.key)


def test_counts_begin_at_0_and_take_no_other_labels():
    counter = Counter("hub_things_total", "Things.", kind=("a", "b"))
    counter.count("a")
    counter.count("a", by=2)
    counter.count("b")
    assert dict(counter.samples()) == {("a",): 3, ("b",): 1}
    with pytest.raises(KeyError):
        counter.count("what a stranger has sent")


def test_a_bucket_takes_what_is_not_above_its_bound():
    histogram = Histogram("hub_wait_seconds", "Waits.", (0.1, 1))
    for seconds in (0.0, 0.1, 0.11, 1, 1.5):
        histogram.observe(seconds)
    ((labels, counts, total),) = histogram.samples()
    assert (labels, counts) == ((), [2, 2, 1])
    assert total == pytest.approx(2.71)
