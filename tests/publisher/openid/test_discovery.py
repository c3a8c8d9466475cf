"""The discovery document of an OpenID provider: when it is requested, and how long clients wait."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.openid.client import FRESH_SECONDS, PAUSE_SECONDS, Client
from publisher.openid.provider import make_provider
from publisher.outside.fetch import DOCUMENT_BYTES_MAX
from tests.publisher.openid.conftest import CALLBACK
from tests.publisher.openid.test_client import finish, refusal
from tests.publisher.web.pages.openid.provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.support.clock import Clock
from tests.support.issuer import DISCOVERY
from tests.support.servers import DEADLINE_SECONDS
from tests.support.slow_servers import trickling


def test_it_is_asked_when_it_is_needed_and_then_each_hour(
    client: Client, fake: FakeProvider, clock: Clock
) -> None:
    assert not fake.requests
    client.begin()
    clock.now += FRESH_SECONDS - 1
    client.begin()
    assert fake.requests[DISCOVERY] == 1
    clock.now += 1
    fake.discovery["authorization_endpoint"] = f"{fake.url}/newer"
    assert client.begin()[0].startswith(f"{fake.url}/newer?")


def test_an_issuer_may_end_with_a_slash(fake: FakeProvider) -> None:
    issuer = f"{fake.url}/"
    fake.discovery["issuer"] = issuer
    client = Client(make_provider(issuer, CLIENT_ID, None, CLIENT_SECRET), CALLBACK)
    _, begun = client.begin()
    fake.say(begun.nonce, iss=issuer)
    assert finish(client, begun).issuer == issuer


def test_one_that_is_down_is_not_asked_all_the_time(
    client: Client, fake: FakeProvider, clock: Clock
) -> None:
    fake.status = 503
    for _ in range(3):
        with pytest.raises(RequestError, match="Fake cannot be reached") as caught:
            client.begin()
        assert caught.value.code == "unavailable"
    assert fake.requests[DISCOVERY] == 1
    fake.status = None
    clock.now += PAUSE_SECONDS
    client.begin()
    # Afterwards, what it said before will do.
    clock.now += FRESH_SECONDS
    fake.status = 503
    client.begin()
    client.begin()
    assert fake.requests[DISCOVERY] == 3


def test_all_who_come_at_once_wait_for_one_answer(client: Client, fake: FakeProvider) -> None:
    made = []
    threads = [threading.Thread(target=lambda: made.append(client.begin())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({begun.state for _, begun in made}) == 8
    assert fake.requests[DISCOVERY] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "https://login.example.org"},
        {"issuer": None},
        {"token_endpoint": "http://login.example.org/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
        {"token_endpoint": ["https://login.example.org"]},
    ],
)
def test_one_that_says_something_strange_is_for_the_operator(
    client: Client, fake: FakeProvider, wrong: dict[str, Any]
) -> None:
    fake.discovery |= wrong
    with pytest.raises(OperatorError, match=r"OpenID (issuer|provider)"):
        client.begin()


@pytest.mark.parametrize("field", ["token_endpoint", "jwks_uri"])
def test_an_answer_that_trickles_is_not_waited_for(
    client: Client, fake: FakeProvider, request: pytest.FixtureRequest, field: str
) -> None:
    with trickling(b"HTTP/1.1 200 OK\r\n\r\n") as slow:
        fake.discovery[field] = slow
        _, begun = client.begin()
        fake.say(begun.nonce)
        request.getfixturevalue("impatient")
        assert refusal(client, begun).code == "unavailable"


@pytest.mark.parametrize("field", ["token_endpoint", "jwks_uri"])
def test_what_is_too_large_is_not_read(client: Client, fake: FakeProvider, field: str) -> None:
    _, begun = client.begin()
    fake.say(begun.nonce)
    if field == "token_endpoint":
        fake.reply = 200, fake.reply[1] | {"more": "x" * DOCUMENT_BYTES_MAX}
    else:
        fake.keys.append({"more": "x" * DOCUMENT_BYTES_MAX})
    assert refusal(client, begun).code == "unavailable"


def test_nobody_waits_long_for_what_another_asks(
    client: Client, fake: FakeProvider, clock: Clock
) -> None:
    requested, go_on = threading.Event(), threading.Event()
    answer = fake.answer

    def slowly(*request: Any) -> tuple[int, Any]:
        requested.set()
        assert go_on.wait(DEADLINE_SECONDS)
        return answer(*request)

    fake.answer = slowly
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.begin)
        try:
            assert requested.wait(DEADLINE_SECONDS)
            with pytest.raises(RequestError, match="cannot be reached"):
                client.begin()
            assert not first.done()
        finally:
            go_on.set()
        assert first.result(DEADLINE_SECONDS)
        # A client with an earlier document does not wait at all.
        clock.now += FRESH_SECONDS
        requested.clear()
        go_on.clear()
        second = pool.submit(client.begin)
        try:
            assert requested.wait(DEADLINE_SECONDS)
            assert client.begin()
            assert not second.done()
        finally:
            go_on.set()
