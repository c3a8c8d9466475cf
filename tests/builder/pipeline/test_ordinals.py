"""A number of publication that is stored twice."""

import pytest

from builder.model.errors import ContentError
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.support.catalogues import build_files, freshly_built, moment, read_tree, write_version


def write(settings: Settings, version: str, hour: int, **fields: int) -> None:
    text, at = f"Say {version}.\n", moment(hour)
    write_version(settings.content, "ann", "x", version, text, published_at=at, **fields)


def test_it_stops_a_full_build_and_keeps_the_repo_as_it_was(empty: Settings, settled: None):
    for hour, version in enumerate(("1.0.0", "2.0.0", "1.1.0")):
        write(empty, version, 10 * hour + 10)
    write(empty, "1.0.0", 10, ordinal=5)
    build(empty, index=False)
    before = read_tree(empty.out)
    write(empty, "1.1.0", 30, ordinal=5)
    reason = "ann/x/1.1.0.json: 1.1.0 has the ordinal 5, as 1.0.0 has"
    with pytest.raises(ContentError, match=reason):
        build(empty, index=False, full=True)
    assert {file: data for file, data in read_tree(empty.out).items() if "/1.1.0" not in file} == {
        file: data for file, data in before.items() if "/1.1.0" not in file
    }
    write(empty, "1.1.0", 30, ordinal=6)
    assert build_files(empty, changed=[("ann", "x")]) == freshly_built(empty)
