"""Publications whose connection to the database fails, at each moment."""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from publisher.nodes import commits as commits_module
from publisher.nodes.commits import StoreUnavailable
from tests.publisher.nodes.conftest import LONG, Nodes
from tests.publisher.nodes.test_store import key_of, meet, put
from tests.support.fault_proxy import FaultProxy, Rule
from tests.support.servers import wait_until

# A part of the message that commits a group.
COMMIT = "commit_changes"


@pytest.fixture
def proxy(nodes: Nodes) -> Iterator[FaultProxy]:
    with FaultProxy(urlsplit(nodes.url).netloc.rpartition("@")[2]) as proxy:
        yield proxy
        proxy.set_rules()
        nodes.stop_all()


@pytest.fixture
def url(nodes: Nodes, proxy: FaultProxy) -> str:
    """The database by way of the proxy."""
    there = urlsplit(nodes.url).netloc.rpartition("@")[2]
    return nodes.url.replace(there, proxy.address) + "?sslmode=disable"


@pytest.mark.parametrize("fault", ["cut", "lost", "late"])
def test_a_lost_answer_makes_no_second_version(
    fault: str, nodes: Nodes, proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", LONG)
    one = nodes.start("one", url)
    two = nodes.start("two")
    proxy.set_rules(Rule(fault, target=COMMIT, times=1, seconds=0.5))
    assert put(one, "first\n", idempotency_key=key_of(nodes, "one")).version == "1.0.0"
    assert [seen.fault for seen in proxy.take_seen() if seen.fault] == [fault]
    assert put(one, "second\n").version == "1.0.1"
    meet(nodes, one, two)
    assert nodes.content("one") == nodes.content("two")
    assert nodes.execute("SELECT count(*) FROM change WHERE kind = 'version'") == [(2,)]


def test_a_publication_whose_answer_was_lost_is_found_by_its_key(
    nodes: Nodes, proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch
):
    """The node that committed it never learns this; its client asks another node."""
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", 0.1)
    one, two = nodes.start("one", url), nodes.start("two")
    proxy.set_rules(Rule("lost", target=COMMIT, times=1), Rule("cut"))
    with pytest.raises(StoreUnavailable):
        put(one, "first\n", idempotency_key=key_of(nodes, "two"))
    meet(nodes, two)
    found = put(two, "first\n", idempotency_key=key_of(nodes, "two"))
    assert (found.version, found.unchanged) == ("1.0.0", False)
    assert nodes.execute("SELECT count(*) FROM change WHERE kind = 'version'") == [(1,)]


def test_an_answer_that_never_comes_is_taken_for_lost(
    nodes: Nodes, proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commits_module, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", LONG)
    one = nodes.start("one", url)
    proxy.set_rules(Rule("hang", target=COMMIT, times=1))
    assert put(one, "first\n").version == "1.0.0"


def test_a_node_that_stops_while_it_sends_holds_nobody(nodes: Nodes):
    """The server does nothing before it has the whole message."""
    one = nodes.start("one")
    with psycopg.connect(nodes.url, sslmode="disable") as stopped:
        message = b"BEGIN; SELECT serial FROM hub WHERE id = 1 FOR UPDATE; COMMIT; SELECT 1\0"
        os.write(stopped.fileno(), b"Q" + (len(message) + 4).to_bytes(4, "big") + message[:-2])
        assert put(one, "first\n").version == "1.0.0"
        stopped.close()


def test_a_group_takes_one_round_trip(
    nodes: Nodes, proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commits_module, "POLL_SECONDS", LONG)
    one = nodes.start("one", url)
    put(one, "first\n")
    proxy.take_seen()
    assert put(one, "second\n").version == "1.0.1"
    (sent,) = proxy.take_seen()
    assert COMMIT in sent.target


def test_the_log_says_why_the_database_cannot_be_used(
    nodes: Nodes, proxy: FaultProxy, url: str, caplog: pytest.LogCaptureFixture
):
    one = nodes.start("one", url)
    proxy.set_rules(Rule("cut"))
    wait_until(lambda: one.status()["failures"], "a failure")
    wait_until(
        lambda: any("reason" in each.fields for each in caplog.records if each.msg == "commits"),
        "a line of the log",
    )
    assert "the log has the cause" in one.status()["last_error"]
    proxy.set_rules()
    wait_until(lambda: not one.status()["failures"], "an end of it")
