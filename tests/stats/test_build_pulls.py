"""The pulls that a site shows: what counts make of records, pages and orders."""

import contextlib
import json
import re
import shutil
from pathlib import Path

import pytest

from builder.model.matching import match_file
from builder.model.routes import SORTS
from builder.pipeline.build import build, compare
from builder.search.queries import ListQuery, Queries
from builder.store.state import State
from tests.stats.counting import by_id, count, data, ids, listed, pulls_path, shown
from tests.support.catalogues import (
    build_files,
    freshly_built,
    moment,
    read_tree,
    write_owner,
    write_version,
)

# Files count as settled at once, so what did not change is not even looked at.
pytestmark = pytest.mark.usefixtures("settled")


def changed_files(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    assert before.keys() == after.keys()
    return {file for file in before if before[file] != after[file]}


# Activity, with an event of the first day as the unit, so that a week doubles:
#   a  5·1 + 10·1 = 15      b  5·2 + 2·4 = 18      c  5·4 = 20      d  5·2 + 7·2 = 24
FOUR_COUNTS = (({"ann/a": 10}, 0), ({"bob/d": 7}, 7), ({"ann/b": 2}, 14))


ORDERS = {
    "top": ["ann/a", "bob/d", "ann/b", "bob/c"],
    "trending": ["bob/d", "bob/c", "ann/b", "ann/a"],
    "new": ["bob/c", "ann/b", "bob/d", "ann/a"],
}


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "incremental"])
def test_the_orders(four, is_full):
    if not is_full:
        build_files(four)
        assert listed(four, "top") == ["bob/c", "ann/b", "bob/d", "ann/a"]
        assert listed(four, "trending") == ["bob/c", "ann/b", "bob/d", "ann/a"]
    for pulls, day in FOUR_COUNTS:
        count(four, pulls, day)
        if not is_full:
            build_files(four, changed=[])
    build_files(four, full=is_full)
    pulls = {"ann/a": 10, "ann/b": 2, "bob/c": 0, "bob/d": 7}
    for sort, order in ORDERS.items():
        assert listed(four, sort) == listed(four, sort, "code") == order
        page = Path(four.out, f"{sort}.html").read_text()
        assert re.findall(r'<h3 dir="auto"><a href="/([^"]+)"', page) == order
        queries = Queries(four)
        answer = json.loads(queries.answer(ListQuery(sort=sort, tags=("code",))))["data"]
        queries.close()
        assert ids(answer) == order and by_id(answer) == pulls
    home = Path(four.out, "index.html").read_text()
    places = [home.index(f'href="/{repo_id}"') for repo_id in ORDERS["top"]]
    assert places == sorted(places)
    assert read_tree(four.out) == freshly_built(four)


def test_equal_pulls_are_ordered_by_update_then_by_name(empty):
    for name, hours in {"late": 9, "b": 5, "a": 5, "none": 20}.items():
        write_version(empty.content, "ann", name, "1.0.0", "x", published_at=moment(hours))
    build_files(empty)
    count(empty, {"ann/late": 2, "ann/a": 2, "ann/b": 2})
    build_files(empty)
    assert listed(empty, "top") == ["ann/late", "ann/a", "ann/b", "ann/none"]
    count(empty, {"ann/b": 1})
    build_files(empty)
    assert listed(empty, "top") == ["ann/b", "ann/late", "ann/a", "ann/none"]


def test_equal_activity_is_ordered_by_name(empty):
    for name in ("b", "c", "a"):
        write_version(empty.content, "ann", name, "1.0.0", "x", published_at=moment(0))
    build_files(empty)
    count(empty, {"ann/c": 4, "ann/b": 4})
    build_files(empty)
    assert listed(empty, "trending") == ["ann/b", "ann/c", "ann/a"]


def test_null_until_something_was_counted_then_zero(small):
    write_owner(small.content, "cyd")
    build_files(small)
    assert set(shown(small).values()) == {None}
    assert [data(small, f"users/{owner}")["pulls"] for owner in ("ann", "cyd")] == [None, None]
    for file in ("bob.html", "bob/sql.html", "top.html", "index.html"):
        assert not re.search(r"pulls?</p>", Path(small.out, file).read_text())
    count(small, {})
    after = build_files(small)
    assert set(shown(small).values()) == {0}
    assert [data(small, f"users/{owner}")["pulls"] for owner in ("ann", "cyd")] == [0, 0]
    assert after == freshly_built(small)


def test_a_user_has_the_pulls_of_all_repos(small):
    build_files(small)
    count(small, {"ann/story": 3, "ann/review": 4, "bob/sql": 1})
    build_files(small)
    ann = data(small, "users/ann")
    assert ann["pulls"] == 7
    assert {repo["name"]: repo["pulls"] for repo in ann["repos"]} == {"story": 3, "review": 4}
    assert data(small, "users/bob")["pulls"] == 1
    shutil.rmtree(f"{small.content}/ann/story")
    build_files(small)
    assert data(small, "users/ann")["pulls"] == 4


@pytest.mark.parametrize(
    ("number", "text"), [(0, ""), (1, "1 pull"), (2, "2 pulls"), (1234, "1,234 pulls")]
)
def test_pages_say_how_many_if_there_are_some(small, number, text):
    count(small, {"bob/sql": number})
    build_files(small)
    for file in ("bob.html", "bob/sql.html", "top.html", "index.html"):
        shown = re.findall(r"[\d,]+ pulls?\b", Path(small.out, file).read_text())
        assert set(shown) == ({text} if text else set()), file


def test_what_new_pulls_touch(small):
    count(small, {"ann/review": 1})
    build(small)
    before = read_tree(small.out)
    count(small, {"bob/sql": 1})
    report = build(small, changed=[])
    assert (report.rendered, report.indexed, report.is_settled) == (1, 1, True)
    after = read_tree(small.out)
    assert after == freshly_built(small)
    files = changed_files(before, after)
    assert report.written == len(files)
    scopes = {file: match_file(file).route.scope for file in files}
    assert {file for file, scope in scopes.items() if scope != "list"} == {
        "api/v1/repos/bob/sql.json", "bob/sql.html", "api/v1/users/bob.json", "bob.html",
        "index.html", "index.html.gz", "llms.txt",
    }  # fmt: skip
    assert build(small).written == 0


def test_searches_in_an_order_follow_new_pulls(small):
    def check_orders() -> list[str]:
        """Searches are ordered as lists are; the first one of `top`, and the last."""
        for sort in SORTS:
            with contextlib.closing(Queries(small)) as queries:
                found = ids(json.loads(queries.answer(ListQuery(q="code", sort=sort)))["data"])
            assert len(found) > 1
            assert found == [one for one in listed(small, sort) if one in found]
            if sort == "top":
                ends = [found[0], found[-1]]
        return ends

    build(small)
    first, last = check_orders()
    count(small, {last: 3})
    # Only what has other pulls is indexed, and a full build does not do it again.
    assert build(small).indexed == 1
    assert build(small, full=True).indexed == 0
    assert check_orders() == [last, first]


def test_counts_of_repos_that_are_not_there_are_nothing(small):
    build_files(small)
    count(small, {"ann/gone": 5, "nobody/x": 1, "ann/story": 1})
    assert build_files(small) == freshly_built(small)
    assert data(small, "users/ann")["pulls"] == 1
    # Until they are: what was pulled before is not forgotten.
    write_version(small.content, "ann", "gone", "1.0.0", "Back.\n")
    build_files(small)
    assert shown(small)["ann/gone"] == 5


def test_several_processes_do_the_same(empty, monkeypatch):
    monkeypatch.setattr("builder.emit.pool.REPOS_PER_PROCESS_MIN", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for number in range(40):
        write_version(empty.content, "ann", f"r{number}", "1.0.0", f"x{number}", tags=["a"])
    build_files(empty)
    count(empty, {f"ann/r{number}": number for number in range(40)})
    assert build(empty, index=False).rendered == 40
    assert shown(empty) == {f"ann/r{number}": number for number in range(40)}
    assert read_tree(empty.out) == freshly_built(empty)


def test_a_check_of_the_site_knows_them(small):
    count(small, {"ann/story": 2})
    build(small)
    assert compare(small)[:3] == ([], [], [])
    count(small, {"ann/story": 1})
    missing, differing, orphaned, _ = compare(small)
    assert missing == orphaned == []
    assert "api/v1/repos/ann/story.json" in differing


def test_where_nobody_counts_the_state_says_nothing(small):
    build(small)
    assert not pulls_path(small).exists()
    with State(small.state, read_only=True) as state:
        assert state.pulls.shown() == (0, None)
        assert state.pulls.of_owner("ann") is None


def test_the_page_of_a_prompt_has_a_line_of_its_reads(four):
    build_files(four)
    for day, pulls in enumerate((3, 1)):
        count(four, {"ann/a": pulls}, day)
    files = build_files(four, changed=[])
    line = b'aria-label="Pulls in the 30 days to 2025-01-02: from 0 to 3 a day"'
    assert line in files["ann/a.html"] and b"4 pulls" in files["ann/a.html"]
    assert b"Pulls in the 30 days" not in files["ann/b.html"]
    assert read_tree(four.out) == freshly_built(four)
