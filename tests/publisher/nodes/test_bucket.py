"""Publishing through nodes of one store: one order for all, and each folder a copy of it."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.model.errors import OperatorError, RequestError
from builder.model.records import Draft, LabelDraft, OwnerFile, WithdrawalDraft
from publisher.accounts.database import Database
from publisher.nodes import bucket as bucket_module
from publisher.nodes import log as log_module
from publisher.nodes import snapshots as snapshots_module
from publisher.nodes.bucket import Bucket
from publisher.nodes.entries import entry_key
from publisher.nodes.objects import StoreUnavailable
from publisher.nodes.snapshots import newest_snapshot, write_snapshot
from publisher.write.idempotency import IdempotencyKey
from publisher.write.labels import LabelChange, change_label
from publisher.write.profile import read_profile, write_profile
from publisher.write.publish import Past, Published, publish, publish_past
from publisher.write.quotas import QuotaKeeper, Quotas
from publisher.write.store import Folder
from publisher.write.withdraw import Withdrawn, withdraw
from tests.publisher.nodes.conftest import LARGE, LONG, Nodes
from tests.publisher.nodes.faulty import fail_once, fail_to_put


def put(bucket: Bucket, text: str, name: str = "story", owner: str = "ann", **more) -> Published:
    draft = Draft(content=text, **more.pop("draft", {}))
    return publish(bucket, owner, name, draft, publisher=owner, **more)


def label(bucket: Bucket, version: str, key: IdempotencyKey | None = None, **more) -> LabelChange:
    draft = LabelDraft(version=version, **more)
    return change_label(bucket, "ann", "story", "live", draft, by="ann", idempotency_key=key)


def take_back(bucket: Bucket, version: str | None) -> Withdrawn:
    draft = WithdrawalDraft(reason="secret")
    return withdraw(bucket, "ann", "story", version, draft, by="ann")


def meet(*buckets: Bucket) -> None:
    """Wait until nodes have what the store has."""
    for bucket in buckets:
        assert bucket._replica.wait(bucket._log.newest(), LONG)


def test_two_nodes_number_one_prompt(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    assert put(one, "first\n").version == "1.0.0"
    assert put(two, "second\n").version == "1.0.1"
    assert put(one, "third\n").previous_version == "1.0.1"
    meet(one, two)
    assert nodes.content("one") == nodes.content("two")
    assert one.serial == two.serial == 3
    assert one.decided_serial == 3


def test_a_folder_would_have_the_same_files(nodes: Nodes, tmp_path: Path):
    now = datetime(2026, 1, 2, tzinfo=UTC)
    one = nodes.start("one")
    (tmp_path / "plain").mkdir()
    for store in (one, Folder(str(tmp_path / "plain"))):
        put(store, "first\n", now=now)
        put(store, "second\n", now=now, draft={"labels": ["beta"]})
        change_label(store, "ann", "story", "live", LabelDraft(version="1.0.0"), by="ann", now=now)
        withdraw(
            store, "ann", "story", "1.0.1", WithdrawalDraft(reason="secret"), by="ann", now=now
        )
    assert nodes.content("one") == nodes.content("plain")


def test_a_node_that_is_behind_decides_by_what_is_there(nodes: Nodes, monkeypatch):
    """Nothing reaches the second node by itself."""
    one, two = nodes.start("one"), nodes.start("two")
    monkeypatch.setattr(log_module, "POLL_SECONDS", 3600)
    meet(one, two)
    put(one, "first\n")
    assert put(two, "first\n").unchanged
    put(one, "second\n")
    with pytest.raises(RequestError) as caught:
        put(two, "third\n", draft={"base_version": "1.0.0"})
    assert caught.value.code == "base_version_mismatch"
    put(one, "third\n")
    assert label(two, "1.0.2").version == "1.0.2"
    assert label(one, "1.0.2").unchanged
    with pytest.raises(RequestError) as caught:
        label(one, "1.0.0", expected="1.0.1")
    assert caught.value.code == "label_moved"
    take_back(two, "1.0.2")
    with pytest.raises(RequestError) as caught:
        put(one, "third\n")
    assert caught.value.code == "version_withdrawn"


def test_a_prompt_that_only_another_node_has_seen_can_be_labelled(nodes: Nodes, monkeypatch):
    one, two = nodes.start("one"), nodes.start("two")
    monkeypatch.setattr(log_module, "POLL_SECONDS", 3600)
    meet(one, two)
    put(one, "first\n")
    assert label(two, "1.0.0").version == "1.0.0"


def test_all_publications_of_many_at_once_are_there(nodes: Nodes):
    running = [nodes.start(name) for name in ("one", "two", "three")]
    done: list[Published] = []

    def work(number: int) -> None:
        bucket = running[number % 3]
        for turn in range(4):
            done.append(put(bucket, f"{number} {turn}\n", name=f"p{number % 4}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 36
    assert len({(one.name, one.version) for one in done}) == 36
    meet(*running)
    assert nodes.content("one") == nodes.content("two") == nodes.content("three")


def test_a_lost_answer_makes_no_second_version(nodes: Nodes):
    one = nodes.start("one")
    one.objects.after = fail_once("create", "log/")
    assert put(one, "first\n").version == "1.0.0"
    assert put(one, "second\n").version == "1.0.1"


def test_without_the_store_nothing_is_saved_and_it_says_so(nodes: Nodes, monkeypatch):
    one = nodes.start("one")
    put(one, "first\n")
    with monkeypatch.context() as patched:
        patched.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.05)
        _fail_twice(one)
    assert one.status()["failures"]
    one.objects.before = lambda kind, key: None
    assert put(one, "second\n").version == "1.0.1"
    assert not one.status()["failures"]


def _fail_twice(one: Bucket) -> None:
    def fail(kind: str, key: str) -> None:
        raise StoreUnavailable("The store did not answer.")

    one.objects.before = fail
    for work in (lambda: put(one, "second\n"), lambda: put(one, "first\n")):
        with pytest.raises(RequestError) as caught:
            work()
        assert caught.value.code == "storage_unavailable"
        assert "store of this hub" in str(caught.value)  # and nothing of where that is


def test_a_text_that_the_store_did_not_take_is_no_version(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    one.objects.before = fail_once("create", "blobs/")
    with pytest.raises(StoreUnavailable, match="store of this hub"):
        put(one, f"large{LARGE}\n")
    assert one.objects.get(entry_key(1), 1) is None
    assert put(one, f"large{LARGE}\n").version == "1.0.0"
    meet(one, two)
    assert nodes.content("one") == nodes.content("two")


def test_a_small_text_takes_one_creation(nodes: Nodes):
    one = nodes.start("one")
    made = []
    one.objects.before = lambda kind, key: (
        made.append(key.partition("/")[0]) if kind != "get" else None
    )
    put(one, "small\n")
    assert made == ["log"]
    put(one, f"large{LARGE}\n")
    assert made == ["log", "blobs", "log"]


# A request that is sent to two nodes


@pytest.fixture
def database(tmp_path: Path):
    with Database(str(tmp_path / "var")) as database:
        yield database


def key_of(database: Database) -> IdempotencyKey:
    return IdempotencyKey(database, "ann", "key-1", b"f" * 32)


def test_a_request_sent_again_elsewhere_gets_its_first_answer(nodes: Nodes, database: Database):
    one, two = nodes.start("one"), nodes.start("two")
    first = put(one, "first\n", idempotency_key=key_of(database))
    put(one, "second\n")
    assert put(two, "first\n", idempotency_key=key_of(database)) == first


def test_a_request_that_overtakes_itself_makes_one_version(nodes: Nodes, database: Database):
    """The second node keeps an answer of its own, and then loses to the first."""
    one, two = nodes.start("one"), nodes.start("two")
    made: list[Published] = []

    def overtake(kind: str, path: str) -> None:
        if kind == "create" and path.startswith("log/"):
            two.objects.before = lambda kind, key: None
            made.append(put(one, "first\n", idempotency_key=key_of(database)))

    two.objects.before = overtake
    assert put(two, "first\n", idempotency_key=key_of(database)) == made[0]
    meet(one, two)
    assert [path for path in nodes.content("two") if path.endswith(".md")] == ["ann/story/1.0.0.md"]


def test_what_another_node_keeps_of_a_request_hides_no_answer(nodes: Nodes, database: Database):
    """Both decide before either commits, and what the second keeps is not what happens."""
    one, two = nodes.start("one"), nodes.start("two")
    second_waits, first_is_done = threading.Event(), threading.Event()
    done: list[Published] = []
    second = threading.Thread(
        target=lambda: done.append(
            put(
                two,
                "first\n",
                idempotency_key=key_of(database),
                now=datetime(2026, 1, 2, tzinfo=UTC),
            )
        )
    )

    def hold_second(kind: str, path: str) -> None:
        if kind == "create" and path.startswith("log/"):
            second_waits.set()
            assert first_is_done.wait(LONG)

    def begin_second(kind: str, path: str) -> None:
        if kind == "create" and path.startswith("log/"):
            one.objects.before = lambda kind, path: None
            second.start()
            assert second_waits.wait(LONG)

    one.objects.before, two.objects.before = begin_second, hold_second
    now = datetime(2026, 1, 1, tzinfo=UTC)
    first = put(one, "first\n", idempotency_key=key_of(database), now=now)
    put(one, "another\n")
    first_is_done.set()
    second.join()
    assert done == [first]
    assert put(one, "first\n", idempotency_key=key_of(database)) == first


def test_an_attempt_in_vain_hides_none_that_another_node_has_committed(
    nodes: Nodes, database: Database, monkeypatch: pytest.MonkeyPatch
):
    """The second node does not know yet what the first has published; the third remembers nothing
    of it but what is in its folder.
    """
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.1)
    one, two, three = (nodes.start(name) for name in ("one", "two", "three"))
    meet(one, two, three)
    two.objects.before = lose
    first = put(one, "first\n", idempotency_key=key_of(database))
    with pytest.raises(StoreUnavailable):
        put(two, "first\n", idempotency_key=key_of(database), now=datetime(2026, 1, 2, tzinfo=UTC))
    assert len(key_of(database).find()) == 2
    put(one, "second\n")
    meet(three)
    nodes.stop("three")
    three = nodes.start("three")
    assert put(three, "first\n", idempotency_key=key_of(database)) == first


def test_a_node_that_is_behind_keeps_no_answer_that_nothing_is_new(
    nodes: Nodes, database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.1)
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(two)
    two.objects.before = lose
    put(one, "second\n")
    with pytest.raises(StoreUnavailable):
        put(two, "first\n", idempotency_key=key_of(database))
    assert put(one, "first\n", idempotency_key=key_of(database)).version == "1.0.2"


def test_a_node_that_is_behind_keeps_no_answer_that_a_label_is_there(
    nodes: Nodes, database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.1)
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    put(one, "second\n")
    label(one, "1.0.0")
    meet(two)
    two.objects.before = lose
    label(one, "1.0.1")
    with pytest.raises(StoreUnavailable):
        label(two, "1.0.0", key_of(database))
    assert not label(one, "1.0.0", key_of(database)).unchanged


def lose(kind: str, key: str) -> None:
    raise StoreUnavailable("The store did not answer.")


# Withdrawals


@pytest.mark.parametrize("more", ["", LARGE])
def test_a_withdrawn_text_is_nowhere(nodes: Nodes, more: str):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, f"hidden{more}\n")
    put(one, f"fine{more}\n")
    meet(one, two)
    take_back(two, "1.0.0")
    meet(one, two)
    assert nodes.stores("fine") and not nodes.stores("hidden")
    for name in ("one", "two"):
        assert not any(b"hidden" in data for data in nodes.content(name).values())
    assert nodes.content("one") == nodes.content("two")
    three = nodes.start("three")  # which reads the whole past
    assert three.status()["missing"] == 0
    assert nodes.content("three") == nodes.content("one")


def test_the_text_of_an_overtaken_attempt_goes_with_a_withdrawal(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(one, two)

    def overtake(kind: str, path: str) -> None:
        if kind == "create" and path.startswith("log/"):
            two.objects.before = lambda kind, key: None
            put(one, "between\n")

    two.objects.before = overtake
    assert put(two, f"hidden{LARGE}\n").version == "1.0.2"  # planned as 1.0.1 first
    meet(one, two)
    take_back(one, "1.0.2")
    assert not nodes.stores("hidden")


def test_an_attempt_that_a_withdrawal_overtakes_keeps_its_blob(nodes: Nodes):
    """It decides again within the same second, with the same record, so its blob is the same."""
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "hidden\n")
    put(one, "fine\n")
    meet(one, two)
    replace = one.objects.put
    is_put, is_done = threading.Event(), threading.Event()

    def overtake(kind: str, path: str) -> None:
        if kind == "create" and path.startswith("log/"):
            two.objects.before = lambda kind, key: None
            is_put.set()
            assert is_withdrawn.wait(LONG)

    is_withdrawn = threading.Event()
    two.objects.before = overtake

    def replace_late(key: str, data: bytes) -> None:
        is_withdrawn.set()
        assert is_done.wait(LONG)
        replace(key, data)

    now = datetime(2026, 1, 2, tzinfo=UTC)
    with ThreadPoolExecutor(2) as pool:
        published = pool.submit(put, two, f"new{LARGE}\n", now=now)
        assert is_put.wait(LONG)
        one.objects.put = replace_late
        withdrawn = pool.submit(take_back, one, "1.0.0")
        assert published.result(LONG).version == "1.0.2"
        is_done.set()
        withdrawn.result(LONG)
    three = nodes.start("three")
    assert three.status()["missing"] == 0
    meet(one, two, three)
    assert nodes.content("one") == nodes.content("two") == nodes.content("three")


@pytest.mark.parametrize("more", ["", LARGE])
def test_another_node_removes_what_a_dead_one_withdrew(nodes: Nodes, more: str):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, f"hidden{more}\n")
    meet(one, two)
    one.objects.before = fail_to_put
    with pytest.raises(RequestError):
        take_back(one, "1.0.0")
    meet(two)
    assert not nodes.stores("hidden")


def test_nobody_waits_long_for_what_a_node_fails_to_apply(nodes: Nodes, monkeypatch):
    monkeypatch.setattr(bucket_module, "PATIENCE_SECONDS", LONG)
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.1)
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "hidden\n")
    meet(one, two)
    one.objects.before = two.objects.before = fail_to_put
    with pytest.raises(RequestError):
        take_back(one, "1.0.0")
    with pytest.raises(StoreUnavailable, match="behind the others"):
        put(two, "next\n")
    assert two.status()["failures"]


def test_a_whole_prompt_is_withdrawn(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    for text in ("hidden a", f"hidden b{LARGE}", "hidden c"):
        put(one, f"{text}\n")
    take_back(two, None)
    meet(one, two)
    assert not nodes.stores("hidden")
    with pytest.raises(RequestError, match="not given again"):
        put(one, "c\n")


# Owners


def test_the_first_prompt_brings_a_profile_and_the_last_profile_stays(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(one, two)
    assert read_profile(two.root, "ann").name == "ann"
    for bucket, name in ((one, "Ann"), (two, "Anne")):
        write_profile(bucket, "ann", OwnerFile(name, "2026-01-01T00:00:00Z"))
    meet(one, two)
    assert read_profile(one.root, "ann").name == "Anne"
    assert nodes.content("one") == nodes.content("two")


def test_a_quota_holds_over_all_nodes(nodes: Nodes):
    running = [nodes.start(name, has_quotas=True) for name in ("one", "two")]
    outcomes: list[str] = []

    def work(bucket: Bucket) -> None:
        keeper = QuotaKeeper(bucket.root, Quotas(versions=5))
        for number in range(5):
            try:
                put(bucket, "x\n", name=f"{Path(bucket.root).name}-{number}", quotas=keeper)
                outcomes.append("done")
            except RequestError as error:
                outcomes.append(error.code)

    threads = [threading.Thread(target=work, args=(bucket,)) for bucket in running]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done"] * 5 + ["validation_failed"] * 5


def test_histories_come_whole_or_are_refused(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    past = [Past(Draft(content=f"{n}\n"), datetime(2025, 1, n, tzinfo=UTC)) for n in (1, 2, 3)]
    done = [*publish_past(one, "ann", "story", past, after=None, publisher="ann")]
    assert [one.version for one in done] == ["1.0.0", "1.0.1", "1.0.2"]
    meet(two)
    assert nodes.content("two") == nodes.content("one")


# Starting


def test_a_new_node_begins_at_a_snapshot(nodes: Nodes, monkeypatch):
    monkeypatch.setattr(snapshots_module, "EVERY_ENTRIES", 5)
    one = nodes.start("one")
    for number in range(7):
        put(one, f"{number}\n")
    label(one, "1.0.2")
    take_back(one, "1.0.1")
    while newest_snapshot(one.objects) < 5:
        pass
    two = nodes.start("two")
    # Only for its text.
    assert two.objects.seen.count(("get", entry_key(3))) == 1
    assert nodes.content("two") == nodes.content("one")
    assert two.serial == one.serial == 9


def test_a_node_that_was_killed_early_keeps_nothing_that_was_withdrawn(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "hidden\n")
    put(one, "fine\n")
    meet(one, two)
    nodes.stop("one")
    mark = nodes.root / "one" / ".hub-store"
    mark.write_bytes(re.sub(rb'"applied":\d+', b'"applied":0', mark.read_bytes()))
    take_back(two, "1.0.0")
    meet(two)
    write_snapshot(two.objects, two.serial)
    nodes.start("one")
    assert nodes.content("one") == nodes.content("two")


def test_a_node_goes_on_where_it_was(nodes: Nodes):
    one = nodes.start("one")
    put(one, "first\n")
    meet(one)
    nodes.stop("one")
    two = nodes.start("two")
    put(two, "second\n")
    one = nodes.start("one")
    assert nodes.content("one") == nodes.content("two")
    assert not [key for kind, key in one.objects.seen if key == "log/000000000001.json"]


def test_a_folder_is_for_one_process_and_one_store(nodes: Nodes, tmp_path: Path):
    nodes.start("one")
    with pytest.raises(OperatorError, match="Another process"):
        nodes.start("one")
    nodes.stop("one")
    nodes.url = f"file://{tmp_path}/other"
    with pytest.raises(OperatorError, match="another store"):
        nodes.start("one")


def test_prompts_of_a_folder_are_not_mixed_with_those_of_a_store(nodes: Nodes, tmp_path: Path):
    (tmp_path / "one" / "ann").mkdir(parents=True)
    with pytest.raises(OperatorError, match="hubctl store copy"):
        nodes.start("one")


def test_what_is_no_store_of_this_release_is_refused(nodes: Nodes, tmp_path: Path):
    (tmp_path / "store" / "store.json").write_text('{"id": "a", "format": 2, "created_at": ""}')
    with pytest.raises(OperatorError, match="format 2"):
        nodes.start("one")
    (tmp_path / "store" / "store.json").write_text("[]")
    with pytest.raises(OperatorError, match="another prefix"):
        nodes.start("one")


def test_a_node_starts_without_the_store_if_it_has_a_copy(nodes: Nodes, monkeypatch):
    one = nodes.start("one")
    put(one, "first\n")
    nodes.stop("one")

    class Away(bucket_module.Objects):
        def get(self, key: str, bytes_max: int) -> bytes | None:
            raise StoreUnavailable("The store did not answer.")

    monkeypatch.setattr(bucket_module, "Objects", Away)
    with pytest.raises(OperatorError, match="did not answer"):
        nodes.start("two")
    with Bucket(one.root, nodes.url, node="one") as again:
        assert not again.wait_ready(0)
        with pytest.raises(StoreUnavailable, match="still reading"):
            put(again, "second\n")
        assert (Path(again.root) / "ann/story/1.0.0.md").read_text() == "first\n"
