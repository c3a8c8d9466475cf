"""From a folder to a store and back, byte for byte, however often it is interrupted."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from builder.model.errors import OperatorError
from cli.hubctl import main
from publisher.nodes import copying
from publisher.nodes.copying import check_store, copy_from_store, copy_to_store
from publisher.nodes.entries import version_of
from publisher.nodes.objects import Objects, StoreUnavailable
from publisher.write.store import Folder
from tests.publisher.nodes.conftest import LARGE, Nodes
from tests.publisher.nodes.faulty import FaultyObjects
from tests.publisher.nodes.test_bucket import label, put, take_back


def quiet(what: str, done: int, total: int) -> None:
    assert 0 < done <= total


@pytest.fixture
def plain(nodes: Nodes) -> Path:
    """A folder with something of everything."""
    folder = nodes.root / "plain"
    folder.mkdir()
    store = Folder(str(folder))
    for number in range(3):
        put(store, f"{number}\n")
        put(store, f"{number}\r\nÜ{LARGE if number else ''}\n", name=f"other-{number}", owner="bob")
    label(store, "1.0.1")
    take_back(store, "1.0.2")
    (folder / "home.md").write_text("Our prompts.\n")
    return folder


def test_there_and_back(nodes: Nodes, plain: Path):
    there = copy_to_store(str(plain), nodes.url, quiet)
    assert there == (5, 5, 10)
    assert copy_to_store(str(plain), nodes.url, quiet).new == 0
    back = copy_from_store(nodes.url, str(nodes.root / "back"), quiet)
    assert back == (5, 5, 10)
    assert nodes.content("back") == nodes.content("plain")
    assert not (nodes.root / "back" / ".hub-store").exists()
    assert check_store(nodes.url, quiet) == (1, 5, 5, 0, [])


def test_a_node_serves_what_was_copied_and_counts_on(nodes: Nodes, plain: Path):
    copy_to_store(str(plain), nodes.url, quiet)
    one = nodes.start("one")
    assert nodes.content("one") == nodes.content("plain")
    assert one.serial > 6  # publications that there were
    assert put(one, "new\n").version == "1.0.3"


def test_an_interrupted_copy_goes_on(nodes: Nodes, plain: Path, monkeypatch):
    monkeypatch.setattr(copying, "Objects", FaultyObjects)
    monkeypatch.setattr(copying, "BATCH_CHANGES_MAX", 2)
    for fails_at in range(1, 30):
        calls = []

        def fail(kind: str, key: str, fails_at=fails_at, calls=calls) -> None:
            calls.append(key)
            if len(calls) == fails_at:
                raise StoreUnavailable("The store did not answer.")

        monkeypatch.setattr(FaultyObjects, "_note", lambda self, kind, key, then: fail(kind, key))
        for work in (
            lambda: copy_to_store(str(plain), nodes.url, quiet),
            lambda: copy_from_store(nodes.url, str(nodes.root / "back"), quiet),
        ):
            try:
                work()
            except (StoreUnavailable, OperatorError):
                continue
    monkeypatch.undo()
    copy_to_store(str(plain), nodes.url, quiet)
    if (nodes.root / "back" / ".hub-store").exists():
        copy_from_store(nodes.url, str(nodes.root / "back"), quiet)
    assert nodes.content("back") == nodes.content("plain")


def test_what_was_withdrawn_meanwhile_goes(nodes: Nodes, plain: Path):
    copy_to_store(str(plain), nodes.url, quiet)
    copy_from_store(nodes.url, str(nodes.root / "back"), quiet)
    one = nodes.start("one")
    take_back(one, "1.0.1")
    # As a copy that was killed before its end has left it.
    nodes.stop("one")
    (nodes.root / "back" / ".hub-store").write_bytes(
        (nodes.root / "one" / ".hub-store").read_bytes()
    )
    copy_from_store(nodes.url, str(nodes.root / "back"), quiet)
    assert nodes.content("back") == nodes.content("one")


def test_a_store_with_something_else_is_refused(nodes: Nodes, plain: Path):
    one = nodes.start("one")
    put(one, "mine\n", name="mine")
    with pytest.raises(OperatorError, match=r"ann/mine 1\.0\.0"):
        copy_to_store(str(plain), nodes.url, quiet)
    with pytest.raises(OperatorError, match="is no copy of"):
        copy_from_store(nodes.url, str(plain), quiet)
    with pytest.raises(OperatorError, match="copy of a store"):
        copy_to_store(one.root, nodes.url + "/more", quiet)


def test_a_check_names_what_is_missing_or_damaged(nodes: Nodes, plain: Path):
    copy_to_store(str(plain), nodes.url, quiet)
    objects = Objects(nodes.url)
    first, second, *_ = sorted(objects.keys("blobs/"))
    data = objects.get(first, 100_000)
    objects.delete([first, second])
    objects.create(first, data.replace(b'"text":"', b'"text":"x'))
    found = check_store(nodes.url, quiet)
    assert [fault.split()[0] for fault in found.faults] == [
        version_of(key) for key in (first, second)
    ]


def test_a_check_names_what_is_damaged_in_an_entry(nodes: Nodes, plain: Path):
    copy_to_store(str(plain), nodes.url, quiet)
    objects = Objects(nodes.url)
    (key,) = objects.keys("log/")
    entry = objects.get(key, 1_000_000)
    entry = entry.replace(b'"record":"{', b'"record":" {', 1).replace(b'"text":"1', b'"text":"2', 1)
    objects.put(key, entry)
    told = [fault.split(maxsplit=2)[:2] for fault in check_store(nodes.url, quiet).faults]
    assert told == [["ann/story/1.0.0", "in"], ["ann/story/1.0.1", "has"]]


def test_entries_of_a_copy_have_a_bounded_size(nodes: Nodes, monkeypatch):
    monkeypatch.setattr(copying, "BATCH_BYTES_MAX", 50_000)
    folder = nodes.root / "long"
    folder.mkdir()
    for number in range(12):
        put(Folder(str(folder)), f"{number}{'x' * 10_000}\n", name=f"story-{number}")
    copy_to_store(str(folder), nodes.url, quiet)
    sizes = [size for _, size in Objects(nodes.url).sizes("log/")]
    assert len(sizes) == 3 and max(sizes) < 50_000


def test_the_command(nodes: Nodes, plain: Path):
    def run(*args: str):
        return CliRunner().invoke(main, ["store", *args])

    assert run("copy", str(plain), nodes.url).exit_code == 0
    copied = run("copy", nodes.url, str(nodes.root / "back"), "--json")
    assert json.loads(copied.stdout)["versions"] == 5
    checked = run("check", nodes.url)
    assert checked.exit_code == 0, checked.output
    assert "5 versions and 5 other files; 1 entry in its log, 0 unused texts" in checked.stdout
    assert run("copy", "a", "b").exit_code == 2
    assert "no hub" in run("check", nodes.url + "/none").output
    Objects(nodes.url).delete(sorted(Objects(nodes.url).keys("blobs/"))[:1])
    assert run("check", nodes.url).exit_code == 1
