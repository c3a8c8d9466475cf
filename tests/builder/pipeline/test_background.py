"""Failures are tried again, later and later, and never all at once."""

from builder.pipeline.background import Failures, pause_seconds


def test_pauses_grow_up_to_the_longest():
    for failures, longest in [(1, 5), (2, 10), (4, 40), (5, 60), (10_000, 60)]:
        pauses = [pause_seconds(failures, 5, 60) for _ in range(20)]
        assert longest / 2 <= min(pauses) < max(pauses) <= longest


def test_failures_count_since_the_last_success():
    failures = Failures()
    failures.add("Once.")
    since = failures.status()["failing_since"]
    failures.add("Again.")
    assert failures.status() == {"failures": 2, "failing_since": since, "last_error": "Again."}
    failures.clear()
    assert failures.status() == {"failures": 0, "failing_since": None, "last_error": None}
