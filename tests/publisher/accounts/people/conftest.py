"""Hashes that cost nothing, and clients at one address."""

from collections.abc import Iterator

import pytest

from publisher.accounts.events import written_by


@pytest.fixture(autouse=True)
def _hashes(request: pytest.FixtureRequest) -> None:
    """Hashes cost nothing, but in tests marked ``costly_hashes``."""
    if not request.node.get_closest_marker("costly_hashes"):
        request.getfixturevalue("cheap_hashes")


@pytest.fixture(autouse=True)
def _home() -> Iterator[None]:
    """Everything is done at this address."""
    with written_by("", "198.51.100.7"):
        yield
