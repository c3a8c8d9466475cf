"""Teams: members, roles, links, and what a token covers at the moment of use."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.database import Database
from publisher.accounts.events import written_by
from publisher.accounts.people import locks
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.rights import ProtectedLabels, Rights
from publisher.accounts.teams import LINK_SECONDS, LINKS_MAX, Teams
from publisher.accounts.token import Grant
from publisher.accounts.tokens import Accounts
from tests.support.events import latest

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def database(accounts_place: str) -> Iterator[Database]:
    """ann maintains the team support, bob writes for it, and eve has no part in it."""
    with Database(accounts_place) as database:
        for owner in ("ann", "bob", "eve"):
            Accounts(database).add_owner(owner, NOW)
        Teams(database).create("support", "ann", now=NOW)
        Teams(database).put("support", "bob", "writer", by="ann", now=NOW)
        yield database


@pytest.fixture
def teams(database: Database) -> Teams:
    return Teams(database)


def code_of(act: Callable, *args: object, **options: object) -> str:
    """The code of the refusal; empty if there is none."""
    try:
        act(*args, **options)
    except RequestError as error:
        return error.code
    return ""


def roles(teams: Teams) -> dict[str, str]:
    return {one.person: one.role for one in teams.members("support")}


def test_a_team_has_no_sign_in(database: Database, teams: Teams):
    assert roles(teams) == {"ann": "maintainer", "bob": "writer"}
    assert teams.of("bob") == {"support": "writer"} and teams.of("eve") == {}
    with pytest.raises(OperatorError, match="no one signs in as it"):
        Invitations(database).invite("support", NOW)
    with pytest.raises(OperatorError, match="Name a person"):
        Accounts(database).set_operator("support", True)
    assert Accounts(database).owners(NOW)[-1].kind == "team"


@pytest.mark.parametrize("way", ["password", "invitation", "member", "team", "none"])
def test_what_becomes_a_team(database: Database, teams: Teams, way: str):
    Accounts(database).add_owner("sales", NOW)
    Accounts(database).create_token("sales", "ci", now=NOW)
    if way == "password":
        Passwords(database).put_hash("sales", "$argon2id$")
    elif way == "invitation":
        Invitations(database).invite("sales", NOW)
    elif way == "member":
        teams.put("support", "sales", "writer")
    elif way == "team":
        teams.create("sales", "bob")
    else:
        teams.create("sales", "ann", now=NOW)
        assert [one.name for one in Accounts(database).tokens("sales")] == ["ci"]
        return
    with pytest.raises(OperatorError, match="sales cannot become a team: it"):
        teams.create("sales", "ann", now=NOW)


@pytest.mark.parametrize(
    ("by", "person", "role", "code"),
    [
        ("ann", "eve", "writer", ""),
        ("ann", "bob", "maintainer", ""),
        (None, "eve", "maintainer", ""),
        ("bob", "eve", "writer", "insufficient_scope"),
        ("bob", "bob", "maintainer", "insufficient_scope"),
        ("eve", "eve", "writer", "insufficient_scope"),
        ("ann", "ann", "writer", "last_maintainer"),
        (None, "ann", "writer", "last_maintainer"),
        ("ann", "support", "writer", "not_found"),
        ("ann", "nobody", "writer", "not_found"),
        ("ann", "No Body", "writer", "invalid_name"),
    ],
)
def test_who_changes_members(teams: Teams, by: str | None, person: str, role: str, code: str):
    before = roles(teams)
    assert code_of(teams.put, "support", person, role, by=by, now=NOW) == code
    assert roles(teams) == (before if code else before | {person: role})


@pytest.mark.parametrize(
    ("by", "person", "code"),
    [
        ("ann", "bob", ""),
        ("bob", "bob", ""),
        (None, "bob", ""),
        ("bob", "ann", "insufficient_scope"),
        ("ann", "ann", "last_maintainer"),
        (None, "ann", "last_maintainer"),
        ("ann", "eve", "not_found"),
    ],
)
def test_who_leaves(teams: Teams, by: str | None, person: str, code: str):
    assert code_of(teams.remove, "support", person, by=by, now=NOW) == code
    assert (person in roles(teams)) == (bool(code) and person != "eve")


def test_a_locked_maintainer_is_none(database: Database, teams: Teams):
    teams.put("support", "bob", "maintainer")
    locks.lock(database, "bob")
    assert teams.maintainers("support") == ["ann"]
    assert code_of(teams.remove, "support", "ann", by="ann") == "last_maintainer"
    assert code_of(teams.put, "support", "bob", "writer", by="ann") == ""
    locks.lock(database, "ann")
    assert teams.maintainers("support") == ["ann"]
    assert code_of(teams.remove, "support", "ann") == "last_maintainer"


def test_two_maintainers_demote_each_other(teams: Teams):
    teams.put("support", "bob", "maintainer")
    for _ in range(10):
        with ThreadPoolExecutor(2) as threads:
            found = [
                threads.submit(code_of, teams.put, "support", whom, "writer", by=by)
                for by, whom in (("ann", "bob"), ("bob", "ann"))
            ]
        codes = sorted(one.result() for one in found)
        # The second is no maintainer any more when its turn comes.
        assert codes == ["", "insufficient_scope"]
        assert sorted(roles(teams).values()) == ["maintainer", "writer"]
        for person in ("ann", "bob"):
            teams.put("support", person, "maintainer")


@pytest.mark.parametrize(
    "fault", ["used", "expired", "left", "demoted", "locked", "ended", "cut", "none"]
)
def test_a_link(database: Database, teams: Teams, fault: str):
    teams.put("support", "bob", "maintainer")
    code, at = teams.invite("support", "writer", "bob", now=NOW), NOW
    if fault == "used":
        Accounts(database).add_owner("zoe", NOW)
        teams.join(code, "zoe", now=NOW)
    elif fault == "expired":
        at += timedelta(seconds=LINK_SECONDS)
    elif fault == "left":
        teams.remove("support", "bob", by="bob")
    elif fault == "demoted":
        teams.put("support", "bob", "writer", by="ann")
    elif fault == "locked":
        locks.lock(database, "bob", NOW)
    elif fault == "ended":
        locks.end_access(database, "bob", NOW)
    elif fault == "cut":
        code = code[:-1]
    refused = code_of(teams.join, f" https://hub/account/join#{code}\n", "eve", now=at)
    assert refused == ("" if fault == "none" else "invalid_token")
    assert ("eve" in roles(teams)) == (fault == "none")


def test_a_link_lowers_no_role(teams: Teams):
    code = teams.invite("support", "writer", "ann", now=NOW)
    assert teams.join(code, "ann", now=NOW) == ("support", "maintainer")
    assert roles(teams)["ann"] == "maintainer"
    assert code_of(teams.join, code, "eve", now=NOW) == "invalid_token"


def test_links_are_bounded(teams: Teams):
    for _ in range(LINKS_MAX):
        teams.invite("support", "writer", "ann", now=NOW)
    assert code_of(teams.invite, "support", "writer", "ann", now=NOW) == "rate_limited"
    teams.invite("support", "writer", "ann", now=NOW + timedelta(seconds=LINK_SECONDS))
    assert code_of(teams.invite, "support", "writer", "bob", now=NOW) == "insufficient_scope"


# Tokens


@pytest.mark.parametrize(
    ("person", "repos", "target", "code"),
    [
        ("bob", (), "bob/hello", ""),
        ("bob", (), "Bob/HELLO", ""),
        ("bob", (), "bob-2/hello", "not_owner"),
        ("bob", (), "support/triage", "not_owner"),
        ("bob", ("story", "review"), "bob/Review", ""),
        ("bob", ("story", "review"), "bob/stor", "insufficient_scope"),
        ("bob", ("story",), "eve/story", "not_owner"),
        ("bob", ("support/*",), "support/triage", ""),
        ("bob", ("support/*",), "bob/hello", "not_owner"),
        ("bob", ("support/triage", "hello"), "support/triage", ""),
        ("bob", ("support/triage", "hello"), "bob/hello", ""),
        ("bob", ("support/triage", "hello"), "support/other", "insufficient_scope"),
        ("bob", ("support/triage", "hello"), "bob/triage", "insufficient_scope"),
        ("bob", ("*/*",), "support/triage", ""),
        ("bob", ("*/*",), "Support/Triage", ""),
        ("bob", ("*/*",), "eve/hello", "insufficient_scope"),
        ("eve", ("*/*",), "support/triage", "insufficient_scope"),
        ("support", (), "support/triage", ""),
        ("support", (), "bob/hello", "not_owner"),
    ],
)
def test_where_tokens_publish(
    database: Database, person: str, repos: tuple[str, ...], target: str, code: str
):
    accounts = Accounts(database)
    text, _ = accounts.create_token(person, "ci", Grant(repos), now=NOW)
    owner, name = target.split("/")
    actor = accounts.admit(text, owner, NOW)
    assert code_of(Rights(database).check_may_publish, actor, name) == code
    assert actor.name == person


def test_a_scope_that_names_a_team_before_its_person_joins(database: Database, teams: Teams):
    accounts = Accounts(database)
    with pytest.raises(OperatorError, match="eve is no member of a team support"):
        accounts.create_token("eve", "ci", Grant(["support/*"]), now=NOW)
    text, _ = accounts.create_token("eve", "ci", Grant(["*/*"]), now=NOW)

    def refusal() -> str:
        actor = accounts.admit(text, "support", NOW)
        return code_of(Rights(database).check_may_publish, actor, "triage")

    for is_in in (False, True, False):
        assert refusal() == ("" if is_in else "insufficient_scope")
        if is_in:
            teams.remove("support", "eve", by="ann")
        else:
            teams.put("support", "eve", "writer", by="ann")


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        (lambda database: Teams(database).remove("support", "bob"), "insufficient_scope"),
        (lambda database: locks.lock(database, "bob"), "invalid_token"),
        (lambda database: locks.lock(database, "support"), "insufficient_scope"),
        (lambda database: Accounts(database).revoke("bob", "ci"), "invalid_token"),
    ],
)
def test_what_ended_ends_with_the_next_request_on_every_node(
    database: Database, accounts_place: str, ends: Callable, code: str
):
    text, _ = Accounts(database).create_token("bob", "ci", Grant(["support/*"]), now=NOW)

    def publish(node: Database) -> None:
        actor = Accounts(node).admit(text, "support", NOW)
        Rights(node).check_may_publish(actor, "triage")

    with Database(accounts_place) as other:
        assert code_of(publish, database) == code_of(publish, other) == ""
        ends(database)
        assert code_of(publish, database) == code_of(publish, other) == code
        if code == "insufficient_scope":
            with pytest.raises(RequestError, match="support"):
                publish(other)


@pytest.mark.parametrize(
    ("person", "labels", "label", "code"),
    [
        ("bob", (), "staging", ""),
        ("bob", (), "production", "insufficient_scope"),
        ("bob", ("production",), "production", "insufficient_scope"),
        ("ann", (), "production", "insufficient_scope"),
        ("ann", ("production",), "production", ""),
        ("support", ("production",), "production", ""),
    ],
)
def test_protected_labels_of_a_team(
    database: Database, person: str, labels: tuple[str, ...], label: str, code: str
):
    ProtectedLabels(database).set("support", "", "production", True)
    accounts = Accounts(database)
    repos = () if person == "support" else ("support/*",)
    text, _ = accounts.create_token(person, "ci", Grant(repos, labels=labels), now=NOW)
    actor = accounts.admit(text, "support", NOW)
    assert code_of(Rights(database).check_may_label, actor, "triage", [label]) == code
    # In the browser, the role alone counts.
    actor = accounts.acting(person, "support")
    expected = "" if person != "bob" or label == "staging" else "insufficient_scope"
    assert code_of(Rights(database).check_may_label, actor, "triage", [label]) == expected


def test_the_membership_costs_no_round_trip_of_its_own(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    accounts, sent = Accounts(database), []
    text, _ = accounts.create_token("bob", "ci", Grant(["support/*"]), now=NOW)
    execute = database.engine.execute
    monkeypatch.setattr(
        database.engine, "execute", lambda *args: sent.append(args) or execute(*args)
    )
    assert accounts.admit(text, "support", NOW).role == "writer"
    assert len(sent) == 1


def test_everything_ends_in_one_step(database: Database, teams: Teams):
    accounts = Accounts(database)
    Passwords(database).put_hash("ann", "$argon2id$")
    accounts.set_operator("ann", True)
    text, _ = accounts.create_token("ann", "ci", now=NOW)
    with written_by("eve"):
        assert locks.end_access(database, "ann", NOW) == ["support"]
    assert roles(teams) == {"ann": "maintainer", "bob": "writer"}
    teams.put("support", "bob", "maintainer")
    assert locks.end_access(database, "ann", NOW) == [] and roles(teams) == {"bob": "maintainer"}
    assert code_of(accounts.authenticate, text, NOW) == "invalid_token"
    assert not accounts.is_operator("ann") and not Passwords(database).has("ann")
    locks.unlock(database, "ann", NOW)
    assert code_of(accounts.authenticate, text, NOW) == "invalid_token"
    authors = {one.author for one in latest(database, "ann", 99) if one.kind == "locked"}
    assert authors == {"eve"}


def test_the_activity_names_who_did_it(database: Database, teams: Teams):
    with written_by("ann"):
        teams.put("support", "eve", "writer", by="ann", now=NOW)
    found = [(one.kind, one.author, one.note) for one in latest(database, "support", 9)]
    assert found == [
        ("member_added", "ann", "eve as writer"),
        ("member_added", "", "bob as writer"),
        ("team_made", "", "ann"),
    ]
