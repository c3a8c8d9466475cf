"""What all nodes share, as real servers: object stores, PostgreSQL and Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.cluster import Services, running_services
from tests.support.ceph import Ceph, running_ceph
from tests.support.object_stores import ObjectStore
from tests.support.postgres import Postgres


@pytest.fixture(scope="session")
def ceph(installed_tools: None) -> Iterator[Ceph]:
    with running_ceph() as ceph:
        yield ceph


@pytest.fixture
def ceph_store(ceph: Ceph) -> ObjectStore:
    """A new bucket, reached by the first gateway."""
    return ceph.gateways[0].server.make_bucket()


@pytest.fixture(params=["ceph_store", "azure_store"])
def services(
    request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path
) -> Iterator[Services]:
    """New ones, over each of the stores in turn."""
    store: ObjectStore = request.getfixturevalue(request.param)
    with running_services(store, postgres, tmp_path) as services:
        yield services
