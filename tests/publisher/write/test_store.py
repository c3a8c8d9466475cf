"""Decisions that are made again because another writer was faster."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from builder.model.errors import RequestError
from builder.model.records import OwnerFile
from builder.model.request_bodies import LabelDraft, WithdrawalDraft
from builder.store import content
from builder.store.check import check
from builder.store.labels import read_labels
from publisher.accounts.database import Database
from publisher.write.decision import Terms
from publisher.write.drafts import make_change, make_draft
from publisher.write.durable import FolderStore, open_folder
from publisher.write.idempotency import IdempotencyKey, fingerprint
from publisher.write.labels import LabelChange, change_label
from publisher.write.profile import write_profile
from publisher.write.publish import Published, publish
from publisher.write.quotas import QuotaKeeper, Quotas
from publisher.write.withdraw import Withdrawn, withdraw

T = TypeVar("T")
REPO = ("ann", "story")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Overtaken(Exception):
    pass


class Unseen(RequestError):
    def __init__(self) -> None:
        super().__init__("version_conflict", "Others did something before.")


class Shared(FolderStore):
    """A folder that other writers share.

    ``faster``: acts of others just before one of our writes, which then fails; ``unseen``: earlier
    acts of others that the folder does not know yet.
    """

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.faster: list[Callable[[], object]] = []
        self.unseen: list[Callable[[], object]] = []
        self.runs = 0
        self._has_written = False

    def decide(self, owner: str, name: str, work: Callable[[], T]) -> T:
        while True:
            self.runs += 1
            self._has_written = False
            try:
                done = super().decide(owner, name, work)
            except Overtaken:
                self.faster.pop(0)()
                continue
            except RequestError:
                if not self.unseen:
                    raise
            else:
                if self._has_written or not self.unseen:
                    return done
            self.unseen.pop(0)()

    def write_version(self, *args: Any, **options: Any) -> None:
        self._write()
        super().write_version(*args, **options)

    def write_events(self, *args: Any, **options: Any) -> None:
        self._write()
        super().write_events(*args, **options)

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        if withdrawn:
            self._write()
        super().write_withdrawal(owner, name, withdrawn, sync=sync)

    def sync_repo(self, owner: str, name: str) -> None:
        if self.unseen:
            raise Unseen
        super().sync_repo(owner, name)

    def _write(self) -> None:
        if self.faster:
            raise Overtaken
        self._has_written = True


@pytest.fixture
def store(tmp_path: Path) -> Shared:
    """A content folder with one version of a story."""
    root = tmp_path / "content"
    root.mkdir()
    put(FolderStore(str(root)), "One.")
    return Shared(str(root))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(str(tmp_path / "state")) as database:
        yield database


def put(store: FolderStore, text: str, **options: Any) -> Published:
    fields = {name: options.pop(name) for name in ("base_version", "labels") if name in options}
    draft = make_draft({"content": text} | fields)
    return publish(store, *REPO, draft, publisher="ann", terms=Terms(now=NOON, **options))


def move(
    store: FolderStore, version: str, expected: str | None = None, **options: Any
) -> LabelChange:
    fields = {"version": version} | ({"expected": expected} if expected else {})
    draft = make_change(LabelDraft, fields)
    return change_label(
        store, *REPO, "production", draft, by="ann", terms=Terms(now=NOON, **options)
    )


def take_back(store: FolderStore, version: str | None) -> Withdrawn:
    draft = make_change(WithdrawalDraft, {"reason": "error"})
    return withdraw(store, *REPO, version, draft, by="ann", terms=Terms(now=NOON))


def others(store: FolderStore, text: str, **options: Any) -> Callable[[], Published]:
    return lambda: put(FolderStore(store.root), text, **options)


def key_in(database: Database, key: str, body: bytes = b"") -> IdempotencyKey:
    return IdempotencyKey(database, "ann", key, fingerprint(*REPO, None, body=body))


def code_of(act: Callable[..., object], *args: Any, **options: Any) -> str:
    with pytest.raises(RequestError) as caught:
        act(*args, **options)
    return caught.value.code


def texts(store: FolderStore) -> list[str]:
    versions = content.list_versions(store.root, *REPO).versions
    return [content.read_version(store.root, *REPO, version)[1] for version in versions]


def test_a_folder_is_the_store(tmp_path: Path):
    store = open_folder(str(tmp_path))
    assert store.root == str(tmp_path)
    assert not store.has_repo(*REPO)
    put(store, "One.")
    assert store.has_repo(*REPO)
    assert texts(store) == ["One."]


def test_a_version_comes_after_the_ones_that_were_faster(store: Shared, database: Database):
    store.faster = [others(store, "Two."), others(store, "Three.")]
    key = key_in(database, "k")
    done = put(store, "Mine.", idempotency_key=key)
    assert (done.version, done.previous_version) == ("1.0.3", "1.0.2")
    assert texts(store) == ["One.", "Two.", "Three.", "Mine."]
    # Each attempt is kept, and one of them is what came of the request.
    written = Path(store.root, *REPO, "1.0.3.json").read_bytes()
    kept = {one.version: one.record_sha256 for one in key.find()}
    assert sorted(kept) == ["1.0.1", "1.0.2", "1.0.3"]
    assert kept["1.0.3"] == hashlib.sha256(written).digest()
    assert put(store, "Mine.", idempotency_key=key) == done
    assert len(texts(store)) == 4
    assert [*check(store.root)] == []


def test_the_same_text_was_faster(store: Shared):
    store.faster = [others(store, "Mine.")]
    done = put(store, "Mine.")
    assert (done.version, done.unchanged) == ("1.0.1", True)
    assert texts(store) == ["One.", "Mine."]


def test_another_version_was_faster_than_one_that_expects_none(store: Shared):
    store.faster = [others(store, "Two.")]
    assert code_of(put, store, "Mine.", base_version="1.0.0") == "base_version_mismatch"
    assert texts(store) == ["One.", "Two."]


def test_the_quota_counts_what_was_faster_and_no_run_twice(store: Shared):
    keeper = QuotaKeeper(store.root, Quotas(versions=3))
    store.faster = [others(store, "Two.")]
    assert put(store, "Mine.", quotas=keeper).version == "1.0.2"
    store.faster = [lambda: None]
    assert code_of(put, store, "More.", quotas=keeper) == "validation_failed"
    # It was not even tried.
    assert len(store.faster) == 1


def test_a_first_version_that_is_overtaken_leaves_no_folder(store: Shared):
    def refuse() -> None:
        assert os.listdir(store.root) == ["ann"] and os.listdir(f"{store.root}/ann") == at_first

    at_first = os.listdir(f"{store.root}/ann")
    store.faster = [refuse]
    draft = make_draft({"content": "New."})
    assert publish(store, "ann", "new", draft, publisher="ann").version == "1.0.0"
    assert store.runs == 2


def test_what_is_not_known_yet_decides(store: Shared):
    """Errors and decisions to write nothing are made again, once all is known."""
    store.unseen = [others(store, "Two.")]
    assert put(store, "Mine.", base_version="1.0.1").version == "1.0.2"
    store.unseen = [others(store, "Theirs.")]
    done = put(store, "Mine.")
    assert (done.version, done.unchanged) == ("1.0.4", False)
    store.unseen = [lambda: move(FolderStore(store.root), "1.0.0")]
    assert move(store, "1.0.1", expected="1.0.0").previous == "1.0.0"
    assert texts(store) == ["One.", "Two.", "Mine.", "Theirs.", "Mine."]


def test_a_label_moves_after_the_moves_that_were_faster(store: Shared, database: Database):
    put(store, "Two.")
    store.faster = [lambda: move(FolderStore(store.root), "1.0.0")]
    key = key_in(database, "k")
    done = move(store, "1.0.1", idempotency_key=key)
    assert (done.previous, done.unchanged) == ("1.0.0", False)
    assert move(store, "1.0.1", idempotency_key=key) == done
    history = read_labels(store.root, *REPO).history["production"]
    assert [one.version for one in history] == ["1.0.1", "1.0.0"]
    store.faster = [lambda: move(FolderStore(store.root), "1.0.0")]
    put(FolderStore(store.root), "Three.")
    assert code_of(move, store, "1.0.2", expected="1.0.1") == "label_moved"
    store.faster = [lambda: move(FolderStore(store.root), "1.0.2")]
    assert move(store, "1.0.2").unchanged


def test_a_withdrawal_was_faster(store: Shared):
    put(store, "Two.")
    store.faster = [lambda: take_back(FolderStore(store.root), "1.0.0")]
    assert take_back(store, "1.0.0").unchanged
    store.faster = [lambda: take_back(FolderStore(store.root), None)]
    assert code_of(put, store, "Three.") == "version_withdrawn"
    assert [*check(store.root)] == []


def test_other_failures_pass_at_once(store: Shared, database: Database):
    store.unseen = [others(store, "Two.")]
    Path(store.root, *REPO, "1.0.0.json").write_bytes(b"{")
    with pytest.raises(Exception, match=r"1\.0\.0\.json"):
        put(store, "Mine.")
    assert store.runs == 1


def test_a_profile_is_replaced_in_the_store(store: Shared):
    write_profile(store, "ann", OwnerFile("Ann", "2026-01-01T12:00:00Z", "Hi.", None))
    before = Path(store.root, "ann", "owner.json").read_bytes()
    assert b"Hi." in before
    store.replace_profile("ann", b"{}", lambda: False)
    assert Path(store.root, "ann", "owner.json").read_bytes() == before
