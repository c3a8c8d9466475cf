"""The rebuilder: builds that fail are tried again, and what is wrong in one place stays there."""

import asyncio
import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.model.errors import ContentError, OperatorError, RequestError
from builder.pipeline import rebuild
from builder.search.queries import ListQuery, Queries
from builder.search.query_thread import QueryThread
from builder.store.state import State
from tests.builder.pipeline.rebuilds import Hub, rebuilding
from tests.support.calls import watched
from tests.support.catalogues import edit_record
from tests.support.servers import wait_until


@pytest.fixture(autouse=True)
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "RETRY_SECONDS_MIN", 0.01)
    monkeypatch.setattr(rebuild, "RETRY_SECONDS_MAX", 0.05)


@contextlib.contextmanager
def failing(site: str, error: Exception) -> Iterator[None]:
    """No file of the site can be written meanwhile."""

    def fail(call: str, args: tuple) -> None:
        if call == "open" and str(args[0]).startswith(f"{site}/") and args[1] & os.O_CREAT:
            raise error

    with watched(fail):
        yield


def test_a_build_that_fails_is_tried_again(built):
    with rebuilding(built) as hub:
        hub.write("ann/story", "1.0.1")
        with failing(built.out, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):
            with pytest.raises(RequestError) as caught:
                hub.show("ann/story")
            assert caught.value.code == "unavailable"
            wait_until(lambda: hub.health["failures"] > 1, "another try")
            assert hub.health["status"] == "failing" and hub.health["lag_seconds"] > 0
            assert hub.rebuilder.fails_publications()
            # Paths and faults of the machine appear in the log only.
            assert built.out not in json.dumps(hub.health)
            outcome = hub.outcomes[-1]
            assert isinstance(outcome, OperatorError) and built.out in str(outcome)
            assert hub.latest("ann/story") == "1.0.0"
        hub.wait_until_settled()
        assert hub.health["last_error"] is None
        assert not hub.rebuilder.fails_publications()
        assert hub.latest("ann/story") == "1.0.1"
    hub.check_site()


def test_a_failure_nobody_thought_of_is_no_end(built):
    with rebuilding(built) as hub:
        hub.write("ann/story", "1.0.1")
        with failing(built.out, ZeroDivisionError()), pytest.raises(RequestError):
            hub.show("ann/story")
        wait_until(lambda: hub.outcomes, "the outcome, which is noted after the answer")
        assert isinstance(hub.outcomes[0], ZeroDivisionError)
        hub.wait_until_settled()
    hub.check_site()


# Each writes bob/sql 1.1.0 with a fault, and returns a function that repairs it.


def put_bad_hash(hub: Hub) -> Callable[[], object]:
    record = hub.write("bob/sql", "1.1.0")
    right = record.read_bytes()
    edit_record(record, sha256="0" * 64)
    return lambda: record.write_bytes(right)


def put_record_without_text(hub: Hub) -> Callable[[], object]:
    record = hub.write("bob/sql", "1.1.0")
    text = record.with_suffix(".md").rename(f"{hub.settings.content}/aside")
    return lambda: text.rename(record.with_suffix(".md"))


def put_bad_profile(hub: Hub) -> Callable[[], object]:
    hub.write("bob/sql", "1.1.0")
    profile = Path(hub.settings.content, "bob", "owner.json")
    profile.write_bytes(b"{")
    return profile.unlink


@pytest.mark.parametrize(
    ("put_fault", "is_repo_sound"),
    [(put_bad_hash, False), (put_record_without_text, False), (put_bad_profile, True)],
)
def test_a_fault_in_one_repo_does_not_stop_the_others(built, put_fault, is_repo_sound):
    with rebuilding(built) as hub:
        mend = put_fault(hub)
        with contextlib.nullcontext() if is_repo_sound else pytest.raises(RequestError):
            hub.show("bob/sql")
        assert hub.latest("bob/sql") == ("1.1.0" if is_repo_sound else "1.0.0")
        for number in range(1, 4):
            hub.publish("ann/story", f"1.0.{number}")
            assert hub.latest("ann/story") == f"1.0.{number}"
        wait_until(lambda: hub.health["status"] == "failing", "the fault")
        assert "bob/" in hub.health["last_error"]["message"]
        assert not hub.rebuilder.fails_publications()
        assert any(isinstance(outcome, ContentError) for outcome in hub.outcomes)
        mend()
        hub.wait_until_settled()
        assert hub.latest("bob/sql") == "1.1.0"
    hub.check_site()


def test_damage_that_a_reader_meets_is_made_good(built):
    path = State.path_in(built.state)
    with rebuilding(built) as hub:
        hub.wait_until_settled()
        with open(path, "r+b") as file:
            # Overwrites all rows, and leaves the description of the tables.
            file.seek(4096)
            file.write(b"\xff" * (os.path.getsize(path) - 4096))
        with contextlib.closing(QueryThread(built, hub.rebuilder.check_caches)) as queries:

            def ask() -> int | None:
                with contextlib.suppress(RequestError):
                    return asyncio.run(queries.run(Queries.find, ListQuery(q="care"), 0, 9)).total

            assert ask() is None
            assert wait_until(ask, "an answer") == 1
    assert State.find_damage(built.state) is None
    hub.check_site()
