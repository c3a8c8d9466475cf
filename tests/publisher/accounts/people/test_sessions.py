"""Sessions: how long they are good, what ends them, what is kept of them."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.people.locks import lock, unlock
from publisher.accounts.people.sessions import (
    IDLE_SECONDS,
    LIFE_SECONDS,
    SEEN_NOTED_EVERY_SECONDS,
    SESSIONS_MAX,
    Session,
    Sessions,
)
from publisher.accounts.tokens import Accounts
from tests.support.events import latest

NOW = datetime(2026, 1, 31, 9, 30, 15, 999_999, tzinfo=UTC)
NOW_SECONDS = 1_769_851_815
HOME, AGENT = "198.51.100.7", "Firefox/147"


@pytest.fixture
def sessions(database: Database) -> Sessions:
    for owner in ("ann", "bob"):
        Accounts(database).add_owner(owner, NOW)
    return Sessions(database)


def after(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def begin(sessions: Sessions, owner: str, secret: str, seconds: int = 0) -> Session:
    sessions.begin(owner, secret, address=HOME, agent=AGENT, now=after(seconds))
    return sessions.find(secret, after(seconds))


def secrets_found(sessions: Sessions, *secrets: str, seconds: int = 0) -> list[str]:
    return [secret for secret in secrets if sessions.find(secret, after(seconds))]


def test_a_session(database: Database, sessions: Sessions):
    begun = begin(sessions, "ann", "S1")
    public = hashlib.sha256(b"S1").hexdigest()[:8]
    assert begun == Session(public, "ann", NOW_SECONDS, NOW_SECONDS, HOME, AGENT, False)
    assert sessions.find("S1", NOW) == begun and sessions.of("ann", NOW) == [begun]
    assert sessions.of("bob", NOW) == []
    for wrong in ("S", "S11", "s1", "", public, "\udcff", "\0"):
        assert sessions.find(wrong, NOW) is None
    (event,) = latest(database, "ann", 9)
    assert event == (NOW_SECONDS, "signed_in", "", HOME, AGENT, "")


@pytest.mark.parametrize(
    ("agent", "kept"),
    [("", ""), ("x" * 5000, "x" * 200), ("a\r\n\x1b[31mb\u202e\0\udcff", "a[31mb")],
)
def test_names_that_browsers_give_themselves(
    database: Database, sessions: Sessions, agent: str, kept: str
):
    sessions.begin("ann", "S1", address=HOME, agent=agent, now=NOW)
    assert [session.agent for session in sessions.of("ann", NOW)] == [kept]
    assert [event.note for event in latest(database, "ann", 9)] == [kept]


def test_a_session_that_is_not_used_ends(sessions: Sessions):
    begin(sessions, "ann", "S1")
    begin(sessions, "ann", "S2")
    assert secrets_found(sessions, "S1", seconds=IDLE_SECONDS - 1) == ["S1"]
    assert secrets_found(sessions, "S1", "S2", seconds=IDLE_SECONDS) == ["S1"]
    assert len(sessions.of("ann", after(IDLE_SECONDS))) == 1


def test_no_session_is_good_for_ever(sessions: Sessions):
    begin(sessions, "ann", "S1")
    for seconds in range(0, LIFE_SECONDS, IDLE_SECONDS // 2):
        assert sessions.find("S1", after(seconds))
    assert secrets_found(sessions, "S1", seconds=LIFE_SECONDS - 1) == ["S1"]
    assert secrets_found(sessions, "S1", seconds=LIFE_SECONDS) == []
    assert sessions.of("ann", after(LIFE_SECONDS)) == []


def test_a_use_is_written_every_five_minutes(sessions: Sessions):
    def seen() -> int:
        return sessions.of("ann", NOW)[0].seen_at - NOW_SECONDS

    begin(sessions, "ann", "S1")
    assert sessions.find("S1", after(SEEN_NOTED_EVERY_SECONDS - 1)).seen_at == NOW_SECONDS
    assert seen() == 0
    found = sessions.find("S1", after(SEEN_NOTED_EVERY_SECONDS))
    assert (found.seen_at, found.began_at) == (NOW_SECONDS + 300, NOW_SECONDS)
    assert seen() == 300
    sessions.find("S1", after(301))
    assert seen() == 300


def test_what_is_over_is_removed(database: Database, sessions: Sessions):
    begin(sessions, "ann", "S1")
    begin(sessions, "bob", "S2", IDLE_SECONDS - 1)
    begin(sessions, "ann", "S3", IDLE_SECONDS)
    rows = database.execute("SELECT owner, began_at FROM session ORDER BY began_at")
    assert rows == [
        ("bob", NOW_SECONDS + IDLE_SECONDS - 1), ("ann", NOW_SECONDS + IDLE_SECONDS),
    ]  # fmt: skip


def test_the_newest_first(sessions: Sessions):
    for seconds, secret in ((5, "S1"), (9, "S2"), (7, "S3")):
        begin(sessions, "ann", secret, seconds)
    began = [session.began_at - NOW_SECONDS for session in sessions.of("ann", after(9))]
    assert began == [9, 7, 5]


def test_endless_sign_ins_do_not_fill_the_disk(database: Database, sessions: Sessions):
    begin(sessions, "bob", "B")
    with database.transaction():
        for n in range(SESSIONS_MAX + 3):
            begin(sessions, "ann", f"S{n}", n)
    assert len(sessions.of("ann", after(200))) == SESSIONS_MAX
    assert secrets_found(sessions, "S0", "S2", "S3", "B", seconds=200) == ["S3", "B"]


def test_no_session_begins_for_who_is_locked_out(database: Database, sessions: Sessions):
    begin(sessions, "ann", "S1")
    lock(database, "ann", NOW)
    assert secrets_found(sessions, "S1") == []
    with pytest.raises(RequestError, match=r"locked\. Ask the operator") as caught:
        begin(sessions, "ann", "S2")
    assert caught.value.code == "insufficient_scope"
    begin(sessions, "bob", "B1")
    unlock(database, "ann", NOW)
    begin(sessions, "ann", "S2")
    assert secrets_found(sessions, "S1", "S2", "B1") == ["S2", "B1"]


def test_sign_out(sessions: Sessions):
    begin(sessions, "ann", "S1")
    begin(sessions, "ann", "S2")
    sessions.end("S1")
    sessions.end("S1")
    sessions.end("unknown")
    assert secrets_found(sessions, "S1", "S2") == ["S2"]


def test_sign_out_everywhere(database: Database, sessions: Sessions):
    for secret in ("S1", "S2", "S3"):
        begin(sessions, "ann", secret)
    begin(sessions, "bob", "B1")
    # Another's session is not spared by a secret, nor ended.
    sessions.end_all("ann", but="S2", note=True, now=NOW)
    assert secrets_found(sessions, "S1", "S2", "S3", "B1") == ["S2", "B1"]
    sessions.end_all("ann", but="B1", now=NOW)
    sessions.end_all("ann", note=True, now=NOW)
    assert secrets_found(sessions, "S2", "B1") == ["B1"]
    noted = [event for event in latest(database, "ann", 9) if event.kind != "signed_in"]
    assert [(event.kind, event.address) for event in noted] == [
        ("signed_out_everywhere", HOME), ("signed_out_everywhere", HOME),
    ]  # fmt: skip


def test_the_end_of_a_session_holds_in_every_process(accounts_place: str, sessions: Sessions):
    begin(sessions, "ann", "S1")
    with Database(accounts_place) as other:
        assert secrets_found(sessions, "S1") == secrets_found(Sessions(other), "S1") == ["S1"]
        Sessions(other).end_all("ann")
        assert secrets_found(sessions, "S1") == []
