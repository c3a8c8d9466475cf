"""Services that all nodes share, as real servers: PostgreSQL with a standby, and Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.cluster import Services, running_services


@pytest.fixture
def services(installed_tools: None, tmp_path: Path) -> Iterator[Services]:
    with running_services(tmp_path) as services:
        yield services
