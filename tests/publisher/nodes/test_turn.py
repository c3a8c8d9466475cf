"""Work that only one of several nodes does at a time."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from builder.model.errors import OperatorError
from publisher.accounts.database import Database
from publisher.accounts.postgres_pool import Connections
from publisher.nodes import turn as turn_module
from publisher.nodes.turn import Turn
from tests.support.postgres import Postgres
from tests.support.servers import wait_until

Make = Callable[..., Turn]


@pytest.fixture
def make(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes turns; each belongs to another node, and queries the database each time."""
    monkeypatch.setattr(turn_module, "KEPT_SECONDS", 0.0)
    url = postgres.new_database()
    Database(url).close()
    with contextlib.closing(Connections(url)) as connections:
        yield lambda what="deploy", seconds=3600.0: Turn(connections, what, seconds=seconds)


def test_one_node_has_the_turn_until_it_releases_it(make: Make):
    one, two = make(), make()
    assert (one.take(), two.take(), one.take()) == (1, None, 1)
    assert make("push").take() == 1
    two.release()  # it is not its own
    assert (two.take(), one.take()) == (None, 1)
    one.release()
    assert (two.take(), one.take()) == (2, None)


def test_a_node_that_stops_loses_its_turn(make: Make):
    one, two = make(seconds=0.2), make()
    first = one.take()
    wait_until(two.take, "the end of the turn")
    with pytest.raises(OperatorError, match="Another node may deploy"):
        one.check(first)
    two.release()
    # It gets the turn again, as a new one: the old turn stays over.
    assert one.take() == 3
    with pytest.raises(OperatorError):
        one.check(first)


def test_later_holders_know_what_was_begun(make: Make):
    one, two = make(), make()
    one.take()
    one.note(7)
    one.note(5)
    one.release()
    two.take()
    assert two.noted == 7


def test_without_the_database_it_is_nobodys_turn(make: Make, postgres: Postgres):
    one = make()
    generation = one.take()
    postgres.stop()
    try:
        assert one.take() is None
        with pytest.raises(OperatorError):
            one.check(generation)
        one.release()
    finally:
        postgres.start()
    assert one.take() == generation
