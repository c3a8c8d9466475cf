"""The page on which labels are moved and protected, and what tokens and jobs may do with them."""

import pytest

from builder.store.labels import read_labels
from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database
from publisher.trusted.publishers import TrustedPublishers
from tests.publisher.web.pages.conftest import Page, People, Visitor

LABELS = "/account/labels"


@pytest.fixture
def owner(people: People) -> Visitor:
    """Somebody who has published two versions of a story."""
    visitor = people.guest()
    with Database(people.settings.state) as database:
        token, _ = Accounts(database).create_token(visitor.handle, "setup")
    for text in ("One.", "Two."):
        assert people.publish(token, visitor.handle, "story", text).status_code == 201
    visitor.get(LABELS)
    return visitor


def move(owner: Visitor, **fields: str) -> Page:
    owner.get(LABELS)
    given = {"repo": "story", "label": "production", "version": "1.0.0", "note": ""} | fields
    return owner.submit("/labels", **given)


def labels(people: People, owner: Visitor) -> dict[str, str]:
    return read_labels(people.settings.content, owner.handle, "story").versions()


def test_release_and_roll_back(people: People, owner: Visitor) -> None:
    assert f"production of {owner.handle}/story now names 1.0.1." in (
        move(owner, repo=f" {owner.handle}/story ", version="1.0.1", note="New.").words
    )
    move(owner)
    assert labels(people, owner) == {"production": "1.0.0"}
    history = read_labels(people.settings.content, owner.handle, "story").history["production"]
    assert [(one.version, one.moved_by, one.note) for one in history] == [
        ("1.0.0", owner.handle, ""), ("1.0.1", owner.handle, "New."),
    ]  # fmt: skip
    assert "production of" in move(owner, version="").words and labels(people, owner) == {}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"version": "9.9.9"}, "no version 9.9.9"),
        ({"version": "x"}, "x.y.z"),
        ({"label": "latest"}, "is reserved"),
        ({"label": "<b>"}, "Invalid label"),
        ({"label": ""}, "Enter the label."),
        ({"repo": ""}, "Enter the prompt name."),
        ({"repo": "poem"}, "No prompt"),
        ({"repo": "someone/else"}, "Invalid prompt name"),
        ({"version": ""}, "has no label"),
        ({"note": "x" * 1025}, "longer than 1,024 bytes"),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    people: People, owner: Visitor, fields: dict[str, str], told: str
) -> None:
    page = move(owner, **fields)
    assert page.status == 422 and told in page.words
    assert labels(people, owner) == {}


def test_protected_labels(people: People, owner: Visitor) -> None:
    owner.get(LABELS)
    page = owner.submit("/labels/protect", label="production", repo="")
    assert f"The label production of {owner.handle}/* is protected." in page.words
    # Their owner moves it all the same, signed in.
    assert move(owner).status == 200 and labels(people, owner) == {"production": "1.0.0"}
    owner.get(LABELS)
    assert "is no longer protected" in owner.submit("/labels/unprotect").words
    owner.get(LABELS)
    page = owner.submit("/labels/protect", label="latest", repo="")
    assert page.status == 422 and "reserved" in page.words
    log = owner.get("/account/security").words
    assert f"Label protected: production of {owner.handle}/*." in log
    assert f"Label no longer protected: production of {owner.handle}/*." in log


def test_tokens_with_rights(people: People, owner: Visitor) -> None:
    owner.get("/account/tokens")
    page = owner.submit("/tokens", name="release", rights="label", labels="production, canary")
    assert page.status == 201
    with Database(people.settings.state) as database:
        tokens = {one.name: one for one in Accounts(database).tokens(owner.handle)}
    token = tokens["release"]
    assert (token.rights, token.labels) == (("label",), ("production", "canary"))
    assert "moves production, canary" in owner.get("/account/tokens").words
    for labels, rights, told in (
        ("production", "publish", "only publishes"),
        ("Production", "label", "Invalid label"),
        (" ".join(f"label-{number}" for number in range(21)), "label", "at most 20"),
    ):
        owner.get("/account/tokens")
        page = owner.submit("/tokens", name="other", rights=rights, labels=labels)
        assert page.status == 422 and told in page.words


def test_labels_of_jobs(people: People, owner: Visitor) -> None:
    owner.get("/account/publishers")
    fields = {"project": "octo/prompts", "workflow": "publish.yml"}
    page = owner.submit("/publishers", **fields, labels="production,production latest")
    assert page.status == 422 and "reserved" in page.words
    page = owner.submit("/publishers", **fields, labels=" production, canary ")
    assert page.status == 200 and "Moves labels production, canary" in page.words
    with Database(people.settings.state) as database:
        (publisher,) = TrustedPublishers(database).of(owner.handle)
    assert publisher.labels == "production canary"
