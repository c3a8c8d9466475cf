"""Accounts in PostgreSQL: several nodes at once, and a server that stops, hangs or is lost."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts import postgres as engine_module
from publisher.accounts import postgres_pool as pool_module
from publisher.accounts import schema
from publisher.accounts.database import Database
from publisher.accounts.postgres_url import parse_postgres_url
from publisher.accounts.saved_drafts import DRAFTS_PER_AUTHOR_MAX, SavedDrafts
from publisher.accounts.schema import ACCOUNTS_ERRORS, FIRST_VERSION, MIGRATIONS, SCHEMA_VERSION
from publisher.accounts.tokens import Accounts
from tests.publisher.accounts.test_file import add_owner
from tests.support.children import processes_at_once
from tests.support.postgres import PASSWORD, QUOTED_PASSWORD, Postgres
from tests.support.servers import DEADLINE_SECONDS, free_port, wait_until

NOW = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.new_database()


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with Database(url) as opened:
        Accounts(opened).add_owner("ann", NOW)
        yield opened


def refusal(database: Database, *, writes: bool = True) -> RequestError:
    with pytest.raises(RequestError) as caught:
        if writes:
            Accounts(database).add_owner("bob", NOW)
        else:
            Accounts(database).owners(NOW)
    assert (caught.value.code, caught.value.status) == ("storage_unavailable", 503)
    return caught.value


def handles(database: Database) -> list[str]:
    return [owner.handle for owner in Accounts(database).owners(NOW)]


# Addresses and secrets


@pytest.mark.parametrize(
    "wrong",
    [
        "postgresql://hub:hunter2@", "postgresql://hub:hunter2@db", "postgresql://hub:hunt@er2@db/h",
        "postgresql://hub:hunter2/x@db/h", "postgresql://hub:12/hunter2@db/h",
        "postgresql://hub:hunter2#x@db/h", "postgresql://hub:12?hunter2@db/h",
        "postgresql://db:hunter2/h", "postgresql://hub:hunter2@[::1/h", "mysql://hub:hunter2@db/h",
        "hunter2", "postgresql://hub:hunter2@db/h/g",
        "postgresql://hub:hunter2@db/",
    ],
)  # fmt: skip
def test_addresses_that_cannot_be(wrong: str):
    with pytest.raises(OperatorError, match="Give a PostgreSQL URL") as caught:
        parse_postgres_url(wrong)
    assert "hunt" not in str(caught.value) and "er2" not in str(caught.value)


@pytest.mark.parametrize(
    "fine",
    ["postgresql:///hub", "postgres://hub@db/hub", "postgresql://h:a%40b@[::1]:5432/hub?sslmode=require",
     "postgresql://a:1,b:2/hub", "postgresql:///hub?host=/run/postgresql"],
)  # fmt: skip
def test_addresses(fine: str):
    assert parse_postgres_url(fine) == fine


def test_what_the_library_does_not_understand_is_not_shown():
    with pytest.raises(OperatorError, match="behind its \\?") as caught:
        Database("postgresql://hub:hunter2@db/hub?sslmode=hunter&hunter2=x")
    assert "hunter2" not in str(caught.value)


def test_no_library(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "publisher.accounts.postgres")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(OperatorError, match=r"pip install 'psycopg\[binary\]'"):
        Database("postgresql://db/hub")


def test_it_is_loaded_only_when_asked_for(tmp_path):
    program = (
        "import sys; from cli import backup, doctor, label, owner, service, token\n"
        "from publisher.accounts.database import Database\n"
        "Database(sys.argv[1]).close(); assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)


def test_a_server_that_is_not_there(caplog: pytest.LogCaptureFixture):
    where = f"127.0.0.1:{free_port()}"
    with pytest.raises(OperatorError, match=r"Connection refused.*Check that it") as caught:
        Database(f"postgresql://hub:hunter2@{where}/prompts")
    assert "PostgreSQL database prompts at 127.0.0.1" in str(caught.value)
    assert "hunter2" not in str(caught.value) + caplog.text


def test_who_is_not_let_in(postgres: Postgres, url: str, caplog: pytest.LogCaptureFixture):
    wrong = url.replace(QUOTED_PASSWORD, "hunter2")
    for of in (wrong, url + "x"):
        with pytest.raises(OperatorError) as caught:
            Database(of)
        said = str(caught.value) + caplog.text
        assert "hunter2" not in said and PASSWORD not in said and QUOTED_PASSWORD not in said
    postgres.execute("postgres", "CREATE ROLE reader LOGIN PASSWORD 'reader'")
    with pytest.raises(OperatorError, match="permission denied"):
        Database(url.replace(f"hub:{QUOTED_PASSWORD}", "reader:reader"))


# The database


def test_the_tables_are_there_once(url: str):
    processes_at_once(8, partial(add_owner, url))
    with Database(url) as database:
        assert handles(database) == [f"owner-{number}" for number in range(8)]
        assert database.execute("SELECT version FROM hub_accounts") == [(SCHEMA_VERSION,)]


def test_tables_of_an_older_release(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "hub")
    with monkeypatch.context() as old:
        old.setattr(schema, "MIGRATIONS", MIGRATIONS[:1])
        old.setattr(engine_module, "SCHEMA_VERSION", FIRST_VERSION)
        with Database(url) as database:
            database.execute("INSERT INTO owner VALUES ('bob', 0, 'bob', NULL)")
            database.execute(
                "INSERT INTO answer VALUES ('bob', 'key', ?, '1.0.1', '1.0.0', NULL, NULL, 9)",
                (b"\0",),
            )
    with Database(url) as database:
        assert [(one.handle, one.kind) for one in Accounts(database).owners()] == [
            ("bob", "person")
        ]
        assert database.execute("SELECT previous_version FROM answer") == [("1.0.0",)]
    (said,) = (one.fields for one in caplog.records if one.msg == "upgrade")
    assert said == {
        "file": "postgresql", "from_version": FIRST_VERSION, "to_version": SCHEMA_VERSION,
    }  # fmt: skip


def test_a_migration_that_fails_leaves_all_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as broken:
        broken.setattr(schema, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE owner (x TEXT);\n"))
        broken.setattr(engine_module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        with pytest.raises(OperatorError, match="already exists"):
            Database(url)
    with Database(url) as database:
        assert handles(database) == []


def test_a_newer_release(database: Database, url: str):
    database.execute("UPDATE hub_accounts SET version = ?", (SCHEMA_VERSION + 1,))
    with pytest.raises(OperatorError, match="newer release"):
        Database(url)


def test_a_database_of_another_program(postgres: Postgres, url: str):
    postgres.execute(url.rpartition("/")[2], "CREATE TABLE customer (x int)")
    with pytest.raises(OperatorError, match="another program"):
        Database(url)


def test_a_database_of_another_encoding(postgres: Postgres):
    other = postgres.new_database(
        "ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    )
    with pytest.raises(OperatorError, match="as LATIN1"):
        Database(other)


def test_texts_are_in_order_of_their_bytes(database: Database):
    accounts = Accounts(database)
    for name in ("a", "B", "_", "é", "z"):
        accounts.create_token("ann", name, now=NOW)
    assert [token.name for token in accounts.tokens()] == ["B", "_", "a", "z", "é"]


def test_a_text_that_postgresql_cannot_hold(database: Database):
    drafts = SavedDrafts(database)
    with pytest.raises(RequestError, match=r"U\+0000") as caught:
        drafts.save("ann", ("ann", "story"), "a\0b", b"\0", now=NOW)
    assert caught.value.code == "validation_failed"
    kept = drafts.save("ann", ("ann", "story"), "a", b"\0", now=NOW)
    assert drafts.find("ann", kept.id, NOW) == (kept, b"\0")


@pytest.mark.parametrize(("default", "used"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_a_commit_waits_for_the_disk(postgres: Postgres, url: str, default: str, used: str):
    name = url.rpartition("/")[2]
    postgres.execute("postgres", f"ALTER DATABASE {name} SET synchronous_commit = {default}")
    with Database(url) as database, database.transaction():
        assert database.execute("SELECT current_setting('synchronous_commit')") == [(used,)]


def test_a_mistake_of_ours_is_not_the_servers(database: Database):
    with pytest.raises(psycopg.ProgrammingError):
        database.execute("SELECT missing FROM owner")
    with pytest.raises(psycopg.IntegrityError):
        database.execute("INSERT INTO password VALUES ('nobody', '', 0)")
    assert handles(database) == ["ann"]
    database.close()
    with pytest.raises(psycopg.InterfaceError):
        database.execute("SELECT 1")


def test_a_failure_that_is_passed_over_commits_nothing(database: Database):
    with pytest.raises(RequestError), database.transaction():
        Accounts(database).add_owner("bob", NOW)
        with pytest.raises(psycopg.IntegrityError):
            database.execute("INSERT INTO password VALUES ('nobody', '', 0)")
    assert handles(database) == ["ann"]


def test_tables_that_are_taken_away(postgres: Postgres, database: Database, url: str):
    ((_, before),) = ACCOUNTS_ERRORS.samples()
    postgres.execute(url.rpartition("/")[2], "DROP TABLE owner CASCADE")
    assert "tables are missing" in str(refusal(database, writes=False))
    assert [*ACCOUNTS_ERRORS.samples()] == [((), before + 1)]


# Several at once


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_one_transaction_at_a_time(postgres: Postgres, url: str, isolation: str):
    name = url.rpartition("/")[2]
    postgres.execute(
        "postgres", f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'"
    )
    with Database(url) as one, Database(url) as other:
        Accounts(one).add_owner("ann", NOW)

        def save(number: int) -> bool:
            try:
                drafts = SavedDrafts((one, other)[number % 2])
                drafts.save("ann", ("ann", ""), str(number), b"", now=NOW)
            except RequestError as error:
                assert "which is the limit" in str(error)
                return False
            return True

        with ThreadPoolExecutor(6) as threads:
            kept = sum(threads.map(save, range(DRAFTS_PER_AUTHOR_MAX + 10)))
        assert kept == DRAFTS_PER_AUTHOR_MAX == len(SavedDrafts(other).of("ann", now=NOW))


def test_a_statement_alone_waits_for_a_transaction(database: Database, url: str):
    is_done = threading.Event()

    def rename(other: Database) -> None:
        other.execute("UPDATE token SET name = 'other' WHERE name = 'ci'")
        is_done.set()

    with Database(url) as other, ThreadPoolExecutor(1) as thread:
        with database.transaction():
            waiting = thread.submit(rename, other)
            wait_until(
                lambda: database.execute("SELECT 1 FROM pg_locks WHERE NOT granted"),
                "the other to wait",
            )
            Accounts(database).create_token("ann", "ci", now=NOW)
            assert not is_done.is_set()
        waiting.result(DEADLINE_SECONDS)
        assert [token.name for token in Accounts(database).tokens()] == ["other"]


def test_a_lock_that_is_held_too_long(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(engine_module, "BUSY_SECONDS", 0.1)
    with Database(url) as other, ThreadPoolExecutor(1) as thread, database.transaction():
        refused = thread.submit(refusal, other).result(DEADLINE_SECONDS)
        assert "Another process is using it. Try again" in str(refused)
        assert thread.submit(handles, other).result(DEADLINE_SECONDS) == ["ann"]
    (said,) = (one.fields for one in caplog.records if one.msg == "accounts_unavailable")
    assert "lock timeout" in said["reason"]


def test_so_many_connections(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool_module, "CONNECTIONS_MAX", 1)
    for module in (engine_module, pool_module):
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    with Database(url) as database, ThreadPoolExecutor(1) as thread:
        with database.transaction():
            refused = thread.submit(refusal, database, writes=False).result(DEADLINE_SECONDS)
            assert "Too many requests" in str(refused)
            refused = thread.submit(refusal, database).result(DEADLINE_SECONDS)
            assert "Another request is changing" in str(refused)
        assert thread.submit(handles, database).result(DEADLINE_SECONDS) == []


def test_reads_do_not_wait_for_writers(database: Database, url: str):
    count = pool_module.CONNECTIONS_MAX
    with Database(url) as other, ThreadPoolExecutor(2 * count) as threads:
        with other.transaction():
            waiting = [
                threads.submit(Accounts(database).add_owner, f"o-{number}", NOW)
                for number in range(2 * count - 1)
            ]
            wait_until(
                lambda: other.execute("SELECT 1 FROM pg_locks WHERE NOT granted"),
                "a writer to wait",
            )
            assert threads.submit(handles, database).result(DEADLINE_SECONDS) == ["ann"]
        for one in waiting:
            one.result(DEADLINE_SECONDS)
        assert len(handles(database)) == 2 * count


def test_threads_share_few_connections(postgres: Postgres, database: Database, url: str):
    with ThreadPoolExecutor(20) as threads:
        assert list(threads.map(lambda _: handles(database), range(200))) == [["ann"]] * 200
    ((count,),) = postgres.execute(
        url.rpartition("/")[2],
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'prompt-hub' "
        "AND datname = current_database()",
    )
    assert 1 <= count <= pool_module.CONNECTIONS_MAX
