"""Rights of a token: to publish, to move labels, and which labels."""

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.accounts.database import Database
from publisher.accounts.rights import PROTECTED_MAX, ProtectedLabels
from publisher.accounts.token import RIGHTS, Grant, Token
from publisher.accounts.tokens import Accounts
from tests.support.actors import holder, rights_of
from tests.support.events import latest
from tests.support.postgres import only_sqlite


def create(accounts: Accounts, name: str = "ci", **options) -> Token:
    text, token = accounts.create_token("ann", name, Grant(**options))
    assert accounts.authenticate(text) == token
    return token


def refusal(accounts: Accounts, token: Token, *labels: str, publishes: bool = False) -> str:
    """Why the token is refused; empty if it is not."""
    check = (
        rights_of(accounts).check_may_publish if publishes else rights_of(accounts).check_may_label
    )
    try:
        check(holder(token, "ann"), "story", labels)
    except RequestError as error:
        assert error.code == "insufficient_scope"
        return str(error)
    return ""


def test_both_rights_are_the_default(accounts: Accounts):
    token = create(accounts)
    assert (token.rights, token.labels) == (RIGHTS, ())
    assert not refusal(accounts, token, "production") and not refusal(accounts, token, "x", "y")
    assert not refusal(accounts, token, "production", publishes=True)


def test_one_right(accounts: Accounts):
    publishes = create(accounts, "one", rights=["publish"])
    assert not refusal(accounts, publishes, publishes=True)
    assert "right `label`" in refusal(accounts, publishes, "production")
    assert "right `label`" in refusal(accounts, publishes, "production", publishes=True)
    moves = create(accounts, "two", rights=["label"])
    assert not refusal(accounts, moves, "production")
    assert "right `publish`" in refusal(accounts, moves, publishes=True)
    assert moves.abilities() == "moves unprotected labels" and publishes.abilities() == "publishes"


def test_some_labels(accounts: Accounts):
    token = create(accounts, labels=["canary", "beta", "canary"])
    assert token.labels == ("canary", "beta")
    assert token.abilities() == "publishes, moves canary, beta"
    assert not refusal(accounts, token, "beta", "canary")
    message = refusal(accounts, token, "beta", "ignore-all-rules")
    # The requested label is not repeated, because models read the message.
    assert "only these labels: canary, beta" in message and "ignore" not in message
    assert refusal(accounts, token, "production", publishes=True)
    assert not refusal(accounts, token, publishes=True)


@only_sqlite
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rights": []}, OperatorError),
        ({"rights": ["admin"]}, OperatorError),
        ({"rights": ["publish"], "labels": ["production"]}, OperatorError),
        ({"labels": [f"label-{number}" for number in range(21)]}, OperatorError),
        ({"labels": ["Production"]}, RequestError),
        ({"labels": ["latest"]}, RequestError),
    ],
)
def test_rights_that_cannot_be(accounts: Accounts, options: dict, error: type):
    with pytest.raises(error):
        create(accounts, **options)
    assert accounts.tokens() == []


@pytest.mark.parametrize("repo", ["story", ""])
def test_protected_labels(database: Database, accounts: Accounts, repo: str):
    labels = ProtectedLabels(database)
    broad = create(accounts, "broad")
    named = create(accounts, "named", labels=["production"])
    other = create(accounts, "other", labels=["canary"])
    assert labels.set("ann", repo, "production", True)
    assert not labels.set("ann", repo, "production", True)
    assert "The label production is protected" in refusal(accounts, broad, "production")
    assert "protected" in refusal(accounts, broad, "canary", "production", publishes=True)
    assert not refusal(accounts, broad, "canary") and not refusal(accounts, broad, publishes=True)
    assert not refusal(accounts, named, "production")
    assert "only these labels" in refusal(accounts, other, "production")
    # Elsewhere only what is protected everywhere.
    accounts.add_owner("bob")
    elsewhere = accounts.create_token("bob", "ci")[1]
    rights_of(accounts).check_may_label(holder(elsewhere, "bob"), "story", ["production"])
    if repo:
        rights_of(accounts).check_may_label(holder(broad, "ann"), "poem", ["production"])
    else:
        with pytest.raises(RequestError, match="is protected"):
            rights_of(accounts).check_may_label(holder(broad, "ann"), "poem", ["production"])
    assert labels.of("ann") == [(repo, "production")]
    assert labels.set("ann", repo, "production", False)
    assert not labels.set("ann", repo, "production", False)
    assert not refusal(accounts, broad, "production")
    kinds = [event.kind for event in latest(database, "ann", 2)]
    assert kinds == ["label_unprotected", "label_protected"]


def test_capitals_protect_nothing_less(database: Database, accounts: Accounts):
    ProtectedLabels(database).set("ann", "story", "production", True)
    with pytest.raises(RequestError, match="is protected"):
        rights_of(accounts).check_may_label(
            holder(create(accounts), "Ann"), "Story", ["production"]
        )


def test_too_many_protected_labels(database: Database, accounts: Accounts):
    labels = ProtectedLabels(database)
    with database.transaction():
        for number in range(PROTECTED_MAX):
            labels.set("ann", f"story-{number}", "a", True)
    with pytest.raises(RequestError, match=f"at most {PROTECTED_MAX:,} labels"):
        labels.set("ann", "", "b", True)
    for repo, label in (("Story", "a"), ("", "latest"), ("", "A")):
        with pytest.raises(RequestError):
            labels.set("ann", repo, label, True)


def test_where_only_trusted_publishers_publish_no_token_moves_a_label(accounts: Accounts):
    accounts.set_trusted_only("ann", "story", True)
    assert "accepts only trusted publishers" in refusal(accounts, create(accounts), "production")
    _, job = accounts.create_trusted_token("ann", ["story"], "1", labels=["production"])
    assert not refusal(accounts, job, "production", publishes=True)


def test_jobs(accounts: Accounts):
    _, none = accounts.create_trusted_token("ann", ["story"], "1")
    assert none.rights == ("publish",) and "right `label`" in refusal(accounts, none, "production")
    _, some = accounts.create_trusted_token("ann", ["story"], "1", labels=["production"])
    assert not refusal(accounts, some, "production")
    assert "only these labels" in refusal(accounts, some, "canary")
