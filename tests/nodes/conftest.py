"""What all nodes share, as a real server: PostgreSQL with a standby."""

from collections.abc import Iterator

import pytest

from tests.nodes.cluster import Services, running_services


@pytest.fixture
def services(installed_tools: None) -> Iterator[Services]:
    with running_services() as services:
        yield services
