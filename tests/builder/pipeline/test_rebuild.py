"""The rebuilder: what it is asked for gets visible, builds are shared, and failures mended."""

import asyncio
import contextlib
import errno
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builder.model.errors import ContentError, OperatorError, RequestError
from builder.model.routes import SORTS
from builder.model.settings import Settings
from builder.pipeline import rebuild, settle
from builder.pipeline.build import Built, build, compare
from builder.pipeline.context import Named
from builder.pipeline.rebuild import Outcome, Rebuilder
from builder.render import envelopes
from builder.search.queries import ListQuery, Queries
from builder.search.query_thread import QueryThread
from builder.store import site
from builder.store.state import State, work
from builder.write import lists
from tests.support.catalogues import build_files, edit_record, read_tree, write_version
from tests.support.servers import DEADLINE_SECONDS, wait_until


def answer(settings: Settings, file: str) -> dict:
    return json.loads(Path(settings.out, f"api/v1/{file}").read_bytes())


def latest(settings: Settings, repo: str) -> str:
    return answer(settings, f"repos/{repo}.json")["data"]["latest_version"]


def fresh(settings: Settings) -> dict[str, bytes]:
    """The site that a full build makes of the content."""
    other = settings._replace(out=f"{settings.out}-fresh", state=f"{settings.state}-fresh")
    return build_files(other)


def wait_until_settled(rebuilder: Rebuilder) -> None:
    wait_until(lambda: rebuilder.health()["status"] == "ok", "all lists")


@pytest.fixture
def built(small: Settings) -> Settings:
    build(small)
    return small


@pytest.fixture
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "RETRY_SECONDS_MIN", 0.01)
    monkeypatch.setattr(rebuild, "RETRY_SECONDS_MAX", 0.05)


def test_a_publication_is_visible_when_that_is_said(built: Settings) -> None:
    with Rebuilder(built, lambda _: None) as rebuilder:
        for number in range(1, 6):
            version = f"1.0.{number}"
            write_version(built.content, "ann", "story", version, f"Story {number}.\n")
            serial = rebuilder.make_visible("ann", "story")
            assert serial == 4 + number
            assert latest(built, "ann/story") == version
            first = answer(built, "repos/_/new/1.json")["data"]
            assert {repo["name"]: repo["latest_version"] for repo in first}["story"] == version
        wait_until_settled(rebuilder)
        assert answer(built, "hub.json")["data"]["serial"] == serial
        assert rebuilder.health()["serial"] == serial
    assert read_tree(built.out) == fresh(built)


def test_a_build_that_nobody_waits_for_leaves_time_to_join_it(
    built: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "COMPANY_SECONDS", DEADLINE_SECONDS)
    named: list[Named] = []
    looks: list[int] = []

    def build_noted(*arguments: Any, changed: Iterable[Named] | None, **options: Any) -> Built:
        named.extend(changed or ())
        return build(*arguments, changed=changed, **options)

    def serial() -> int:
        looks.append(1)  # it is asked whenever the thread looks for what to build
        return 5

    monkeypatch.setattr(rebuild, "build", build_noted)
    write_version(built.content, "ann", "story", "1.0.1", "Longer.\n")
    with Rebuilder(built, lambda _: None, serial=serial) as rebuilder:
        wait_until_settled(rebuilder)
        before = len(looks)
        rebuilder.request([("ann", "story")])
        wait_until(lambda: len(looks) > before, "a look")
        rebuilder.make_visible("ann", "story")
    assert named == [("ann", "story")]


def test_publications_at_once_share_builds(built: Settings) -> None:
    told: list[Built | Exception] = []
    count = 32
    ready = threading.Barrier(count)

    def publish(number: int) -> int:
        write_version(built.content, "ann", f"repo-{number}", "1.0.0", f"Text {number}.\n")
        ready.wait()
        serial = rebuilder.make_visible("ann", f"repo-{number}")
        assert latest(built, f"ann/repo-{number}") == "1.0.0"
        return serial

    with Rebuilder(built, told.append) as rebuilder, ThreadPoolExecutor(count) as pool:
        serials = list(pool.map(publish, range(count)))
        wait_until_settled(rebuilder)
    assert max(serials) == 4 + count
    assert all(isinstance(report, Built) for report in told)
    assert sum(report.rendered for report in told) == count
    assert len(told) < count / 2
    assert read_tree(built.out) == fresh(built)


def test_deep_pages_are_left_until_it_is_quiet(
    built: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "QUIET_SECONDS", 60.0)
    with Rebuilder(built, lambda _: None) as rebuilder:
        write_version(built.content, "ann", "story", "1.0.1", "Longer.\n")
        rebuilder.make_visible("ann", "story")
        wait_until(lambda: rebuilder.health()["last_build"], "the build")
        health = rebuilder.health()
        assert (health["status"], health["serial"]) == ("behind", 4)
        assert health["lag_seconds"] > 0
    # The next start goes on from there, also when it is told of nothing.
    assert build(built, changed=()).is_settled
    assert answer(built, "hub.json")["data"]["serial"] == 5
    assert read_tree(built.out) == fresh(built)


def test_lists_are_not_put_off_for_ever(built: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    # Somebody always waits; so each build does a little of what is left, however short a slice is.
    monkeypatch.setattr(settle, "LAG_SECONDS_MAX", 0.0)
    monkeypatch.setattr(settle, "SLICE_SECONDS", 0.005)
    for number in range(1, 100):
        write_version(built.content, "ann", "story", f"1.0.{number}", f"Story {number}.\n")
        report = build(built, changed=[("ann", "story")], is_wanted=lambda: True)
        serial = answer(built, "hub.json")["data"]["serial"]
        # What came up in the pass is for the next, so a pass has an end.
        assert serial <= 4 + number
        if serial > 10:
            break
    assert serial > 10
    assert not report.is_settled or serial == 4 + number
    build(built)
    assert read_tree(built.out) == fresh(built)


def test_under_constant_load_every_publication_is_settled_after_some_builds(
    empty: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each build does one step of what is left, and has something new of its own."""
    repos = 10
    for module in (lists, envelopes):
        monkeypatch.setattr(module, "PAGE_SIZE", 1)
    monkeypatch.setattr(lists, "PAGES_PER_STRETCH", 1)
    for name in ("LAG_SECONDS_MAX", "SLICE_SECONDS", "SLICE_SHARE"):
        monkeypatch.setattr(settle, name, 0.0)
    clock = [0]
    monkeypatch.setattr(work, "time", SimpleNamespace(time=lambda: clock[0]))
    for number in range(repos):
        write_version(empty.content, "ann", f"repo-{number}", "1.0.0", "One.\n")
    build(empty)
    # The list in each order, the index, and the files of the catalogue.
    steps = len(SORTS) * repos + 1 + 5
    serial, reached = 0, 0
    for clock[0] in range(1, 4 * steps):
        version = f"1.0.{clock[0]}"
        repo = f"repo-{clock[0] % repos}"
        write_version(empty.content, "ann", repo, version, f"{version}\n")
        report = build(empty, changed=[("ann", repo)], is_wanted=lambda: True)
        serial = answer(empty, "hub.json")["data"]["serial"]
        if serial > repos:
            # Publication n came at time n, and was version n after the first ones.
            reached = serial - repos
        # In the worst case it came just after a pass began.
        assert clock[0] - reached <= 2 * steps
        assert report.behind_seconds == clock[0] - (reached + 1)
    assert reached > steps
    build(empty)
    assert read_tree(empty.out) == fresh(empty)


def test_the_lag_is_that_of_the_oldest_change_that_lists_do_not_have(
    built: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "QUIET_SECONDS", 60.0)
    monkeypatch.setattr(settle, "LAG_SECONDS_MAX", 0.0)
    monkeypatch.setattr(settle, "SLICE_SECONDS", 0.0)
    asked: dict[int, float] = {}
    with Rebuilder(built, lambda _: None) as rebuilder:
        for number in range(1, 60):
            write_version(built.content, "ann", "story", f"1.0.{number}", f"Story {number}.\n")
            asked[4 + number] = time.monotonic()
            rebuilder.make_visible("ann", "story")
            if rebuilder.health()["serial"] > 10:
                break

        def is_right() -> bool:
            health = rebuilder.health()
            oldest = asked.get(health["serial"] + 1, math.inf)
            return health["lag_seconds"] <= max(0.0, time.monotonic() - oldest)

        assert rebuilder.health()["serial"] > 10
        wait_until(is_right, "the end of the build")


def test_damage_that_a_reader_meets_is_made_good(built: Settings) -> None:
    path = State.path_in(built.state)
    with Rebuilder(built, lambda _: None) as rebuilder:
        wait_until_settled(rebuilder)
        with open(path, "r+b") as file:
            # In the place of all rows; what is said of the tables themselves stays.
            file.seek(4096)
            file.write(b"\xff" * (os.path.getsize(path) - 4096))
        with contextlib.closing(QueryThread(built, rebuilder.doubt)) as queries:

            def ask() -> int | None:
                with contextlib.suppress(RequestError):
                    return asyncio.run(queries.run(Queries.find, ListQuery(q="care"), 0, 9)).total

            assert ask() is None
            assert wait_until(ask, "an answer") == 1
    assert State.find_damage(built.state) is None
    assert read_tree(built.out) == fresh(built)


def test_a_look_at_everything_is_not_put_off_for_ever(
    built: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody publishes again before each build ends, and what is looked for has no name."""
    monkeypatch.setattr(rebuild, "LOOK_LATE_SECONDS", 0.0)
    is_over = threading.Event()
    told: list[Built | Exception] = []

    def tell(outcome: Built | Exception) -> None:
        told.append(outcome)
        if len(told) < 20 and not is_over.is_set():
            rebuilder.request([("ann", "story")])

    with Rebuilder(built, tell) as rebuilder:
        rebuilder.request([("ann", "story")])
        write_version(built.content, "zoe", "repo", "1.0.0", "New.\n")
        rebuilder.request(None)
        wait_until(lambda: Path(built.out, "zoe/repo.html").exists(), "the look")
        is_over.set()
        assert len(told) < 20


@pytest.mark.usefixtures("fast_retries")
def test_a_build_that_fails_is_tried_again(
    built: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Built | Exception] = []

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Rebuilder(built, told.append) as rebuilder:
        write_version(built.content, "ann", "story", "1.0.1", "Longer.\n")
        with monkeypatch.context() as broken:
            broken.setattr(site, "_replace", fail)
            with pytest.raises(RequestError) as caught:
                rebuilder.make_visible("ann", "story")
            assert caught.value.code == "unavailable"
            wait_until(lambda: rebuilder.health()["failures"] > 1, "another try")
            health = rebuilder.health()
            assert health["status"] == "failing" and health["lag_seconds"] > 0
            assert rebuilder.fails_publications()
            # What is wrong on the machine is for its log.
            assert built.out not in json.dumps(health)
            assert isinstance(told[-1], OperatorError) and built.out in str(told[-1])
            assert latest(built, "ann/story") == "1.0.0"
        wait_until_settled(rebuilder)
        assert rebuilder.health()["last_error"] is None
        assert not rebuilder.fails_publications()
        assert latest(built, "ann/story") == "1.0.1"
    assert read_tree(built.out) == fresh(built)


@pytest.mark.usefixtures("fast_retries")
def test_a_failure_nobody_thought_of_is_no_end(
    built: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Built | Exception] = []

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with Rebuilder(built, told.append) as rebuilder:
        write_version(built.content, "ann", "story", "1.0.1", "Longer.\n")
        with monkeypatch.context() as broken:
            broken.setattr(site, "_replace", fail)
            with pytest.raises(RequestError):
                rebuilder.make_visible("ann", "story")
        assert isinstance(told[0], ZeroDivisionError)
        wait_until_settled(rebuilder)
    assert read_tree(built.out) == fresh(built)


def put_bad_hash(settings: Settings) -> Callable[[], object]:
    record = write_version(settings.content, "bob", "sql", "1.1.0", "New.\n")
    right = record.read_bytes()
    edit_record(record, sha256="0" * 64)
    return lambda: record.write_bytes(right)


def put_record_without_text(settings: Settings) -> Callable[[], object]:
    record = write_version(settings.content, "bob", "sql", "1.1.0", "New.\n")
    text = record.with_suffix(".md").rename(f"{settings.content}/aside")
    return lambda: text.rename(record.with_suffix(".md"))


def put_bad_profile(settings: Settings) -> Callable[[], object]:
    write_version(settings.content, "bob", "sql", "1.1.0", "New.\n")
    profile = Path(settings.content, "bob", "owner.json")
    profile.write_bytes(b"{")
    return profile.unlink


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize("put_fault", [put_bad_hash, put_record_without_text, put_bad_profile])
def test_a_fault_in_one_repo_does_not_stop_the_others(
    built: Settings, put_fault: Callable[[Settings], Callable[[], object]]
) -> None:
    told: list[Built | Exception] = []
    with Rebuilder(built, told.append) as rebuilder:
        mend = put_fault(built)
        if put_fault is put_bad_profile:
            rebuilder.make_visible("bob", "sql")  # the repo itself is sound
            assert latest(built, "bob/sql") == "1.1.0"
        else:
            with pytest.raises(RequestError):
                rebuilder.make_visible("bob", "sql")
            assert latest(built, "bob/sql") == "1.0.0"
        for number in range(1, 4):
            write_version(built.content, "ann", "story", f"1.0.{number}", f"Story {number}.\n")
            rebuilder.make_visible("ann", "story")
            assert latest(built, "ann/story") == f"1.0.{number}"
        wait_until(lambda: rebuilder.health()["status"] == "failing", "the fault")
        assert "bob/" in rebuilder.health()["last_error"]["message"]
        assert not rebuilder.fails_publications()
        assert any(isinstance(outcome, ContentError) for outcome in told)
        mend()
        wait_until_settled(rebuilder)
        assert latest(built, "bob/sql") == "1.1.0"
    assert read_tree(built.out) == fresh(built)


def test_a_build_for_which_nobody_waits_is_cut_short_at_the_end(
    small: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, is_stopping = threading.Event(), threading.Event()
    join = threading.Thread.join

    def joined(thread: threading.Thread, timeout: float | None = None) -> None:
        is_stopping.set()
        join(thread, timeout)

    def hold(what: str, done: int, total: int) -> None:
        has_begun.set()
        is_stopping.wait(DEADLINE_SECONDS)

    told: list[Outcome] = []
    rebuilder = Rebuilder(small, told.append, hold)
    rebuilder.request(None)
    with rebuilder:
        assert has_begun.wait(DEADLINE_SECONDS)
        monkeypatch.setattr(threading.Thread, "join", joined)
    assert told == []
    assert not site.is_built(small.out)
    build(small)
    assert not any(compare(small))


def test_what_is_asked_for_is_built_before_the_end(built: Settings) -> None:
    with Rebuilder(built, lambda _: None) as rebuilder:
        write_version(built.content, "ann", "story", "1.0.1", "Longer.\n")
        rebuilder.request([("ann", "story")])
    assert latest(built, "ann/story") == "1.0.1"
    with pytest.raises(RequestError):
        rebuilder.make_visible("ann", "story")


def test_everything_is_looked_at_on_request(built: Settings) -> None:
    with Rebuilder(built, lambda _: None) as rebuilder:
        write_version(built.content, "ann", "story", "1.0.1", "Longer.\n")
        write_version(built.content, "zoe", "repo", "1.0.0", "New.\n")
        rebuilder.request(None)
        wait_until(lambda: rebuilder.health()["serial"] == 6, "the build")
    assert read_tree(built.out) == fresh(built)


def test_a_full_build_is_waited_for(small: Settings) -> None:
    # Nothing is built yet.
    with Rebuilder(small, lambda _: None) as rebuilder:
        assert rebuilder.health()["serial"] is None
        assert rebuilder.make_visible("ann", "story") == 4
        wait_until_settled(rebuilder)
    assert read_tree(small.out) == fresh(small)


def test_two_rebuilders_never_build_at_once(
    built: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As two processes would: each has its own descriptor of the lock.
    running, most = [0], [0]
    begin, end = State.begin, State.end

    def count(step: int) -> None:
        running[0] += step
        most[0] = max(most[0], running[0])

    def begin_counted(state: State, **options: bool) -> None:
        count(1)
        begin(state, **options)

    monkeypatch.setattr(State, "begin", begin_counted)
    monkeypatch.setattr(State, "end", lambda *args: (end(*args), count(-1)))

    def publish_some(rebuilder: Rebuilder, name: str) -> None:
        for number in range(10):
            write_version(built.content, "ann", name, f"1.0.{number}", f"{name} {number}\n")
            rebuilder.make_visible("ann", name)
            assert latest(built, f"ann/{name}") == f"1.0.{number}"

    with Rebuilder(built, lambda _: None) as one, Rebuilder(built, lambda _: None) as other:
        work = [(one, "a"), (one, "b"), (other, "c"), (other, "d")]
        with ThreadPoolExecutor(len(work)) as pool:
            jobs = [pool.submit(publish_some, *piece) for piece in work]
            for job in jobs:
                job.result()
        wait_until_settled(one)
        wait_until_settled(other)
    assert most == [1]
    assert read_tree(built.out) == fresh(built)
