"""What all nodes share, as real servers: object stores, PostgreSQL and Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.cluster import Services
from tests.support.object_stores import ObjectStore
from tests.support.postgres import Postgres
from tests.support.redis import Redis


@pytest.fixture
def services(
    served_store: ObjectStore, postgres: Postgres, tmp_path: Path, installed_tools: None
) -> Iterator[Services]:
    """A new store, with a new database and a new Redis; each of the stores in turn."""
    redis = Redis(tmp_path)
    yield Services(served_store, postgres.new_database(), redis.url)
    redis.kill()
