"""Files that a build makes of labels and of their moves."""

import json
import re
import shutil
from pathlib import Path

import pytest

from builder.model.errors import ContentError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.pipeline.watch import changed_repos
from builder.render.prompt_pages import MOVES_MAX
from builder.store.site import ONE_SECOND_NS
from tests.support.calls import once, watched
from tests.support.catalogues import (
    build_files,
    edit_record,
    freshly_built,
    moment,
    read_tree,
    write_label,
    write_version,
)

REPO = "ann/review"
API = f"api/v1/repos/{REPO}"


@pytest.fixture
def labelled(small: Settings, settled: None) -> Settings:
    """A small catalogue with one label; files count as settled at once."""
    move(small, 1, "production", "1.0.0", note="First.")
    return small


def move(settings: Settings, number: int, label: str, version: str | None, **fields) -> None:
    write_label(settings.content, REPO, number, label, version, **fields)


def built(settings: Settings) -> dict[str, bytes]:
    """Build what has changed in the repo with labels."""
    return build_files(settings, changed=[tuple(REPO.split("/"))])


def data(site: dict[str, bytes], file: str):
    return json.loads(site[f"{API}{file}.json"])["data"]


def test_the_rest_of_the_site_is_as_without_labels(labelled):
    site = build_files(labelled)
    shutil.rmtree(f"{labelled.content}/{REPO}/labels")
    without = freshly_built(labelled)
    changed = {file for file in without if site[file] != without[file]}
    assert changed == {
        f"{API}.json", f"{API}/versions.json", f"{REPO}.html", f"{REPO}/1.0.0.html",
        f"{REPO}/feed.xml", f"{REPO}/versions.html", "docs.html", "docs.html.gz",
        "api/v1/catalogue.jsonl", "api/v1/catalogue.jsonl.gz",  # which have the names of labels
    }  # fmt: skip
    assert all("/labels" in file for file in site.keys() - without.keys())
    assert not any("/labels/latest" in file for file in site)
    assert b"label" not in without[f"{API}.json"] + without[f"{API}/versions.json"]


def test_a_move_writes_few_files(labelled):
    before = build_files(labelled)
    move(labelled, 2, "production", "1.1.0")
    after = built(labelled)
    changed = {file for file, bytes_ in after.items() if before.get(file) != bytes_}
    assert changed == {
        f"{API}.json", f"{API}/versions.json", f"{API}/labels.json", f"{REPO}.html",
        f"{API}/labels/production.json", f"{API}/labels/production.txt",
        f"{API}/labels/production.body.txt", f"{API}/labels/production/history.json",
        f"{REPO}/labels/production/SKILL.md",
        f"{REPO}/labels/production/.well-known/agent-skills/index.json",
        f"{REPO}/1.0.0.html", f"{REPO}/1.1.0.html",
        f"{REPO}/feed.xml", f"{REPO}/versions.html",
        # Whose examples are of this prompt.
        "docs.html", "docs.html.gz",
    }  # fmt: skip
    assert before.keys() == after.keys()
    assert after == freshly_built(labelled)
    assert build(labelled).rendered == 0
    assert build(labelled, full=True).written == 0


def test_a_label_that_comes_back_at_once_is_not_taken_for_what_it_was(labelled):
    move(labelled, 1, "production", "1.0.0")
    write_version(labelled.content, "ann", "review", "1.1.0", "Review {{diff}}.\n")
    build_files(labelled)
    paths = [Path(labelled.out, f"{API}/labels/production.{suffix}") for suffix in ("json", "txt")]
    seen = [path.stat() for path in paths]
    move(labelled, 2, "production", None)
    built(labelled)
    move(labelled, 3, "production", "1.1.0")
    built(labelled)
    for path, before in zip(paths, seen, strict=True):
        after = path.stat()
        # nginx makes its ETag of this and the size, which may be the same.
        assert after.st_mtime_ns // ONE_SECOND_NS > before.st_mtime_ns // ONE_SECOND_NS


def test_what_a_build_that_died_wrote_of_a_label_is_removed(labelled):
    build_files(labelled)
    move(labelled, 2, "lost", "1.0.0")

    def die() -> None:
        raise KeyboardInterrupt

    with watched(once("rename", f"{API}.json", die)), pytest.raises(KeyboardInterrupt):
        built(labelled)
    assert Path(labelled.out, f"{API}/labels/lost.json").exists()
    Path(labelled.content, REPO, "labels/2.json").unlink()
    built(labelled)
    assert built(labelled) == freshly_built(labelled)


@pytest.mark.parametrize("fields", [{"version": "9.0.0"}, {"label": "latest"}, {"at": "x"}])
def test_a_fault_leaves_the_repo_as_it_was(labelled, fields):
    before = build_files(labelled)
    move(labelled, 2, "production", "1.1.0")
    edit_record(Path(labelled.content, REPO, "labels/2.json"), **fields)
    with pytest.raises(ContentError, match=r"ann/review/labels/2\.json"):
        built(labelled)
    assert read_tree(labelled.out) == before
    with pytest.raises(ContentError, match=r"ann/review/labels/2\.json"):
        build(labelled, full=True)
    edit_record(
        Path(labelled.content, REPO, "labels/2.json"), label="production", version="1.1.0",
        at=moment(10_002),
    )  # fmt: skip
    assert built(labelled) == freshly_built(labelled)


def test_the_feed_notes_moves(labelled):
    move(labelled, 2, "production", "1.1.0", by="bob", note="<Better> & faster")
    move(labelled, 3, "production", None)
    feed = build_files(labelled)[f"{REPO}/feed.xml"].decode()
    titles = [part.partition("</title>")[0] for part in feed.split("<title>")[2:]]
    assert titles == [
        "ann/review production removed", "ann/review production moved from 1.0.0 to 1.1.0",
        "ann/review production is 1.0.0", "ann/review 1.1.0", "ann/review 1.0.0",
    ]  # fmt: skip
    assert "<author><name>bob</name></author>" in feed
    assert "<summary>&lt;Better&gt; &amp; faster</summary>" in feed
    assert f"<updated>{moment(10_003)}</updated>" in feed.partition("<entry>")[0]
    assert [f"#move-production-{number}</id>" in feed for number in (1, 2, 3, 4)] == [
        True, True, True, False,
    ]  # fmt: skip


def test_pages_show_labels_and_who_moved_them(labelled):
    move(labelled, 2, "canary", "1.1.0", note='<script>alert("1")</script>')
    site = build_files(labelled)
    page = site[f"{REPO}/versions.html"].decode()
    assert '<th scope="row" id="move-canary-1">' in page
    assert "&lt;script&gt;alert" in page and "<script>alert" not in page
    assert "canary</span>" in site[f"{REPO}/1.1.0.html"].decode()
    assert "production</span>" not in site[f"{REPO}/1.1.0.html"].decode()
    # The labels of the latest version, and the first one of another.
    facts = re.sub("<[^>]+>", " ", site[f"{REPO}.html"].decode().partition("<dl>")[2])
    assert (
        facts.split()[:9]
        == "Version 1.1.0 Label canary Labels Label production 1.0.0 Published".split()
    )
    assert "Labels" not in site["ann/story.html"].decode()


def test_pages_and_feeds_have_a_bound(labelled):
    shown = MOVES_MAX
    for number in range(2, 2 + shown):
        move(labelled, number, "production", ("1.0.0", "1.1.0")[number % 2])
    for number in range(100, 100 + 2 * shown, 2):
        move(labelled, number, f"label-{number}", "1.0.0")
        move(labelled, number + 1, f"label-{number}", None)
    site = build_files(labelled)
    assert "label-100" not in site[f"{REPO}.html"].decode()
    assert site[f"{REPO}/versions.html"].count(b'<th scope="row" id="move-') == MOVES_MAX
    assert len(data(site, "/labels/production/history")) == shown + 1
    assert site[f"{REPO}/feed.xml"].count(b"<entry>") == 50


def test_a_watch_knows_whose_labels_changed():
    paths = ["/c/ann/review/labels/1.json", "/c/ann/review/labels", "/c/bob/sql/1.0.0.json"]
    assert changed_repos("/c", paths) == {("ann", "review"), ("bob", "sql")}
    for path in ("/c/ann", "/c", "/c/.files"):
        assert changed_repos("/c", [*paths, path]) is None


def test_a_watch_knows_whose_files_changed():
    folders = (".publish.files.tmp", "1.0.0.files", "1.0.0.files/labels/a")
    paths = [f"/c/ann/lint/{folder}/run.sh" for folder in folders]
    assert changed_repos("/c", paths) == {("ann", "lint")}
