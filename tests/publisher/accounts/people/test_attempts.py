"""Limits on guessing passwords and on signing up."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from publisher.accounts.people.attempts import (
    ACCOUNT_LIMIT,
    ADDRESS_LIMIT,
    SHARED_LIMIT,
    SIGNUP_LIMIT,
    VISITOR_LIMIT,
    Attempts,
)
from server import throttle
from tests.support.clock import Clock, StopClock

HOME = "198.51.100.7"
MINUTE = 60


@pytest.fixture
def clock(stop_clock: StopClock) -> Clock:
    return stop_clock(throttle)


def addresses(count: int) -> list[str]:
    return [f"203.0.{n // 250}.{n % 250}" for n in range(count)]


def test_an_account_guessed_at_from_many_addresses(clock: Clock):
    attempts = Attempts()
    waits = [attempts.take("ann", address) for address in addresses(ACCOUNT_LIMIT + 5)]
    assert waits == [0] * 100 + [15 * MINUTE] * 5
    assert attempts.take("bob", HOME) == 0
    clock.now += 15 * MINUTE - 1
    assert attempts.take("ann", HOME) == 1
    clock.now += 1
    assert attempts.take("ann", HOME) == 0


def test_one_who_guesses_shuts_out_nobody_else(clock: Clock):
    attempts = Attempts()
    waits = [attempts.take("ann", HOME) for _ in range(VISITOR_LIMIT + 5)]
    assert waits == [0] * 10 + [15 * MINUTE] * 5
    assert attempts.take("ann", "198.51.100.8") == attempts.take("bob", HOME) == 0
    # A client that returns after each wait locks out no other address, even for an unknown handle.
    for _ in range(4):
        clock.now += 15 * MINUTE
        assert [attempts.take("nobody", HOME) > 0 for _ in range(12)] == [False] * 10 + [True] * 2
        assert attempts.take("nobody", "198.51.100.8") == 0


def test_who_signs_in_does_not_give_guessers_more(clock: Clock):
    attempts = Attempts()
    guesses = 0
    for address in addresses(ACCOUNT_LIMIT * 2):
        guesses += attempts.take("ann", address) == 0
        if attempts.take("ann", HOME) == 0:
            attempts.succeeded("ann", HOME)
    assert guesses == ACCOUNT_LIMIT


def test_an_address_that_guesses_at_many_accounts(clock: Clock):
    attempts = Attempts()
    waits = [attempts.take(f"user-{n}", HOME) for n in range(ADDRESS_LIMIT + 5)]
    assert waits == [0] * 30 + [15 * MINUTE] * 5
    assert attempts.take("user-1", "203.0.113.9") == 0
    # Attempts that were refused for the address do not count against the account.
    waits = [attempts.take("user-34", address) for address in addresses(101)]
    assert waits[:100] == [0] * 100 and waits[100] > 0


def test_what_is_refused_for_the_account_does_not_count_for_the_address(clock: Clock):
    attempts = Attempts()
    for _ in range(100):
        attempts.take("ann", HOME)
    waits = [attempts.take(f"user-{n}", HOME) for n in range(21)]
    assert waits[:20] == [0] * 20 and waits[20] > 0


def test_the_right_password_clears_what_its_visitor_has_tried_there(clock: Clock):
    attempts = Attempts()
    for _ in range(9):
        assert attempts.take("ann", HOME) == 0
    assert attempts.take("ann", HOME) == 0
    attempts.succeeded("ann", HOME)
    # Nine wrong ones still count for the address, and for the account.
    waits = [attempts.take("ann", HOME) for _ in range(11)]
    assert waits[:10] == [0] * 10 and waits[10] > 0
    waits = [attempts.take(f"user-{n}", HOME) for n in range(12)]
    assert waits[:11] == [0] * 11 and waits[11] > 0
    waits = [attempts.take("ann", address) for address in addresses(82)]
    assert waits[:81] == [0] * 81 and waits[81] > 0


def test_a_guesser_with_an_account_does_not_buy_more(clock: Clock):
    attempts = Attempts()
    guesses = 0
    for n in range(100):
        guesses += attempts.take(f"user-{n}", HOME) == 0
        if attempts.take("own", HOME) == 0:
            attempts.succeeded("own", HOME)
    assert guesses == ADDRESS_LIMIT


def test_many_who_sign_in_at_one_address(clock: Clock):
    attempts = Attempts()
    for n in range(500):
        assert attempts.take(f"user-{n}", HOME) == 0
        attempts.succeeded(f"user-{n}", HOME)


def test_colleagues_who_share_an_address(clock: Clock):
    attempts = Attempts()
    # Wrong passwords of one lock out no other, even before any has signed in.
    assert [attempts.take("ann", HOME) > 0 for _ in range(30)] == [False] * 10 + [True] * 20
    assert attempts.take("bob", HOME) == 0
    for handle in ("bob", "cleo"):
        attempts.note_person(handle, HOME)
    assert attempts.is_shared(HOME) and not attempts.is_shared("198.51.100.8")
    waits = [attempts.take(f"user-{n}", HOME) for n in range(SHARED_LIMIT + 5)]
    assert waits == [0] * SHARED_LIMIT + [15 * MINUTE] * 5


def test_one_person_shares_an_address_with_nobody(clock: Clock):
    attempts = Attempts()
    for _ in range(5):
        attempts.note_person("own", "2001:db8::1")
    assert not attempts.is_shared("2001:db8::1")
    attempts.note_person("other", "2001:db8::2")
    assert attempts.is_shared("2001:db8::3")


def test_ways_to_write_an_account_are_one(clock: Clock):
    attempts = Attempts()
    handles = ["ann", "Ann", "ANN", " ann", "ann\t", "aNN "] * 2
    assert [attempts.take(handle, HOME) > 0 for handle in handles] == [False] * 10 + [True] * 2
    waits = [
        attempts.take(handle, address)
        for handle, address in zip(handles * 8, addresses(96), strict=True)
    ]
    assert [wait > 0 for wait in waits] == [False] * 90 + [True] * 6


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:0DB8:0001:0002::1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:198.51.100.7", HOME, True),
        ("::ffff:198.51.100.7", "::ffff:198.51.100.8", False),
        (HOME, "198.51.100.8", False),
        ("", "", True),
        ("", HOME, False),
    ],
)
def test_what_is_one_address(clock: Clock, one: str, other: str, is_same: bool):
    attempts = Attempts()
    for number in range(ADDRESS_LIMIT):
        assert attempts.take(f"user-{number}", one) == 0
    assert (attempts.take("bob", other) > 0) is is_same
    for _ in range(SIGNUP_LIMIT):
        assert attempts.take_signup(one) == 0
    assert (attempts.take_signup(other) > 0) is is_same


def test_signups(clock: Clock):
    attempts = Attempts()
    assert [attempts.take_signup(HOME) for _ in range(SIGNUP_LIMIT + 2)] == [0] * SIGNUP_LIMIT + [
        3600
    ] * 2
    assert attempts.take_signup("198.51.100.8") == 0 and attempts.take("ann", HOME) == 0
    clock.now += 3600
    assert attempts.take_signup(HOME) == 0


def test_hostile_handles_count_like_others(clock: Clock):
    attempts = Attempts()
    handles = ("x" * 100_000, "\udcff" * 1000, "", "\0", "a/b")
    for handle, address in zip(handles, addresses(5), strict=True):
        assert [attempts.take(handle, address) > 0 for _ in range(11)] == [False] * 10 + [True]


def test_attempts_at_once():
    attempts = Attempts()
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda n: attempts.take("ann", HOME), range(400)))
    assert waits.count(0) == VISITOR_LIMIT
