"""Nodes over a PostgreSQL with a synchronous standby: what is acknowledged outlives the primary."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts import postgres_pool as pool_module
from publisher.nodes import commits as commits_module
from publisher.nodes.commits import StoreUnavailable
from tests.publisher.nodes.conftest import LONG, Nodes
from tests.publisher.nodes.test_store import key_of, label, meet, put, stop_reading
from tests.support.postgres_pair import WAITING, Pair, running_pair, url_of
from tests.support.servers import wait_until


@pytest.fixture(scope="module")
def pair(installed_tools: None) -> Iterator[Pair]:
    with running_pair() as pair:
        yield pair


@pytest.fixture
def nodes(tmp_path: Path, pair: Pair) -> Iterator[Nodes]:
    pair.standby.start()
    made = Nodes(tmp_path, pair.primary)
    yield made
    made.stop_all()


@contextlib.contextmanager
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An answer that takes too long counts as lost."""
    with monkeypatch.context() as patch:
        patch.setattr(pool_module, "ANSWER_SECONDS", 0.5)
        patch.setattr(commits_module, "ANSWER_SECONDS", 0.5)
        patch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", 1.0)
        yield


def refused(work: Callable[[], object]) -> bool:
    with pytest.raises(RequestError) as caught:
        work()
    return caught.value.code == "storage_unavailable"


def committed(nodes: Nodes, version: str) -> bool:
    return nodes.execute(f"SELECT 1 FROM change WHERE kind='version' AND name='{version}'") != []


@pytest.mark.parametrize("how", ["canceled", "crashed"])
def test_what_the_primary_alone_has_is_acknowledged_by_no_node(
    how: str, pair: Pair, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
):
    """The rows can be seen, and yet be lost with the primary."""
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    label(one, "1.0.0")
    meet(nodes, one, two)
    pair.standby.stop()
    with impatient(monkeypatch), ThreadPoolExecutor(1) as pool:
        keyed = {"idempotency_key": key_of(nodes, "one")}
        done = pool.submit(refused, lambda: put(one, "second\n", **keyed))
        wait_until(lambda: pair.primary.execute("postgres", f"SELECT 1 {WAITING}"), "a wait")
        if how == "canceled":
            wait_until(lambda: pair.cancel_waits() or done.done(), "the answer")
        assert done.result()
        if how == "crashed":
            pair.primary.stop()
            pair.primary.start()
        wait_until(lambda: committed(nodes, "1.0.1"), "what the primary has")
        meet(nodes, one, two)
        for store, name in ((one, "one"), (two, "two")):
            key = key_of(nodes, name)
            assert refused(lambda store=store, key=key: put(store, "second\n", idempotency_key=key))
            assert refused(lambda store=store: put(store, "second\n"))
        assert refused(lambda: label(two, "1.0.0"))
    pair.standby.start()
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", LONG)
    found = put(two, "second\n", idempotency_key=key_of(nodes, "two"))
    assert (found.version, found.unchanged) == ("1.0.1", False)
    assert put(two, "second\n").unchanged
    assert label(two, "1.0.0").unchanged
    meet(nodes, one, two)
    assert nodes.content("one") == nodes.content("two")


def test_nodes_follow_the_standby_that_takes_over(
    pair: Pair, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", LONG)
    url = url_of(nodes.url, pair.primary, pair.standby)
    one, two = nodes.start("one", url), nodes.start("two", url)
    keyed = [put(one, "first\n", idempotency_key=key_of(nodes, "one"))]
    pair.fail_over()
    nodes.postgres = pair.primary
    wait_until(lambda: not two.status()["failures"], "the new primary")
    keyed.append(put(two, "first\n", idempotency_key=key_of(nodes, "two")))
    assert [one.version for one in keyed] == ["1.0.0", "1.0.0"]
    assert put(two, "second\n").version == "1.0.1"
    assert put(one, "third\n").version == "1.0.2"
    meet(nodes, one, two)
    assert nodes.content("one") == nodes.content("two")
    assert not one.status()["other_history"] and not two.status()["other_history"]


@pytest.mark.parametrize("more", [0, 2], ids=["behind", "forked"])
@pytest.mark.parametrize("how", ["failover", "restore"])
def test_a_history_that_lost_changes_is_recognized_before_anything_is_written(
    how: str, more: int, pair: Pair, nodes: Nodes
):
    other = pair.standby if how == "failover" else pair.backup()
    url = url_of(nodes.url, pair.primary, other)
    one, two = nodes.start("one", url), nodes.start("two", url)
    put(one, "first\n")
    if how == "failover":
        pair.wait_confirmed()
        pair.standby.stop()
        pair.set_synchronous("")
    else:
        nodes.execute("SELECT pg_create_restore_point('before')")
    put(one, "second\n")
    meet(nodes, one, two)
    nodes.stop("one")
    stop_reading(two)
    pair.fail_over() if how == "failover" else pair.restore(other)
    nodes.postgres = pair.primary
    three = nodes.start("three", url)
    for number in range(more):
        put(three, f"instead {number}\n")
    for text, name in (("third\n", "other"), ("second\n", "story"), ("first\n", "story")):
        with pytest.raises(StoreUnavailable, match="another history"):
            put(two, text, name=name)
    with pytest.raises(OperatorError, match="move its content folder away"):
        two.check()
    assert nodes.execute("SELECT serial FROM hub") == [(2 + more,)]
    nodes.stop("two")
    (nodes.root / "two").rename(nodes.root / "two.lost")
    two = nodes.start("two", url)
    assert put(two, "third\n").version == f"1.0.{more + 1}"
    meet(nodes, two, three)
    assert nodes.content("two") == nodes.content("three")
