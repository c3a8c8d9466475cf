import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may read. One below pytest's own would not stay so: each pytest
    process that starts closes that to others.
    """
    with tempfile.TemporaryDirectory(prefix="hub-hosts-") as folder:
        yield Path(folder)
