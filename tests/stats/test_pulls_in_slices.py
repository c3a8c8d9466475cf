"""Builds that take pulls in while publishers wait: in slices, and to an end."""

import itertools
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from builder.model.matching import match_file
from builder.model.routes import SORTS
from builder.model.settings import Settings
from builder.pipeline import settle
from builder.pipeline.build import build
from builder.pipeline.rebuild import Rebuilder
from builder.store.state import State
from tests.builder.pipeline.sites import Stopped, stop_at
from tests.stats.counting import by_id, count, data, listed, remove_pulls, shown
from tests.support.catalogues import (
    build_files,
    freshly_built,
    read_tree,
    settings_in,
    write_owner,
    write_version,
)
from tests.support.servers import wait_until

# Files count as settled at once, so what did not change is not even looked at.
pytestmark = pytest.mark.usefixtures("settled")


def test_a_repo_that_is_rendered_anyway_shows_its_counts_at_once(small):
    build_files(small)
    count(small, {"ann/story": 2})
    write_version(small.content, "ann", "story", "1.0.1", "Longer.\n")
    seen = []
    build(
        small, changed=[("ann", "story")], is_wanted=lambda: True,
        on_visible=lambda _: seen.append(data(small, "repos/ann/story")["pulls"]),
    )  # fmt: skip
    assert seen == [2]


def grow(settings: Settings, repos: int) -> None:
    for number in range(repos):
        write_version(settings.content, f"o{number % 3}", f"r{number}", "1.0.0", f"x{number}")


def test_who_publishes_does_not_wait_for_them(small):
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


def test_it_gives_way_between_batches_and_goes_on(small, monkeypatch):
    monkeypatch.setattr(settle, "REPOS_PER_BATCH", 4)
    grow(small, 15)
    build_files(small)
    before = read_tree(small.out)
    count(small, {"ann/story": 2})
    steps = []
    for _ in range(99):
        calls = itertools.count()
        report = build(small, changed=[], index=False, is_wanted=lambda: next(calls) > 1)  # noqa: B023
        steps.append(len(set(changed_repos(before, small))))
        if report.is_settled:
            break
        # Half of it is null and half 0: every list is one of before or of after, and whole.
        for sort in SORTS:
            assert len(listed(small, sort)) == 18
    assert steps[:5] == [4, 8, 12, 16, 18]
    assert steps[-1] == 18
    assert read_tree(small.out) == freshly_built(small)


def test_it_ends_under_constant_load(small, monkeypatch):
    monkeypatch.setattr(settle, "LAG_SECONDS_MAX", 0.0)
    monkeypatch.setattr(settle, "SLICE_SECONDS", 0.005)
    monkeypatch.setattr(settle, "REPOS_PER_BATCH", 3)
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


def test_counts_that_come_while_others_are_taken_in(small, monkeypatch):
    monkeypatch.setattr(settle, "REPOS_PER_BATCH", 2)
    grow(small, 6)
    build_files(small)
    count(small, {"ann/story": 1})
    for number in range(4):
        calls = itertools.count()
        build(small, changed=[], index=False, is_wanted=lambda: next(calls) > 1)  # noqa: B023
        count(small, {"ann/story": 1, f"o0/r{number}": 1, "o0/r0": 1})
    assert build(small, changed=[], index=False).is_settled
    assert shown(small)["ann/story"] == 5
    assert read_tree(small.out) == freshly_built(small)


def leave_in_a_pass(settings: Settings) -> None:
    """Publish, and leave the lists in the middle of a pass."""
    write_version(settings.content, "ann", "story", "1.0.1", "Longer.\n")
    for questions in itertools.count(1):
        calls = itertools.count()
        build(
            settings, changed=[("ann", "story")], index=False,
            is_wanted=lambda: next(calls) > questions,  # noqa: B023
        )  # fmt: skip
        with State(settings.state, read_only=True) as state:
            if state.passes.serial():
                return


def test_what_lost_its_object_stays_for_a_build_of_two_passes(small):
    build_files(small)
    leave_in_a_pass(small)
    count(small, {"ann/story": 1})
    shutil.rmtree(f"{small.content}/bob/sql")
    build(small, changed=[("bob", "sql")], index=False)
    assert Path(small.out, "bob/sql.html").exists()
    assert build_files(small, changed=[]) == freshly_built(small)


def test_the_service_takes_them_in_when_it_is_quiet(small):
    build(small)
    count(small, {"ann/story": 1})
    with Rebuilder(small, lambda _: None) as rebuilder:
        write_version(small.content, "bob", "sql", "1.0.1", "More.\n")
        rebuilder.make_visible("bob", "sql")
        wait_until(lambda: rebuilder.health()["status"] == "ok", "all lists")
    assert shown(small) == {"ann/story": 1, "ann/review": 0, "bob/sql": 0}
    assert read_tree(small.out) == freshly_built(small)


def test_logs_are_counted_during_a_build(small):
    build_files(small)
    count(small, {"ann/story": 1})
    build(small, index=False, on_visible=lambda _: count(small, {"ann/story": 1, "bob/sql": 1}))
    assert shown(small) == {"ann/story": 1, "ann/review": 0, "bob/sql": 0}
    build(small, index=False)
    assert shown(small) == {"ann/story": 2, "ann/review": 0, "bob/sql": 1}
    assert read_tree(small.out) == freshly_built(small)


def test_a_build_that_ends_anywhere_is_made_good(tmp_path, monkeypatch):
    monkeypatch.setattr(settle, "REPOS_PER_BATCH_UNHURRIED", 2)
    settings = settings_in(tmp_path)
    grow(settings, 5)
    write_owner(settings.content, "cyd")
    for number in itertools.count(1, 3):
        remove_pulls(settings)
        build_files(settings)
        assert None in shown(settings).values()
        count(settings, {"o0/r0": 2})
        with monkeypatch.context() as patch:
            stop_at(patch, "rename", number)
            try:
                build_files(settings)
                break
            except Stopped:
                pass
        assert build_files(settings, changed=[]) == freshly_built(settings)
        assert shown(settings)["o0/r0"] == 2
    assert number > 20
