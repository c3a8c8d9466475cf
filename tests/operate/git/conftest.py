"""A hub with the small catalogue, and a bare repository."""

from pathlib import Path

import pytest

from builder.model.settings import Settings
from tests.operate.git.places import Place


@pytest.fixture
def place(small: Settings, tmp_path: Path) -> Place:
    return Place(small, tmp_path)
