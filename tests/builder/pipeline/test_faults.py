"""Faults of the content or the settings are named, and the site stays as it was."""

import shutil
from pathlib import Path

import pytest

from builder.model.errors import ContentError
from builder.pipeline.build import build, compare
from tests.support.calls import once, watched
from tests.support.catalogues import (
    build_files,
    edit_record,
    read_tree,
    write_version,
    write_withdrawn,
)


def test_a_fault_is_reported_though_a_version_was_withdrawn(small):
    def spoil() -> None:
        write_withdrawn(small.content, "ann/review", "1.0.0")
        edit_record(Path(small.content, "ann/review/1.1.0.json"), sha256="0" * 64)

    with (
        watched(once("open", "ann/review/1.0.0.json", spoil)),
        pytest.raises(ContentError, match=r"ann/review/1\.1\.0\.md: changed after publication"),
    ):
        build(small, index=False)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "changed after publication: .*; restore it from a backup"),
        (b"longer than it was", "changed after publication: .*; restore it from a backup"),
        (None, "missing; restore it from a backup"),
    ],
)
def test_an_edited_file_of_a_version_is_named(small, data, fault):
    write_version(small.content, "ann", "review", "1.2.0", "Text.", {"a.sh": b"ls\n"})
    build(small, index=False)
    file = Path(small.content, "ann/review/1.2.0.files/a.sh")
    file.unlink() if data is None else file.write_bytes(data)
    with pytest.raises(ContentError, match=rf"1\.2\.0\.files/a\.sh: {fault}"):
        build(small, index=False)


BREAKS = {
    "hash": lambda root: Path(root, "ann/review/1.1.0.md").write_text("Edited.\n"),
    "record": lambda root: Path(root, "ann/review/1.1.0.json").write_text("{"),
    "no text": lambda root: Path(root, "ann/review/1.1.0.md").unlink(),
    "profile": lambda root: Path(root, "ann/owner.json").write_text("{}"),
    "home": lambda root: Path(root, "home.md").write_bytes(b"\xff"),
    "link": lambda root: Path(root, "ann/link").symlink_to(root),
    "owner name": lambda root: Path(root, "Bad").mkdir(),
    "not utf-8": lambda root: write_version(root, "ann", "review", "1.2.0", b"\xff"),
}


@pytest.mark.parametrize("break_content", BREAKS.values(), ids=BREAKS)
def test_with_a_fault_in_the_content_the_site_stays_as_it_was(small, tmp_path, break_content):
    before = build_files(small)
    shutil.copytree(small.content, tmp_path / "sound", symlinks=True)
    break_content(small.content)
    for options in ({}, {"full": True}):
        with pytest.raises(ContentError):
            build(small, index=False, **options)
        assert read_tree(small.out) == before
    with pytest.raises(ContentError):
        compare(small)
    shutil.rmtree(small.content)
    (tmp_path / "sound").rename(small.content)
    assert build_files(small) == before


def test_the_faults_that_several_processes_find_are_named(empty, monkeypatch):
    monkeypatch.setattr("builder.emit.pool.REPOS_PER_PROCESS_MIN", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for number in range(60):
        write_version(empty.content, "ann", f"r{number}", "1.0.0", f"x{number}")
    for number in range(0, 60, 7):
        Path(empty.content, f"ann/r{number}/1.0.0.md").write_text("edited")
    with pytest.raises(ContentError) as caught:
        build(empty, index=False)
    assert len(caught.value.faults) == 9


def test_data_is_built_at_any_depth_that_is_read(empty):
    path = write_version(empty.content, "ann", "deep", "1.0.0", "x")

    def nest(levels):
        value = None
        for _ in range(levels):
            value = {"a": [value]}
        edit_record(path, parameters={"a": value}, variables=[{"name": "v", "default": value}])

    nest(20)
    assert b'"a":[{"a":[' in build_files(empty)["api/v1/repos/ann/deep.json"]
    for levels in (30, 200, 300):
        nest(levels)
        with pytest.raises(ContentError, match="deep"):
            build_files(empty)
