"""Sign-up: a free handle gets an account; any other is refused."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.model.errors import RequestError
from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.signup import sign_up, sign_up_identity
from publisher.accounts.tokens import Accounts
from tests.publisher.accounts.test_sizes import whole_tables
from tests.support.events import latest
from tests.support.postgres import only_sqlite

HOME, GOOD = "198.51.100.7", "violet otter lamp 7"
ISSUER, SUBJECT = "https://id.example.org", "248289761001"


class Hub:
    """Accounts with the owner known, beside the small catalogue."""

    def __init__(self, settings: Settings, accounts_place: str) -> None:
        self.settings = settings
        self.place = accounts_place
        self.database = Database(accounts_place)
        Accounts(self.database).add_owner("known")

    def take(self, handle: str, password: str = GOOD) -> None:
        sign_up(self.database, self.settings.content, handle, password)

    def take_by_identity(self, handle: str, subject: str = SUBJECT) -> None:
        sign_up_identity(self.database, self.settings.content, handle, ISSUER, subject)

    def rows(self) -> list[tuple]:
        return [
            row
            for table in ("owner", "password", "identity", "event")
            for row in self.database.execute(f"SELECT * FROM {table}")
        ]


@pytest.fixture
def hub(small: Settings, accounts_place: str):
    made = Hub(small, accounts_place)
    with made.database:
        yield made


@pytest.fixture
def folder(hub: Hub) -> str:
    """An owner of the content tree who is not in the database."""
    return min(path.name for path in Path(hub.settings.content).iterdir())


def test_sign_up(hub: Hub):
    hub.take("newcomer")
    assert Passwords(hub.database).verify("newcomer", GOOD)
    (event,) = latest(hub.database, "newcomer", 9)
    assert (event.kind, event.address) == ("signed_up", HOME)


def test_sign_up_with_an_identity(hub: Hub):
    hub.take_by_identity("newcomer")
    assert Identities(hub.database).find(ISSUER, SUBJECT) == "newcomer"
    assert not Passwords(hub.database).has("newcomer")
    events = latest(hub.database, "newcomer", 9)
    assert [event.kind for event in events] == ["identity_added", "signed_up"]
    before = hub.rows()
    with pytest.raises(RequestError, match="another account"):
        hub.take_by_identity("second")
    assert hub.rows() == before


def refused(hub: Hub, handle: str, code: str, message: str) -> None:
    before = hub.rows()
    for take in (hub.take, hub.take_by_identity):
        with pytest.raises(RequestError, match=message) as caught:
            take(handle)
        assert caught.value.code == code
    assert hub.rows() == before


def test_who_has_a_folder_of_prompts_is_taken(hub: Hub, folder: str):
    refused(hub, folder, "validation_failed", "is taken")
    hub.database.execute("DELETE FROM owner")
    refused(hub, folder, "validation_failed", "is taken")


def test_handles_that_cannot_be_taken(hub: Hub):
    Path(hub.settings.content, "willow").mkdir()
    refused(hub, "known", "validation_failed", "is taken")
    refused(hub, "kn0wn", "validation_failed", "too much like known")
    refused(hub, "vvi11ow", "validation_failed", "too much like willow")
    refused(hub, "admln", "validation_failed", "the site uses")
    refused(hub, "admin", "name_reserved", "such as")
    refused(hub, "New", "invalid_name", "Use 'new'")
    refused(hub, "../x", "invalid_name", "a-z")


@only_sqlite
def test_no_sign_up_looks_through_all_owners(statements: list[str], hub: Hub):
    statements.clear()
    hub.take("newcomer")
    hub.take_by_identity("second")
    noted = [*statements]
    assert len(noted) > 10 and whole_tables(hub.database, noted) == []


def test_a_weak_password_adds_nothing(hub: Hub):
    before = hub.rows()
    for password in ("short", "password1234", "newcomer-newcomer"):
        with pytest.raises(RequestError) as caught:
            hub.take("newcomer", password)
        assert [detail.field for detail in caught.value.details] == ["password"]
    assert hub.rows() == before


def test_content_with_faults_lets_nobody_in(hub: Hub, folder: str):
    content = Path(hub.settings.content)
    (content / "Not A Name").mkdir()
    for handle in ("newcomer", folder):
        refused(hub, handle, "unavailable", "hubctl check")
    (content / "Not A Name").rename(content.parent / "away")
    # A link to a folder would be a fault, under any name.
    (content / "newcomer").symlink_to(content / folder)
    refused(hub, "newcomer", "unavailable", "hubctl check")
    (content / "newcomer").unlink()
    content.rename(content.parent / "elsewhere")
    refused(hub, "newcomer", "unavailable", "content of this hub has faults")


def test_one_of_two_who_want_the_same_handle(hub: Hub):
    with Database(hub.place) as other:
        start = threading.Barrier(2)

        def take(database: Database, password: str, handle: str) -> str | None:
            start.wait()
            try:
                sign_up(database, hub.settings.content, handle, password)
            except RequestError as error:
                assert [detail.field for detail in error.details] == ["handle"]
                return None
            return handle

        passwords = (GOOD, "another fine passphrase")
        with ThreadPoolExecutor(2) as pool:
            won = list(pool.map(take, (hub.database, other), passwords, ("newcomer", "newcorner")))
    (winner,) = filter(None, won)
    assert [owner.handle for owner in Accounts(hub.database).owners()] == ["known", winner]
    assert Passwords(hub.database).verify(winner, passwords[won.index(winner)])
