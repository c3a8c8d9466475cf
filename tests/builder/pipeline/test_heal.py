"""A site that has lost files gets them again, by builds that have nothing else to do."""

import os
import shutil
from pathlib import Path

import pytest

from builder.pipeline.build import build, compare
from builder.pipeline.rebuild import Rebuilder
from tests.support.catalogues import read_tree, wait_for_tick, write_label, write_withdrawn
from tests.support.servers import wait_until

REPO = "api/v1/repos/ann/review"

LOST = [
    f"{REPO}/versions/1.0.0.txt", f"{REPO}/versions/1.1.0.diff", f"{REPO}.json",
    f"{REPO}/labels/production.json", f"{REPO}/labels/production/history.json",
    f"{REPO}/versions/1.1.0.skill.zip", "ann/review/SKILL.md", "ann.html", "api/v1/users/ann.json",
    "api/v1/repos/_/new/1.json", "api/v1/repos.json", "top.html", "assets/style.css",
    "index.html.gz", "api/v1/tags.json", "sitemap-1.xml", "sitemap.xml", "api/v1/catalogue.jsonl",
    "feed.xml", "bob/sql/withdrawn.html", "api/v1/withdrawn.jsonl", "llms.txt",
]  # fmt: skip


@pytest.fixture
def whole(small, monkeypatch):
    """A built site, and its files."""
    # Otherwise a build reads young files of the content again, and writes what follows from them.
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 0)
    write_label(small.content, "ann/review", 1, "production", "1.0.0")
    write_withdrawn(small.content, "bob/sql")
    wait_for_tick(small.content)
    build(small, index=False)
    build(small, index=False)
    files = read_tree(small.out)
    assert {*LOST} <= {*files}
    return small, files


@pytest.mark.parametrize("file", LOST)
def test_one_file(whole, file):
    settings, files = whole
    Path(settings.out, file).unlink()
    report = build(settings, index=False, check_seconds=60)
    assert (report.lost, report.is_checked) == (1, True)
    assert read_tree(settings.out) == files
    again = build(settings, index=False, check_seconds=60)
    assert (again.lost, again.written) == (0, 0)


def test_all_of_an_owner_and_of_lists_in_slices(whole):
    settings, files = whole
    for folder in ("api/v1/repos/ann", "ann", "api/v1/tags", "assets"):
        shutil.rmtree(Path(settings.out, folder))
    # A slice without time looks at one object, and the next one goes on after it.
    while not build(settings, changed=[], index=False, check_seconds=1e-9).is_checked:
        pass
    build(settings, index=False)
    assert read_tree(settings.out) == files
    assert not any(compare(settings))


def test_only_changed_folders_are_listed(whole, monkeypatch):
    settings, _ = whole
    listed = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or listdir(path))
    # The last change of hub.json is later than that of any folder.
    wait_for_tick(settings.state)
    os.utime(Path(settings.out, "api/v1/hub.json"))
    build(settings, index=False)
    listed.clear()
    build(settings, index=False, check_seconds=60)
    assert listed == []
    Path(settings.out, f"{REPO}/raw.txt").unlink()
    assert build(settings, index=False, check_seconds=60).lost == 1
    assert f"{settings.out}/{REPO}" in listed
    assert not any(f"{settings.out}/bob" in one for one in listed)


def test_a_service_heals_after_its_start(whole):
    settings, files = whole
    for file in LOST:
        Path(settings.out, file).unlink()
    with Rebuilder(settings, lambda outcome: None):
        wait_until(lambda: read_tree(settings.out) == files, "the lost files")
