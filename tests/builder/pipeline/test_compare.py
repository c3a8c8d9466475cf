"""`compare` names what a build would write and remove, and writes nothing."""

import shutil
from pathlib import Path

import pytest

from builder.pipeline.build import build, compare
from tests.builder.pipeline.sites import stat_tree
from tests.support.catalogues import (
    build_files,
    freshly_built,
    read_tree,
    write_version,
    write_withdrawn,
)


def test_compare_finds_what_is_missing_differing_and_orphaned(small, tmp_path):
    content, missing = read_tree(tmp_path), compare(small).missing
    assert read_tree(tmp_path) == content
    assert missing == sorted(build_files(small))
    assert compare(small) == ([], [], [], [])
    Path(small.out, "ann.html").unlink()
    Path(small.out, "top.html").write_text("edited")
    Path(small.out, "stray.txt").write_text("x")
    Path(small.out, "ann/story/9.9.9.html").write_text("x")
    before = stat_tree(small.out)
    assert compare(small) == (
        ["ann.html"], ["top.html"], ["ann/story/9.9.9.html", "stray.txt"], []
    )  # fmt: skip
    assert stat_tree(small.out) == before
    build_files(small, full=True)
    assert build_files(small) == freshly_built(small)
    assert compare(small) == ([], [], [], [])


def test_compare_names_what_a_deletion_leaves_for_one_build(small):
    build_files(small)
    shutil.rmtree(f"{small.content}/bob/sql")
    build_files(small)
    found = compare(small)
    assert found[:3] == ([], [], [])
    assert {"bob/sql.html", "api/v1/repos/bob/sql/raw.txt"} <= {*found.leaving}
    assert not {*found.leaving} & build_files(small).keys()
    assert compare(small) == ([], [], [], [])


@pytest.mark.parametrize(
    "file",
    ["top/1.html", "tags/code/top.html", "tags/code/top/1.html", "api/v1/repos/ann/review/versions/"
     "1.0.0.diff", "api/v1/repos/ann/review/labels/x.txt", "api/v1/repos/_/top/2.json",
     "tags/none.html", "bob/sql/1.0.1.html", "x.html"],
)  # fmt: skip
def test_a_file_that_no_build_makes_is_an_orphan(small, file):
    build_files(small)
    Path(small.out, file).parent.mkdir(exist_ok=True, parents=True)
    Path(small.out, file).write_text("x")
    assert compare(small).orphaned == [file]


def test_compare_needs_no_state(small):
    build_files(small)
    Path(small.out, "stray.txt").write_text("x")
    Path(small.state, "build.sqlite3").unlink()
    assert compare(small).orphaned == ["stray.txt"]
    Path(small.state, "build.sqlite3").write_bytes(b"")  # what a first build that died leaves
    assert compare(small).orphaned == ["stray.txt"]
    shutil.rmtree(small.state)
    assert compare(small).orphaned == ["stray.txt"]
    assert not Path(small.state).exists()


def test_what_an_owner_without_prompts_might_have_had_is_no_difference(empty):
    write_version(empty.content, "ann", "x", "1.0.0", "Say x.\n")
    write_version(empty.content, "bob", "y", "1.0.0", "Say y.\n")
    build_files(empty)
    write_withdrawn(empty.content, "ann/x")
    for _ in range(3):
        build(empty, full=True, index=False)
        assert compare(empty)[:3] == ([], [], [])
