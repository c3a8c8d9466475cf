"""How withdrawn texts leave a store whose entries have several of them: all of it, and for good."""

import gzip
import json
from pathlib import Path

import pytest

from builder.model.errors import RequestError
from publisher.nodes import bucket as bucket_module
from publisher.nodes import removal
from publisher.nodes.bucket import Bucket
from publisher.nodes.copying import check_store, copy_to_store
from publisher.nodes.entries import Blob, blob_key, encode, entry_key, read_entry
from publisher.nodes.objects import Objects, StoreUnavailable
from publisher.nodes.snapshots import newest_snapshot, write_snapshot
from publisher.write.store import Folder
from tests.publisher.nodes.conftest import LARGE, Nodes
from tests.publisher.nodes.faulty import fail_to_put
from tests.publisher.nodes.test_bucket import meet, put, take_back


def quiet(what: str, done: int, total: int) -> None:
    pass


@pytest.fixture
def one(nodes: Nodes) -> Bucket:
    """A node of a store whose first entry has four texts."""
    folder = nodes.root / "plain"
    folder.mkdir()
    for text in ("hidden a\n", "hidden b\n", "fine\n"):
        put(Folder(str(folder)), text)
    put(Folder(str(folder)), "other\n", owner="bob")
    copy_to_store(str(folder), nodes.url, quiet)
    return nodes.start("one")


def _check(nodes: Nodes, *buckets: Bucket) -> None:
    """Nothing is left of what is hidden, and the rest is there, also for new nodes."""
    meet(*buckets)
    assert not nodes.stores("hidden")
    for name in ("from-log", "from-snapshot"):
        new = nodes.start(name)
        assert new.status()["missing"] == 0
        assert {*nodes.content(name).values()} >= {b"fine\n", b"other\n"}
        assert nodes.content(name) == nodes.content("one")
        write_snapshot(new.objects, new._replica.applied)
    assert check_store(nodes.url, quiet).faults == []


def test_texts_beside_a_withdrawn_one_stay(nodes: Nodes, one: Bucket):
    take_back(one, "1.0.0")
    entry = read_entry(one.objects, 1)
    assert {change.inline for change in entry.changes} == {None}
    take_back(one, "1.0.1")
    _check(nodes, one)


def test_of_two_texts_the_other_one_stays(nodes: Nodes):
    folder = nodes.root / "plain"
    folder.mkdir()
    put(Folder(str(folder)), "hidden\n")
    put(Folder(str(folder)), "other\n", owner="bob")
    copy_to_store(str(folder), nodes.url, quiet)
    take_back(nodes.start("one"), "1.0.0")
    new = nodes.start("new")
    assert new.status()["missing"] == 0
    assert b"other\n" in nodes.content("new").values()


def test_texts_stay_in_their_entry_until_they_are_elsewhere(nodes: Nodes, one: Bucket):
    def fail(kind: str, key: str) -> None:
        if kind == "create" and key.startswith("blobs/"):
            raise StoreUnavailable("It is gone.")

    one.objects.before = fail
    with pytest.raises(RequestError):
        take_back(one, "1.0.0")
    nodes.stop("one")
    new = nodes.start("new")
    assert new.status()["missing"] == 0
    assert {*nodes.content("new").values()} >= {b"fine\n", b"other\n"}
    assert not nodes.stores("hidden a")


@pytest.mark.parametrize("when", [("put", "blobs/"), ("create", "blobs/"), ("put", "log/")])
def test_a_late_node_brings_nothing_back(nodes: Nodes, one: Bucket, when: tuple[str, str]):
    """It has read the entry, and another text of that is withdrawn before it goes on."""
    two = nodes.start("two")
    is_late = []

    def overtake(kind: str, key: str) -> None:
        if not is_late and kind == when[0] and key.startswith(when[1]):
            is_late.append(True)
            take_back(two, "1.0.1")

    one.objects.before = overtake
    take_back(one, "1.0.0")
    assert is_late
    _check(nodes, one, two)


def test_a_snapshot_removes_what_nodes_left_that_are_gone(nodes: Nodes, one: Bucket):
    one.objects.before = fail_to_put
    with pytest.raises(RequestError):
        take_back(one, "1.0.0")
    nodes.stop("one")
    assert nodes.stores("hidden a")
    write_snapshot(Objects(nodes.url), 2)
    assert nodes.stores("hidden b") and not nodes.stores("hidden a")


def test_any_node_removes_attempts_with_the_text(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, f"hidden{LARGE}\n")
    put(one, "fine\n")
    (large,) = one.objects.keys("blobs/")
    one.objects.create(
        blob_key("ann/story", "1.0.2", "a" * 64), one.objects.get(large, 2 * len(LARGE))
    )
    one.objects.before = fail_to_put
    with pytest.raises(RequestError):
        take_back(one, "1.0.0")
    nodes.stop("one")
    meet(two)
    assert not nodes.stores("hidden")


def test_another_version_with_the_text_keeps_it(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    for text in (f"twice{LARGE}\n", "fine\n", f"twice{LARGE}\n"):
        put(one, text)
    take_back(one, "1.0.0")
    meet(one, two)
    write_snapshot(one.objects, 4)
    new = nodes.start("new")
    assert new.status()["missing"] == 0
    assert nodes.content("new") == nodes.content("two") == nodes.content("one")
    assert nodes.stores("twice")


def test_a_lost_answer_whose_entry_is_withdrawn_meanwhile(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")

    def lose(kind: str, key: str) -> None:
        if kind == "create":
            one.objects.after = lambda kind, key: None
            meet(two)
            take_back(two, "1.0.0")
            raise StoreUnavailable("The answer is lost.")

    one.objects.after = lose
    assert put(one, "hidden\n").version == "1.0.0"
    meet(one)
    assert not nodes.stores("hidden")
    assert nodes.content("one") == nodes.content("two")


def test_entries_of_a_whole_prompt_are_many(nodes: Nodes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(removal, "JOBS", 2)
    one = nodes.start("one")
    for number in range(5):
        put(one, f"hidden {number}\n")
    take_back(one, None)
    assert not nodes.stores("hidden")


def test_what_was_written_without_texts_in_entries_is_read(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patched:
        patched.setattr(bucket_module, "INLINE_BYTES_MAX", -1)
        one = nodes.start("one")
        put(one, "hidden\n")
        put(one, "fine\n")
        put(one, "other\n", owner="bob")
    write_snapshot(one.objects, 3)
    (path,) = Path(nodes.root / "store" / "snapshots").iterdir()
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [line.pop() for line in lines if len(line) == 4] == [0, 0, 0]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    two = nodes.start("two")
    assert newest_snapshot(two.objects) == 3
    assert nodes.content("two") == nodes.content("one")
    take_back(two, "1.0.0")
    _check(nodes, one, two)


def test_a_check_names_withdrawn_texts_that_are_there(nodes: Nodes, one: Bucket):
    objects = one.objects
    entry = objects.get(entry_key(1), 100_000)
    put(one, f"hidden{LARGE}\n")
    (large,) = objects.keys("blobs/")
    blob = objects.get(large, 100_000)
    take_back(one, "1.0.0")
    take_back(one, "1.0.3")
    # An attempt with the same text that has come late, and one with another.
    late, fine = (blob_key("ann/story", "1.0.4", mark * 64) for mark in "ab")
    objects.create(late, blob)
    objects.create(fine, encode(Blob("{}", "fine\n")))
    objects.put(large, blob)
    objects.put(entry_key(1), entry)
    found = check_store(nodes.url, quiet)
    assert {fault.split()[0] for fault in found.faults} == {large, late, entry_key(1)}
    assert found.unused == 3
