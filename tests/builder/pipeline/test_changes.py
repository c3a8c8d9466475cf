"""Files of a site that a change of the content adds, changes and removes."""

import os
import shutil
from pathlib import Path

import pytest

from builder.pipeline.build import build, compare
from tests.builder.pipeline.sites import change_everything
from tests.support.calls import once, watched
from tests.support.catalogues import (
    build_files,
    freshly_built,
    read_tree,
    write_version,
    write_withdrawn,
)

SKILLS = ".well-known/agent-skills/index.json"


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_a_version_that_is_withdrawn_after_it_was_listed(small, version):
    """A service that has no site yet does not end for it."""

    def withdraw() -> None:
        write_withdrawn(small.content, "ann/review", version)

    with watched(once("open", "ann/review/1.0.0.json", withdraw)):
        build(small, index=False)
    assert read_tree(small.out) == freshly_built(small)
    build(small, index=False)
    assert compare(small) == ([], [], [], [])


def test_the_page_about_the_api_shows_no_diff_that_the_next_build_removes(empty, settled):
    for version in ("1.0.0", "1.1.0"):
        write_version(empty.content, "ann", "x", version, f"Say {version}.")
    build(empty, index=False)
    for path in Path(empty.content, "ann/x").glob("1.0.0.*"):
        path.unlink()
    for _ in range(2):
        build(empty, index=False)
        assert compare(empty)[:3] == ([], [], [])


def test_prompts_that_no_build_saw_before_their_withdrawal_count_for_the_serial(small, settled):
    build(small, index=False)
    write_version(small.content, "zoe", "gone", "1.0.0", "Hi.")
    write_withdrawn(small.content, "zoe/gone", "1.0.0")
    build(small, index=False)
    build(small, index=False)
    assert read_tree(small.out) == freshly_built(small)
    shutil.rmtree(f"{small.content}/zoe/gone")
    build(small, index=False)
    build(small, index=False)
    assert read_tree(small.out) == freshly_built(small)


def test_folders_of_others_are_left_and_skills_without_a_prompt_go(small):
    build_files(small)
    others = (".well-known/acme-challenge/token", ".git/config", "ann/.git/config")
    strays = (f"ann/gone/{SKILLS}", f"ann/review/9.0.0/{SKILLS}", f"nobody/{SKILLS}")
    for file in (*others, *strays):
        path = Path(small.out, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    # A state that is lost has every file of the site looked at.
    shutil.rmtree(small.state)
    build_files(small)
    left = build_files(small)
    assert {*others} <= {*left} and not {*strays} & {*left}
    assert {file: left[file] for file in left.keys() - {*others}} == freshly_built(small)


def test_a_new_version_writes_few_files(small):
    build_files(small)
    for number in range(30):
        write_version(small.content, "bob", f"r{number}", "1.0.0", "x")
    build_files(small)
    before = read_tree(small.out)
    write_version(small.content, "ann", "story", "1.0.1", "Tell a short story.\n")
    build_files(small, changed=[("ann", "story")])
    changed = {file for file, data in read_tree(small.out).items() if before.get(file) != data}
    assert changed == {
        "api/v1/repos/ann/story/versions/1.0.1.txt",
        "api/v1/repos/ann/story/versions/1.0.1.body.txt", "api/v1/repos/ann/story/body.txt",
        "api/v1/repos/ann/story/versions/1.0.1.json",
        "api/v1/repos/ann/story/versions/1.0.1.diff", "ann/story/1.0.1.html", "ann/story.html",
        "ann/story/versions.html", "ann/story/compare.html",
        "api/v1/repos/ann/story.json", "api/v1/repos/ann/story/versions.json",
        "api/v1/repos/ann/story/raw.txt", "api/v1/users/ann.json", "ann.html", "index.html",
        "api/v1/repos.json", "api/v1/repos/_/top/1.json", "api/v1/repos/_/new/1.json",
        "api/v1/repos/_/trending/1.json", "top.html", "new.html", "trending.html",
        "api/v1/catalogue.jsonl", "api/v1/hub.json",
        "feed.xml", "ann/feed.xml", "ann/story/feed.xml", "sitemap-1.xml",
        "index.html.gz", "api/v1/catalogue.jsonl.gz",
        "ann/story/SKILL.md", "ann/marketplace.json", f"ann/story/{SKILLS}", f"ann/{SKILLS}",
        "api/v1/repos/ann/story/versions/1.0.1.skill.md",
        "api/v1/repos/ann/story/versions/1.0.1.skill.zip",
    }  # fmt: skip


def test_what_hosts_read_in_the_site_is_left_alone(small):
    build_files(small)
    for name in ("_headers", "_redirects", ".nojekyll", "_other"):
        Path(small.out, name).write_text("x")
    for _ in range(3):
        build_files(small, full=True)
    left = [name for name in os.listdir(small.out) if name.startswith(("_", "."))]
    assert sorted(left) == [".nojekyll", "_headers", "_redirects"]


@pytest.mark.parametrize("kind", [list, tuple, set, iter])
def test_the_hint_may_be_any_iterable(small, kind):
    build_files(small)
    write_version(small.content, "ann", "story", "1.0.1", "Tell a short story.\n")
    hint = [("ann", "story"), ("bob", "sql")]
    assert build_files(small, changed=kind(hint)) == freshly_built(small)


@pytest.mark.parametrize("is_full", [False, True], ids=["incremental", "full"])
def test_orphans_go_one_build_later(small, is_full):
    before = build_files(small)
    shutil.rmtree(f"{small.content}/bob")
    after = build_files(small, full=is_full)
    expected = freshly_built(small)
    assert after.keys() == before.keys()
    assert {file: after[file] for file in expected} == expected
    assert build(small, index=False, full=is_full).removed == len(before) - len(expected)
    assert read_tree(small.out) == expected
    assert not Path(small.out, "bob").exists()


def test_what_comes_back_is_as_it_was(small, tmp_path):
    """A repo that was away for one build, and a site that was put in the place of another."""
    before = build_files(small)
    shutil.copytree(small.out, tmp_path / "backup")
    Path(small.content, "ann/story").rename(tmp_path / "story")
    assert build_files(small) != before
    (tmp_path / "story").rename(f"{small.content}/ann/story")
    for _ in range(2):
        assert build_files(small) == before
    change_everything(small.content)
    build_files(small)
    shutil.rmtree(small.out)
    (tmp_path / "backup").rename(small.out)
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_other_settings_make_another_site(small):
    build_files(small)
    other = small._replace(base_url="https://elsewhere.example/x", site_name="Else", queries=True)
    assert build_files(other) == freshly_built(other)
    assert build_files(small) == freshly_built(small)
