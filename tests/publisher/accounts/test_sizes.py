"""Accounts with many rows: what is looked through, and what is dropped."""

import re

import pytest

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import ENDED_KEPT_MAX, TRUSTED_ONLY_MAX, Accounts
from publisher.trusted.publishers import TrustedPublishers
from tests.publisher.accounts.conftest import NOW
from tests.publisher.accounts.test_accounts import SECOND
from tests.support.actors import holder, rights_of
from tests.support.postgres import only_sqlite


def whole_tables(database: Database, statements: list[str]) -> list[str]:
    """The executed statements that scan a table with rows of all users."""
    found = []
    for statement in statements:
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
            steps = database.execute(f"EXPLAIN QUERY PLAN {statement}")
            found += [
                f"{step}: {statement}"
                for *_, step in steps
                if re.match(r"SCAN (owner|token|event|password|identity|trusted)\b", step)
            ]
    return found


@only_sqlite
def test_nothing_that_one_owner_does_looks_through_the_rows_of_all(
    statements: list[str], database: Database, accounts: Accounts
):
    text, token = accounts.create_token("ann", "ci", now=NOW)
    statements.clear()
    accounts.authenticate(text, NOW)
    accounts.note_use(token, NOW, address="192.0.2.1")
    accounts.create_token("ann", "other", now=NOW)
    accounts.create_trusted_token("ann", [], "0123abcd", NOW)
    accounts.tokens("ann")
    accounts.set_trusted_only("ann", "story", True, NOW)
    rights_of(accounts).check_may_publish(holder(token, "ann"), "other")
    accounts.revoke("ann", "ci", NOW)
    Events(database).note("ann", "signed_in", now=NOW)
    Events(database).page("ann", 9)
    Sessions(database).of("ann", NOW)
    Invitations(database).invite("ann", NOW)
    Passwords(database).verify("ann", "a wrong password")
    TrustedPublishers(database).of("ann")
    noted = [*statements]
    assert len(noted) > 20
    assert whole_tables(database, noted) == []
    # The newest events of an owner are found without reading all of the owner's events.
    (newest,) = database.execute(
        "EXPLAIN QUERY PLAN SELECT * FROM event WHERE owner = ? ORDER BY id DESC", ("ann",)
    )
    assert "event_newest" in newest[3]
    (deletion,) = {each for each in noted if each.startswith("DELETE FROM event WHERE owner")}
    ((*_, step),) = database.execute(f"EXPLAIN QUERY PLAN {deletion}")
    assert "owner=? AND at<?" in step


def test_so_many_tokens_of_the_past_are_kept(database: Database, accounts: Accounts):
    with database.transaction():
        for number in range(ENDED_KEPT_MAX + 3):
            then = NOW + number * SECOND
            accounts.create_token("ann", f"t{number}", now=then)
            if number != 1:
                accounts.revoke("ann", f"t{number}", then)
    names = [token.name for token in accounts.tokens("ann")]
    assert names == ["t1", *(f"t{number}" for number in range(3, ENDED_KEPT_MAX + 3))]


def test_so_many_repos_can_be_for_trusted_publishers_only(database: Database, accounts: Accounts):
    with database.transaction():
        for number in range(TRUSTED_ONLY_MAX):
            accounts.set_trusted_only("ann", f"r{number}", True, NOW)
    accounts.set_trusted_only("ann", "r7", True, NOW)
    with pytest.raises(RequestError, match="one too many") as caught:
        accounts.set_trusted_only("ann", "more", True, NOW)
    assert (caught.value.code, caught.value.details[0].field) == ("validation_failed", "repo")
    accounts.set_trusted_only("ann", "r7", False, NOW)
    accounts.set_trusted_only("ann", "more", True, NOW)
