"""What becomes of publications when the connection to the database fails, at each moment."""

import contextlib
import socket
import threading
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

# The last piece of a group, with which it is committed.
COMMIT = "COMMIT\0"


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
    """The node that committed it never finds out; its client asks another one."""
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


def stop_while_sending(nodes: Nodes, connection: psycopg.Connection) -> None:
    """As a node does that is stopped when the server has the first half of a group."""
    connection.pgconn.enter_pipeline_mode()
    for sql in (b"BEGIN", b"SELECT serial FROM hub FOR UPDATE"):
        connection.pgconn.send_query_params(sql, None)
    connection.pgconn.send_flush_request()
    connection.pgconn.flush()
    wait_until(
        lambda: nodes.execute(
            "SELECT 1 FROM pg_locks WHERE relation = 'hub'::regclass AND granted"
        ),
        "the lock",
    )


def test_a_node_that_stops_while_it_sends_holds_nobody(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
):
    """Its transaction waits for the rest, which ends no timeout of the server's."""
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", LONG)
    one = nodes.start("one")
    with psycopg.connect(nodes.url, application_name="prompt-hub", autocommit=True) as stopped:
        stopped.execute("SET idle_in_transaction_session_timeout = 1")
        stop_while_sending(nodes, stopped)
        assert put(one, "first\n").version == "1.0.0"
        stopped.close()


class Silent:
    """A way to a server that holds all answers back, while it is told to, until COMMIT is sent."""

    def __init__(self, upstream: str) -> None:
        self.is_silent = False
        self.commits = 0
        self._sent = threading.Condition()
        host, _, port = upstream.rpartition(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._upstream)
                for work in (self._ask, self._answer):
                    threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with server, contextlib.suppress(OSError):
            while piece := client.recv(1 << 16):
                server.sendall(piece)
                with self._sent:
                    self.commits += piece.count(COMMIT.encode())
                    self._sent.notify_all()

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while piece := server.recv(1 << 16):
                with self._sent:
                    self._sent.wait_for(lambda: not self.is_silent or self.commits, LONG)
                client.sendall(piece)


def test_a_group_takes_one_round_trip(nodes: Nodes, monkeypatch: pytest.MonkeyPatch):
    """All of it is sent before anything is answered."""
    there = urlsplit(nodes.url).netloc.rpartition("@")[2]
    monkeypatch.setattr(commits_module, "POLL_SECONDS", LONG)
    monkeypatch.setattr(commits_module, "ANSWER_SECONDS", 5.0)
    with contextlib.closing(Silent(there)) as way:
        one = nodes.start("one", nodes.url.replace(there, way.address) + "?sslmode=disable")
        put(one, "first\n")
        way.is_silent, way.commits = True, 0
        assert put(one, "second\n").version == "1.0.1"
        assert way.commits == 1
        way.is_silent = False
        nodes.stop("one")


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
