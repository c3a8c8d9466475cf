"""The rebuilder: requested repos become visible, builds are shared, and it ends in order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from builder.model.errors import RequestError
from builder.pipeline import rebuild
from builder.pipeline.build import Built, build, compare
from builder.store import site
from builder.store.state import State
from tests.builder.pipeline.rebuilds import rebuilding
from tests.support.servers import DEADLINE_SECONDS, wait_until


def test_a_full_build_is_waited_for(small):
    with rebuilding(small) as hub:
        assert hub.health["serial"] is None  # nothing is built yet
        assert hub.show("ann/story") == 4
        hub.wait_until_settled()
    hub.check_site()


# Shared builds


def test_publications_at_once_share_builds(built):
    count = 32
    ready = threading.Barrier(count)

    def publish(number: int) -> int:
        hub.write(f"ann/repo-{number}")
        ready.wait()
        serial = hub.show(f"ann/repo-{number}")
        assert hub.latest(f"ann/repo-{number}") == "1.0.0"
        return serial

    with rebuilding(built) as hub, ThreadPoolExecutor(count) as pool:
        serials = list(pool.map(publish, range(count)))
        hub.wait_until_settled()
    assert max(serials) == 4 + count
    assert all(isinstance(outcome, Built) for outcome in hub.outcomes)
    assert sum(built.rendered for built in hub.outcomes) == count
    assert len(hub.outcomes) < count / 2
    hub.check_site()


def test_a_build_without_a_waiting_publisher_leaves_time_to_join_it(built, monkeypatch):
    monkeypatch.setattr(rebuild, "BATCH_WAIT_SECONDS", DEADLINE_SECONDS)
    looks: list[int] = []

    def serial() -> int:
        looks.append(1)  # called whenever the thread looks for something to build
        return 5

    with rebuilding(built, serial=serial) as hub:
        hub.write("ann/story", "1.0.1")
        hub.wait_until_settled()
        look, builds = len(looks), len(hub.outcomes)
        hub.ask_for("ann/story")
        wait_until(lambda: len(looks) > look, "a look")
        hub.show("ann/story")
    assert len(hub.outcomes) == builds + 1


def test_two_rebuilders_never_build_at_once(built, monkeypatch):
    # Each has its own descriptor of the lock, as two processes would have.
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

    with rebuilding(built) as one, rebuilding(built) as other, ThreadPoolExecutor(4) as pool:

        def publish_some(hub: Any, repo: str) -> None:
            for number in range(10):
                hub.publish(repo, f"1.0.{number}")
                assert hub.latest(repo) == f"1.0.{number}"

        work = [(one, "ann/a"), (one, "ann/b"), (other, "ann/c"), (other, "ann/d")]
        for job in [pool.submit(publish_some, *piece) for piece in work]:
            job.result()
        one.wait_until_settled()
        other.wait_until_settled()
    assert most == [1]
    one.check_site()


# The end


def test_what_is_asked_for_is_built_before_the_end(built):
    with rebuilding(built) as hub:
        hub.write("ann/story", "1.0.1")
        hub.ask_for("ann/story")
    assert hub.latest("ann/story") == "1.0.1"
    with pytest.raises(RequestError):
        hub.show("ann/story")


def test_a_build_for_which_nobody_waits_is_cut_short_at_the_end(small, monkeypatch):
    has_begun, is_stopping = threading.Event(), threading.Event()
    join = threading.Thread.join

    def joined(thread: threading.Thread, timeout: float | None = None) -> None:
        is_stopping.set()
        join(thread, timeout)

    def hold(what: str, done: int, total: int) -> None:
        has_begun.set()
        is_stopping.wait(DEADLINE_SECONDS)

    with rebuilding(small, progress=hold) as hub:
        hub.rebuilder.request(None)
        assert has_begun.wait(DEADLINE_SECONDS)
        monkeypatch.setattr(threading.Thread, "join", joined)
    assert hub.outcomes == []
    assert not site.is_built(small.out)
    build(small)
    assert not any(compare(small))
