"""An empty content folder."""

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "content").mkdir()
    return str(tmp_path / "content")
