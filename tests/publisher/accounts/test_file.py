"""The database of accounts as a file: in several processes, and in trouble."""

import errno
import os
import sqlite3
import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts import sqlite_engine
from publisher.accounts.database import Database
from publisher.accounts.schema import SCHEMA_VERSION
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.accounts.tokens import Accounts
from tests.publisher.accounts.conftest import NOW, refusal
from tests.support.children import processes_at_once
from tests.support.postgres import only_sqlite
from tests.support.servers import HUBCTL, clean_environment

SECOND = timedelta(seconds=1)
PRINTABLE = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-. é"


# Processes


def test_another_process_sees_it_at_once(tmp_path: Path):
    def hubctl(*arguments: str) -> str:
        done = subprocess.run(
            [HUBCTL, *arguments], capture_output=True, text=True, check=True,
            env=clean_environment(HUB_STATE=str(tmp_path)),
        )  # fmt: skip
        return done.stdout

    with Database(str(tmp_path)) as database:
        accounts = Accounts(database)
        hubctl("owner", "add", "ann")
        text = hubctl("token", "create", "ann", "--name", "ci").removesuffix("\n")
        token = accounts.authenticate(text)
        accounts.note_use(token)
        with Database(str(tmp_path)) as other:
            assert Accounts(other).tokens()[0].last_used_at is not None
        hubctl("token", "revoke", "ann", "ci")
        assert refusal(accounts, text, datetime.now(UTC)).code == "invalid_token"


def add_owner(place: str, number: int) -> None:
    with Database(place) as database:
        Accounts(database).add_owner(f"owner-{number}")


def test_processes_that_make_the_database_at_once(tmp_path: Path):
    for attempt in range(6):
        state = str(tmp_path / str(attempt))
        processes_at_once(8, partial(add_owner, state))
        with Database(state) as database:
            assert len(Accounts(database).owners()) == 8


# The file


def test_the_file_is_private(tmp_path: Path):
    old_mask = os.umask(0)
    try:
        with Database(str(tmp_path / "new" / "var")) as database:
            Accounts(database).add_owner("ann")
            modes = {
                p.name: p.stat().st_mode & 0o777
                for p in Path(database.engine.path).parent.iterdir()
            }
    finally:
        os.umask(old_mask)
    assert set(modes.values()) == {0o600} and f"{ACCOUNTS_FILE}-wal" in modes
    # Restored from a backup, perhaps.
    Path(database.engine.path).chmod(0o644)
    Database(str(tmp_path / "new" / "var")).close()
    assert Path(database.engine.path).stat().st_mode & 0o777 == 0o600


@only_sqlite
def test_a_commit_waits_for_the_disk(database: Database, accounts: Accounts):
    accounts.create_token("ann", "laptop", now=NOW)
    assert database.execute("PRAGMA journal_mode") == [("wal",)]
    assert database.execute("PRAGMA synchronous") == [(2,)]
    with pytest.raises(sqlite3.IntegrityError):
        database.execute("UPDATE token SET owner = 'nobody'")


def test_a_transaction_within_another_is_a_part_of_it(database: Database, accounts: Accounts):
    with pytest.raises(ZeroDivisionError), database.transaction():
        with database.transaction() as inner:
            inner.execute("DELETE FROM owner WHERE handle = 'ann'")
        raise ZeroDivisionError
    assert accounts.is_known("ann")


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_transaction_that_fails(database: Database, accounts: Accounts, error: type):
    with pytest.raises(error), database.transaction() as change:
        change.execute("DELETE FROM owner")
        raise error
    assert len(accounts.owners()) == 1
    with database.transaction() as change:
        change.execute("DELETE FROM owner")
    assert accounts.owners() == []


@only_sqlite
def test_a_full_disk(database: Database, accounts: Accounts):
    ((pages,),) = database.execute("PRAGMA page_count")
    database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(RequestError, match="Free disk space") as caught:
        for number in range(1000):
            accounts.create_token("ann", f"t{number}", now=NOW)
    assert (caught.value.code, caught.value.status) == ("storage_unavailable", 503)
    kept = accounts.tokens()
    assert {token.name for token in kept} == {f"t{n}" for n in range(len(kept))}
    database.execute(f"PRAGMA max_page_count = {pages + 100}")
    accounts.create_token("ann", "more", now=NOW)


@only_sqlite
@pytest.mark.parametrize("use", ["execute", "transaction"])
def test_a_disk_that_cannot_be_written(database: Database, accounts: Accounts, use: str):
    text, token = accounts.create_token("ann", "ci", now=NOW)
    database.execute("PRAGMA query_only = ON")
    with pytest.raises(RequestError, match="Give this service write access") as caught:
        if use == "execute":
            accounts.note_use(token, NOW)
        else:
            accounts.revoke("ann", "ci", NOW)
    assert caught.value.code == "storage_unavailable"
    # Authentication still works, so a retry can get the answer of its stored publication.
    assert accounts.authenticate(text, NOW) == token


@only_sqlite
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_is_taken_away(database: Database, accounts: Accounts, is_replaced: bool):
    text, _ = accounts.create_token("ann", "ci", now=NOW)
    folder = Path(database.engine.path).parent
    with pytest.raises(RequestError, match="restart"), database.transaction() as change:
        change.execute("DELETE FROM token")
        folder.rename(folder.with_name("away"))
        if is_replaced:
            Database(str(folder)).close()
    # Otherwise a token that is revoked in the new file would still be good here.
    error = refusal(accounts, text)
    assert error.code == "storage_unavailable" and "Restore it" in str(error)
    with Database(str(folder.with_name("away"))) as kept:
        assert Accounts(kept).authenticate(text, NOW).name == "ci"


@only_sqlite
def test_a_lock_that_is_held_too_long(
    database: Database, accounts: Accounts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite_engine, "BUSY_SECONDS", 0)
    with Database(str(Path(database.engine.path).parent)) as other, database.transaction():
        with pytest.raises(RequestError, match="try again") as caught:
            Accounts(other).create_token("ann", "ci", now=NOW)
        assert caught.value.code == "storage_unavailable"
        # Reading does not wait.
        assert [owner.handle for owner in Accounts(other).owners()] == ["ann"]


@only_sqlite
def test_a_mistake_of_ours_is_not_the_disks(database: Database):
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        database.execute("SELECT * FROM missing")
    database.close()
    with pytest.raises(sqlite3.ProgrammingError):
        database.execute("SELECT 1")


def test_no_database_at_all(tmp_path: Path):
    (tmp_path / ACCOUNTS_FILE).write_bytes(b"not a database " * 100)
    with pytest.raises(OperatorError, match="backup") as caught:
        Database(str(tmp_path))
    assert str(tmp_path / ACCOUNTS_FILE) in str(caught.value)
    assert (tmp_path / ACCOUNTS_FILE).read_bytes() == b"not a database " * 100


@only_sqlite
def test_damage_found_later(database: Database, accounts: Accounts):
    accounts.create_token("ann", "ci", now=NOW)
    ((root,),) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'token'")
    ((page_bytes,),) = database.execute("PRAGMA page_size")
    database.close()
    path = Path(database.engine.path)
    data = bytearray(path.read_bytes())
    data[(root - 1) * page_bytes : root * page_bytes] = b"\xff" * page_bytes
    path.write_bytes(data)
    damaged = pytest.raises(OperatorError, match="backup")
    with Database(str(path.parent)) as again, damaged as caught:
        Accounts(again).create_token("ann", "other", now=NOW)
    assert database.engine.path in str(caught.value)


@only_sqlite
def test_a_newer_schema(database: Database):
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(OperatorError, match="newer release"):
        Database(str(Path(database.engine.path).parent))


def test_the_database_of_another_program(tmp_path: Path):
    with sqlite3.connect(tmp_path / ACCOUNTS_FILE) as foreign:
        foreign.execute("CREATE TABLE owner (x)")
    foreign.close()
    with pytest.raises(OperatorError, match="not hub's database of accounts"):
        Database(str(tmp_path))


def test_a_state_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match="--state"):
        Database(str(tmp_path / "file"))
    (tmp_path / "folder" / ACCOUNTS_FILE).mkdir(parents=True)
    with pytest.raises(OperatorError, match="unable to open"):
        Database(str(tmp_path / "folder"))

    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OperatorError, match="Read-only"):
        Database(str(tmp_path))
