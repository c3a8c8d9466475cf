import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build


@pytest.fixture
def built(small: Settings) -> Settings:
    """A small catalogue with its site."""
    build(small)
    return small
