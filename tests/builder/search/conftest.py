"""Catalogues to search in."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.search.queries import Queries
from tests.builder.search.asking import load_repos
from tests.support.catalogues import moment, settings_in, write_label, write_version
from tests.support.servers import SAMPLE


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Queries, list[dict]]]:
    """The sample catalogue and 150 repos more, so that lists have several pages."""
    settings = settings_in(tmp_path_factory.mktemp("many"))
    for path in SAMPLE.rglob("*"):
        target = Path(settings.content, path.relative_to(SAMPLE))
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    for number in range(150):
        tags = [tag for tag, every in (("code", 2), ("json", 3), ("sql", 5)) if number % every == 0]
        # Many share their times, so that owner/name has to decide.
        at = moment(number % 7 * 100)
        text = f"Review the {'sql' if number % 4 else 'table'} number {number}."
        write_version(
            settings.content, f"bulk{number % 3}", f"n{number}", "1.0.0", text,
            tags=tags, published_at=at,
        )  # fmt: skip
        if number % 10 == 0:
            write_version(
                settings.content, f"bulk{number % 3}", f"n{number}", "1.1.0", text + "\n",
                tags=tags, published_at=moment(1000 + number % 3),
            )  # fmt: skip
    for repo in ("bulk0/n0", "bulk0/n30", "bulk1/n10"):
        write_label(settings.content, repo, 1, "eu-west", "1.0.0")
    build(settings)
    queries = Queries(settings)
    yield queries, load_repos(Path(settings.content))
    queries.close()


@pytest.fixture
def queries(small: Settings) -> Iterator[Queries]:
    """Reads the small catalogue, which the test builds, or not."""
    with contextlib.closing(Queries(small)) as queries:
        yield queries
