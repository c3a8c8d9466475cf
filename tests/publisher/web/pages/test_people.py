"""People: what operators do in the browser, and who they are."""

import json
import re

import pytest

from publisher.accounts.people.sessions import Sessions
from publisher.accounts.teams import Teams
from publisher.accounts.tokens import Accounts
from tests.publisher.web.pages.conftest import PASSWORD, People, Visitor
from tests.support.events import latest

PEOPLE = "/account/people"


@pytest.fixture
def chief(people: People) -> Visitor:
    chief = people.guest()
    Accounts(people.database).set_operator(chief.handle, True)
    return chief


def do(chief: Visitor, whom: str, action: str) -> str:
    chief.get(f"{PEOPLE}/{whom}")
    page = chief.post(f"{PEOPLE}/{whom}", [*chief.csrf(), ("action", action)])
    return page.words


def test_only_operators_see_people(people: People, chief: Visitor) -> None:
    other = people.guest()
    assert "People" in chief.get("/account/teams").words
    assert "People" not in other.get("/account/teams").words
    for path in (PEOPLE, f"{PEOPLE}/{chief.handle}"):
        page = other.get(path)
        assert page.status == 403 and "Only operators" in page.words
        assert other.post(path, [*other.csrf(), ("action", "end")]).status == 403
        assert people.visitor().get(path).path == "/account/login"
        assert chief.post(path, [("action", "lock")]).status == 400


def test_it_asks_for_the_password_again(people: People) -> None:
    chief = people.member()
    Accounts(people.database).set_operator(chief.handle, True)
    aged = "UPDATE session SET began_at = began_at - 3600 WHERE owner = ?"
    people.database.execute(aged, (chief.handle,))
    page = chief.get(PEOPLE)
    assert page.path == "/account/login" and "Sign in again to manage people." in page.words
    assert chief.get("/account/tokens").path == "/account/tokens"
    chief.get("/account/login?next=/people")
    page = chief.submit(handle=chief.handle, password=PASSWORD)
    assert page.path == PEOPLE and page.status == 200


def test_several_are_invited_at_once(people: People, chief: Visitor) -> None:
    chief.get(PEOPLE)
    page = chief.submit(PEOPLE, handles="new-one,new-two\r\nnew-three", days="7")
    assert page.status == 201
    links = page.html.split("/account/invitation#")[1:]
    assert [link.partition(".")[0] for link in links] == ["new-one", "new-two", "new-three"]
    guest = people.visitor()
    guest.get("/account/invitation")
    page = guest.submit("/invitation", code=links[1].partition("<")[0], password=PASSWORD)
    assert "Welcome, new-two." in page.words


@pytest.mark.parametrize(
    ("handles", "words"),
    [
        ("good-one docs", "'docs': The owner name"),
        ("good-one No", "names are lower case"),
        ("good-one crew-of-people", "is a team"),
        (" , ", "Enter 1 to 100 handles"),
        (" ".join(f"p{number}" for number in range(101)), "Enter 1 to 100 handles"),
    ],
)
def test_all_are_invited_or_none(people: People, chief: Visitor, handles: str, words: str) -> None:
    if not Accounts(people.database).is_known("crew-of-people"):
        Teams(people.database).create("crew-of-people", chief.handle)
    chief.get(PEOPLE)
    page = chief.submit(PEOPLE, handles=handles)
    assert page.status == 422 and words in page.words
    assert not Accounts(people.database).is_known("good-one")


def test_lock_unlock_and_end(people: People, chief: Visitor) -> None:
    whom = people.member()
    Teams(people.database).create(f"crew-{whom.handle}", whom.handle)
    Accounts(people.database).create_token(whom.handle, "laptop")
    page = chief.get(f"{PEOPLE}/{whom.handle}")
    assert f"crew-{whom.handle} (maintainer)" in page.words
    assert f"laptop {whom.handle}/* never" in page.words
    assert f"{whom.handle} is locked" in do(chief, whom.handle, "lock")
    assert whom.get("/account/tokens").path == "/account/login"
    assert "is unlocked" in do(chief, whom.handle, "unlock")
    words = do(chief, whom.handle, "end")
    assert f"still the only maintainer of crew-{whom.handle}" in words
    assert "Signs in with nothing Sessions 0" in words and "laptop" not in words
    assert not Sessions(people.database).of(whom.handle)
    found = latest(people.database, whom.handle, 1)
    assert [(one.kind, one.author) for one in found] == [("access_ended", chief.handle)]
    logged = map(json.loads, re.findall(r"^{.*}$", people.server.process.text, re.MULTILINE))
    actions = [
        (line["action"], line["account"])
        for line in logged
        if line["event"] == "person" and line["person"] == whom.handle
    ]
    assert actions == [(action, chief.handle) for action in ("lock", "unlock", "end")]


def test_no_operator_locks_themselves_out(people: People, chief: Visitor) -> None:
    assert "This is you." in chief.get(f"{PEOPLE}/{chief.handle}").words
    assert "You cannot lock yourself out." in do(chief, chief.handle, "end")
    assert chief.get(f"{PEOPLE}/nobody").status == 404
    assert chief.get(f"{PEOPLE}?q={chief.handle}").words.count("operator") == 1
