"""Output of a build: same bytes from the same content, in order, and its report."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

from builder.model import routes
from builder.model.matching import match_file
from builder.pipeline.build import build
from builder.pipeline.context import Visible
from builder.store.state import State
from builder.store.state.schema import INDEXES
from tests.builder.pipeline.sites import answer, stat_tree
from tests.support.calls import watched
from tests.support.catalogues import (
    build_files,
    edit_record,
    freshly_built,
    read_tree,
    settings_in,
    write_label,
    write_owner,
    write_version,
    write_withdrawn,
)


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
    # The record decides, even if the text looks like front matter.
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
    write_version(small.content, "ann", "b", "1.1.0", "z", {"a.md": b"a", "b.png": b"b"})
    files = build_files(small._replace(langfuse=True))
    lines = map(json.loads, files["api/v1/withdrawn.jsonl"].splitlines())
    assert [(one["name"], one["version"]) for one in lines] == [("a", "1.1.0"), ("c", None)]
    found = {match_file(file).route.name for file in files}
    # The later pages of lists take more than fifty repos.
    assert {route.name for route in routes.ROUTES} - found == {"list_pages", "tag_pages"}


def test_nothing_changed_nothing_written(small, settled):
    build(small)
    before = stat_tree(small.out)
    report = build(small)
    assert (report.rendered, report.written, report.removed, report.indexed) == (0, 0, 0, 0)
    assert stat_tree(small.out) == before
    assert build(small, full=True).written == 0


LIGHT_BUILD = """
import sys
from builder.pipeline.build import build
from builder.model.settings import Settings
assert build(Settings(*sys.argv[1:])).written == 0
assert not {"jinja2", "yaml", "multiprocessing"} & sys.modules.keys()
"""


def test_a_build_without_work_loads_no_templates(small, settled):
    build(small)
    subprocess.run([sys.executable, "-c", LIGHT_BUILD, *small[:5]], check=True)


def test_a_full_build_leaves_a_state_with_its_indexes(small):
    """Without them all is right, and the next builds of a large catalogue are slow."""
    build(small)
    with contextlib.closing(sqlite3.connect(State.path_in(small.state))) as db:
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert {*re.findall(r"INDEX (\w+)", INDEXES)} <= there


def test_the_report_counts(small):
    report = build(small)
    assert (report.repos, report.versions, report.rendered, report.indexed) == (3, 4, 3, 3)
    assert report.written == len(read_tree(small.out))
    assert (report.unchanged, report.removed) == (0, 0)


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


SCOPE_ORDER = ["version", "label", "repo", "owner", "tag", "list"]


def test_a_pointer_is_written_after_what_it_points_to(small):
    written = []

    def note(call: str, args: tuple) -> None:
        if call == "rename" and args[1].startswith(f"{small.out}/"):
            written.append(os.path.relpath(args[1], small.out))

    write_label(small.content, "ann/review", 1, "production", "1.0.0")
    with watched(note):
        build_files(small)
    assert written[-1] == "api/v1/hub.json"
    last = ("api/v1/catalogue.jsonl", "connect.html", "docs.html", "api/v1/hub.json")
    assert [file for file in written if file in last] == [*last]
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
    # From owners on, files are written scope by scope.
    scopes = [match.route.scope for match in found if match.route.scope in SCOPE_ORDER]
    order = [SCOPE_ORDER.index(scope) for scope in scopes if scope in SCOPE_ORDER[3:]]
    assert order == sorted(order)
    assert max(i for i, scope in enumerate(scopes) if scope == "repo") < scopes.index("owner")
    home = written.index("index.html")
    assert all(place[match.file] < home for match in found if match.route.scope == "owner")


def test_what_a_publisher_waits_for_exists_when_it_is_visible(small):
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
