"""Faults of content, databases of another release, and damage."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from builder.search.index import _read_checksums
from builder.stats.database import open_for_writing, pulls_file
from builder.store.state import State
from operate.doctor import data
from operate.doctor.findings import Subject
from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.schema import SCHEMA_VERSION as ACCOUNTS_VERSION
from tests.operate.doctor.conftest import levels, only_problem, only_warning
from tests.support.catalogues import write_version
from tests.support.postgres import QUOTED_PASSWORD, Postgres


def test_all_is_well(subject: Subject) -> None:
    for check in (data.content, data.databases, data.caches):
        assert levels(check, subject) == {"ok"}
    (found,) = data.content(subject)
    assert found.what == "3 prompts, 2 owners, no faults"


def test_content_with_faults(subject: Subject) -> None:
    for version in range(5):
        Path(subject.settings.content, "ann", "story", f"2.0.{version}.md").write_text("No record.")
    told = only_problem(data.content, subject)
    assert f"5 faults in {subject.settings.content}, among them: ann/story/2.0.0.md: " in told
    assert told.count("text without record") == 3


def test_a_fault_that_was_a_publication_under_way(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(subject.settings.content, "ann", "story", "2.0.0.md")
    text.write_text("Its record comes in a moment.")
    look = data._look

    def look_and_go_on(folder: str) -> object:
        found = look(folder)
        text.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(data, "_look", look_and_go_on)
    assert levels(data.content, subject) == {"ok"}


def test_content_with_warnings(subject: Subject) -> None:
    front = "---\nnote: " + "x" * 20_000 + "\n---\nText.\n"
    write_version(subject.settings.content, "ann", "long", "1.0.0", front)
    assert "1 warning about" in only_warning(data.content, subject)


def test_names_that_are_reserved_today_are_named(subject: Subject) -> None:
    write_version(
        subject.settings.content, "nul", "index", "1.0.0", "Text.", tags=["com1"], labels=["aux"],
        label_number=1,
    )  # fmt: skip
    told = only_warning(data.content, subject)
    assert "4 warnings about" in told and "nul: the owner name 'nul' is reserved today" in told
    assert "nul/index: the prompt name 'index' is reserved" in told
    assert "nul/index: the tag name 'com1' is reserved" in told


def test_accounts_of_a_newer_release(subject: Subject) -> None:
    path = f"{subject.settings.state}/accounts.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    assert "was created by a newer release" in only_problem(data.databases, subject)


def test_accounts_of_an_older_release(subject: Subject) -> None:
    path = f"{subject.settings.state}/accounts.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 2")
    (found,) = data.databases(subject)
    assert found.what.endswith("is sound, format 2: the next start upgrades it")


def test_damaged_accounts(subject: Subject) -> None:
    path = Path(subject.settings.state, "accounts.sqlite3")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((size,),) = db.execute("PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek(2 * size)
        file.write(b"\xff" * size)
    told = only_problem(data.databases, subject)
    assert f"{path} is damaged (" in told
    assert "Restore a backup" in told


def test_pulls_that_are_no_database(subject: Subject) -> None:
    path = Path(pulls_file(subject.settings.state).path)
    open_for_writing(pulls_file(subject.settings.state)).close()
    assert levels(data.databases, subject) == {"ok"}
    path.write_bytes(b"no database at all, but long enough to have a header" * 20)
    assert f"{path} is damaged" in only_problem(data.databases, subject)


def test_a_damaged_state_of_builds(subject: Subject) -> None:
    path = Path(State.path_in(subject.settings.state))
    path.write_bytes(b"x" * len(path.read_bytes()))
    told = only_problem(data.caches, subject)
    assert f"{path} is damaged" in told and "run `hubctl build`" in told


def test_a_damaged_index(subject: Subject) -> None:
    folder = Path(subject.settings.state, "search")
    path = folder / min(_read_checksums(str(folder)))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert f"{path} has a wrong checksum" in only_problem(data.caches, subject)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["127.0.0.1"], "start `hubctl serve` with --trusted-proxy 127.0.0.1"),
        (["::ffff:127.0.0.1", "127.0.0.1"], "with --trusted-proxy 127.0.0.1"),
        (["127.0.0.1", "10.0.0.7"], None),
        (["8.8.8.8"], None),
        ([], None),
    ],
)
def test_people_who_all_come_from_the_proxy(
    subject: Subject, addresses: list[str], expected: str | None
) -> None:
    with closing(sqlite3.connect(f"{subject.settings.state}/accounts.sqlite3")) as db:
        for address in addresses:
            db.execute(
                "INSERT INTO event (owner, at, kind, subject, address, note) "
                "VALUES ('ann', 1, 'signed_in', '', ?, '')", (address,),
            )  # fmt: skip
        db.commit()
    if expected:
        assert expected in only_warning(data.client_addresses, subject)
    else:
        assert levels(data.client_addresses, subject) == {"ok"}
    here = subject.settings._replace(base_url="http://127.0.0.1:8000")
    assert levels(data.client_addresses, subject._replace(settings=here)) == set()


def test_accounts_in_postgresql(subject: Subject, postgres: Postgres) -> None:
    url = postgres.new_database()
    server = f"PostgreSQL database {url.rpartition('/')[2]} at 127.0.0.1"
    shared = subject._replace(database_url=url)
    assert f"The {server} has no accounts yet." in only_warning(data.databases, shared)
    assert levels(data.client_addresses, shared) == set()
    with Database(url) as database:
        Accounts(database).add_owner("ann")
        assert [one.what for one in data.databases(shared)] == [f"the {server} answers"]
        assert levels(data.client_addresses, shared) == {"ok"}
        Events(database).note("ann", "signed_in", address="127.0.0.1")
        assert "--trusted-proxy 127.0.0.1" in only_warning(data.client_addresses, shared)
        database.execute("UPDATE hub_accounts SET version = ?", (ACCOUNTS_VERSION + 1,))
        assert "newer release" in only_problem(data.databases, shared)
    refused = shared._replace(database_url=url.replace(QUOTED_PASSWORD, "hunter2"))
    told = only_problem(data.databases, refused)
    assert f"Cannot use the {server}: " in told and "hunter2" not in told
    assert levels(data.client_addresses, refused) == set()
