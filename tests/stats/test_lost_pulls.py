"""Counts that are lost, restored, replaced or damaged, and faults in the content beside them."""

import json
import re
import shutil
from pathlib import Path

import pytest

from builder.model.errors import ContentError, PullsError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.stats.pulls import PULLS_FILE, Pulls
from tests.stats.counting import count, data, listed, pulls_path, remove_pulls, shown
from tests.support.catalogues import (
    build_files,
    edit_record,
    freshly_built,
    read_tree,
    write_version,
)

# Files count as settled at once, so what did not change is not even looked at.
pytestmark = pytest.mark.usefixtures("settled")


def restore_and_count(settings: Settings, backup: bytes) -> None:
    pulls_path(settings).write_bytes(backup)
    # Now the serial is that which the site shows, or higher.
    count(settings, {"bob/sql": 1})
    count(settings, {"bob/sql": 1})


def put_another(settings: Settings, _: bytes) -> None:
    remove_pulls(settings)
    for _ in range(5):
        count(settings, {"ann/review": 1})


@pytest.mark.parametrize(
    "replace",
    [
        lambda settings, backup: pulls_path(settings).write_bytes(backup),
        restore_and_count,
        put_another,
    ],
    ids=["restored", "restored and counted on", "another"],
)
def test_other_counts_than_those_that_are_shown(small, replace):
    count(small, {"ann/story": 1})
    backup = pulls_path(small).read_bytes()
    count(small, {"ann/story": 2, "ann/review": 1})
    count(small, {"ann/story": 2})
    build_files(small)
    assert shown(small) == {"ann/story": 5, "ann/review": 1, "bob/sql": 0}
    replace(small, backup)
    after = build_files(small, changed=[])
    with Pulls(small.state) as pulls:
        assert shown(small) == {repo_id: pulls.of(repo_id).total for repo_id in shown(small)}
    assert shown(small)["ann/story"] < 2
    assert after == freshly_built(small)


def test_as_many_pulls_on_other_days(four):
    count(four, {"ann/a": 10}, day=0)
    build_files(four)
    assert listed(four, "trending") == ["bob/c", "ann/a", "ann/b", "bob/d"]
    remove_pulls(four)
    count(four, {"ann/a": 10}, day=14)
    assert build_files(four, changed=[]) == freshly_built(four)
    assert listed(four, "trending") == ["ann/a", "bob/c", "ann/b", "bob/d"]


def test_publishers_do_not_wait_until_damaged_counts_are_fixed(small):
    build(small)
    count(small, {"ann/review": 3, "bob/sql": 2})
    build(small)
    path = pulls_path(small)
    whole = path.read_bytes()
    path.write_bytes(b"rubbish" + whole[7:])
    write_version(small.content, "bob", "sql", "1.0.1", "Another text.\n")
    write_version(small.content, "bob", "new", "1.0.0", "A new repo.\n")
    assert build(small, changed=[("bob", "sql"), ("bob", "new")]).is_settled
    records = {name: json.loads(read_tree(small.out)[f"api/v1/repos/bob/{name}.json"])["data"]
               for name in ("sql", "new")}  # fmt: skip
    assert (records["sql"]["latest_version"], records["sql"]["pulls"]) == ("1.0.1", 2)
    assert (records["new"]["latest_version"], records["new"]["pulls"]) == ("1.0.0", 0)
    with pytest.raises(PullsError, match=PULLS_FILE):
        build(small)
    with pytest.raises(PullsError, match=PULLS_FILE):
        build(small._replace(site_name="Another"), changed=[("bob", "sql")])  # all is to be made
    path.write_bytes(whole)
    build(small)
    assert read_tree(small.out) == freshly_built(small)


def test_damaged_counts_are_reported_and_the_site_stays(small):
    count(small, {"ann/story": 2})
    before = build_files(small)
    sound = pulls_path(small).read_bytes()
    pulls_path(small).write_bytes(b"SQLite format 3\0" + b"?" * 4096)
    for options in ({}, {"full": True}):
        with pytest.raises(PullsError, match=PULLS_FILE):
            build_files(small, **options)
        assert read_tree(small.out) == before
    assert build_files(small, changed=[]) == before
    pulls_path(small).write_bytes(sound)
    assert build_files(small) == before


def edit_tags(settings: Settings) -> None:
    edit_record(Path(settings.content, "ann/story/1.0.0.json"), title="Other", tags=["fresh"])


def remove_repo(settings: Settings) -> None:
    shutil.rmtree(f"{settings.content}/bob/sql")


@pytest.mark.parametrize("change", [edit_tags, remove_repo])
def test_content_without_a_request_is_left_to_the_next_build(small, change):
    build_files(small)
    count(small, {"ann/story": 1})
    change(small)
    report = build(small, changed=[], index=False)
    # That build has noticed the loss, so the next one needs no hint either.
    assert not report.is_settled
    assert data(small, "repos/ann/review")["pulls"] == 0
    assert build(small, changed=[], index=False).is_settled
    assert build_files(small, changed=[]) == freshly_built(small)


@pytest.mark.parametrize("file", ["ann/story/1.0.0.md", "ann/owner.json"])
def test_a_fault_in_one_repo_is_reported_and_the_others_get_their_pulls(small, file):
    build_files(small)
    count(small, {"ann/story": 1, "bob/sql": 2})
    faulty = Path(small.content, file)
    sound = faulty.read_bytes()
    faulty.write_bytes(b"{")
    for _ in range(2):
        with pytest.raises(ContentError, match=re.escape(file)):
            build_files(small, changed=[])
        assert data(small, "repos/bob/sql")["pulls"] == data(small, "users/bob")["pulls"] == 2
        assert data(small, "repos/ann/story")["pulls"] == (None if file.endswith(".md") else 1)
    faulty.write_bytes(sound)
    assert build_files(small, changed=[]) == freshly_built(small)
