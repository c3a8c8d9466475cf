"""Owners, their tokens, and the stored facts of both."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.database import Database
from publisher.accounts.owners import Owner
from publisher.accounts.people.locks import lock, unlock
from publisher.accounts.token import Grant, Token, make_token
from publisher.accounts.tokens import Accounts
from tests.publisher.accounts.conftest import NOW, NOW_SECONDS, refusal
from tests.support.actors import holder, rights_of
from tests.support.postgres import only_sqlite

SECOND = timedelta(seconds=1)
PRINTABLE = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-. é"


# Owners


def test_owners(accounts: Accounts):
    accounts.add_owner("a-1", NOW + SECOND)
    for name in ("one", "two", "old"):
        accounts.create_token("ann", name, expires_days=1 if name == "old" else 2, now=NOW)
    accounts.revoke("ann", "one", NOW)
    assert accounts.owners(NOW) == [Owner("a-1", NOW_SECONDS + 1, 0), Owner("ann", NOW_SECONDS, 2)]
    assert [owner.tokens for owner in accounts.owners(NOW + timedelta(days=1))] == [0, 1]


@pytest.mark.parametrize(
    ("handle", "error", "message"),
    [("ann", OperatorError, "hubctl token create ann"), ("api", RequestError, "such as api-team"),
     ("Bob", RequestError, "Use 'bob'"), ("a/b", RequestError, "a-z"), ("", RequestError, "a-z")],
)  # fmt: skip
def test_owners_that_cannot_be_added(accounts: Accounts, handle: str, error: type, message: str):
    with pytest.raises(error, match=message):
        accounts.add_owner(handle, NOW)
    assert [owner.handle for owner in accounts.owners(NOW)] == ["ann"]


# Tokens


def test_a_new_token(accounts: Accounts):
    text, token = accounts.create_token(
        "ann", "my ci", Grant(["story", "ann/review", "story"]), now=NOW
    )
    expiry = NOW_SECONDS + 90 * 86_400
    assert token == Token(
        token.id, "ann", "my ci", ("story", "review"), NOW_SECONDS, expiry, None, None, None
    )
    assert len(token.id) == 8 and token.id not in text
    assert accounts.tokens() == accounts.tokens("ann") == [token]
    assert accounts.authenticate(text, NOW) == token
    assert token.scope() == "ann/story, ann/review"
    assert accounts.create_token("ann", "all", now=NOW)[1].scope() == "ann/*"


@only_sqlite
def test_only_the_hash_is_stored(database: Database, accounts: Accounts):
    text, _ = accounts.create_token("ann", "ci", now=NOW)
    accounts.authenticate(text, NOW)
    folder = Path(database.engine.path).parent
    stored = b"".join(path.read_bytes() for path in folder.iterdir())
    assert hashlib.sha256(text.encode()).digest() in stored
    assert text[4:36].encode() not in stored


@only_sqlite
@pytest.mark.parametrize("name", ["", " ci", "ci ", "a\nb", "a\tb", "x" * 65, "\udcff", "\u202e"])
def test_names_that_a_token_cannot_have(accounts: Accounts, name: str):
    with pytest.raises(OperatorError, match="1 to 64 printable"):
        accounts.create_token("ann", name, now=NOW)
    assert accounts.tokens() == []


def test_a_name_is_one_token_until_it_is_revoked(accounts: Accounts):
    _, first = accounts.create_token("ann", "ci", now=NOW)
    with pytest.raises(OperatorError, match=f"hubctl token revoke ann {first.id}"):
        accounts.create_token("ann", "ci", now=NOW)
    accounts.revoke("ann", "ci", NOW)
    _, second = accounts.create_token("ann", "ci", now=NOW + SECOND)
    accounts.add_owner("bob", NOW)
    _, other = accounts.create_token("bob", "ci", now=NOW)
    assert [token.id for token in accounts.tokens()] == [first.id, second.id, other.id]
    assert accounts.tokens("bob") == [other]


@only_sqlite
@pytest.mark.parametrize("days", [0, -1, 366])
def test_expiries_that_cannot_be(accounts: Accounts, days: int):
    with pytest.raises(OperatorError, match="1 to 365 days"):
        accounts.create_token("ann", "ci", expires_days=days, now=NOW)


@pytest.mark.parametrize(
    ("owner", "repos", "message"),
    [("bob", [], "hubctl owner add bob"), ("Ann", [], "Use 'ann'"), ("ann", ["X"], "Use 'x'"),
     ("ann", ["bob/x"], "no member of"), ("ann", ["a/b/x"], "Invalid"), ("ann", [""], "name")],
)  # fmt: skip
def test_tokens_that_cannot_be(accounts: Accounts, owner: str, repos: list[str], message: str):
    with pytest.raises((OperatorError, RequestError), match=message):
        accounts.create_token(owner, "ci", Grant(repos), now=NOW)
    assert accounts.tokens() == []


# Revoking


def test_revoking_by_name_and_by_id(accounts: Accounts):
    text, token = accounts.create_token("ann", "ci", now=NOW)
    # A name that looks like the id of another must not be taken for it, nor hide it.
    _, imitator = accounts.create_token("ann", token.id, now=NOW)
    gone, is_new = accounts.revoke("ann", token.id, NOW)
    assert is_new and gone == token._replace(revoked_at=NOW_SECONDS)
    assert accounts.revoke("ann", "ci", NOW + SECOND) == (gone, False)
    assert accounts.revoke("ann", imitator.id, NOW)[1]
    assert refusal(accounts, text).code == "invalid_token"
    assert gone.state(NOW) == "revoked"


def test_a_name_used_again_means_the_token_that_is_good(accounts: Accounts):
    _, old = accounts.create_token("ann", "ci", now=NOW)
    accounts.revoke("ann", "ci", NOW)
    _, new = accounts.create_token("ann", "ci", now=NOW)
    assert accounts.revoke("ann", "ci", NOW + SECOND)[0].id == new.id
    assert accounts.revoke("ann", "ci", NOW + SECOND)[0].id == new.id
    assert accounts.revoke("ann", old.id, NOW + SECOND)[0].revoked_at == NOW_SECONDS


def test_nothing_to_revoke(accounts: Accounts):
    accounts.add_owner("bob", NOW)
    _, token = accounts.create_token("ann", "ci", now=NOW)
    for name in ("ci", token.id, ""):
        with pytest.raises(OperatorError, match="hubctl token list bob"):
            accounts.revoke("bob", name, NOW)
    with pytest.raises(OperatorError, match="hubctl owner add eve"):
        accounts.revoke("eve", "ci", NOW)
    with pytest.raises(OperatorError, match="hubctl owner add eve"):
        accounts.tokens("eve")
    assert accounts.tokens() == [token]


# Authentication


@pytest.mark.parametrize("text", [None, ""])
def test_no_token(accounts: Accounts, text: str | None):
    error = refusal(accounts, text)
    assert (error.code, error.status) == ("missing_token", 401)
    assert "Authorization: Bearer" in str(error)


@given(st.data())
def test_a_mistyped_token_is_told_without_the_database(data: st.DataObject):
    text = make_token()
    place = data.draw(st.integers(0, len(text) - 1))
    wrong = data.draw(st.sampled_from(PRINTABLE.replace(text[place], "")))
    kind = data.draw(st.sampled_from(["replaced", "inserted", "left out", "cut off"]))
    mistyped = {
        "replaced": text[:place] + wrong + text[place + 1 :],
        "inserted": text[:place] + wrong + text[place:],
        "left out": text[:place] + text[place + 1 :],
        "cut off": text[: place or 1],
    }[kind]
    # A query would fail, as Accounts has no database here.
    error = refusal(Accounts(None), mistyped)
    assert error.code == "invalid_token" and "mistyped" in str(error)


def test_unknown_and_revoked_are_alike(accounts: Accounts):
    text, _ = accounts.create_token("ann", "ci", expires_days=1, now=NOW)
    accounts.revoke("ann", "ci", NOW)
    revoked, unknown = refusal(accounts, text), refusal(accounts, make_token())
    assert (revoked.code, str(revoked)) == (unknown.code, str(unknown))
    assert revoked.code == "invalid_token" and "mistyped" not in str(revoked)
    # The answer no longer mentions its age.
    assert refusal(accounts, text, NOW + timedelta(days=2)).code == "invalid_token"


def test_expiry_to_the_second(accounts: Accounts):
    text, token = accounts.create_token("ann", "ci", expires_days=1, now=NOW)
    end = datetime.fromtimestamp(token.expires_at, UTC)
    assert accounts.authenticate(text, end - timedelta(microseconds=1)) == token
    assert token.state(end - SECOND) == "active" and token.state(end) == "expired"
    error = refusal(accounts, text, end)
    assert (error.code, error.status) == ("token_expired", 401)
    assert "2026-02-01T09:30:15Z" in str(error) and "Create a new one" in str(error)


@pytest.mark.parametrize("owner", ["ann", "bob"])
def test_a_token_that_only_reads_hears_of_its_right_first(accounts: Accounts, owner: str):
    _, token = accounts.create_token("ann", "ci", Grant(rights=("read",)), now=NOW)
    with pytest.raises(RequestError, match="This token cannot publish") as caught:
        rights_of(accounts).check_may_publish(holder(token, owner), "story")
    assert caught.value.code == "insufficient_scope"
    with pytest.raises(RequestError, match="This token cannot move labels"):
        rights_of(accounts).check_may_label(holder(token, owner), "story", ["production"])


def test_many_repos_are_not_all_listed(accounts: Accounts):
    _, token = accounts.create_token("ann", "ci", Grant([f"r{n}" for n in range(9)]), now=NOW)
    with pytest.raises(RequestError, match=r"r0, r1, r2, r3, r4 and 4 more\."):
        rights_of(accounts).check_may_publish(holder(token, "ann"), "other")


# Last use


def test_use_is_noted_once_a_minute(accounts: Accounts):
    text, token = accounts.create_token("ann", "ci", now=NOW)

    def use_after(seconds: int) -> int | None:
        then = NOW + seconds * SECOND
        accounts.note_use(accounts.authenticate(text, then), then)
        return accounts.tokens()[0].last_used_at

    assert [use_after(n) - NOW_SECONDS for n in (0, 1, 59, 60, 61, 300)] == [0, 0, 0, 60, 60, 300]
    # One that was read before another noted it.
    accounts.note_use(token, NOW + 301 * SECOND)
    assert accounts.tokens()[0].last_used_at - NOW_SECONDS == 300
    # A clock that was set back.
    assert use_after(10) - NOW_SECONDS == 300


def test_transactions_of_threads_do_not_mix(database: Database, accounts: Accounts):
    def make(number: int) -> None:
        with pytest.raises(ZeroDivisionError), database.transaction() as change:
            Accounts(change).add_owner(f"gone-{number}")
            raise ZeroDivisionError
        accounts.create_token("ann", f"t{number}", now=NOW)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make, range(40)))
    assert len(accounts.tokens()) == 40
    assert [owner.handle for owner in accounts.owners(NOW)] == ["ann"]


# Locking


def test_tokens_of_who_is_locked_out(database: Database, accounts: Accounts):
    text, token = accounts.create_token("ann", "ci", now=NOW)
    accounts.add_owner("bob", NOW)
    other, _ = accounts.create_token("bob", "ci", now=NOW)
    job, _ = accounts.create_trusted_token("ann", [], "0123abcd", NOW)
    lock(database, "ann", NOW)
    assert accounts.owners(NOW)[0] == Owner("ann", NOW_SECONDS, 1, NOW_SECONDS)
    for one in (text, job):
        error = refusal(accounts, one)
        assert (error.code, error.status) == ("invalid_token", 401)
        assert str(error) == "The account is locked. Ask the operator of this hub to unlock it."
    with pytest.raises(RequestError, match="The account is locked") as caught:
        accounts.create_trusted_token("ann", [], "0123abcd", NOW)
    assert (caught.value.code, caught.value.status) == ("insufficient_scope", 403)
    assert accounts.authenticate(other, NOW).owner == "bob"
    accounts.create_trusted_token("bob", [], "0123abcd", NOW)
    unlock(database, "ann", NOW)
    assert accounts.authenticate(text, NOW) == token
    assert accounts.owners(NOW)[0].locked_at is None
