"""Whatever three nodes do at once, lose and leave: one order, and nothing acknowledged is lost."""

import contextlib
import itertools
import os
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.nodes import bucket as bucket_module
from publisher.nodes import log as log_module
from publisher.nodes import replica as replica_module
from publisher.nodes import snapshots as snapshots_module
from publisher.nodes.bucket import Bucket
from publisher.nodes.copying import check_store, copy_to_store
from publisher.nodes.objects import StoreUnavailable
from publisher.write.idempotency import IdempotencyKey
from publisher.write.publish import Published
from publisher.write.store import Folder
from tests.publisher.nodes.conftest import LARGE, Nodes
from tests.publisher.nodes.faulty import FaultyObjects
from tests.publisher.nodes.test_bucket import label, meet, put, take_back
from tests.support.depth import some_of
from tests.support.servers import wait_until

NAMES = ("one", "two", "three")
names = st.sampled_from(NAMES)
# Which of those that there are, which depends on what gets through.
numbers = st.integers(0, 9)
# Small ones and large ones.
texts = st.integers(0, 5).map(lambda number: f"text {number}{LARGE * (number % 2)}\n")


class Machine(RuleBasedStateMachine):
    """``acknowledged``: by version, what was answered; None once it was withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self.running = contextlib.ExitStack()
        folder = self.running.enter_context(tempfile.TemporaryDirectory())
        (Path(folder) / "store").mkdir()
        self.nodes = Nodes(Path(folder))
        self.acknowledged: dict[str, str | None] = {}
        self._copy(f"{folder}/plain")
        self.database = self.running.enter_context(Database(f"{folder}/var"))
        self.buckets: dict[str, Bucket] = {name: self.nodes.start(name) for name in NAMES}
        self.unsure: set[str] = set()
        self.answers: dict[int, str] = {}
        self.asked: dict[int, str] = {}
        self.seconds = itertools.count(0, 10)

    def _copy(self, folder: str) -> None:
        """The store begins with an entry of several texts."""
        os.mkdir(folder)
        for number in range(4):
            text = f"begin {number}\n"
            self.acknowledged[put(Folder(folder), text).version] = text
            put(Folder(folder), text, owner="bob")
        copy_to_store(folder, self.nodes.url, lambda *_: None)

    def teardown(self) -> None:
        try:
            self._check()
        finally:
            self.nodes.stop_all()
            self.running.close()

    def _check(self) -> None:
        for bucket in self.buckets.values():
            bucket.objects.before = bucket.objects.after = lambda kind, key: None
            # Until then it is asked in vain, with little patience.
            wait_until(lambda bucket=bucket: not bucket.status()["failures"], "the store")
        meet(*self.buckets.values())
        folders = [self.nodes.content(name) for name in NAMES]
        assert folders[0] == folders[1] == folders[2]
        for version, text in self.acknowledged.items():
            stored = folders[0].get(f"ann/story/{version}.md")
            assert stored == (text and text.encode()) or (stored is None and version in self.unsure)
        self.nodes.stop("one")
        self.nodes.start("new")
        assert self.nodes.content("new") == folders[1]
        assert check_store(self.nodes.url, lambda *_: None).faults == []

    @rule(name=names, text=texts)
    def publish(self, name: str, text: str) -> None:
        with contextlib.suppress(RequestError):
            self._note(text, self._put(name, text))

    @rule(name=names, number=st.integers(0, 3), text=texts)
    def publish_with_a_key(self, name: str, number: int, text: str) -> None:
        text = self.asked.setdefault(number, text)
        key = IdempotencyKey(self.database, "ann", f"key-{number}", text.encode())
        with contextlib.suppress(RequestError):
            done = self._put(name, text, idempotency_key=key)
            first = self.answers.setdefault(number, done.version)
            # Once it is withdrawn, the request may find the same text in another version.
            is_there = self.acknowledged.get(first, text) and first not in self.unsure
            assert done.version == first or not is_there
            self.answers[number] = done.version
            self._note(text, done)

    @rule(name=names, number=numbers)
    def move_label(self, name: str, number: int) -> None:
        if self.acknowledged:
            version = sorted(self.acknowledged)[number % len(self.acknowledged)]
            with contextlib.suppress(RequestError):
                label(self.buckets[name], version)

    @rule(name=names, number=numbers)
    def withdraw(self, name: str, number: int) -> None:
        there = sorted(version for version, text in self.acknowledged.items() if text)
        if len(there) > 3:
            version = there[number % len(there)]
            try:
                take_back(self.buckets[name], version)
                self.acknowledged[version] = None
            except RequestError:
                # It may be withdrawn, and only its text not be gone from the store yet.
                self.unsure.add(version)

    @rule(name=names)
    def restart(self, name: str) -> None:
        """As after a kill: what was applied since the last save is applied again."""
        folder = self.nodes.root / name / ".hub-store"
        mark = folder.read_bytes()
        self.buckets[name].objects.before = self.buckets[name].objects.after = lambda *_: None
        self.nodes.stop(name)
        folder.write_bytes(mark)
        self.buckets[name] = self.nodes.start(name)

    @rule(name=names, seed=st.integers(0, 2**32), percent=st.sampled_from([5, 30, 100]))
    def break_connection(self, name: str, seed: int, percent: int) -> None:
        """Requests are lost, or their answers."""
        chance = random.Random(seed)

        def fail(kind: str, key: str) -> None:
            if chance.random() * 100 < percent:
                raise StoreUnavailable("The store did not answer.")

        self.buckets[name].objects.before = self.buckets[name].objects.after = fail

    @rule(name=names)
    def mend_connection(self, name: str) -> None:
        self.buckets[name].objects.before = lambda kind, key: None
        self.buckets[name].objects.after = lambda kind, key: None

    @rule(first=names, second=names, text=texts)
    def overtake(self, first: str, second: str, text: str) -> None:
        """The second publishes between the first one's decision and its commit."""
        if first == second:
            return

        def between(kind: str, key: str) -> None:
            if kind == "create" and key.startswith("log/"):
                self.mend_connection(first)
                self.publish(second, f"{text} before")

        self.buckets[first].objects.before = between
        self.publish(first, text)
        self.mend_connection(first)

    def _put(self, name: str, text: str, **more) -> Published:
        # No two attempts are at the same time, or they would make the same record.
        now = datetime.now(UTC) + timedelta(seconds=next(self.seconds))
        return put(self.buckets[name], text, now=now, **more)

    def _note(self, text: str, done: Published) -> None:
        if not done.unchanged:
            assert self.acknowledged.get(done.version, text) in (text, None)
            self.acknowledged.setdefault(done.version, text)


@pytest.mark.long
def test_nodes_agree(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_module, "POLL_SECONDS", 0.02)
    for module in (log_module, replica_module):
        monkeypatch.setattr(module, "PAUSE_SECONDS_MAX", 0.02)
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(bucket_module, "Objects", FaultyObjects)
    monkeypatch.setattr(snapshots_module, "EVERY_ENTRIES", 4)
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=some_of(40), stateful_step_count=25, deadline=None)
    )
