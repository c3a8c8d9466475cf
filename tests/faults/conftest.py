"""Fixtures of the fault tests."""

import shutil
from collections.abc import Iterator

import pytest

from tests.faults.strace import Writers, start_writers
from tests.faults.verdict import SITUATIONS, Situation
from tests.support.depth import rotating


@pytest.fixture(scope="package")
def writers(installed_tools: None) -> Iterator[Writers]:
    assert shutil.which("strace"), "strace is not there; install it with: sh tests/install-tools"
    with start_writers() as started:
        yield started


@pytest.fixture(params=rotating(SITUATIONS))
def situation(request: pytest.FixtureRequest) -> Situation:
    """A publication that is the repo's and its owner's first, and one that is the second."""
    return SITUATIONS[request.param]
