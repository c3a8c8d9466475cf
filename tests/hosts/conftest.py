"""Folders and sites for the tests of hosts, and a stand-in for their service."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.pipeline.build import build
from tests.conformance.hosts import BASE_URL, BELOW_PATH
from tests.hosts.standing_in import Place, StandIn
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.servers import in_thread


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may read. One below pytest's own would not stay so: each pytest
    process that starts closes that to others.
    """
    with tempfile.TemporaryDirectory(prefix="hub-hosts-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder for the hosts' own files, with the site that each of them serves."""
    sites = {}
    for base_url in (BASE_URL, BELOW_PATH):
        sites[base_url] = settings_in(tmp_path_factory.mktemp("site"), base_url, queries=True)
        write_small_catalogue(sites[base_url].content)
        build(sites[base_url], index=False)
    return Place(tmp_path_factory.mktemp("hosts"), sites)


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    """A running stand-in for the service."""
    server = StandIn()
    with in_thread(server):
        yield server
