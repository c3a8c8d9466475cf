"""Data on the disk: databases of older releases, and no secret in the clear."""

import hashlib
import logging
import secrets
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from publisher.accounts.database import Database
from publisher.accounts.owners import Owner
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.people.signup import sign_up
from publisher.accounts.schema import FIRST_VERSION, MIGRATIONS, SCHEMA_VERSION
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.accounts.tokens import Accounts

NOW = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)
NOW_SECONDS = 1_769_851_815
HOME = "198.51.100.7"


def test_a_database_of_an_older_release(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "hub")
    old = sqlite3.connect(tmp_path / ACCOUNTS_FILE)
    old.executescript(MIGRATIONS[0])
    old.execute("INSERT INTO owner VALUES ('ann', 0, 'ann', NULL)")
    for version in range(1, FIRST_VERSION):
        old.execute(f"PRAGMA user_version = {version}")
        old.commit()
        with pytest.raises(OperatorError, match=r"before release 1\.0"):
            Database(str(tmp_path))
    old.execute(f"PRAGMA user_version = {FIRST_VERSION}")
    old.close()
    for _ in range(2):
        with Database(str(tmp_path)) as database:
            assert database.execute("PRAGMA user_version") == [(SCHEMA_VERSION,)]
            assert Accounts(database).owners(NOW) == [Owner("ann", 0, 0)]
        (said,) = (one.fields for one in caplog.records if one.msg == "upgrade")
        assert said == {
            "file": ACCOUNTS_FILE, "from_version": FIRST_VERSION, "to_version": SCHEMA_VERSION,
        }  # fmt: skip


def test_nothing_secret_is_at_rest_in_the_clear(tmp_path: Path):
    (tmp_path / "content").mkdir()
    state = tmp_path / "var"
    made: list[str] = []

    def secret(text: str) -> str:
        made.append(text)
        return text

    def password() -> str:
        return secret(secrets.token_urlsafe(24))

    def stored() -> bytes:
        return b"".join(path.read_bytes() for path in state.iterdir())

    with Database(str(state)) as database:
        invitations, passwords, sessions = (
            Invitations(database), Passwords(database), Sessions(database),
        )  # fmt: skip
        for _ in range(2):
            code = invitations.invite("ann")
            secret(code.partition(".")[2])
        invitations.accept(code, password())
        passwords.put("ann", password())
        waiting = secret(invitations.invite("bob").partition(".")[2])
        sign_up(database, str(tmp_path / "content"), "eve", password())
        assert not passwords.verify("eve", password())
        assert passwords.verify("eve", made[-2])
        for owner in ("ann", "eve"):
            sessions.begin(owner, password(), address=HOME, agent="Firefox/147")
        assert sessions.find(made[-1])
        sessions.end_all("eve", but=made[-1], note=True)
        Identities(database).add("eve", "https://id.example.org", "248289761001")
        secret(Accounts(database).create_token("ann", "ci")[0][4:36])
        for is_open in (True, False):
            if not is_open:
                database.close()
            on_disk = stored()
            # The search finds what should be there, even while it is only in the write-ahead log.
            for value in (b"Firefox/147", HOME.encode(), b"248289761001", b"$argon2id$"):
                assert value in on_disk
            assert hashlib.sha256(waiting.encode()).digest() in on_disk
            assert len(made) == 10
            for text in made:
                assert text.encode() not in on_disk
                assert text.encode("utf-16-le") not in on_disk
                assert text.encode().hex().encode() not in on_disk
    assert {path.stat().st_mode & 0o077 for path in state.iterdir()} == {0}
