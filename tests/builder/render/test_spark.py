"""The small line of reads: its days, its height, and where there is none."""

import re

import pytest

from builder.render.chart import DAYS, HEIGHT, spark


def heights(by_day: list[tuple[int, int]]) -> list[int]:
    (points,) = re.findall(r'd="M([^"]+)"', str(spark(by_day)))
    return [int(one) for one in points.split()[1::2]]


def test_each_day_has_a_point_and_the_most_reads_are_on_top():
    found = heights([(20_000, 4), (20_010, 8), (20_029, 2)])
    assert len(found) == DAYS
    assert min(found) == found[10] == 1 and found[1] == HEIGHT - 1
    assert found[0] == (found[1] + found[10]) // 2 and found[29] > found[0]
    assert "30 days to 2024-11-02: from 0 to 8 a day" in spark([(20_000, 4), (20_029, 8)])


def test_older_days_are_left_out():
    assert heights([(10, 900), (20_000, 1), (20_001, 1)])[-2:] == [1, 1]


@pytest.mark.parametrize("by_day", [[], [(20_000, 7)], [(10, 900), (20_000, 1)]])
def test_there_is_no_line_without_two_points(by_day):
    assert spark(by_day) == ""
