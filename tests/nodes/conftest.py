"""What all nodes share, as real servers: object stores, PostgreSQL and Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.cluster import Services, running_services
from tests.support.object_stores import ObjectStore
from tests.support.postgres import Postgres


@pytest.fixture
def services(served_store: ObjectStore, postgres: Postgres, tmp_path: Path) -> Iterator[Services]:
    """New ones, over each of the stores in turn."""
    with running_services(served_store, postgres, tmp_path) as services:
        yield services
