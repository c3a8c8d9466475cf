"""The order of all changes, whoever is first and whatever answers are lost."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.nodes import log as log_module
from publisher.nodes.entries import Change, Entry, encode, entry_key, read_entry
from publisher.nodes.log import Log, Overtaken
from publisher.nodes.objects import StoreUnavailable
from tests.publisher.nodes.faulty import FaultyObjects, fail_once
from tests.support.servers import DEADLINE_SECONDS


class Told:
    """A log, and what it tells."""

    def __init__(self, objects: FaultyObjects, head: int = 0) -> None:
        self.objects = objects
        self.entries: list[tuple[int, Entry, int]] = []
        # Until it is set, who is told of an entry has no room for it.
        self.has_room = threading.Event()
        self.has_room.set()
        self.log = Log(objects, "here", lambda: head, self._take)

    def _take(self, number: int, entry: Entry, own: list) -> None:
        assert self.has_room.wait(DEADLINE_SECONDS)
        self.entries.append((number, entry, len(own)))


@pytest.fixture
def objects(tmp_path: Path) -> FaultyObjects:
    (tmp_path / "store").mkdir()
    return FaultyObjects(f"file://{tmp_path}/store")


@pytest.fixture
def told(objects: FaultyObjects, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.setattr(log_module, "PAUSE_SECONDS_MAX", 0.01)
    made = Told(objects)
    with made.log:
        yield made


def change(repo: str, number: int = 1, **more: object) -> Change:
    return Change([repo], files={f"{repo}/labels/{number}.json": "{}"}, **more)


def write_elsewhere(objects: FaultyObjects, number: int, *changes: Change) -> None:
    entry = Entry(f"other-{number}", "2026-01-01T00:00:00Z", "other", [*changes])
    assert objects.create(entry_key(number), encode(entry))


def test_changes_get_numbers_in_order(told: Told):
    numbers = [told.log.commit(change("ada/a", n), n - 1).number for n in (1, 2, 3)]
    assert numbers == [1, 2, 3]
    assert [number for number, _, _ in told.entries] == numbers
    assert read_entry(told.objects, 2).changes == [change("ada/a", 2)]


def test_many_at_once_share_entries(told: Told):
    gate, waits = threading.Event(), [True]

    def hold(kind: str, key: str) -> None:
        if waits and kind == "create":
            waits.clear()
            gate.wait()

    told.objects.before = hold
    threads = [
        threading.Thread(target=told.log.commit, args=(change(f"ada/r{n}"), 0)) for n in range(40)
    ]
    for thread in threads:
        thread.start()
    while told.log.status()["waiting"] < 40:
        pass
    gate.set()
    for thread in threads:
        thread.join()
    assert sum(len(entry.changes) for _, entry, _ in told.entries) == 40
    assert len(told.entries) == 2  # the first that came, and all that came meanwhile


def test_two_of_one_prompt_are_never_in_one_entry(told: Told):
    gate = threading.Event()
    told.objects.before = lambda kind, key: gate.wait() if kind == "create" else None
    outcomes: list[object] = []

    def commit(number: int) -> None:
        try:
            outcomes.append(told.log.commit(change("ada/a", number), 0).number)
        except Overtaken as overtaken:
            outcomes.append(overtaken)

    threads = [threading.Thread(target=commit, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    while told.log.status()["waiting"] < 2:
        pass
    gate.set()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes))[0] == "1"
    assert sum(isinstance(one, Overtaken) for one in outcomes) == 1


def test_who_finds_the_number_taken_takes_the_next(told: Told):
    write_elsewhere(told.objects, 1, change("bob/b"))
    assert told.log.commit(change("ada/a"), 0).number == 2
    assert [(number, own) for number, _, own in told.entries] == [(1, 0), (2, 1)]


def test_who_is_behind_reads_all_there_is_before_the_next_attempt(
    told: Told, monkeypatch: pytest.MonkeyPatch
):
    """Else whoever has written it would be one ahead for ever."""
    monkeypatch.setattr(log_module, "POLL_SECONDS", DEADLINE_SECONDS)
    assert told.log.newest() == 0  # from here on it looks for nothing by itself
    for number in (1, 2, 3, 4, 5):
        write_elsewhere(told.objects, number, change("bob/b", number))
    told.objects.seen.clear()
    assert told.log.commit(change("ada/a"), 0).number == 6
    tried = [key for kind, key in told.objects.seen if kind == "create"]
    assert tried == [entry_key(1), entry_key(6)]


def leave_until_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are left to others until these have taken them."""
    monkeypatch.setattr(log_module, "LEAVE_CREATIONS", 1e9)
    monkeypatch.setattr(log_module, "LEAVE_SECONDS_MAX", DEADLINE_SECONDS)


def assert_next_is_left(told: Told, number: int) -> None:
    """Another change waits until somebody else has taken this number, and gets the one after."""
    told.objects.seen.clear()
    numbers: list[int | None] = []
    commit = threading.Thread(
        target=lambda: numbers.append(told.log.commit(change("ada/later", number), number).number)
    )
    commit.start()
    while told.objects.seen.count(("get", entry_key(number))) < 3:
        pass
    assert ("create", entry_key(number)) not in told.objects.seen
    write_elsewhere(told.objects, number, change("bob/b", number))
    commit.join()
    assert numbers == [number + 1]


def test_the_next_number_is_left_to_nodes_that_write_too(
    told: Told, monkeypatch: pytest.MonkeyPatch
):
    leave_until_taken(monkeypatch)
    write_elsewhere(told.objects, 1, change("bob/b"))
    assert told.log.commit(change("ada/a"), 0).number == 2
    assert_next_is_left(told, 3)


def test_the_next_number_is_left_now_and_then_to_nodes_that_nobody_knows_of(
    told: Told, monkeypatch: pytest.MonkeyPatch
):
    leave_until_taken(monkeypatch)
    monkeypatch.setattr(log_module, "LEAVE_EVERY_SECONDS", 0)
    assert told.log.commit(change("ada/a"), 0).number == 1
    assert_next_is_left(told, 2)


def test_a_number_that_nobody_takes_is_not_left_for_long(
    told: Told, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_module, "LEAVE_EVERY_SECONDS", 0)
    assert [told.log.commit(change("ada/a", n), n - 1).number for n in (1, 2, 3)] == [1, 2, 3]


def test_who_writes_alone_leaves_nothing(told: Told, monkeypatch: pytest.MonkeyPatch):
    leave_until_taken(monkeypatch)
    monkeypatch.setattr(log_module, "LEAVE_EVERY_SECONDS", DEADLINE_SECONDS)
    write_elsewhere(told.objects, 1, change("bob/b"))
    assert told.log.newest() == 1
    monkeypatch.setattr(log_module, "LEAVE_AFTER", 0)
    assert [told.log.commit(change("ada/a", n), n - 1).number for n in (2, 3, 4)] == [2, 3, 4]


def test_a_change_that_was_decided_without_another_is_refused(told: Told):
    write_elsewhere(told.objects, 1, change("ada/a"))
    with pytest.raises(Overtaken) as caught:
        told.log.commit(change("ada/a", 2), 0)
    assert caught.value.number == 1
    assert told.log.commit(change("ada/a", 2), 1).number == 2


def test_a_lost_answer_is_found_by_the_entry_itself(told: Told):
    told.objects.after = fail_once("create", "log/")
    assert told.log.commit(change("ada/a"), 0).number == 1
    assert told.log.newest() == 1
    assert told.log.commit(change("ada/b"), 0).number == 2


def test_an_answer_that_was_lost_to_another_node_is_no_success(told: Told):
    """The request never arrived, and another node has taken the number."""

    def lose(kind: str, key: str) -> None:
        if kind == "create":
            told.objects.before = lambda kind, key: None
            write_elsewhere(told.objects, 1, change("ada/a"))
            raise StoreUnavailable("The store did not answer.")

    told.objects.before = lose
    with pytest.raises(Overtaken):
        told.log.commit(change("ada/a", 2), 0)


def test_what_nobody_waits_for_is_not_tried_again(told: Told, monkeypatch: pytest.MonkeyPatch):
    # Counts once the first request has failed.
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.05)

    def fail(kind: str, key: str) -> None:
        if kind == "create":
            raise StoreUnavailable("The store did not answer.")

    told.objects.before = fail
    with pytest.raises(StoreUnavailable, match="Send the same request again"):
        told.log.commit(change("ada/a"), 0)
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", DEADLINE_SECONDS)
    while told.log.status()["failures"]:  # the attempt that was under way is over
        pass
    told.objects.before = lambda kind, key: None
    assert told.log.commit(change("ada/b"), 0).number == 1
    assert [one.keys for one in read_entry(told.objects, 1).changes] == [["ada/b"]]


def test_a_late_arrival_counts_though_nobody_waits(told: Told, monkeypatch: pytest.MonkeyPatch):
    # Counts once the first request has failed.
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", 0.05)

    def lose(kind: str, key: str) -> None:
        if kind == "create" or (kind == "get" and key.startswith("log/")):
            raise StoreUnavailable("The store did not answer.")

    told.objects.after = lose
    with pytest.raises(StoreUnavailable):
        told.log.commit(change("ada/a"), 0)
    monkeypatch.setattr(log_module, "FAILING_PATIENCE_SECONDS", DEADLINE_SECONDS)
    told.objects.after = lambda kind, key: None
    assert told.log.newest() == 1
    assert [(number, own) for number, _, own in told.entries] == [(1, 0)]
    with pytest.raises(Overtaken):
        told.log.commit(change("ada/a", 2), 0)


def test_whatever_happens_is_tried_again(told: Told):
    def fail(kind: str, key: str) -> None:
        told.objects.before = lambda kind, key: None
        raise ValueError("nobody has thought of this")

    told.objects.before = fail
    assert told.log.commit(change("ada/a"), 0).number == 1
    told.objects.before = fail
    assert told.log.newest() == 1


def test_newest_is_asked_of_the_store(told: Told):
    assert told.log.newest() == 0
    for number in (1, 2, 3, 4, 5, 6):
        write_elsewhere(told.objects, number, change("ada/a", number))
    assert told.log.newest() == 6
    assert [number for number, _, _ in told.entries] == [1, 2, 3, 4, 5, 6]


def test_what_was_before_the_start_counts_as_touched(objects: FaultyObjects):
    for number in (1, 2, 3):
        write_elsewhere(objects, number, change("ada/a", number))
    with Told(objects, head=3).log as log:
        assert log.newest() == 3
        assert touch_of(log, "bob/b", 2) == 3
        assert touch_of(log, "bob/b", 3) is None


def test_only_so_many_keys_are_remembered(told: Told, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_module, "TOUCHED_MAX", 4)
    for number in range(1, 10):
        told.log.commit(change(f"ada/r{number}"), number - 1)
    assert touch_of(told.log, "ada/r1", 0)
    assert touch_of(told.log, "ada/never", 1)  # it may have been among those forgotten
    assert touch_of(told.log, "ada/never", 9) is None


def touch_of(log: Log, key: str, seen: int) -> int | None:
    """The entry after ``seen`` that has a key, or may have."""
    try:
        log.check_untouched([key], seen)
    except Overtaken as overtaken:
        return overtaken.number
    return None


def test_who_decides_by_what_was_touched_waits_for_nothing(told: Told):
    """What is held meanwhile may be what others need to make room for the entry."""
    told.has_room.clear()
    write_elsewhere(told.objects, 1, change("ada/a"))
    with pytest.raises(Overtaken) as caught:
        told.log.confirm(["ada/a"], 0)
    assert caught.value.number == 1
    told.has_room.set()
    assert told.log.confirm(["ada/b"], 0) == 1


def test_an_entry_of_a_newer_release_stops_the_log(told: Told):
    assert told.objects.create(entry_key(1), b'{"id": "x", "at": "", "node": "", "what": 1}')
    while not told.log.status()["failures"]:
        pass
    assert told.log.head == 0
