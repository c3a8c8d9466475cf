"""A request that is sent again after a crash, at any moment, is published once."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operate.content_check import check
from publisher.accounts.database import Database
from publisher.write import idempotency
from publisher.write.idempotency import (
    ATTEMPTS_MAX,
    KEPT_SECONDS,
    IdempotencyKey,
    KeptAnswer,
    TooManyKept,
    fingerprint,
)
from publisher.write.publish import Published
from tests.publisher.write.acts import code_of, put, texts_of
from tests.support.calls import watched
from tests.support.children import dies_at
from tests.support.clock import Clock, StopClock


class Store:
    """A content folder, and answers that are kept for it."""

    def __init__(self, folder: Path, accounts_place: str) -> None:
        self.root = f"{folder}/content"
        self._place = accounts_place
        os.makedirs(self.root, exist_ok=True)
        self.open()

    def open(self) -> "Store":
        """Open the database again, as a new process does."""
        self.database = Database(self._place)
        return self

    def key(self, text: str, key: str = "k", repo: str = "ann/story") -> IdempotencyKey:
        owner, name = repo.split("/")
        mark = fingerprint(owner, name, None, body=text.encode())
        return IdempotencyKey(self.database, owner, key, mark)

    def put(self, text: str, key: str | None = "k", repo: str = "ann/story") -> Published:
        return put(self.root, text, repo, idempotency_key=key and self.key(text, key, repo))

    def texts(self, repo: str = "ann/story") -> list[str]:
        return texts_of(self.root, repo)

    def keys(self) -> list[str]:
        return [key for (key,) in self.database.execute("SELECT key FROM answer ORDER BY key")]


@pytest.fixture
def store(tmp_path: Path, accounts_place: str) -> Iterator[Store]:
    made = Store(tmp_path, accounts_place)
    yield made
    made.database.close()


@pytest.fixture
def clock(stop_clock: StopClock) -> Clock:
    return stop_clock(idempotency)


def test_nothing_new_is_an_answer_too(store: Store):
    store.put("One.", key=None)
    first = store.put("One.")
    store.put("Two.", key=None)
    assert first.unchanged and store.put("One.") == first
    assert store.texts() == ["One.", "Two."]


def test_warnings_of_what_a_version_breaks_are_in_the_same_answer_again(store: Store):
    store.put("Hello {{name}}.", key=None)
    first = store.put("Hello {{who}}.")
    assert first.warnings[0].startswith("breaking_variables: ")
    store.put("Hello.", key=None)
    assert store.put("Hello {{who}}.") == first


@pytest.mark.parametrize("is_second", [False, True])
def test_a_process_that_dies_at_any_call(store: Store, is_second: bool):
    number, is_dead = 0, True
    while is_dead:
        number += 1
        repo, key = f"ann-{number}/story", f"k{number}"
        before = ["One."] if is_second else []
        for text in before:
            store.put(text, key=None, repo=repo)
        # SQLite's connections do not outlive a fork.
        store.database.close()
        is_dead = dies_at(number, lambda key=key, repo=repo: store.open().put("New.", key, repo))
        store.open()
        answer = store.put("New.", key, repo)
        assert (answer.version, answer.unchanged) == (f"1.0.{len(before)}", False)
        store.put("Other.", key=None, repo=repo)
        assert store.put("New.", key, repo) == answer
        assert store.texts(repo) == [*before, "New.", "Other."]
    assert number > 20
    assert list(check(store.root)) == []


def test_a_failure_after_the_key_was_kept(store: Store):
    failed = []

    def fail_once(call: str, args: tuple) -> None:
        if call == "link" and not failed:
            failed.append(args)
            raise OSError(28, "No space left on device")

    with watched(fail_once):
        assert code_of(store.put, "One.") == "storage_unavailable"
    assert store.keys() == ["k"] and store.texts() == []
    assert not Path(store.root, "ann").exists()
    assert code_of(store.put, "Two.") == "idempotency_key_reused"
    assert store.put("One.").version == "1.0.0"
    assert store.put("One.").version == "1.0.0"


def test_the_number_went_to_another(store: Store):
    kept = KeptAnswer("1.0.0", None, b"the hash of a record that was never written")
    store.key("One.").store(kept)
    store.put("Another's.", key=None)
    assert store.put("One.").version == "1.0.1"
    assert store.put("One.").version == "1.0.1"


def test_of_the_last_attempts_those_that_write_are_first(store: Store, clock: Clock):
    key = store.key("One.")
    with store.database.transaction():
        for number in range(ATTEMPTS_MAX + 1):
            key.store(KeptAnswer(f"1.0.{number}", None, b"hash" if number % 2 else None))
            clock.now += 1
    found = [attempt.version for attempt in key.find()]
    numbers = range(ATTEMPTS_MAX, 0, -1)
    writing = [f"1.0.{number}" for number in numbers if number % 2]
    assert found == writing + [f"1.0.{number}" for number in numbers if number % 2 == 0]


def test_a_repo_that_was_taken_away_is_published_again(store: Store):
    store.put("One.", key=None)
    assert store.put("One.").unchanged
    for path in Path(store.root, "ann", "story").iterdir():
        path.unlink()
    assert not store.put("One.").unchanged
    assert store.texts() == ["One."]


def test_what_was_seen_before_is_made_durable(store: Store):
    store.put("One.")
    calls = []
    with watched(lambda call, args: calls.append(call)):
        store.put("One.")
    # The process that committed it may have died before its fsync.
    assert "fsync" in calls and "link" not in calls


def test_a_key_that_another_repo_takes_meanwhile(store: Store):
    story, poem = (store.key("One.", repo=repo) for repo in ("ann/story", "ann/poem"))
    assert story.find() == poem.find() == []
    kept = KeptAnswer("1.0.0", None, b"hash")
    story.store(kept)
    assert code_of(poem.store, kept) == "idempotency_key_reused"


def test_at_once_from_two_processes(tmp_path: Path, accounts_place: str):
    # Each has its own connection, as processes do.
    stores = [Store(tmp_path, accounts_place) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda store: store.put("One."), stores))
    assert all(answer == answers[0] for answer in answers)
    assert stores[0].texts() == ["One."]
    for store in stores:
        store.database.close()


def test_answers_are_kept_a_day(store: Store, clock: Clock):
    store.put("One.")
    clock.now += KEPT_SECONDS - 1
    assert code_of(store.put, "Two.") == "idempotency_key_reused"
    clock.now += 1
    assert store.put("Two.").version == "1.0.1"
    # Asking again does not prolong it.
    clock.now += KEPT_SECONDS - 1
    store.put("Two.")
    clock.now += 1
    assert store.put("One.").version == "1.0.2"


def test_keys_have_room_and_attempts_need_none(store: Store, clock: Clock):
    keys = [store.key("One.", key)._replace(kept_max=2) for key in ("k0", "k1", "k2")]
    for number in range(4):
        for key in keys[:2]:
            key.store(KeptAnswer(f"1.0.{number}", None, b"hash"))
        clock.now += 1
    with pytest.raises(TooManyKept) as caught:
        keys[2].store(KeptAnswer("1.0.0", None, b"hash"))
    assert caught.value.wait_seconds == KEPT_SECONDS - 1
    assert store.keys() == ["k0"] * 4 + ["k1"] * 4


_requests = st.tuples(
    st.text(), st.text(), st.none() | st.text(), st.binary() | st.just(b'["a","b",null]')
)


def mark(*request) -> bytes:
    *about, body = request
    return fingerprint(*about, body=body)


@given(_requests, _requests)
def test_fingerprints(one: tuple, other: tuple):
    assert (mark(*one) == mark(*other)) == (one == other)
