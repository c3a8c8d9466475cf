"""Hashes that cost nothing."""

import pytest


@pytest.fixture(autouse=True)
def _hashes(request: pytest.FixtureRequest) -> None:
    """Hashes cost nothing, but in tests marked ``costly_hashes``."""
    if not request.node.get_closest_marker("costly_hashes"):
        request.getfixturevalue("cheap_hashes")
