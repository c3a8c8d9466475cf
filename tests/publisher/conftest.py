"""Fixtures of this package: the publish service, hashes, statements."""

from collections.abc import Iterator

import pytest

from tests.support.cheap_hashes import cheap_hashes  # noqa: F401
from tests.support.held_hashes import held_hashes  # noqa: F401
from tests.support.hubs import hub, log, make_hub  # noqa: F401
from tests.support.issuer import TestIssuer, issuer
from tests.support.slow_servers import impatient  # noqa: F401
from tests.support.statements import statements  # noqa: F401


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "costly_hashes: password hashes cost what they cost a hub")


@pytest.fixture
def live() -> Iterator[TestIssuer]:
    """An issuer of ID tokens."""
    with issuer() as running:
        yield running
