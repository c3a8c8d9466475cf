"""The numbers of publication on the site, after builds of what has changed."""

import json
from pathlib import Path

import pytest

from builder.model.errors import ContentError
from builder.model.settings import Settings
from builder.pipeline.build import build, compare
from tests.support.catalogues import (
    build_files,
    moment,
    read_tree,
    write_label,
    write_version,
    write_withdrawn,
)

BASE = "api/v1/repos/ann/x"


@pytest.fixture
def three(empty: Settings, settled: None) -> Settings:
    """Three versions that store no number, and a label; files count as settled at once."""
    for hour, version in enumerate(("1.0.0", "2.0.0", "1.1.0")):
        write(empty, version, 10 * hour + 10)
    write_label(empty.content, "ann/x", 1, "production", "2.0.0")
    return empty


def write(settings: Settings, version: str, hour: int, **fields: int) -> Path:
    text = f"Say {version}.\n"
    at = moment(hour)
    return write_version(settings.content, "ann", "x", version, text, published_at=at, **fields)


def data_of(site: dict[str, bytes], file: str):
    return json.loads(site[f"{BASE}/{file}.json"])["data"]


def ordinals(settings: Settings) -> dict[str, int]:
    """The number of each version after a build of the repo, which says the same everywhere."""
    site = build_files(settings, changed=[("ann", "x")])
    differences = compare(settings)
    assert not differences.missing and not differences.differing
    listed = {one["version"]: one["ordinal"] for one in data_of(site, "versions")}
    for version, ordinal in listed.items():
        if f"{BASE}/versions/{version}.json" in site:
            assert data_of(site, f"versions/{version}")["ordinal"] == ordinal
    for label in ("production", "latest"):
        if f"{BASE}/labels/{label}.json" in site:
            labelled = data_of(site, f"labels/{label}")
            assert labelled["ordinal"] == listed[labelled["version"]]
    return listed


def test_versions_that_store_none_are_numbered_by_time(three):
    assert ordinals(three) == {"2.0.0": 2, "1.1.0": 3, "1.0.0": 1}


def test_a_publication_changes_no_other_number(three):
    before = ordinals(three)
    write(three, "2.0.1", 40, ordinal=4)
    assert ordinals(three) == before | {"2.0.1": 4}


def test_an_older_version_made_by_hand_renumbers_what_stores_none(three):
    ordinals(three)
    write(three, "0.9.0", 0)
    assert ordinals(three) == {"0.9.0": 1, "1.0.0": 2, "2.0.0": 3, "1.1.0": 4}
    write(three, "0.9.1", 50, ordinal=1)
    assert ordinals(three) == {"0.9.1": 1, "0.9.0": 2, "1.0.0": 3, "2.0.0": 4, "1.1.0": 5}


def test_a_number_that_comes_or_goes(three):
    ordinals(three)
    write(three, "1.0.0", 10, ordinal=9)
    assert ordinals(three) == {"1.0.0": 9, "2.0.0": 1, "1.1.0": 2}
    write(three, "1.0.0", 10)
    assert ordinals(three) == {"2.0.0": 2, "1.1.0": 3, "1.0.0": 1}


def test_a_withdrawn_version_keeps_its_number(three):
    before = ordinals(three)
    write_withdrawn(three.content, "ann/x", "1.0.0")
    assert ordinals(three) == before
    write(three, "2.1.0", 60, ordinal=4)
    write_withdrawn(three.content, "ann/x", "2.1.0")
    assert ordinals(three) == before | {"2.1.0": 4}


def test_a_number_that_is_stored_twice_stops_a_full_build_and_keeps_the_repo_as_it_was(three):
    write(three, "1.0.0", 10, ordinal=5)
    build(three, index=False)
    before = read_tree(three.out)
    write(three, "1.1.0", 30, ordinal=5)
    reason = "ann/x/1.1.0.json: 1.1.0 has the ordinal 5, as 1.0.0 has"
    with pytest.raises(ContentError, match=reason):
        build(three, index=False, full=True)
    assert {file: data for file, data in read_tree(three.out).items() if "/1.1.0" not in file} == {
        file: data for file, data in before.items() if "/1.1.0" not in file
    }
    write(three, "1.1.0", 30, ordinal=6)
    assert ordinals(three) == {"1.0.0": 5, "1.1.0": 6, "2.0.0": 1}
