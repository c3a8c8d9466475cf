"""Values that are computed from the stored records."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model import envelopes
from builder.model.records import DAY_SECONDS
from builder.render import derive
from builder.render.derive import epoch_seconds, trend
from tests.support.catalogues import moment

FIRST_SECOND = epoch_seconds("0001-01-01T00:00:00Z")
LAST_SECOND = epoch_seconds("9999-12-31T23:59:59Z")
seconds = st.integers(FIRST_SECOND, LAST_SECOND)
publications = st.lists(seconds, min_size=1, max_size=20)
days = st.integers(FIRST_SECOND // DAY_SECONDS, LAST_SECOND // DAY_SECONDS)
pulls_by_day = st.dictionaries(days, st.integers(1, 10**9), max_size=20).map(dict.items).map(list)
recent = st.integers(epoch_seconds("2024-01-01T00:00:00Z"), epoch_seconds("2026-01-01T00:00:00Z"))


recent_days = st.integers(19_723, 20_453)  # the same two years
activity = st.tuples(
    st.lists(recent, min_size=1, max_size=8),
    st.dictionaries(recent_days, st.integers(1, 10**6), max_size=8).map(dict.items).map(list),
)


def decayed(times: list[int], pulls: list[tuple[int, int]], now: int) -> float:
    """The contract's wording: a publication counts 5, a pull 1, and half after each 7 days."""
    events = [(5, time) for time in times] + [(count, day * 86_400) for day, count in pulls]
    return sum(weight * 0.5 ** ((now - time) / (7 * 86_400)) for weight, time in events)


@given(activity, activity, recent)
def test_the_order_by_trend_is_that_of_decayed_activity_at_any_time_of_build(one, other, now):
    ours = trend(*one) - trend(*other)
    theirs = math.log2(decayed(*one, now)) - math.log2(decayed(*other, now))
    assert ours == pytest.approx(theirs * 1e6, abs=10)


@given(publications, pulls_by_day, st.randoms(use_true_random=False), days, seconds)
def test_no_event_counts_less_than_none_in_any_order(times, pulls, order, day, time):
    shuffled = times.copy(), pulls.copy()
    for events in shuffled:
        order.shuffle(events)
    assert trend(*shuffled) == trend(times, pulls)
    assert isinstance(trend(times, pulls), int)  # for SQLite
    assert trend(times, [*pulls, (day, 1)]) >= trend(times, pulls)
    assert trend([*times, time]) >= trend(times)


def test_a_pull_counts_a_fifth_of_a_publication_and_at_the_start_of_its_day():
    day = 20_089
    midnight = day * DAY_SECONDS
    assert epoch_seconds("2025-01-01T00:00:00Z") == midnight
    assert trend([midnight], [(day, 5)]) == trend([midnight, midnight])
    # 5 + 1 = 6 at the epoch's 2,869.857… weeks; log2(6) is 2.584963.
    assert trend([midnight], [(day, 1)]) == round((day / 7 + math.log2(6)) * 1e6)
    assert trend([midnight], [(day + 7, 5)]) == round((day / 7 + math.log2(5 + 2 * 5)) * 1e6)
    assert trend([midnight], []) == trend([midnight])


def test_far_apart_and_many_publications_do_not_overflow():
    assert trend([FIRST_SECOND, LAST_SECOND]) == trend([LAST_SECOND])
    assert trend([FIRST_SECOND]) < 0 < trend([LAST_SECOND])
    assert trend([LAST_SECOND] * 10_000) > trend([LAST_SECOND])
    assert abs(trend([LAST_SECOND] * 10_000)) < 2**63


def test_a_million_pulls_a_day_for_ever_do_not_overflow():
    pulls = [(day, 10**6) for day in range(0, LAST_SECOND // DAY_SECONDS, 7)]
    assert trend([0], pulls) > trend([0], pulls[:-1]) > trend([0]) > 0
    # Week after week of the same: twice the last week's.
    assert trend([0], pulls) - trend([0], pulls[-1:]) == pytest.approx(1e6, abs=2)
    assert trend([0], [(day, 10**18) for day, _ in pulls]) < 2**63
    far = [(-(10**9), 10**6), (10**9, 1)]
    assert trend([FIRST_SECOND], far) == trend([FIRST_SECOND], far[1:])


@pytest.mark.parametrize(
    ("time", "expected"), [("1970-01-01T00:00:00Z", 0), ("2025-01-01T00:00:00Z", 1_735_689_600)]
)
def test_epoch_seconds(time, expected):
    assert epoch_seconds(time) == expected


@pytest.mark.parametrize(
    "time", ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0800-06-01T00:00:00Z", moment(7)]
)
def test_an_owner_without_a_profile_joined_with_the_first_repo(time):
    user = derive.user_record("ann", None, epoch_seconds(time), 3, None)
    assert (user.handle, user.name, user.bio, user.url) == ("ann", "ann", "", None)
    assert (user.joined_at, user.repos_count, user.pulls) == (time, 3, None)


@given(st.integers(0, 10**9))
def test_pages_hold_all_rows_and_none_is_empty(total):
    pages = envelopes.page_count(total)
    assert (pages - 1) * 50 < max(total, 1) <= pages * 50
    assert envelopes.list_meta(1, total, "top").pages == pages
