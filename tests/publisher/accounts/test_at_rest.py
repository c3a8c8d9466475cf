"""Data on the disk: databases of older releases, and no secret in the clear."""

import hashlib
import logging
import secrets
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from publisher.accounts.database import Database
from publisher.accounts.owners import Owner, ways_to_sign_in
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.people.signup import sign_up
from publisher.accounts.schema import SCHEMA_VERSION
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE
from publisher.accounts.token import make_token
from publisher.accounts.tokens import Accounts
from tests.support.actors import holder, rights_of

NOW = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)
NOW_SECONDS = 1_769_851_815
HOME = "198.51.100.7"


# The schema of that release: never change it with the code.
FIRST_RELEASE = """
CREATE TABLE owner (
    handle TEXT PRIMARY KEY, created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE token (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    owner TEXT NOT NULL REFERENCES owner (handle),
    name TEXT NOT NULL,
    repos TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX token_name ON token (owner, name) WHERE revoked_at IS NULL;
CREATE TABLE answer (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    version TEXT NOT NULL,
    record_sha256 BLOB,
    published BLOB NOT NULL,
    kept_until INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE INDEX answer_kept_until ON answer (kept_until);
"""


def test_a_database_of_the_first_release(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "hub")
    text, digest = make_token(), hashlib.sha256
    old = sqlite3.connect(tmp_path / ACCOUNTS_FILE)
    old.executescript(FIRST_RELEASE)
    old.execute("PRAGMA user_version = 1")
    old.execute("INSERT INTO owner VALUES ('ann', ?), ('bob', ?)", (NOW_SECONDS, NOW_SECONDS + 1))
    old.execute(
        "INSERT INTO token VALUES ('0123abcd', ?, 'ann', 'ci', 'story review', ?, ?, NULL, NULL)",
        (digest(text.encode()).digest(), NOW_SECONDS, NOW_SECONDS + 86_400),
    )
    old.execute(
        "INSERT INTO answer VALUES ('ann', 'key', x'00', '1.0.1', NULL, ?, ?)",
        (b'{"version": "1.0.1", "previous_version": "1.0.0", "changelog": "Kinder"}', NOW_SECONDS),
    )
    old.commit()
    old.close()
    password = "violet otter lamp 7"
    for _ in range(2):
        with Database(str(tmp_path)) as database:
            accounts = Accounts(database)
            assert database.execute("PRAGMA user_version") == [(SCHEMA_VERSION,)]
            assert accounts.owners(NOW) == [
                Owner("ann", NOW_SECONDS, 1), Owner("bob", NOW_SECONDS + 1, 0),
            ]  # fmt: skip
            token = accounts.authenticate(text, NOW)
            assert (token.id, token.repos, token.trusted_publisher) == (
                "0123abcd", ("story", "review"), None,
            )  # fmt: skip
            rights_of(accounts).check_may_publish(holder(token, "ann"), "story")
            assert database.execute("SELECT key, version, previous_version FROM answer") == [
                ("key", "1.0.1", "1.0.0")
            ]
            assert accounts.look_like("b0-b") == ["bob"]
            assert ways_to_sign_in(database) == {}
            assert not Passwords(database).verify("ann", password)
        (said,) = (one.fields for one in caplog.records if one.msg == "upgrade")
        assert said == {
            "file": ACCOUNTS_FILE, "from_version": 1, "to_version": SCHEMA_VERSION,
        }  # fmt: skip
    with Database(str(tmp_path)) as database:
        invitations = Invitations(database)
        assert invitations.accept(invitations.invite("ann"), password) == "ann"
        assert Passwords(database).verify("ann", password)


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
        assert sessions.end_all("eve", but=made[-1], note=True) == 0
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
