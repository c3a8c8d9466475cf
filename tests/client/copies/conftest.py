"""A client of a host with a few prompts."""

import pytest

from tests.client.fake import Fake
from tests.client.shells import Client


@pytest.fixture
def to(client: Client, host: Fake) -> Client:
    return client.to(host.url)
