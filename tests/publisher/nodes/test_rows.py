"""Rows that the keys of the table refuse, even if the code forgets a check."""

import uuid
from pathlib import Path

import pytest
from msgspec import structs
from psycopg.errors import UniqueViolation

from builder.model.errors import OperatorError
from publisher.accounts.shared_tables import COMMIT_CHANGES
from publisher.nodes import rows
from publisher.nodes.copy import apply_row
from publisher.nodes.rows import EVENT, PROFILE, VERSION, Change, File, Mark, Row
from publisher.nodes.store import Shared
from tests.publisher.nodes.conftest import Nodes

NOWHERE = Mark(0, None)
# The serial that a node has seen that takes itself for newer than all others.
AHEAD = 1_000


def change(version: str, seen: int) -> Change:
    file = File("ann/story", VERSION, version, b"{}", b"text")
    return rows.make_change("ann", "ann/story", [file], seen, by_owner=False)


def commit(store: Shared, *group: Change) -> list[int]:
    with store._connections.asking() as connection:
        return [*rows.commit(connection, group, NOWHERE)[0].values()]


def test_no_number_is_given_twice(nodes: Nodes):
    one = nodes.start("one")
    assert commit(one, change("1.0.0", 0)) == [1]
    assert not commit(one, change("1.0.0", 0))
    with pytest.raises(UniqueViolation, match="change_repo_kind_name_key"):
        commit(one, change("1.0.0", AHEAD))
    assert nodes.execute("SELECT serial FROM hub") == [(1,)]


def test_no_request_is_done_twice(nodes: Nodes):
    one = nodes.start("one")
    first = change("1.0.0", AHEAD)
    again = structs.replace(first, files=change("1.0.1", AHEAD).files)
    assert commit(one, first) == commit(one, again) == [1]
    condition = "SELECT c.serial FROM change c WHERE c.request = w.request"
    assert condition in COMMIT_CHANGES
    forgetful = COMMIT_CHANGES.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    nodes.execute(forgetful.replace(condition, "SELECT NULL::bigint"))
    with pytest.raises(UniqueViolation, match="change_request_key"):
        commit(one, again)
    assert nodes.execute("SELECT name FROM change") == [("1.0.0",)]


def test_a_group_commits_what_no_change_overtook(nodes: Nodes):
    one = nodes.start("one")
    commit(one, change("1.0.0", 0))
    other = rows.make_change(
        "ann", "ann/other", [File("ann/other", VERSION, "1.0.0", b"{}", b"")], 0, by_owner=True
    )
    fine = rows.make_change(
        "bob", "bob/other", [File("bob/other", VERSION, "1.0.0", b"{}", b"")], 0, by_owner=True
    )
    assert commit(one, change("1.0.1", 0), other, fine) == [2]
    assert nodes.execute("SELECT repo FROM change WHERE serial = 2") == [("bob/other",)]


@pytest.mark.parametrize(
    ("repo", "kind", "name", "message"),
    [
        ("ann/story", "poll", "1.0.0", "does not know, 'poll'. Upgrade"),
        ("../story", VERSION, "1.0.0", "names '../story'"),
        ("ann/..", VERSION, "1.0.0", "names 'ann/..'"),
        ("..", PROFILE, "owner", "names '..'"),
        ("", PROFILE, "owner", "names ''"),
        ("ann/story", EVENT, "../../../x", "and '../../../x'"),
        ("ann/story", EVENT, "", "and ''"),
    ],
)
def test_a_row_that_this_release_does_not_know_writes_nothing(
    tmp_path: Path, repo: str, kind: str, name: str, message: str
):
    root = tmp_path / "content"
    root.mkdir()
    with pytest.raises(OperatorError, match=message.replace(".", r"\.")):
        apply_row(str(root), Row(7, uuid.uuid4(), "ann", repo, kind, name, b"{}", b"text"))
    assert [*tmp_path.rglob("*")] == [root]
