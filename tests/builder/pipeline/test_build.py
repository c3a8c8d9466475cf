"""Builds as a whole: what is written, in which order, and what a failure leaves."""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from builder.model import routes
from builder.model.errors import ContentError, OperatorError
from builder.model.names import Version
from builder.model.routes import PAGE_SIZE, match_file
from builder.model.settings import Settings
from builder.pipeline.build import build, compare
from builder.pipeline.context import Visible
from builder.store import database
from builder.store.site import Site
from builder.store.state import State
from builder.store.state.schema import INDEXES
from builder.store.withdrawn_files import read_parts
from tests.support.catalogues import (
    BASE_URL,
    build_files,
    edit_record,
    moment,
    read_tree,
    settings_in,
    write_label,
    write_owner,
    write_small_catalogue,
    write_version,
    write_withdrawn,
)
from tests.support.depth import some

SKILLS = ".well-known/agent-skills/index.json"


def freshly_built(settings: Settings) -> dict[str, bytes]:
    """What a full build of the same content into an empty folder gives."""
    folder = f"{os.path.dirname(settings.out)}/fresh"
    shutil.rmtree(folder, ignore_errors=True)
    fresh = settings._replace(out=f"{folder}/site", state=f"{folder}/state")
    return build_files(fresh)


def answer(settings: Settings, file: str):
    """A JSON file of the site."""
    return json.loads(Path(settings.out, file).read_bytes())


def stat_tree(root: str) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in Path(root).rglob("*")
    }


def test_two_builds_of_the_same_content_are_identical(small, tmp_path):
    other = settings_in(tmp_path / "other")
    # Other times and another order of making the files.
    for owner in ("bob", "ann"):
        shutil.copytree(f"{small.content}/{owner}", f"{other.content}/{owner}")
    assert build_files(small) == build_files(other)


def test_the_body_is_that_of_the_records_or_parsed_once_a_version(empty, yaml_work):
    front = "---\ntitle: Grüße\n---\n"
    path = write_version(empty.content, "ann", "x", "1.0.0", f"{front}Say {{{{what}}}}.\n")
    before = build_files(empty)
    assert len(yaml_work.loaded) == 1
    for file in ("api/v1/repos/ann/x.json", "api/v1/repos/ann/x/versions/1.0.0.json"):
        record = json.loads(before[file])["data"]
        assert list(record)[list(record).index("content") + 1] == "body"
        assert (record["content"], record["body"]) == (
            f"{front}Say {{{{what}}}}.\n", "Say {{what}}.\n",
        )  # fmt: skip
    edit_record(path, front_matter_bytes=len(front.encode()))
    assert freshly_built(empty) == before
    assert len(yaml_work.loaded) == 1
    # What the record says is right, whatever the text looks like.
    edit_record(path, front_matter_bytes=0)
    build(empty, index=False)
    assert answer(empty, "api/v1/repos/ann/x.json")["data"]["body"].startswith("---")
    assert len(yaml_work.loaded) == 1


def test_every_file_is_one_of_the_table_and_every_route_has_a_file(small):
    for name in ("a", "b", "c"):
        write_version(small.content, "ann", name, "1.0.0", "x", tags=["code"])
    write_label(small.content, "ann/a", 1, "production", "1.0.0")
    write_version(small.content, "ann", "a", "1.1.0", "y", tags=["code"])
    write_withdrawn(small.content, "ann/a", "1.1.0")
    write_withdrawn(small.content, "ann/c")
    found = {match_file(file).route.name for file in build_files(small._replace(langfuse=True))}
    # The later pages of lists take more than fifty repos.
    assert {route.name for route in routes.ROUTES} - found == {"list_pages", "tag_pages"}


@pytest.fixture
def settled(monkeypatch) -> None:
    """Files count as settled at once, so that what did not change is not even looked at."""
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 0)


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_a_version_that_is_withdrawn_after_it_was_listed(small, monkeypatch, version):
    """A service that has no site yet does not end for it."""

    def withdraw_first(*args):
        monkeypatch.undo()
        write_withdrawn(small.content, "ann/review", version)
        return read_parts(*args)

    monkeypatch.setattr("builder.write.repo.read_parts", withdraw_first)
    assert build_files(small) == freshly_built(small)
    build(small, index=False)
    assert compare(small) == ([], [], [], [])


def test_a_fault_is_told_though_something_was_withdrawn(small, monkeypatch):
    def spoil_first(*args):
        monkeypatch.undo()
        write_withdrawn(small.content, "ann/review", "1.0.0")
        edit_record(Path(small.content, "ann/review/1.1.0.json"), sha256="0" * 64)
        return read_parts(*args)

    monkeypatch.setattr("builder.write.repo.read_parts", spoil_first)
    with pytest.raises(ContentError, match=r"ann/review/1\.1\.0\.md: changed after publication"):
        build(small, index=False)


def test_nothing_changed_nothing_written(small, settled):
    build(small)
    before = stat_tree(small.out)
    report = build(small)
    assert (report.rendered, report.written, report.removed, report.indexed) == (0, 0, 0, 0)
    assert report.changed == ()
    assert stat_tree(small.out) == before
    assert build(small, full=True).written == 0


def test_a_full_build_leaves_a_state_with_its_indexes(small):
    """Without them all is right, and the next builds of a large catalogue are slow."""
    build(small)
    with contextlib.closing(sqlite3.connect(State.path_in(small.state))) as db:
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert {*re.findall(r"INDEX (\w+)", INDEXES)} <= there


def test_a_report_names_what_has_changed(small, settled):
    build(small, index=False)
    write_owner(small.content, "bob")
    write_withdrawn(small.content, "ann/review")
    shutil.rmtree(f"{small.content}/ann/story")
    changed = build(small, index=False).changed
    assert {*changed} == {("bob", None), ("ann", "review"), ("ann", "story")}


def test_the_report_counts(small):
    report = build(small)
    assert (report.repos, report.versions, report.rendered, report.indexed) == (3, 4, 3, 3)
    assert report.written == len(read_tree(small.out))
    assert (report.unchanged, report.removed) == (0, 0)


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
        "ann/story/SKILL.md", "ann/story/1.0.1/SKILL.md", "ann/marketplace.json",
        f"ann/story/{SKILLS}", f"ann/story/1.0.1/{SKILLS}", f"ann/{SKILLS}",
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


def test_an_empty_hint_changes_nothing(small):
    before = build_files(small)
    assert build_files(small, changed=[]) == before


def test_the_bytes_of_a_prompt_are_those_published(empty):
    texts = ["\ufeffBOM", "CR\r\nLF\n", "no newline", "---\ntitle: x\n---\nbody", "<b>&amp;\u2028"]
    for number, text in enumerate(texts):
        write_version(empty.content, "ann", f"p{number}", "1.0.0", text)
    site = build_files(empty)
    for number, text in enumerate(texts):
        assert site[f"api/v1/repos/ann/p{number}/raw.txt"] == text.encode()
        assert site[f"api/v1/repos/ann/p{number}/versions/1.0.0.txt"] == text.encode()
        assert answer(empty, f"api/v1/repos/ann/p{number}.json")["data"]["content"] == text


def test_versions_are_listed_newest_first(empty):
    for version in ("1.9.0", "1.10.0", "1.0.0", "2.0.0"):
        write_version(empty.content, "ann", "x", version, f"Text {version}\n")
    build_files(empty)
    versions = answer(empty, "api/v1/repos/ann/x/versions.json")
    shown = [(one["version"], one["previous"]) for one in versions["data"]]
    assert shown == [("2.0.0", "1.10.0"), ("1.10.0", "1.9.0"), ("1.9.0", "1.0.0"), ("1.0.0", None)]
    assert versions["meta"]["total"] == versions["meta"]["page_size"] == 4


LINK = re.compile(r'(?:href|src|action)="([^"]*)"')


@pytest.mark.parametrize("base_url", ["https://hub.example/a/prompts", "http://127.0.0.1:8000"])
def test_every_link_starts_with_the_base_url(tmp_path, base_url):
    settings = settings_in(tmp_path, base_url)
    write_small_catalogue(settings.content)
    for number in range(60):
        write_version(settings.content, "cyd", f"r{number}", "1.0.0", "x", tags=["many"])
    site = build_files(settings)
    files = {"/" + file for file in site}
    for file, data in site.items():
        if file.endswith(".html"):
            for link in LINK.findall(data.decode()):
                assert_leads_somewhere(link, settings, files)
        elif file.endswith(".json") and file != "api/v1/openapi.json":
            for key, link in urls_in(json.loads(data)):
                if key not in ("publish_url", "base_url"):
                    assert_leads_somewhere(link, settings, files)
                assert link.startswith(base_url)
    hub = answer(settings, "api/v1/hub.json")["data"]
    assert hub["base_url"] == base_url


def assert_leads_somewhere(link: str, settings: Settings, files: set[str]) -> None:
    if link.startswith("#") or link == "https://ann.example":
        return
    origin = settings.base_url.removesuffix(settings.base_path)
    path = link.removeprefix(origin)
    assert path.startswith(settings.base_path + "/"), link
    path = urlsplit(path.removeprefix(settings.base_path)).path
    found = routes.match_url(path)
    assert found is not None, link
    assert "/" + found.file in files, link


def urls_in(value):
    """Each (key, URL) of a JSON value, but for the profile's own."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key.endswith("url") and item and item != "https://ann.example":
                yield key, item
            yield from urls_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from urls_in(item)


def test_hostile_text_stays_text_on_every_page(empty):
    script = "<script>alert(1)</script>"
    quote = "\"'><img src=x onerror=alert(1)>"
    write_owner(empty.content, "ann", name=script, bio=quote, url=f"https://x.example/{quote}")
    for version in ("1.0.0", "1.1.0"):
        write_version(
            empty.content, "ann", "x", version, f"{script}{quote}{version}", title=script,
            description=quote, changelog=script, license=quote, parameters={quote: [script]},
            variables=[{"name": "a", "description": script, "default": quote, "example": script,
                        "enum": [quote]}],
        )  # fmt: skip
    for file, data in build_files(empty).items():
        if file.endswith(".html"):
            assert (
                b"<script>" not in data and b"alert(1)<" not in data and b"<img src=x" not in data
            )
            assert b"\"'>" not in data


def recorded_writes(monkeypatch) -> list[str]:
    """The files that builds of this process write from now on, in order."""
    written: list[str] = []
    write = Site.write

    def record(self, file, data, **options):
        written.append(file)
        write(self, file, data, **options)

    monkeypatch.setattr(Site, "write", record)
    return written


SCOPE_ORDER = ["version", "label", "repo", "owner", "tag", "list"]


def test_a_pointer_is_written_after_what_it_points_to(small, monkeypatch):
    written = recorded_writes(monkeypatch)
    write_label(small.content, "ann/review", 1, "production", "1.0.0")
    build_files(small)
    assert written[-1] == "api/v1/hub.json"
    assert written[-3:-1] == ["api/v1/catalogue.jsonl", "api/v1/catalogue.jsonl.gz"]
    found = [match_file(file) for file in written]
    place = {file: index for index, file in enumerate(written)}
    for match in found:
        if match.route.scope in ("repo", "label"):
            versions = [
                place[other.file] for other in found
                if other.route.scope in SCOPE_ORDER[: SCOPE_ORDER.index(match.route.scope)]
                and all(other.params[key] == match.params[key] for key in ("owner", "name"))
            ]  # fmt: skip
            assert max(versions) < place[match.file]
    # From the owners on, scope by scope.
    scopes = [match.route.scope for match in found if match.route.scope in SCOPE_ORDER]
    order = [SCOPE_ORDER.index(scope) for scope in scopes if scope in SCOPE_ORDER[3:]]
    assert order == sorted(order)
    assert max(i for i, scope in enumerate(scopes) if scope == "repo") < scopes.index("owner")
    home = written.index("index.html")
    assert all(place[match.file] < home for match in found if match.route.scope == "owner")


def test_what_a_publisher_waits_for_is_there_when_it_is_told(small):
    build_files(small)
    write_version(small.content, "ann", "story", "1.0.1", "Tell a short story.\n")
    seen = []

    def look(visible):
        seen.append(visible)
        seen.append(answer(small, "api/v1/repos/ann/story.json")["data"]["latest_version"])
        first = answer(small, "api/v1/repos/_/new/1.json")["data"]
        seen.append({repo["name"]: repo["latest_version"] for repo in first}["story"])
        seen.append(answer(small, "api/v1/hub.json")["data"]["serial"])

    build(small, changed=[("ann", "story")], index=False, on_visible=look)
    assert seen == [Visible(5, frozenset()), "1.0.1", "1.0.1", 4]
    assert answer(small, "api/v1/hub.json")["data"]["serial"] == 5


def test_orphans_go_one_build_later(small):
    before = build_files(small)
    shutil.rmtree(f"{small.content}/bob")
    after = build_files(small)
    expected = freshly_built(small)
    assert after.keys() == before.keys()
    assert {file: after[file] for file in expected} == expected
    assert build(small, index=False).removed == len(before) - len(expected)
    assert read_tree(small.out) == expected
    assert not Path(small.out, "bob").exists()


def test_a_file_that_is_needed_again_is_no_orphan(small):
    before = build_files(small)
    Path(small.content, "ann/story").rename(f"{small.content}/story")
    build_files(small)
    Path(small.content, "story").rename(f"{small.content}/ann/story")
    assert build_files(small) == before
    assert build_files(small) == before


def test_only_files_that_were_there_count_as_removed(small):
    build_files(small)
    write_version(small.content, "ann", "story", "1.0.1", "Tell a short story.\n")
    build_files(small)
    assert build(small, index=False).removed == 0


def test_an_owner_whose_empty_folder_stays_leaves_the_site(small):
    build_files(small)
    shutil.rmtree(f"{small.content}/bob/sql")
    build_files(small)
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_a_changed_trend_alone_changes_the_order(empty):
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        write_version(empty.content, "ann", "x", version, version)
        write_version(empty.content, "bob", "x", version, version)
    build_files(empty)
    # Of a version in the middle nothing shows in lists, but it counts for the trend.
    edit_record(Path(empty.content, "bob/x/1.1.0.json"), published_at=moment(1199))
    assert build_files(empty) == freshly_built(empty)
    first = answer(empty, "api/v1/repos/_/trending/1.json")["data"][0]
    assert first["owner"] == "bob"


def test_a_version_in_the_middle_takes_the_place_of_another(empty):
    for version in ("1.0.0", "1.0.1", "1.1.0"):
        write_version(empty.content, "ann", "x", version, version)
    build_files(empty)
    for suffix in ("md", "json"):
        folder = Path(empty.content, "ann/x")
        (folder / f"1.0.1.{suffix}").rename(folder / f"1.0.2.{suffix}")
    build_files(empty)
    assert build_files(empty) == freshly_built(empty)


def test_a_version_above_a_removed_one_follows_the_next_below(empty, settled):
    for version in ("1.0.0", "1.0.1", "1.1.0"):
        write_version(empty.content, "ann", "x", version, f"Text {version}\n")
    build_files(empty)
    for gone, entries in (
        ("1.0.1", [("1.1.0", "1.0.0"), ("1.0.0", None)]),
        ("1.0.0", [("1.1.0", None)]),
    ):
        for suffix in ("md", "json"):
            Path(empty.content, f"ann/x/{gone}.{suffix}").unlink()
        build_files(empty)
        versions = answer(empty, "api/v1/repos/ann/x/versions.json")["data"]
        assert [(one["version"], one["previous"]) for one in versions] == entries
        assert build_files(empty) == freshly_built(empty)


def test_full_builds_alone_remove_orphans_too(small):
    build_files(small)
    shutil.rmtree(f"{small.content}/bob")
    build_files(small, full=True)
    assert build_files(small, full=True) == freshly_built(small)


def test_compare_finds_what_is_missing_differing_and_orphaned(small):
    assert compare(small).missing
    build_files(small)
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
     "1.0.0.diff", "api/v1/repos/_/top/2.json", "tags/none.html", "bob/sql/1.0.1.html", "x.html"],
)  # fmt: skip
def test_a_file_that_no_build_makes_is_an_orphan(small, file):
    build_files(small)
    Path(small.out, file).parent.mkdir(exist_ok=True)
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


def test_compare_writes_nothing_at_all(small, tmp_path):
    before = read_tree(tmp_path)
    difference = compare(small)
    assert read_tree(tmp_path) == before
    assert sorted(difference.missing) == sorted(build_files(small))


class Stopped(BaseException):
    """Stands for the end of the process: no code of ours may catch it."""


def stop_at(monkeypatch, name: str, number: int) -> None:
    """Let the ``number``-th call from now on of a function of ``os`` end the build."""
    function, calls = getattr(os, name), 0

    def call(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == number:
            raise Stopped
        return function(*args, **kwargs)

    monkeypatch.setattr(os, name, call)


def change_everything(root: str) -> None:
    """A new version, repo, owner and tag; a removed repo and tag; an edited profile."""
    write_version(root, "ann", "review", "1.2.0", "Review.\n", tags=["careful", "fresh"])
    write_version(root, "ann", "extra", "1.0.0", "More.\n", tags=["fresh"])
    write_version(root, "cyd", "first", "1.0.0", "First.\n")
    write_owner(root, "ann", name="Ann again")
    shutil.rmtree(f"{root}/bob")


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_a_build_that_ends_anywhere_is_made_good_by_the_next(tmp_path, monkeypatch, is_killed):
    # One end after another costs too long for every run; these meet every kind of file.
    for number in some(itertools.count(1, 13 if is_killed else 7)):
        settings = settings_in(tmp_path / str(number))
        write_small_catalogue(settings.content)
        build_files(settings)
        change_everything(settings.content)
        with monkeypatch.context() as patch:
            stop_at(patch, "rename", number)
            if is_killed:  # then nobody clears the temporary file
                patch.setattr(os, "unlink", lambda path: None)
            try:
                build_files(settings)
                break
            except Stopped:
                patch.undo()
        build_files(settings, changed=[("ann", "story")])
        build_files(settings)
        assert read_tree(settings.out) == freshly_built(settings)
        shutil.rmtree(tmp_path / str(number))
    assert number > 30


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_build_that_ends_while_it_removes_is_made_good(small, monkeypatch, number):
    build_files(small)
    shutil.rmtree(f"{small.content}/bob")
    build_files(small)
    with monkeypatch.context() as patch:
        stop_at(patch, "unlink", number)
        with pytest.raises(Stopped):
            build_files(small)
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_a_full_build_that_ends_early_is_remembered_as_one(small, monkeypatch):
    build_files(small)
    record = write_version(small.content, "ann", "story", "2.0.0", "Soon gone.\n", tags=["soon"])
    with monkeypatch.context() as patch:
        stop_at(patch, "rename", 15)
        with pytest.raises(Stopped):
            build_files(small, full=True)
    record.unlink()
    record.with_suffix(".md").unlink()
    build_files(small, changed=[("ann", "story")])
    assert build_files(small) == freshly_built(small)


KILLED_BUILD = """
import os, signal, sys
from builder.pipeline.build import build
from builder.model.settings import Settings
number, rename = int(sys.argv[1]), os.rename
def count(*args):
    global number
    number -= 1
    if not number:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*args)
os.rename = count
build(Settings(*sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [1, 12])
def test_a_killed_process_leaves_nothing_that_the_next_build_does_not_mend(small, number):
    build(small)
    change_everything(small.content)
    command = [sys.executable, "-c", KILLED_BUILD, str(number), *small[:5]]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert any(file.endswith(".tmp") for file in read_tree(small.out))
    build(small, changed=[])
    build(small)
    assert read_tree(small.out) == freshly_built(small)


def test_a_full_disk_is_told_and_made_good(small, monkeypatch):
    build_files(small)
    change_everything(small.content)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *args: (_ for _ in ()).throw(OSError(28, "No space")))
        with pytest.raises(OperatorError, match="No space"):
            build(small, index=False)
    build_files(small)
    assert build_files(small) == freshly_built(small)


@pytest.mark.parametrize("what", ["site", "state", "hub.json"])
def test_what_was_removed_behind_its_back_is_made_again(small, what):
    expected = build_files(small)
    if what == "site":
        shutil.rmtree(small.out)
    elif what == "state":
        shutil.rmtree(small.state)
    else:
        Path(small.out, "api/v1/hub.json").unlink()
        Path(small.out, "ann.html").unlink()
    assert build_files(small, changed=[("ann", "story")]) == expected
    assert build(small, index=False).written == 0


@pytest.mark.parametrize("keep_bytes", [0, 4096, 10_000])
def test_a_damaged_state_is_thrown_away(small, keep_bytes):
    expected = build_files(small)
    path = Path(small.state, "build.sqlite3")
    path.write_bytes(path.read_bytes()[:keep_bytes] + b"no database " * 3000)
    assert build_files(small) == expected
    change_everything(small.content)
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_a_state_of_another_release_is_thrown_away(small):
    build(small)
    with contextlib.closing(database.connect(State.path_in(small.state), read_only=False)) as db:
        db.execute("DROP TABLE orphan")
        db.execute("CREATE TABLE orphan (file TEXT PRIMARY KEY, old BLOB)")
        db.execute("PRAGMA user_version = 1")
        db.execute("UPDATE meta SET value = 'the stamp of another release'")
    assert build(small).rendered > 0
    assert build(small).rendered == 0


@pytest.mark.parametrize("is_full", [False, True])
def test_a_state_damaged_in_the_middle_is_thrown_away(small, is_full):
    expected = build_files(small)
    path = Path(small.state, "build.sqlite3")
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * 8192 + data[12_288:])
    assert build_files(small, full=is_full) == expected


def test_a_site_put_in_the_place_of_another_is_looked_at(small, tmp_path):
    old = build_files(small)
    shutil.copytree(small.out, tmp_path / "backup")
    change_everything(small.content)
    build_files(small)
    assert build_files(small) == freshly_built(small) != old
    shutil.rmtree(small.out)
    (tmp_path / "backup").rename(small.out)
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_other_settings_make_another_site(small):
    build_files(small)
    other = small._replace(base_url="https://elsewhere.example/x", site_name="Else", queries=True)
    assert build_files(other) == freshly_built(other)
    assert build_files(small) == freshly_built(small)


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


def test_the_operator_s_words_stand_on_the_home_page(small):
    def home() -> str:
        return build_files(small)["index.html"].decode()

    words = Path(small.content, "home.md")
    without = home()
    assert "<h1>Hub</h1>" in without
    words.write_text("# Ours\n\nFor *us*.\n\nMore <b>words</b>.\n")
    told = home()
    assert "<h1>Ours</h1>" in told and 'class="lead">For <em>us</em>.</p>' in told
    assert "<p>More &lt;b&gt;words&lt;/b&gt;.</p>" in told
    words.write_text("Only this.")
    assert "<h1>Hub</h1>" in home()
    assert "Only this." in home()
    # It waits for a build that looks at everything, as all that nobody named.
    words.write_text("Other words.")
    build(small, changed=[("ann", "review")], index=False)
    assert b"Other" not in read_tree(small.out)["index.html"]
    words.unlink()
    assert home() == without


def test_a_fault_in_one_repo_does_not_change_what_others_show_in_lists(small):
    before = build_files(small)
    BREAKS["hash"](small.content)
    write_version(small.content, "bob", "sql", "1.1.0", "New.\n", title="New title")
    with pytest.raises(ContentError):
        build(small, index=False)
    after = read_tree(small.out)
    same = {file for file in before if after[file] == before[file]}
    assert {file for file in before if "sql" not in file} <= same
    write_version(small.content, "ann", "review", "1.1.0", "Mended.\n", tags=["code", "careful"])
    assert build_files(small) == freshly_built(small)


@pytest.mark.parametrize("kind", ["hash", "profile", "name"])
def test_the_error_names_all_faults(small, kind):
    build_files(small)
    if kind == "hash":
        paths = ["ann/review/1.0.0.md", "ann/story/1.0.0.md", "bob/sql/1.0.0.md"]
        for path in paths:
            Path(small.content, path).write_text("Edited.\n")
    elif kind == "profile":
        paths = ["ann/owner.json", "bob/owner.json"]
        for path in paths:
            Path(small.content, path).write_text("{}")
    else:
        paths = ["ann/Worse", "bob/Bad"]
        for path in paths:
            Path(small.content, path).mkdir()
    with pytest.raises(ContentError) as caught:
        build(small, index=False)
    assert sorted(fault.path for fault in caught.value.faults) == paths
    assert all(path in str(caught.value) for path in paths)


def test_with_names_what_has_no_fault_is_built(small):
    build(small, index=False)
    Path(small.content, "ann/review/1.1.0.md").rename(f"{small.content}/aside")
    write_version(small.content, "bob", "sql", "1.1.0", "New.\n")
    with pytest.raises(ContentError):
        build(small, changed=[("ann", "review"), ("bob", "sql")], index=False)
    assert answer(small, "api/v1/repos/bob/sql.json")["data"]["latest_version"] == "1.1.0"
    assert answer(small, "api/v1/repos/ann/review.json")["data"]["latest_version"] == "1.1.0"
    Path(small.content, "aside").rename(f"{small.content}/ann/review/1.1.0.md")
    build(small, changed=[("ann", "review")], index=False)
    assert read_tree(small.out) == freshly_built(small)


PARALLEL_BUILD = """
import sys
from builder.pipeline.build import build
from builder.model.settings import Settings
settings = Settings(*sys.argv[1:])
for _ in range(5):
    build(settings, full=True)
"""


def test_two_builds_at_once_do_not_collide(small):
    command = [sys.executable, "-c", PARALLEL_BUILD, *small[:5]]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    assert read_tree(small.out) == freshly_built(small)
    assert build(small).written == 0


def test_a_build_that_has_to_wait_says_so(small):
    from builder.store.locks import build_lock

    class NotNow(Exception):
        pass

    def refuse():
        raise NotNow

    with build_lock(small.state), pytest.raises(NotNow):
        build(small, on_wait=refuse)
    build(small, on_wait=refuse)


@pytest.fixture(scope="module")
def paged(tmp_path_factory) -> Settings:
    """A built site with 120 repos, 70 of them with a tag."""
    settings = settings_in(tmp_path_factory.mktemp("paged"))
    for number in range(120):
        write_version(
            settings.content, "ann", f"r{number:03}", "1.0.0", "x",
            tags=["many"] if number < 70 else [], published_at=moment(number),
        )  # fmt: skip
    build_files(settings)
    return settings


@pytest.mark.parametrize(("folder", "total"), [("api/v1/repos/_", 120), ("api/v1/tags/many", 70)])
@pytest.mark.parametrize("sort", routes.SORTS)
def test_pages_hold_every_repo_once_in_order(paged, folder, total, sort):
    tag = "many" if "tags" in folder else None
    names = []
    last = -(-total // PAGE_SIZE)
    for page in range(1, last + 1):
        data = answer(paged, f"{folder}/{sort}/{page}.json")
        assert data["meta"] == {
            "page": page, "pages": last, "total": total, "page_size": 50, "sort": sort, "tag": tag,
            "q": None,
        }  # fmt: skip
        assert len(data["data"]) == (PAGE_SIZE if page < last else total - PAGE_SIZE * (last - 1))
        names += [repo["name"] for repo in data["data"]]
    # All were published once: each order is newest first.
    assert names == [f"r{number:03}" for number in reversed(range(total))]
    assert not Path(paged.out, f"{folder}/{sort}/{last + 1}.json").exists()


def test_pages_for_people_link_to_their_neighbours(paged):
    def neighbours(file):
        return re.findall(r'rel="(prev|next)" href="([^"]*)"', Path(paged.out, file).read_text())

    assert neighbours("new.html") == [("next", "/new/2")]
    assert neighbours("new/2.html") == [("prev", "/new"), ("next", "/new/3")]
    assert neighbours("new/3.html") == [("prev", "/new/2")]
    assert neighbours("tags/many.html") == [("next", "/tags/many/top/2")]
    assert neighbours("tags/many/top/2.html") == [("prev", "/tags/many")]
    assert neighbours("tags/many/new/2.html") == [("prev", "/tags/many/new")]


def test_the_first_page_of_top_is_also_at_the_short_path(paged):
    site = read_tree(paged.out)
    assert site["api/v1/repos.json"] == site["api/v1/repos/_/top/1.json"]


def test_pages_past_a_shortened_end_go(paged):
    shutil.rmtree(f"{paged.content}/ann/r000")
    for number in range(1, 21):
        shutil.rmtree(f"{paged.content}/ann/r{number:03}")
    site = build_files(paged)
    assert "api/v1/repos/_/top/3.json" in site
    site = build_files(paged)
    assert "api/v1/repos/_/top/3.json" not in site
    assert "api/v1/tags/many/top/2.json" not in site
    assert site == freshly_built(paged)


def test_an_empty_catalogue_is_a_site(empty):
    site = build_files(empty)
    assert json.loads(site["api/v1/repos.json"]) == {
        "data": [],
        "meta": {"page": 1, "pages": 1, "total": 0, "page_size": 50, "sort": "top", "tag": None,
                 "q": None},
    }  # fmt: skip
    assert json.loads(site["api/v1/tags.json"])["data"] == []
    assert site["api/v1/catalogue.jsonl"] == b""
    assert json.loads(site["api/v1/hub.json"])["data"]["serial"] == 0
    assert b"no prompts yet" in site["index.html"]
    assert build(empty).written == 0


def test_a_catalogue_may_become_empty(small, empty):
    build_files(small)
    shutil.rmtree(f"{small.content}/ann")
    shutil.rmtree(f"{small.content}/bob")
    build_files(small)
    assert build_files(small) == freshly_built(small)


def test_an_owner_without_a_profile_and_one_without_repos(empty):
    write_version(empty.content, "ann", "x", "1.0.0", "x", published_at=moment(3))
    write_owner(empty.content, "bob", name="Bob")
    Path(empty.content, "cyd").mkdir()
    site = build_files(empty)
    ann = json.loads(site["api/v1/users/ann.json"])["data"]
    bob = json.loads(site["api/v1/users/bob.json"])["data"]
    assert (ann["name"], ann["joined_at"], ann["repos_count"]) == ("ann", moment(3), 1)
    assert (bob["name"], bob["repos_count"], bob["repos"]) == ("Bob", 0, [])
    assert "bob.html" in site
    assert "cyd.html" not in site
    assert build(empty, index=False).written == 0


def test_a_profile_of_the_first_years_is_built(empty):
    write_version(empty.content, "ann", "x", "1.0.0", "x", published_at="0001-01-01T00:00:00Z")
    assert b'"joined_at":"0001-01-01T00:00:00Z"' in build_files(empty)["api/v1/users/ann.json"]


def test_a_repo_with_many_versions(empty):
    for number in range(300):
        write_version(
            empty.content, "ann", "x", f"1.{number // 10}.{number % 10}", f"Text {number}.\n",
            published_at=moment(number),
        )  # fmt: skip
    site = build_files(empty)
    versions = json.loads(site["api/v1/repos/ann/x/versions.json"])
    assert versions["meta"]["total"] == len(versions["data"]) == 300
    assert [one["version"] for one in versions["data"]] == sorted(
        (one["version"] for one in versions["data"]), key=Version.parse, reverse=True
    )
    assert sum(file.endswith(".diff") for file in site) == 299
    write_version(empty.content, "ann", "x", "2.0.0", "Last.\n", published_at=moment(300))
    assert build_files(empty, changed=[("ann", "x")]) == freshly_built(empty)


def test_more_repos_than_one_process_renders(empty, monkeypatch):
    monkeypatch.setattr("builder.pipeline.pool.REPOS_PER_PROCESS_MIN", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for number in range(60):
        write_version(empty.content, "ann", f"r{number}", "1.0.0", f"x{number}", tags=["a"])
    report = build(empty, index=False)
    assert (report.rendered, report.written) == (60, len(read_tree(empty.out)))
    assert build(empty, index=False).written == 0
    monkeypatch.undo()
    assert read_tree(empty.out) == freshly_built(empty)
    for number in range(0, 60, 7):
        Path(empty.content, f"ann/r{number}/1.0.0.md").write_text("edited")
    monkeypatch.setattr("builder.pipeline.pool.REPOS_PER_PROCESS_MIN", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with pytest.raises(ContentError) as caught:
        build(empty, index=False, full=True)
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


@pytest.mark.parametrize(
    ("out", "state"),
    [("content/site", "state"), ("site", "content/state"), ("site", "site/state"),
     ("content", "state"), ("site", "site")],
)  # fmt: skip
def test_folders_that_would_feed_each_other_are_refused(small, tmp_path, out, state):
    settings = small._replace(out=f"{tmp_path}/{out}", state=f"{tmp_path}/{state}")
    before = read_tree(tmp_path)
    for function in (build, compare):
        with pytest.raises(OperatorError, match="separate"):
            function(settings)
    assert read_tree(tmp_path) == before


def test_no_content_folder_is_an_error_that_says_what_to_do(small):
    expected = build_files(small)
    missing = small._replace(content=f"{small.content}-nothing")
    with pytest.raises(OperatorError, match="--content"):
        build(missing, index=False)
    assert read_tree(small.out) == expected


def test_the_base_url_of_the_tests_has_no_path():
    assert urlsplit(BASE_URL).path == ""


def test_bodies_are_texts_without_front_matter_and_go_with_their_versions(empty):
    front = "---\ntitle: Chät\n---\n"
    text = front + '{{role "user"}}\r\nHello {{name}} 語\n'
    write_version(empty.content, "ann", "x", "1.0.0", text, front_matter_bytes=len(front) + 1)
    write_version(empty.content, "ann", "x", "1.1.0", text)
    write_version(empty.content, "ann", "x", "1.2.0", "---\ntitle: All\n---\n")
    write_label(empty.content, "ann/x", 1, "live", "1.0.0")
    site = build_files(empty)
    base = "api/v1/repos/ann/x"
    expected = text.removeprefix(front).encode()
    for file in ("versions/1.0.0", "versions/1.1.0", "labels/live"):
        assert site[f"{base}/{file}.body.txt"] == expected
        record = json.loads(site[f"{base}/{file}.json"])["data"]
        assert record["body"].encode() == expected
        assert record["messages"] == [{"role": "user", "content": "Hello {{name}} 語"}]
    assert site[f"{base}/body.txt"] == site[f"{base}/labels/latest.body.txt"] == b""
    assert json.loads(site[f"{base}.json"])["data"]["messages"] is None

    write_withdrawn(empty.content, "ann/x", "1.1.0")
    Path(empty.content, "ann/x/1.2.0.json").unlink()
    Path(empty.content, "ann/x/1.2.0.md").unlink()
    site = build_files(empty)
    assert f"{base}/versions/1.1.0.body.txt" not in site
    assert site[f"{base}/body.txt"] == expected
    assert f"{base}/versions/1.2.0.body.txt" not in build_files(empty)


def test_what_an_owner_without_prompts_might_have_had_is_no_difference(empty):
    write_version(empty.content, "ann", "x", "1.0.0", "Say x.\n")
    write_version(empty.content, "bob", "y", "1.0.0", "Say y.\n")
    build_files(empty)
    write_withdrawn(empty.content, "ann/x")
    for _ in range(3):
        build(empty, full=True, index=False)
        assert compare(empty)[:3] == ([], [], [])
