"""The account pages while more passwords wait than may."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed, wait

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from builder.model.service_urls import TRUSTED_URL
from publisher.accounts.people.attempts import VISITOR_LIMIT
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import HASHES_AT_ONCE, WAITING_MAX, Passwords
from publisher.openid.provider import SignIn
from tests.support.held_hashes import HeldHashes
from tests.support.hubs import Hub, MakeHub
from tests.support.servers import DEADLINE_SECONDS

GOOD, NEW = "seven quiet herons over Bergen", "eleven loud gulls under Lisbon"


@pytest.fixture
def hub(make_hub: MakeHub) -> Iterator[Hub]:
    made = make_hub("http://127.0.0.1:8000", sign_in=SignIn(open_signup=True))
    yield made
    made.database.close()


@pytest.fixture
def passwords(hub: Hub) -> Passwords:
    made = Passwords(hub.database)
    made.put("ann", GOOD)
    return made


@pytest.fixture
def ann(hub: Hub, passwords: Passwords) -> FlaskClient:
    """A browser in which ann is signed in."""
    client = hub.app.test_client()
    answer = send(client, "/account/login", handle="ann", password=GOOD)
    assert answer.status_code == 303
    return client


@pytest.fixture
def free(
    ann: FlaskClient, passwords: Passwords, held_hashes: HeldHashes
) -> Iterator[Callable[[], object]]:
    """Every place is taken, until this is called."""
    count = HASHES_AT_ONCE + WAITING_MAX + 1
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(passwords.verify, "nobody", "x") for _ in range(count)]
        assert next(as_completed(futures, DEADLINE_SECONDS)).exception()

        def free() -> None:
            held_hashes.let_go()
            wait(futures)

        yield free
        held_hashes.let_go()


def send(client: FlaskClient, path: str, page: str = "", **fields: str) -> TestResponse:
    """Send a form of the page at ``page``, by default the one at ``path``."""
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get(page or path).text)[1]
    return client.post(path, data={"csrf_token": token, **fields})


def check_refused(answer: TestResponse) -> str:
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "Wait 5 seconds, go back, and send the form again." in answer.text
    return answer.text


def test_a_sign_in_is_to_be_tried_later(hub: Hub, free: Callable[[], object]):
    browsers = [hub.app.test_client() for _ in range(VISITOR_LIMIT + 1)]
    handles = ("ann", "bob", "nobody", "no handle")
    pages = {
        check_refused(send(browser, "/account/login", handle=handle, password=GOOD))
        for browser in browsers
        for handle in handles
    }
    # The pages do not reveal which handle exists.
    assert len(pages) == 1
    # Everything else still works.
    assert hub.app.test_client().get("/account/login").status_code == 200
    assert hub.app.test_client().post(TRUSTED_URL, json={}).status_code == 422
    free()
    # Passwords that were not checked do not count as attempts.
    answer = send(browsers[0], "/account/login", handle="ann", password=GOOD)
    assert answer.status_code == 303


def test_a_new_password_is_to_be_sent_later(
    hub: Hub, ann: FlaskClient, passwords: Passwords, free: Callable[[], object]
):
    visitor, chosen = hub.app.test_client(), {"password": NEW}
    code = Invitations(hub.database).invite("bob")
    forms = [
        (visitor, "/account/signup", "", {"handle": "carl", **chosen}),
        (visitor, "/account/invitation", "", {"code": code, **chosen}),
    ]
    change = (ann, "/account/password", "/account/security", {"current": GOOD, **chosen})
    for _ in range(VISITOR_LIMIT + 1):
        check_refused(send(*change[:3], **change[3]))
    for client, path, page, fields in forms:
        check_refused(send(client, path, page, **fields))
    assert not hub.accounts.is_known("carl") and not passwords.has("bob")
    free()
    for client, path, page, fields in [*forms, change]:
        assert send(client, path, page, **fields).status_code == 303
    assert all(passwords.verify(handle, NEW) for handle in ("ann", "bob", "carl"))
