"""Times of other systems become ours, and what is no time stays out."""

from datetime import UTC, datetime

import pytest

from moving.importers.times import read_time, to_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        (" 2024-05-01 10:00:00.123456789+02:00 ", "2024-05-01T08:00:00Z"),
        ("2024-05-01T10:00:00.1", "2024-05-01T10:00:00Z"),
        ("2024-05-01", "2024-05-01T00:00:00Z"),
        (1714557600, "2024-05-01T10:00:00Z"),
        (1714557600.9, "2024-05-01T10:00:00Z"),
        (1714557600123, "2024-05-01T10:00:00Z"),
        ("1714557600123", "2024-05-01T10:00:00Z"),
        ("1714557600.5", "2024-05-01T10:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_a_moment(value, expected):
    assert to_time(value, NOW) == expected


@pytest.mark.parametrize(
    "value",
    [
        None, True, "", "yesterday", "2024-13-01T00:00:00Z", [], {}, b"2024-05-01", "9" * 10_000,
        # Values that stand for "never", and times in the future.
        0, 1, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z",
        "2026-01-01T00:00:01Z", "9999-12-31T23:59:59-14:00", 1714557600123456, float("nan"),
        float("inf"), -1714557600, 10**400,
    ],
)  # fmt: skip
def test_no_moment(value):
    assert to_time(value, NOW) is None


@pytest.mark.parametrize("value", ["2026-02-30T10:00:00Z", 0, "0001-01-01", 10**400, ["2024"]])
def test_a_value_that_is_no_moment_is_named_in_a_warning(value):
    warnings: list[str] = []
    assert read_time(value, warnings) is None
    assert repr(value)[:50] in warnings[0]
    read_time(None, warnings), read_time("", warnings), read_time("2024-05-01", warnings)
    assert len(warnings) == 1


def test_now_is_the_clock():
    assert to_time(datetime.now(UTC).timestamp() + 3600) is None
    assert to_time(datetime.now(UTC).timestamp() - 3600)
