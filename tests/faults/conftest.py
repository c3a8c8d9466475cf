"""Fixtures of the fault tests."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.faults.strace import Writers, start_writers
from tests.faults.verdict import SITUATIONS, Situation


@pytest.fixture(scope="package")
def writers() -> Iterator[Writers]:
    if not shutil.which("strace"):
        reason = "strace is missing; tests/install-tools installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with start_writers() as started:
        yield started


@pytest.fixture(params=SITUATIONS)
def situation(request: pytest.FixtureRequest) -> Situation:
    """A publication that is the repo's and its owner's first, and one that is the second."""
    return SITUATIONS[request.param]
