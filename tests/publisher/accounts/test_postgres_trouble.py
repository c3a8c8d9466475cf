"""Accounts in PostgreSQL: nodes and servers that stop, hang or are lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from publisher.accounts import postgres as engine_module
from publisher.accounts import postgres_pool as pool_module
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.web import readiness as readiness_module
from publisher.web.readiness import Readiness
from tests.publisher.accounts.test_postgres import NOW, database, handles, refusal, url
from tests.support.postgres import Postgres, running_postgres
from tests.support.postgres_pair import running_pair
from tests.support.servers import DEADLINE_SECONDS, wait_until

__all__ = ["database", "url"]  # fixtures


@pytest.fixture(scope="module")
def _own(installed_tools: None) -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def own(_own: Postgres) -> Iterator[Postgres]:
    """A server that a test may stop."""
    yield _own
    _own.start()


@contextmanager
def node(url: str, work: str) -> Iterator[subprocess.Popen]:
    """A process that does some work on ``database``, says so, and stays."""
    program = (
        "import sys, time\n"
        "from publisher.accounts import postgres\n"
        "from publisher.accounts.tokens import Accounts\n"
        "from publisher.accounts.database import Database\n"
        f"{work}\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout.readline() == b"there\n"
            yield process
        finally:
            process.kill()


IN_A_TRANSACTION = """
postgres.STOPPED_SECONDS = {seconds}
database = Database(sys.argv[1])
with database.transaction():
    Accounts(database).add_owner("gone")
    print("there", flush=True)
    sys.stdin.read()
"""


def test_a_node_that_is_killed_in_a_transaction(database: Database, url: str):
    with node(url, IN_A_TRANSACTION.format(seconds=DEADLINE_SECONDS)) as other:
        other.kill()
        Accounts(database).add_owner("bob", NOW)
    assert handles(database) == ["ann", "bob"]


def test_a_node_that_stops_in_a_transaction(database: Database, url: str):
    with node(url, IN_A_TRANSACTION.format(seconds=2)) as other:
        os.kill(other.pid, signal.SIGSTOP)
        Accounts(database).add_owner("bob", NOW)
    assert handles(database) == ["ann", "bob"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_starts_again(own: Postgres, how: int):
    with Database(own.new_database()) as database:
        accounts = Accounts(database)
        accounts.add_owner("ann", NOW)
        text, _ = accounts.create_token("ann", "ci", now=NOW)
        own.stop(how)
        own.start()
        assert accounts.authenticate(text, NOW).name == "ci"
        own.stop(how)
        assert "cannot be reached" in str(refusal(database, writes=False))
        assert "cannot be reached" in str(refusal(database))
        own.start()
        accounts.revoke("ann", "ci", NOW)
        with pytest.raises(RequestError, match="revoked"):
            accounts.authenticate(text, NOW)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_stops_in_a_transaction(own: Postgres, how: int):
    with Database(own.new_database()) as database:
        with pytest.raises(RequestError, match="cannot be reached"), database.transaction():
            Accounts(database).add_owner("ann", NOW)
            own.stop(how)
            Accounts(database).add_owner("bob", NOW)
        own.start()
        assert handles(database) == []
        with pytest.raises(RequestError, match="cannot be reached"), database.transaction():
            Accounts(database).add_owner("ann", NOW)
            own.stop(how)
        own.start()
        assert handles(database) == []


def test_a_server_that_hangs(own: Postgres, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool_module, "CONNECT_SECONDS", 2)
    url = own.new_database()
    with Database(url) as database:
        Accounts(database).add_owner("ann", NOW)
        own.send(signal.SIGSTOP)
        try:
            with monkeypatch.context() as impatient:
                impatient.setattr(pool_module, "ANSWER_SECONDS", 1)
                # By an open connection, by a new one, and at the start.
                for writes in (False, True):
                    assert "cannot be reached" in str(refusal(database, writes=writes))
            with pytest.raises(OperatorError, match="timeout"):
                Database(url)
        finally:
            own.send(signal.SIGCONT)
        wait_until(lambda: _reads(database), "the server to go on")
        assert handles(database) == ["ann"]


def _reads(database: Database) -> bool:
    try:
        return bool(handles(database))
    except RequestError:
        return False


def test_a_hub_whose_server_stops_is_not_ready(
    own: Postgres, small: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(readiness_module, "ANSWER_KEPT_SECONDS", 0)
    with Database(own.new_database()) as database, Rebuilder(small, lambda _: None) as rebuilder:
        readiness = Readiness(small, rebuilder, database, {})

        def codes() -> set[str]:
            return {code for code, _ in readiness.reasons()}

        assert "accounts_unusable" not in codes()
        own.stop()
        assert "accounts_unusable" in codes()
        own.start()
        assert "accounts_unusable" not in codes()


def test_a_statement_that_takes_too_long(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine_module, "STATEMENT_SECONDS", 3)
    with Database(url) as database:
        with pytest.raises(RequestError, match="takes too long"), database.transaction():
            database.execute("SELECT pg_sleep(600)")
        assert handles(database) == []


def test_a_standby_that_is_lost(installed_tools: None, monkeypatch: pytest.MonkeyPatch):
    """A commit waits for it without an end, and the server ends only what comes after."""
    with running_pair() as pair:
        url = pair.primary.new_database()
        with pytest.raises(OperatorError, match="read-only"):
            Database(pair.standby.url("postgres"))
        with Database(url) as database, ThreadPoolExecutor(1) as thread:
            Accounts(database).add_owner("ann", NOW)
            pair.standby.stop()
            # It succeeds when its wait is canceled, and can be lost with this server.
            canceled = thread.submit(Accounts(database).add_owner, "cleo", NOW)
            wait_until(lambda: pair.cancel_waits() or canceled.done(), "an answer")
            with pytest.raises(RequestError, match="cannot be reached"):
                canceled.result()
            assert handles(database) == ["ann", "cleo"]
        monkeypatch.setattr(pool_module, "ANSWER_SECONDS", 3)
        monkeypatch.setattr(engine_module, "BUSY_SECONDS", 1)
        with Database(url) as database:
            # The result of this one is unknown.
            assert "cannot be reached" in str(refusal(database))
            assert "Another process is using it" in str(refusal(database))
            assert handles(database) == ["ann", "cleo"]
            pair.standby.start()
            wait_until(lambda: _writes(database), "the standby")
            assert handles(database) == ["ann", "bob", "cleo", "eve"]


def _writes(database: Database) -> bool:
    try:
        Accounts(database).add_owner("eve", NOW)
    except RequestError:
        return False
    except OperatorError:  # a commit whose answer was lost
        return True
    return True
