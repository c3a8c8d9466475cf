"""A catalogue whose repos differ in age."""

import pytest

from builder.model.settings import Settings
from tests.support.catalogues import moment, write_version

HOURS = 24


@pytest.fixture
def four(empty: Settings) -> Settings:
    """Four repos, published on the first day, a week later (two), and two weeks later."""
    for repo_id, day in {"ann/a": 0, "ann/b": 7, "bob/c": 14, "bob/d": 7}.items():
        write_version(
            empty.content, *repo_id.split("/"), "1.0.0", f"Text of {repo_id}.\n",
            published_at=moment(day * HOURS), tags=["code"],
        )  # fmt: skip
    return empty
