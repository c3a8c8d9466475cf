import os
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an empty content folder; the environment has no settings."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HUB_")]:
        monkeypatch.delenv(variable)
    (tmp_path / "content").mkdir()
    return tmp_path
