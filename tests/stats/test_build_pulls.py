"""The pulls that a site shows: what counts make of records, pages and orders, build after build."""

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
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from builder.model.errors import ContentError, PullsError
from builder.model.routes import SORTS, match_file
from builder.model.settings import Settings
from builder.pipeline import recount, settle
from builder.pipeline.build import build, compare
from builder.pipeline.rebuild import Rebuilder
from builder.search.queries import ListQuery, Queries
from builder.stats.counter import Counter
from builder.stats.pulls import PULLS_FILE, Pulls
from builder.store.state import State
from tests.support.catalogues import (
    build_files,
    edit_record,
    moment,
    read_tree,
    settings_in,
    write_owner,
    write_version,
)
from tests.support.servers import wait_until

FIRST_DAY = 20_089  # of ``moment(0)``
HOURS = 24
_clients = itertools.count()


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled at once, so that what did not change is not even looked at."""
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 0)


def count(settings: Settings, pulls: dict[str, int], day: int = 0) -> None:
    """So many more pulls of these repos, on a day after ``FIRST_DAY``."""
    with Counter(settings.state, FIRST_DAY + day) as counter:
        for repo_id, number in pulls.items():
            for client in itertools.islice(_clients, number):
                counter.add(FIRST_DAY + day, b"%d" % client, repo_id)


def freshly_built(settings: Settings) -> dict[str, bytes]:
    """What a full build of the same content and counts into an empty folder gives."""
    folder = f"{os.path.dirname(settings.out)}/fresh"
    shutil.rmtree(folder, ignore_errors=True)
    fresh = settings._replace(out=f"{folder}/site", state=f"{folder}/state")
    os.makedirs(fresh.state)
    if pulls_path(settings).exists():
        with (
            contextlib.closing(sqlite3.connect(pulls_path(settings))) as counts,
            contextlib.closing(sqlite3.connect(pulls_path(fresh))) as copy,
        ):
            counts.backup(copy)
    return build_files(fresh)


def pulls_path(settings: Settings) -> Path:
    return Path(settings.state, PULLS_FILE)


def remove_pulls(settings: Settings) -> None:
    for path in Path(settings.state).glob(f"{PULLS_FILE}*"):
        path.unlink()


def data(settings: Settings, file: str):
    return json.loads(Path(settings.out, f"api/v1/{file}.json").read_bytes())["data"]


def listed(settings: Settings, sort: str, tag: str | None = None) -> list[str]:
    folder = f"tags/{tag}" if tag else "repos/_"
    return ids(data(settings, f"{folder}/{sort}/1"))


def ids(repos: list[dict]) -> list[str]:
    return [f"{repo['owner']}/{repo['name']}" for repo in repos]


def by_id(repos: list[dict]) -> dict[str, int | None]:
    return dict(zip(ids(repos), (repo["pulls"] for repo in repos), strict=True))


def shown(settings: Settings) -> dict[str, int | None]:
    """Each repo's pulls by its own record; every other place must have the same."""
    records = Path(settings.out, "api/v1/repos").glob("*/*.json")
    own = by_id([json.loads(path.read_bytes())["data"] for path in records])
    for sort in SORTS:
        assert by_id(data(settings, f"repos/_/{sort}/1")) == own
    return own


def changed_files(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    assert before.keys() == after.keys()
    return {file for file in before if before[file] != after[file]}


# Orders


@pytest.fixture
def four(empty: Settings) -> Settings:
    """Four repos, published on the first day, a week later (two), and two weeks later."""
    for repo_id, day in {"ann/a": 0, "ann/b": 7, "bob/c": 14, "bob/d": 7}.items():
        write_version(
            empty.content, *repo_id.split("/"), "1.0.0", f"Text of {repo_id}.\n",
            published_at=moment(day * HOURS), tags=["code"],
        )  # fmt: skip
    return empty


# Activity, with an event of the first day as the unit, so that a week doubles:
#   a  5·1 + 10·1 = 15      b  5·2 + 2·4 = 18      c  5·4 = 20      d  5·2 + 7·2 = 24
FOUR_COUNTS = (({"ann/a": 10}, 0), ({"bob/d": 7}, 7), ({"ann/b": 2}, 14))
ORDERS = {
    "top": ["ann/a", "bob/d", "ann/b", "bob/c"],
    "trending": ["bob/d", "bob/c", "ann/b", "ann/a"],
    "new": ["bob/c", "ann/b", "bob/d", "ann/a"],
}


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "incremental"])
def test_the_orders(four: Settings, is_full: bool) -> None:
    if not is_full:
        build_files(four)
        assert listed(four, "top") == ["bob/c", "ann/b", "bob/d", "ann/a"]
        assert listed(four, "trending") == ["bob/c", "ann/b", "bob/d", "ann/a"]
    for pulls, day in FOUR_COUNTS:
        count(four, pulls, day)
        if not is_full:
            build_files(four, changed=[])
    build_files(four, full=is_full)
    for sort, order in ORDERS.items():
        assert listed(four, sort) == listed(four, sort, "code") == order
        page = Path(four.out, f"{sort}.html").read_text()
        assert re.findall(r'<h3 dir="auto"><a href="/([^"]+)"', page) == order
        queries = Queries(four)
        answer = json.loads(queries.answer(ListQuery(sort=sort, tags=("code",))))["data"]
        queries.close()
        assert ids(answer) == order
    home = Path(four.out, "index.html").read_text()
    places = [home.index(f'href="/{repo_id}"') for repo_id in ORDERS["top"]]
    assert places == sorted(places)
    assert read_tree(four.out) == freshly_built(four)


def test_equal_pulls_are_ordered_by_update_then_by_name(empty: Settings) -> None:
    for name, hours in {"late": 9, "b": 5, "a": 5, "none": 20}.items():
        write_version(empty.content, "ann", name, "1.0.0", "x", published_at=moment(hours))
    build_files(empty)
    count(empty, {"ann/late": 2, "ann/a": 2, "ann/b": 2})
    build_files(empty)
    assert listed(empty, "top") == ["ann/late", "ann/a", "ann/b", "ann/none"]
    count(empty, {"ann/b": 1})
    build_files(empty)
    assert listed(empty, "top") == ["ann/b", "ann/late", "ann/a", "ann/none"]


def test_equal_activity_is_ordered_by_name(empty: Settings) -> None:
    for name in ("b", "c", "a"):
        write_version(empty.content, "ann", name, "1.0.0", "x", published_at=moment(0))
    build_files(empty)
    count(empty, {"ann/c": 4, "ann/b": 4})
    build_files(empty)
    assert listed(empty, "trending") == ["ann/b", "ann/c", "ann/a"]


# Records and pages


def test_null_until_something_was_counted_then_zero(small: Settings) -> None:
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


def test_a_user_has_the_pulls_of_all_repos(small: Settings) -> None:
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
    ("number", "text"), [(0, "0 pulls"), (1, "1 pull"), (2, "2 pulls"), (1234, "1,234 pulls")]
)
def test_pages_say_how_many(small: Settings, number: int, text: str) -> None:
    count(small, {"bob/sql": number})
    build_files(small)
    for file in ("bob.html", "bob/sql.html", "top.html", "index.html"):
        assert f"<span>{text}</span>" in Path(small.out, file).read_text()


def test_what_new_pulls_touch(small: Settings) -> None:
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


def ids_of(answer: bytes) -> list[str]:
    return [f"{repo['owner']}/{repo['name']}" for repo in json.loads(answer)["data"]]


def test_searches_in_an_order_follow_new_pulls(small: Settings) -> None:
    def check_orders() -> list[str]:
        """Searches are ordered as lists are; the first one of `top`, and the last."""
        for sort in SORTS:
            with contextlib.closing(Queries(small)) as queries:
                found = ids_of(queries.answer(ListQuery(q="code", sort=sort)))
            listed = ids_of(Path(small.out, f"api/v1/repos/_/{sort}/1.json").read_bytes())
            assert len(found) > 1
            assert found == [one for one in listed if one in found]
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


def test_answers_to_searches_have_them_too(small: Settings) -> None:
    build(small)
    count(small, {"ann/review": 3})
    build(small)
    queries = Queries(small)
    answer = json.loads(queries.answer(ListQuery(q="review")))
    queries.close()
    assert [repo["pulls"] for repo in answer["data"]] == [3]


def test_counts_of_repos_that_are_not_there_are_nothing(small: Settings) -> None:
    build_files(small)
    count(small, {"ann/gone": 5, "nobody/x": 1, "ann/story": 1})
    assert build_files(small) == freshly_built(small)
    assert data(small, "users/ann")["pulls"] == 1
    # Until they are: what was pulled before is not forgotten.
    write_version(small.content, "ann", "gone", "1.0.0", "Back.\n")
    build_files(small)
    assert shown(small)["ann/gone"] == 5


def test_a_repo_that_is_rendered_anyway_shows_its_counts_at_once(small: Settings) -> None:
    build_files(small)
    count(small, {"ann/story": 2})
    write_version(small.content, "ann", "story", "1.0.1", "Longer.\n")
    seen = []
    build(
        small, changed=[("ann", "story")], is_wanted=lambda: True,
        on_visible=lambda _: seen.append(data(small, "repos/ann/story")["pulls"]),
    )  # fmt: skip
    assert seen == [2]


def test_several_processes_do_the_same(empty: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.pipeline.pool.REPOS_PER_PROCESS_MIN", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for number in range(40):
        write_version(empty.content, "ann", f"r{number}", "1.0.0", f"x{number}", tags=["a"])
    build_files(empty)
    count(empty, {f"ann/r{number}": number for number in range(40)})
    assert build(empty, index=False).rendered == 40
    assert shown(empty) == {f"ann/r{number}": number for number in range(40)}
    assert read_tree(empty.out) == freshly_built(empty)


# In slices


def grow(settings: Settings, repos: int) -> None:
    for number in range(repos):
        write_version(settings.content, f"o{number % 3}", f"r{number}", "1.0.0", f"x{number}")


def test_who_publishes_does_not_wait_for_them(small: Settings) -> None:
    grow(small, 30)
    build_files(small)
    before = read_tree(small.out)
    count(small, {f"o{number % 3}/r{number}": 1 for number in range(30)})
    write_version(small.content, "ann", "story", "1.0.1", "Longer.\n")
    seen: list[set[str]] = []

    def look(_: object) -> None:
        seen.append(set(changed_repos(before, small)))

    report = build(small, changed=[("ann", "story")], is_wanted=lambda: True, on_visible=look)
    assert seen == [{"ann/story"}] == [set(changed_repos(before, small))]
    assert not report.is_settled
    assert build(small, changed=[]).is_settled
    assert read_tree(small.out) == freshly_built(small)


def changed_repos(before: dict[str, bytes], settings: Settings) -> Iterable[str]:
    for file, written in read_tree(settings.out).items():
        found = match_file(file)
        if found.route.name == "repo" and before.get(file) != written:
            yield f"{found.params['owner']}/{found.params['name']}"


def test_it_gives_way_between_batches_and_goes_on(
    small: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount, "REPOS_PER_BATCH", 4)
    grow(small, 15)
    build_files(small)
    before = read_tree(small.out)
    count(small, {"ann/story": 2})
    steps = []
    for _ in range(99):
        asked = itertools.count()
        report = build(small, changed=[], index=False, is_wanted=lambda: next(asked) > 1)  # noqa: B023
        steps.append(len(set(changed_repos(before, small))))
        if report.is_settled:
            break
        # Half of it is null and half 0: every list is one of before or of after, and whole.
        for sort in SORTS:
            assert len(listed(small, sort)) == 18
    assert steps[:5] == [4, 8, 12, 16, 18]
    assert steps[-1] == 18
    assert read_tree(small.out) == freshly_built(small)


def test_where_somebody_always_waits_it_comes_to_an_end(
    small: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "LAG_SECONDS_MAX", 0.0)
    monkeypatch.setattr(settle, "SLICE_SECONDS", 0.005)
    monkeypatch.setattr(recount, "REPOS_PER_BATCH", 3)
    grow(small, 20)
    build_files(small)
    count(small, {"ann/story": 2, "o1/r1": 3})
    for number in range(1, 200):
        # Lists and pulls are both always behind.
        write_version(small.content, "ann", "story", f"1.0.{number}", f"Story {number}.\n")
        build(small, changed=[("ann", "story")], index=False, is_wanted=lambda: True)
        top = by_id(data(small, "repos/_/top/1"))
        serial = data(small, "hub")["serial"]
        if None not in top.values() and serial > 24:
            break
    assert top["o1/r1"] == 3
    assert serial > 24
    build_files(small)
    assert read_tree(small.out) == freshly_built(small)


def test_counts_that_come_while_others_are_taken_in(
    small: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount, "REPOS_PER_BATCH", 2)
    grow(small, 6)
    build_files(small)
    count(small, {"ann/story": 1})
    for number in range(4):
        asked = itertools.count()
        build(small, changed=[], index=False, is_wanted=lambda: next(asked) > 1)  # noqa: B023
        count(small, {"ann/story": 1, f"o0/r{number}": 1, "o0/r0": 1})
    assert build(small, changed=[], index=False).is_settled
    assert shown(small)["ann/story"] == 5
    assert read_tree(small.out) == freshly_built(small)


def leave_in_a_pass(settings: Settings) -> None:
    """Publish, and leave the lists in the middle of a pass."""
    write_version(settings.content, "ann", "story", "1.0.1", "Longer.\n")
    for questions in itertools.count(1):
        asked = itertools.count()
        build(
            settings, changed=[("ann", "story")], index=False,
            is_wanted=lambda: next(asked) > questions,  # noqa: B023
        )  # fmt: skip
        with State(settings.state, read_only=True) as state:
            if state.passes.serial():
                return


def test_counts_that_come_in_the_middle_of_a_pass_follow_it(small: Settings) -> None:
    build_files(small)
    leave_in_a_pass(small)
    count(small, {"ann/story": 1})
    assert build(small, changed=[], index=False).is_settled
    assert read_tree(small.out) == freshly_built(small)


def test_what_lost_its_object_stays_for_a_build_of_two_passes(small: Settings) -> None:
    build_files(small)
    leave_in_a_pass(small)
    count(small, {"ann/story": 1})
    shutil.rmtree(f"{small.content}/bob/sql")
    build(small, changed=[("bob", "sql")], index=False)
    assert Path(small.out, "bob/sql.html").exists()
    assert build_files(small, changed=[]) == freshly_built(small)


def test_the_service_takes_them_in_when_it_is_quiet(small: Settings) -> None:
    build(small)
    count(small, {"ann/story": 1})
    with Rebuilder(small, lambda _: None) as rebuilder:
        write_version(small.content, "bob", "sql", "1.0.1", "More.\n")
        rebuilder.make_visible("bob", "sql")
        wait_until(lambda: rebuilder.health()["status"] == "ok", "all lists")
    assert shown(small) == {"ann/story": 1, "ann/review": 0, "bob/sql": 0}
    assert read_tree(small.out) == freshly_built(small)


def test_logs_are_counted_during_a_build(small: Settings) -> None:
    build_files(small)
    count(small, {"ann/story": 1})
    build(small, index=False, on_visible=lambda _: count(small, {"ann/story": 1, "bob/sql": 1}))
    assert shown(small) == {"ann/story": 1, "ann/review": 0, "bob/sql": 0}
    build(small, index=False)
    assert shown(small) == {"ann/story": 2, "ann/review": 0, "bob/sql": 1}
    assert read_tree(small.out) == freshly_built(small)


# Ends in the middle


class Stopped(BaseException):
    """Stands for the end of the process: no code of ours may catch it."""


def test_a_build_that_ends_anywhere_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount, "REPOS_PER_BATCH_UNHURRIED", 2)
    rename = os.rename
    settings = settings_in(tmp_path)
    grow(settings, 5)
    write_owner(settings.content, "cyd")
    for stop_at in itertools.count(1, 3):
        remove_pulls(settings)
        build_files(settings)
        assert None in shown(settings).values()
        count(settings, {"o0/r0": 2})
        left = stop_at

        def stop(*args: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Stopped
            rename(*args)

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", stop)
            try:
                build_files(settings)
                break
            except Stopped:
                pass
        assert build_files(settings, changed=[]) == freshly_built(settings)
        assert shown(settings)["o0/r0"] == 2
    assert stop_at > 25


KILLED_BUILD = """
import os, signal, sys
from builder.pipeline.build import build
from builder.model.settings import Settings

rename, number = os.rename, int(sys.argv[1])
def count(*args):
    global number
    number -= 1
    if not number:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*args)
os.rename = count
build(Settings(*sys.argv[2:]), changed=[])
"""


def test_a_killed_process_leaves_nothing_that_the_next_build_does_not_mend(
    small: Settings,
) -> None:
    build(small)
    count(small, {"ann/story": 2})
    command = [sys.executable, "-c", KILLED_BUILD, "4", *small[:5]]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert read_tree(small.out) != freshly_built(small)
    build(small, changed=[])
    assert read_tree(small.out) == freshly_built(small)


# Counts that are lost, restored or replaced


def test_without_the_counts_all_is_null_again(small: Settings) -> None:
    before = build_files(small)
    count(small, {"ann/story": 2})
    build_files(small)
    remove_pulls(small)
    assert build_files(small, changed=[]) == before


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
def test_other_counts_than_those_that_are_shown(
    small: Settings, replace: Callable[[Settings, bytes], None]
) -> None:
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


def test_as_many_pulls_on_other_days(four: Settings) -> None:
    count(four, {"ann/a": 10}, day=0)
    build_files(four)
    assert listed(four, "trending") == ["bob/c", "ann/a", "ann/b", "bob/d"]
    remove_pulls(four)
    count(four, {"ann/a": 10}, day=14)
    assert build_files(four, changed=[]) == freshly_built(four)
    assert listed(four, "trending") == ["ann/a", "bob/c", "ann/b", "bob/d"]


def test_publishers_do_not_wait_until_damaged_counts_are_mended(small: Settings) -> None:
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


def test_damaged_counts_are_told_and_the_site_stays(small: Settings) -> None:
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


def test_a_check_of_the_site_knows_them(small: Settings) -> None:
    count(small, {"ann/story": 2})
    build(small)
    assert compare(small)[:3] == ([], [], [])
    count(small, {"ann/story": 1})
    missing, differing, orphaned, _ = compare(small)
    assert missing == orphaned == []
    assert "api/v1/repos/ann/story.json" in differing


# Content that changes while nobody looks


def edit_tags(settings: Settings) -> None:
    edit_record(Path(settings.content, "ann/story/1.0.0.json"), title="Other", tags=["fresh"])


def remove_repo(settings: Settings) -> None:
    shutil.rmtree(f"{settings.content}/bob/sql")


@pytest.mark.parametrize("change", [edit_tags, remove_repo])
def test_content_that_nobody_told_of_is_left_to_the_next_build(
    small: Settings, change: Callable[[Settings], None]
) -> None:
    build_files(small)
    count(small, {"ann/story": 1})
    change(small)
    report = build(small, changed=[], index=False)
    # It has come across that, so the next build need not be told either.
    assert not report.is_settled
    assert data(small, "repos/ann/review")["pulls"] == 0
    assert build(small, changed=[], index=False).is_settled
    assert build_files(small, changed=[]) == freshly_built(small)


def test_a_fault_in_one_repo_is_told_and_the_others_get_their_pulls(small: Settings) -> None:
    build_files(small)
    count(small, {"ann/story": 1, "bob/sql": 2})
    text = Path(small.content, "ann/story/1.0.0.md")
    sound = text.read_bytes()
    text.write_bytes(b"Edited")
    for _ in range(2):
        with pytest.raises(ContentError, match=r"ann/story/1\.0\.0\.md"):
            build_files(small, changed=[])
        assert data(small, "repos/bob/sql")["pulls"] == data(small, "users/bob")["pulls"] == 2
        assert data(small, "repos/ann/story")["pulls"] is None
    text.write_bytes(sound)
    assert build_files(small, changed=[]) == freshly_built(small)


def test_a_faulty_profile_is_told_and_made_good(small: Settings) -> None:
    build_files(small)
    count(small, {"ann/story": 1, "bob/sql": 2})
    profile = Path(small.content, "ann/owner.json")
    sound = profile.read_bytes()
    profile.write_bytes(b"{")
    with pytest.raises(ContentError, match=r"ann/owner\.json"):
        build_files(small, changed=[])
    assert data(small, "users/bob")["pulls"] == 2
    profile.write_bytes(sound)
    assert build_files(small, changed=[]) == freshly_built(small)


def test_where_nobody_counts_the_state_says_nothing(small: Settings) -> None:
    build(small)
    assert not pulls_path(small).exists()
    with State(small.state, read_only=True) as state:
        assert state.pulls.shown() == (0, None)
        assert state.pulls.of_owner("ann") is None
