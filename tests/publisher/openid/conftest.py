"""A client of OpenID, and its provider."""

import pytest

from publisher.openid.client import Client
from publisher.openid.provider import make_provider
from tests.publisher.web.pages.openid.provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    FakeProvider,
    fake_provider,
)
from tests.support.clock import Clock

CALLBACK = "http://127.0.0.1:8000/account/openid/callback"


@pytest.fixture
def fake():
    with fake_provider() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(fake: FakeProvider, clock: Clock) -> Client:
    return Client(make_provider(fake.url, CLIENT_ID, "Fake", CLIENT_SECRET), CALLBACK, clock.time)
