"""What all nodes share, as real servers: PostgreSQL and Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.cluster import Services, running_services
from tests.support.postgres import Postgres


@pytest.fixture
def services(postgres: Postgres, tmp_path: Path) -> Iterator[Services]:
    with running_services(postgres, tmp_path) as services:
        yield services
