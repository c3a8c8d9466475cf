"""The log of an account: what is kept of it, and what it shows when it is flooded."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from publisher.accounts.database import Database
from publisher.accounts.events import (
    EVENT_SECONDS,
    KEPT_ALIKE_MAX,
    SHOWN_ALIKE_MAX,
    Event,
    Events,
    Line,
)
from publisher.accounts.tokens import Accounts
from tests.support.events import latest

NOW = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)
HOME, ELSEWHERE = "198.51.100.7", "203.0.113.66"
ALL = 100_000


@pytest.fixture
def database(accounts_place: str) -> Iterator[Database]:
    with Database(accounts_place) as opened:
        for owner in ("ann", "bob"):
            Accounts(opened).add_owner(owner, NOW)
        # One transaction for all of a test: hundreds of events wait for the disk once.
        with opened.transaction():
            yield opened


@pytest.fixture
def events(database: Database) -> Events:
    return Events(database)


def addresses(events: Events, owner: str = "ann") -> list[str]:
    return [event.address for event in latest(events._database, owner, ALL)]


def test_who_comes_often_pushes_out_nobody_else(events: Events):
    events.note("ann", "signed_in", address=ELSEWHERE, now=NOW)
    events.note("ann", "signed_in", address=HOME, note="the first", now=NOW)
    for number in range(KEPT_ALIKE_MAX * 2):
        events.note("ann", "signed_in", address=HOME, note=f"{number}", now=NOW)
    kept = latest(events._database, "ann", ALL)
    assert len(kept) == KEPT_ALIKE_MAX and kept[-1].address == ELSEWHERE
    assert kept[0].note == str(KEPT_ALIKE_MAX * 2 - 1)
    assert "the first" not in [event.note for event in kept]
    # The owner, who signs in every day, does not push out a stranger, nor the other way round.
    for _ in range(KEPT_ALIKE_MAX * 2):
        events.note("ann", "signed_in", address="192.0.2.1", now=NOW)
    assert {HOME, ELSEWHERE, "192.0.2.1"} == set(addresses(events))


def test_endless_addresses_do_not_fill_the_disk(events: Events):
    events.note("ann", "signed_in", address=ELSEWHERE, now=NOW)
    events.note("bob", "sign_in_failed", address=ELSEWHERE, now=NOW)
    for number in range(KEPT_ALIKE_MAX + 50):
        events.note(
            "ann", "sign_in_failed", address=f"10.0.{number // 250}.{number % 250}", now=NOW
        )
        events.note("ann", "token_made", subject=f"{number}", now=NOW)
    kinds = [event.kind for event in latest(events._database, "ann", ALL)]
    assert kinds.count("sign_in_failed") == KEPT_ALIKE_MAX
    assert kinds.count("token_made") == KEPT_ALIKE_MAX + 50, "each is about another"
    assert kinds[-1] == "signed_in" and addresses(events, "bob") == [ELSEWHERE]
    assert "10.0.0.49" not in addresses(events) and "10.0.0.50" in addresses(events)


def test_half_a_year(events: Events):
    events.note("ann", "invited", now=NOW)
    last = NOW + timedelta(seconds=EVENT_SECONDS)
    events.note("ann", "signed_in", now=last)
    assert len(latest(events._database, "ann", ALL)) == 2
    events.note("ann", "signed_in", now=last + timedelta(seconds=1))
    assert [event.kind for event in latest(events._database, "ann", ALL)] == ["signed_in"] * 2


def pages(events: Events, count: int) -> list[list[Line]]:
    found, before = [], None
    while True:
        lines, before = events.page("ann", count, before)
        found.append(lines)
        if before is None:
            return found


@pytest.mark.parametrize("count", [1, 7, 10, 25, 100])
def test_pages_have_everything_once(events: Events, count: int):
    for number in range(25):
        events.note("ann", "token_made", subject=f"{number}", now=NOW)
        events.note("bob", "token_made", subject=f"{number}", now=NOW)
    found = pages(events, count)
    assert [len(lines) for lines in found][:-1] == [count] * ((25 - 1) // count)
    lines = [line for page in found for line in page]
    assert [int(line.event.subject) for line in lines] == list(range(24, -1, -1))
    assert {line.more for line in lines} == {0}


def test_no_events(events: Events):
    assert events.page("ann", 10) == ([], None)
    events.note("ann", "invited", now=NOW)
    assert events.page("ann", 10, 0) == ([], None)


def test_events_alike_are_counted(events: Events):
    def note(kind: str, count: int, subject: str = "") -> None:
        for _ in range(count):
            events.note("ann", kind, subject=subject, address=HOME, now=NOW)

    note("token_new_address", 3, "a")
    note("token_new_address", SHOWN_ALIKE_MAX, "b")
    note("sign_in_failed", 97)
    note("signed_in", 1)
    note("sign_in_failed", 97)
    lines, before = events.page("ann", 100)
    assert before is None and len(lines) == 3 * SHOWN_ALIKE_MAX + 1 + 3
    assert [(number, line.more) for number, line in enumerate(lines) if line.more] == [
        (9, 87), (20, 87),
    ]  # fmt: skip
    assert lines[10].event == Event(int(NOW.timestamp()), "signed_in", "", HOME, "")
    # Those that are counted at the end of a page are not on the next.
    lines, before = events.page("ann", 10)
    assert lines[-1].more == 87
    assert events.page("ann", 1, before)[0][0].event.kind == "signed_in"


def test_more_than_is_read_at_once(events: Events):
    for number in range(1200):
        events.note("ann", "token_made", subject=f"{number}", now=NOW)
    lines, before = events.page("ann", 1100)
    assert [int(line.event.subject) for line in lines] == list(range(1199, 99, -1))
    lines, before = events.page("ann", 1100, before)
    assert len(lines) == 100 and before is None
