"""Invitations: once, for a day, for one owner; and identities, which they may link."""

import string
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.database import Database
from publisher.accounts.owners import ways_to_sign_in
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import (
    INVITATION_SECONDS,
    Invitations,
    invitation_link,
    parse_code,
)
from publisher.accounts.people.locks import lock, unlock
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from tests.support.events import latest
from tests.support.postgres import only_sqlite

NOW = datetime(2026, 1, 31, 9, 30, 15, 999_999, tzinfo=UTC)
NOW_SECONDS = 1_769_851_815
SECRET = "0123456789ABCDEFGHIJabcdefghijkl"
HOME, GOOD, OTHER = "198.51.100.7", "violet otter lamp 7", "another fine passphrase"
ISSUER, SUBJECT = "https://id.example.org", "248289761001"


@pytest.fixture
def invitations(database: Database) -> Invitations:
    return Invitations(database)


def refusal(call: Callable, *args: object, **options: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        call(*args, **options)
    return caught.value


def kinds(database: Database, owner: str = "ann") -> list[str]:
    return [event.kind for event in reversed(latest(database, owner, 99))]


def accept(invitations: Invitations, code: str, password: str = GOOD, now: datetime = NOW) -> str:
    return invitations.accept(code, password, now=now)


# Codes


@pytest.mark.parametrize(
    "text",
    [
        "{}", "  {}\n", "\u00a0{}\t", "http://127.0.0.1:8000/account/invitation#{}",
        " https://example.org/hub/account/invitation?x=1#{} \r\n", "#{}",
    ],
)  # fmt: skip
def test_what_people_paste(text: str):
    assert parse_code(text.format(f"a-1.{SECRET}")) == ("a-1", SECRET)


@only_sqlite
@pytest.mark.parametrize(
    "text",
    ["", "#", "a-1", SECRET, f"a-1.{SECRET[1:]}", f"a-1.{SECRET}x", f"a-1.{SECRET}#", f".{SECRET}",
     f"Ann.{SECRET}", f"a--1.{SECRET}", f"{'x' * 40}.{SECRET}", f"a-1.{SECRET[1:]}é",
     f"a-1 .{SECRET}", f"a-1.{SECRET[:9]}\n{SECRET[10:]}", "\udcff", "\0" * 99, "#" * 100_000],
)  # fmt: skip
def test_what_is_no_code(invitations: Invitations, text: str):
    error = refusal(parse_code, text)
    assert (error.code, error.status) == ("invalid_token", 401)
    assert str(refusal(invitations.look, text, NOW)) == str(error)


def test_a_code_and_its_link(invitations: Invitations):
    code = invitations.invite("ann", NOW)
    handle, secret = parse_code(code)
    assert (handle, len(secret)) == ("ann", 32) and set(secret) <= set(
        string.ascii_letters + string.digits
    )
    assert code == f"ann.{secret}" != invitations.invite("ann", NOW)
    link = invitation_link("https://example.org/hub", code)
    assert link == f"https://example.org/hub/account/invitation#{code}"
    assert parse_code(link) == (handle, secret)


# Their life


def test_an_invitation_makes_an_owner(database: Database, invitations: Invitations):
    code = invitations.invite("ann", NOW)
    assert Accounts(database).is_known("ann") and not Passwords(database).has("ann")
    assert invitations.look(code, NOW) == invitations.look(f" {code} ", NOW) == "ann"
    assert accept(invitations, code) == "ann"
    assert Passwords(database).verify("ann", GOOD)
    assert kinds(database) == ["invited", "password_set"]
    noted = latest(database, "ann", 1)[0]
    assert (noted.address, noted.at) == (HOME, NOW_SECONDS)


@only_sqlite
@pytest.mark.parametrize(
    ("handle", "code"), [("api", "name_reserved"), ("Ann", "invalid_name"), ("", "invalid_name"),
                         ("a.b", "invalid_name"), ("\udcff", "invalid_name")],
)  # fmt: skip
def test_who_cannot_be_invited(
    database: Database, invitations: Invitations, handle: str, code: str
):
    assert refusal(invitations.invite, handle, NOW).code == code
    assert Accounts(database).owners() == []


def test_all_that_is_not_good_is_refused_alike(database: Database, invitations: Invitations):
    used = invitations.invite("ann", NOW)
    accept(invitations, used)
    replaced = invitations.invite("bob", NOW)
    current = invitations.invite("bob", NOW)
    expired = invitations.invite("eve", NOW - timedelta(days=1))
    Accounts(database).add_owner("dan", NOW)
    of_another = "eve." + current.partition(".")[2]
    cases = (used, replaced, expired, of_another, f"dan.{SECRET}", f"nobody.{SECRET}", "nonsense")
    before = database.execute("SELECT * FROM password")
    refusals = set()
    for code in cases:
        # Neither a good nor a bad password makes a difference.
        for call, args in (
            (invitations.look, (code, NOW)),
            (accept, (invitations, code)),
            (accept, (invitations, code, "short")),
        ):
            error = refusal(call, *args)
            refusals.add((error.code, str(error), tuple(error.details)))
        error = refusal(invitations.accept_identity, code, ISSUER, SUBJECT, now=NOW)
        refusals.add((error.code, str(error), tuple(error.details)))
    assert len(refusals) == 1
    ((code, message, details),) = refusals
    assert (code, details) == ("invalid_token", ()) and "a new one" in message
    assert database.execute("SELECT * FROM password") == before
    assert Identities(database).find(ISSUER, SUBJECT) is None
    assert invitations.look(current, NOW) == "bob"


def test_a_day_to_the_second(database: Database, invitations: Invitations):
    code = invitations.invite("ann", NOW)
    last = NOW + timedelta(seconds=INVITATION_SECONDS - 1)
    over = NOW + timedelta(seconds=INVITATION_SECONDS)
    assert invitations.look(code, last) == "ann"
    assert refusal(invitations.look, code, over).code == "invalid_token"
    assert refusal(accept, invitations, code, now=over).code == "invalid_token"
    assert ways_to_sign_in(database, last) == {"ann": ["invited"]}
    assert ways_to_sign_in(database, over) == {}
    assert accept(invitations, code, now=last) == "ann"


@pytest.mark.parametrize("password", ["short", "password1234", "ann-ann-ann-ann", "x" * 300])
def test_a_weak_password_leaves_the_invitation_good(
    database: Database, invitations: Invitations, password: str
):
    code = invitations.invite("ann", NOW)
    error = refusal(accept, invitations, code, password)
    assert (error.code, [detail.field for detail in error.details]) == (
        "validation_failed", ["password"],
    )  # fmt: skip
    assert invitations.look(code, NOW) == "ann" and not Passwords(database).has("ann")


def test_a_user_who_is_locked_out_gets_back_in(database: Database, invitations: Invitations):
    accept(invitations, invitations.invite("ann", NOW))
    sessions = Sessions(database)
    for owner, secret in (("ann", "S1"), ("ann", "S2")):
        sessions.begin(owner, secret, address=HOME, agent="", now=NOW)
    Accounts(database).add_owner("bob", NOW)
    sessions.begin("bob", "B1", address=HOME, agent="", now=NOW)
    code = invitations.invite("ann", NOW)
    # Until the invitation is used, the old password works, and all sessions stay.
    assert Passwords(database).verify("ann", GOOD) and len(sessions.of("ann", NOW)) == 2
    accept(invitations, code, OTHER)
    assert Passwords(database).verify("ann", OTHER) and not Passwords(database).verify("ann", GOOD)
    assert sessions.of("ann", NOW) == [] and len(sessions.of("bob", NOW)) == 1


def test_one_of_two_at_once_wins(accounts_place: str, database: Database):
    with Database(accounts_place) as other:
        code = Invitations(database).invite("ann", NOW)
        start = threading.Barrier(2)

        def take(opened: Database, password: str) -> str | None:
            start.wait()
            try:
                accept(Invitations(opened), code, password)
            except RequestError as error:
                assert error.code == "invalid_token"
                return None
            return password

        with ThreadPoolExecutor(2) as pool:
            won = list(pool.map(take, (database, other), (GOOD, OTHER)))
    (winner,) = [password for password in won if password]
    assert Passwords(database).verify("ann", winner)
    assert kinds(database) == ["invited", "password_set"]


def test_who_is_locked_out_is_not_let_in_by_a_link(database: Database, invitations: Invitations):
    code = invitations.invite("ann", NOW)
    Identities(database).add("ann", ISSUER, SUBJECT, now=NOW)
    assert lock(database, "ann", NOW) is True and lock(database, "ann", NOW) is False
    assert refusal(accept, invitations, code).code == "invalid_token"
    with pytest.raises(OperatorError, match="hubctl owner unlock ann"):
        invitations.invite("ann", NOW)
    # The identity still belongs to ann alone.
    Accounts(database).add_owner("bob", NOW)
    error = refusal(Identities(database).add, "bob", ISSUER, SUBJECT, now=NOW)
    assert "another account" in str(error)
    assert unlock(database, "ann", NOW) is True and unlock(database, "ann", NOW) is False
    assert Identities(database).find(ISSUER, SUBJECT) == "ann"
    assert refusal(accept, invitations, code).code == "invalid_token"
    assert accept(invitations, invitations.invite("ann", NOW)) == "ann"
    assert kinds(database)[:4] == ["invited", "identity_added", "locked", "unlocked"]
    with pytest.raises(OperatorError, match="hubctl owner add eve"):
        lock(database, "eve", NOW)


# Identities


def test_an_invitation_links_an_identity(database: Database, invitations: Invitations):
    code = invitations.invite("ann", NOW)
    Sessions(database).begin("ann", "S1", address=HOME, agent="", now=NOW)
    options = {"now": NOW}
    assert invitations.accept_identity(code, ISSUER, SUBJECT, **options) == "ann"
    assert Identities(database).find(ISSUER, SUBJECT) == "ann"
    assert Sessions(database).of("ann", NOW) == []
    assert kinds(database) == ["invited", "signed_in", "identity_added"]
    again = refusal(invitations.accept_identity, code, ISSUER, "other", **options)
    assert again.code == "invalid_token" and not Identities(database).find(ISSUER, "other")
    # Another's identity cannot be taken, and the invitation is not lost by trying.
    code = invitations.invite("bob", NOW)
    Sessions(database).begin("bob", "S2", address=HOME, agent="", now=NOW)
    taken = refusal(invitations.accept_identity, code, ISSUER, SUBJECT, **options)
    assert taken.code == "validation_failed" and Identities(database).find(ISSUER, SUBJECT) == "ann"
    assert invitations.look(code, NOW) == "bob" and Sessions(database).find("S2", NOW)


def test_identities(database: Database):
    for owner in ("ann", "bob"):
        Accounts(database).add_owner(owner, NOW)
    identities = Identities(database)
    identities.add("ann", ISSUER, SUBJECT, now=NOW)
    identities.add("ann", ISSUER, SUBJECT, now=NOW + timedelta(days=1))
    identities.add("bob", ISSUER, SUBJECT.upper() + "x", now=NOW)
    identities.add("ann", "https://other.example", SUBJECT, now=NOW)
    assert identities.of("ann") == [
        (ISSUER, SUBJECT, NOW_SECONDS), ("https://other.example", SUBJECT, NOW_SECONDS),
    ]  # fmt: skip
    assert identities.find(ISSUER + "/", SUBJECT) is identities.find(ISSUER, SUBJECT[1:]) is None
    error = refusal(identities.add, "bob", ISSUER, SUBJECT, now=NOW)
    assert error.code == "validation_failed" and "another account" in str(error)
    assert "ann" not in str(error)
    assert kinds(database) == ["identity_added"] * 2
    event = latest(database, "ann", 1)[0]
    assert (event.subject, event.note, event.address) == (SUBJECT, "https://other.example", HOME)


def test_the_only_way_to_sign_in_stays(database: Database, invitations: Invitations):
    identities = Identities(database)
    options = {"now": NOW}
    invitations.accept_identity(invitations.invite("ann", NOW), ISSUER, SUBJECT, **options)
    error = refusal(identities.remove, "ann", ISSUER, **options)
    assert error.code == "validation_failed" and "Set a password first" in str(error)
    assert identities.find(ISSUER, SUBJECT) == "ann"
    assert identities.remove("ann", "https://other.example", **options) is False
    Passwords(database).put("ann", GOOD, NOW)
    invitations.accept_identity(
        invitations.invite("bob", NOW), ISSUER, "bob at the issuer", **options
    )
    assert identities.remove("ann", ISSUER, **options) is True
    assert identities.of("ann") == [] and len(identities.of("bob")) == 1
    assert kinds(database) == ["invited", "identity_added", "identity_removed"]


def test_ways_to_sign_in(database: Database, invitations: Invitations):
    Accounts(database).add_owner("none", NOW)
    for handle in ("ann", "bob", "eve"):
        code = invitations.invite(handle, NOW)
        if handle != "eve":
            invitations.accept_identity(code, ISSUER, handle, now=NOW)
    Passwords(database).put("ann", GOOD, NOW)
    invitations.invite("ann", NOW)
    assert ways_to_sign_in(database, NOW) == {
        "ann": ["password", "openid", "invited"], "bob": ["openid"], "eve": ["invited"],
    }  # fmt: skip
