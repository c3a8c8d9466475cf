"""What the keys of the table refuse, whatever the code forgets to look at."""

import pytest
from msgspec import structs
from psycopg.errors import UniqueViolation

from publisher.nodes import rows
from publisher.nodes.rows import VERSION, Change, File, Mark
from tests.publisher.nodes.conftest import Nodes

NOWHERE = Mark(0, None)
# As of a node that takes itself for newer than all others.
AHEAD = Mark(1_000, None)


def change(version: str, seen: Mark) -> Change:
    file = File("ann/story", VERSION, version, b"{}", b"text")
    return rows.make_change("ann", "ann/story", [file], seen, by_owner=False)


def forget(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    assert condition in rows.PUT
    monkeypatch.setattr(rows, "PUT", rows.PUT.replace(condition, "SELECT NULL::bigint"))


def test_no_number_is_given_twice(nodes: Nodes):
    one = nodes.start("one")
    with one._connections.taken() as connection:
        first = rows.commit(connection, [change("1.0.0", NOWHERE)], NOWHERE)
        assert [*first.serials.values()] == [1]
        assert not rows.commit(connection, [change("1.0.0", NOWHERE)], NOWHERE).serials
        with pytest.raises(UniqueViolation, match="change_repo_kind_name_key"):
            rows.commit(connection, [change("1.0.0", AHEAD)], NOWHERE)
    assert nodes.execute("SELECT serial FROM hub") == [(1,)]


def test_no_request_is_done_twice(nodes: Nodes, monkeypatch: pytest.MonkeyPatch):
    one = nodes.start("one")
    asked = change("1.0.0", AHEAD)
    again = structs.replace(asked, files=change("1.0.1", AHEAD).files)
    with one._connections.taken() as connection:
        first = rows.commit(connection, [asked], NOWHERE)
        assert rows.commit(connection, [again], NOWHERE).serials == first.serials
        forget(monkeypatch, "SELECT c.serial FROM change c WHERE c.request = w.request")
        with pytest.raises(UniqueViolation, match="change_request_key"):
            rows.commit(connection, [again], NOWHERE)
    assert nodes.execute("SELECT name FROM change") == [("1.0.0",)]


def test_what_is_on_top_of_something_refused_is_refused(nodes: Nodes):
    one = nodes.start("one")
    with one._connections.taken() as connection:
        rows.commit(connection, [change("1.0.0", NOWHERE)], NOWHERE)
        late, on_top = change("1.0.1", NOWHERE), change("1.0.2", AHEAD)
        other = rows.make_change(
            "ann", "ann/other", [File("ann/other", VERSION, "1.0.0", b"{}", b"")], AHEAD, True
        )
        fine = rows.make_change(
            "bob", "bob/other", [File("bob/other", VERSION, "1.0.0", b"{}", b"")], NOWHERE, True
        )
        done = rows.commit(connection, [late, on_top, other, fine], NOWHERE)
    assert done.serials == {fine.requests[0]: 2}
