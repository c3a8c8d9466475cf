"""Faults of content, databases, caches, site, accounts and backups."""

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from builder.model.records import DAY_SECONDS
from builder.search.index import index_folder
from builder.stats.database import open_for_writing, pulls_file
from builder.store.state import State
from operate.backup.take import back_up
from operate.doctor import data
from operate.doctor.findings import Subject
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.schema import SCHEMA_VERSION as ACCOUNTS_VERSION
from publisher.accounts.tokens import Accounts
from publisher.sizes import last_backup_file
from tests.operate.doctor.conftest import faults, only
from tests.support.catalogues import write_version
from tests.support.postgres import QUOTED_PASSWORD, Postgres


def test_all_is_well(subject: Subject) -> None:
    open_for_writing(pulls_file(subject.settings.state)).close()
    for check in (data.databases, data.content, data.site, data.accounts):
        assert faults(check(subject)) == []


def test_content_with_faults(subject: Subject) -> None:
    folder = subject.settings.content
    front = "---\nnote: " + "x" * 20_000 + "\n---\nText.\n"
    write_version(folder, "ann", "long", "1.0.0", front)
    write_version(folder, "nul", "index", "1.0.0", "Text.")
    found = only(data.content(subject), "warning")
    assert f"3 warnings in {folder}" in found and "the owner name 'nul' is reserved" in found
    for version in range(5):
        Path(folder, "ann", "story", f"2.0.{version}.md").write_text("No record.")
    found = only(data.content(subject), "problem")
    assert f"5 faults in {folder}, among them: ann/story/2.0.0.md: " in found
    assert found.count("text without record") == 3


def overwrite(path: Path, start: int = 0) -> None:
    """Damage a file from ``start`` on."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"x" * 4096)


def test_damage(subject: Subject) -> None:
    state = Path(subject.settings.state)
    with closing(sqlite3.connect(state / "accounts.sqlite3")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    open_for_writing(pulls_file(str(state))).close()
    overwrite(state / "accounts.sqlite3", 8192)
    overwrite(state / "pulls.sqlite3")
    overwrite(Path(State.path_in(str(state))))
    index = Path(index_folder(subject.settings))
    file = next(iter(json.loads((index / "checksums").read_text())))
    (index / file).write_bytes((index / file).read_bytes()[:-1] + b"x")
    found = faults(data.databases(subject))
    assert {level for level, _ in found} == {"problem"}
    named = ("pulls.sqlite3 is damaged", "accounts.sqlite3 is damaged", "A cache in", "checksum")
    assert all(name in text for name, (_, text) in zip(named, found, strict=True)), found
    assert "Restore a backup" in found[1][1] and "Run `hubctl build`" in found[2][1]


def test_accounts_of_a_newer_release(subject: Subject) -> None:
    with closing(sqlite3.connect(f"{subject.settings.state}/accounts.sqlite3")) as db:
        db.execute("PRAGMA user_version = 99")
    assert "was created by a newer release" in only(data.databases(subject), "problem")


def test_a_site_of_another_release(subject: Subject) -> None:
    with closing(sqlite3.connect(f"{subject.settings.state}/build.sqlite3")) as db:
        db.execute("PRAGMA user_version = 99")
    assert "Another release of hub built" in only(data.site(subject), "warning")


def test_a_full_build_that_did_not_end(subject: Subject) -> None:
    with State(subject.settings.state) as state:
        state.begin(forget=True)
        state.abandon()
    assert "its last build did not end" in only(data.site(subject), "warning")


def test_a_site_that_is_missing_or_for_another_address(subject: Subject) -> None:
    found = only(data.site(subject._replace(noted=None)), "warning")
    assert "No build with the state folder" in found
    elsewhere = subject.settings._replace(base_url="https://other.example")
    found = only(data.site(subject._replace(settings=elsewhere)), "problem")
    assert "was built for https://hub.example, not for https://other.example" in found


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["127.0.0.1"], "start `hubctl serve` with --trusted-proxy 127.0.0.1"),
        (["::ffff:127.0.0.1", "127.0.0.1"], "with --trusted-proxy 127.0.0.1"),
        (["127.0.0.1", "10.0.0.7"], None),
        (["8.8.8.8"], None),
    ],
)
def test_people_who_all_come_from_the_proxy(
    subject: Subject, addresses: list[str], expected: str | None
) -> None:
    with Database(subject.settings.state) as database:
        for address in addresses:
            Events(database).note("ann", "signed_in", address=address)
    if expected:
        assert expected in only(data.accounts(subject), "warning")
    else:
        assert faults(data.accounts(subject)) == []
    here = subject.settings._replace(base_url="http://127.0.0.1:8000")
    assert faults(data.accounts(subject._replace(settings=here))) == []


def test_tokens_that_end_soon(subject: Subject) -> None:
    with Database(subject.settings.state) as database:
        accounts = Accounts(database)
        for name, days in (("soon", data.TOKEN_DAYS_MIN - 1), ("gone", 2), ("later", 90)):
            accounts.create_token("ann", name, expires_days=days)
        accounts.revoke("ann", "gone")
    found = only(data.accounts(subject), "warning")
    assert "The token 'soon' of ann ends on 20" in found and "hubctl token create ann" in found


def test_backups(subject: Subject, tmp_path: Path) -> None:
    settings = subject.settings
    assert "has never backed up" in only(data.backups(subject), "warning")
    here = subject._replace(settings=settings._replace(base_url="http://localhost"))
    assert faults(data.backups(here)) == []
    back_up(settings.content, settings.state, f"{tmp_path}/hub.tar")
    assert faults(data.backups(subject)) == []
    os.utime(last_backup_file(settings.state), (0, time.time() - 9.5 * DAY_SECONDS))
    assert "is 9 days old. Run `hubctl backup`" in only(data.backups(subject), "problem")


def test_accounts_in_postgresql(subject: Subject, postgres: Postgres) -> None:
    url = postgres.new_database()
    server = f"PostgreSQL database {url.rpartition('/')[2]} at 127.0.0.1"
    shared = subject._replace(database_url=url)
    assert f"The {server} has no accounts yet." in only(data.databases(shared), "warning")
    assert faults(data.accounts(shared)) == []
    with Database(url) as database:
        Accounts(database).add_owner("ann")
        assert faults(data.databases(shared)) == faults(data.accounts(shared)) == []
        Events(database).note("ann", "signed_in", address="127.0.0.1")
        Accounts(database).create_token("ann", "soon", expires_days=1)
        soon, proxy = faults(data.accounts(shared))
        assert "'soon' of ann" in soon[1] and "--trusted-proxy 127.0.0.1" in proxy[1]
        database.execute("UPDATE hub_accounts SET version = ?", (ACCOUNTS_VERSION + 1,))
        with pytest.raises(Exception, match="newer release"):
            list(data.databases(shared))
    refused = shared._replace(database_url=url.replace(QUOTED_PASSWORD, "hunter2"))
    with pytest.raises(Exception, match=f"Cannot use the {server}: ") as raised:
        list(data.databases(refused))
    assert "hunter2" not in str(raised.value)
