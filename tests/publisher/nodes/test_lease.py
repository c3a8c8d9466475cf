"""Leases: one node at a time, whatever is paused, killed, lost on the way or away."""

import contextlib
import itertools
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from publisher.nodes.deadline import Deadline, now
from publisher.nodes.lease import Lease
from publisher.nodes.objects import Objects, StoreUnavailable
from tests.support.servers import Process, wait_until

TTL = 1.0


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/store"


@pytest.fixture
def make(url: str) -> Iterator[Callable[..., Lease]]:
    """Makes leases that are not entered; closed at the end."""
    made = []

    def lease(node: str, objects: Objects | None = None, ttl: float = TTL) -> Lease:
        made.append(Lease(objects or Objects(url), "test", node, ttl))
        return made[-1]

    yield lease
    for each in made:
        if not each._thread.ident:
            each.deadline.close()


def names(url: str) -> list[str]:
    return sorted(key.rpartition("/")[2] for key in Objects(url).keys("leases/"))


# Processes


class Nodes:
    """Processes that hold a lease in turn, and what they did."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._file = url, folder / "done"
        self.processes: dict[str, Process] = {}

    def start(self, node: str) -> None:
        self.processes[node] = Process(
            sys.executable, "-m", "tests.publisher.nodes.holding", self._url, node, str(TTL),
            str(self._file),
        )  # fmt: skip
        self.processes[node].wait_for_line("Started")

    def done(self) -> list[tuple[int, float]]:
        """The tenure in which something was done, and when that was checked."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return [(int(tenure), float(at)) for tenure, at in map(str.split, lines)]

    def holder(self, after: int = 0) -> tuple[str, int]:
        """Who does something in a tenure later than ``after``, and the tenure."""

        def find() -> tuple[str, int] | None:
            newest = max((tenure for tenure, _ in self.done()), default=0)
            for node, process in self.processes.items():
                if newest > after and f"{node} holds {newest}." in process.lines:
                    return node, newest
            return None

        return wait_until(find, f"a tenure after {after}")


@pytest.fixture
def nodes(url: str, tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(url, tmp_path)
    yield nodes
    for process in nodes.processes.values():
        process.send(signal.SIGCONT)
        process.stop(signal.SIGKILL)


def test_never_two_at_a_time(nodes: Nodes) -> None:
    for node in "abc":
        nodes.start(node)
    paused, tenure = nodes.holder()
    nodes.processes[paused].send(signal.SIGSTOP)
    killed, tenure = nodes.holder(after=tenure)
    assert killed != paused
    nodes.processes[paused].send(signal.SIGCONT)
    nodes.processes[paused].wait_for_line(f"{paused} holds None.")
    nodes.processes.pop(killed).stop(signal.SIGKILL)
    ended, tenure = nodes.holder(after=tenure)
    assert nodes.processes.pop(ended).stop() == 0
    last, tenure = nodes.holder(after=tenure)
    assert last not in (killed, ended)
    nodes.start(killed)
    # What was done in one tenure is over before anything is done in the next.
    done = sorted(nodes.done(), key=lambda each: each[1])
    tenures = [tenure for tenure, _ in done]
    assert tenures == sorted(tenures) and len(set(tenures)) >= 4


def test_a_lease_that_is_released_is_taken_at_once(make: Callable[..., Lease]) -> None:
    # For an hour, nobody may take it.
    first, second = make("first", ttl=3600.0), make("second", ttl=3600.0)
    assert first._hold() and not second._hold()
    first._release()
    assert first.tenure() is None
    assert second._hold() and second.tenure() == 3


# In one process


def test_no_clock_of_the_wall_is_asked(
    make: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> float:
        raise AssertionError("asked for the time")

    monkeypatch.setattr(logging.getLogger("hub.lease"), "disabled", True)
    for name in ("time", "time_ns"):
        monkeypatch.setattr(time, name, refuse)
    assert make("first")._hold()
    with make("second") as second:
        wait_until(second.tenure, "the end of the first's time")


def test_without_the_store_the_holder_stops_and_another_goes_on(
    url: str, make: Callable[..., Lease]
) -> None:
    class Leaving(Objects):
        is_away = False

        def create(self, key: str, data: bytes) -> bool:
            if self.is_away:
                raise StoreUnavailable("The store did not answer.")
            return super().create(key, data)

    objects = Leaving(url)
    changes = []
    first, second = make("first", objects), make("second")
    first.on_change = lambda: changes.append(first.tenure())
    with first:
        wait_until(first.tenure, "the lease")
        with second:
            objects.is_away = True
            tenure = wait_until(second.tenure, "the other's lease")
            assert first.tenure() is None
            objects.is_away = False
            wait_until(lambda: None in changes, "the end of the first lease")
        # Released: the first is the next.
        wait_until(lambda: (first.tenure() or 0) > tenure, "the lease again")
    assert changes[0] == 1


@pytest.mark.parametrize("answer", ["lost", "refused"])
def test_a_creation_whose_answer_is_lost(url: str, make: Callable[..., Lease], answer: str) -> None:
    """``refused``: the library has tried again by itself, and found what it had created."""

    class Losing(Objects):
        numbers = itertools.count()

        def create(self, key: str, data: bytes) -> bool:
            is_created = super().create(key, data)
            if is_created and next(self.numbers) % 2 == 0:
                if answer == "lost":
                    raise StoreUnavailable("The store did not answer.")
                return False
            return is_created

    first, second = make("first", Losing(url), ttl=30.0), make("second", ttl=30.0)

    def hold() -> bool:
        with contextlib.suppress(StoreUnavailable):
            return first._hold()
        return False

    # None may think that it has the lease, and none may take it from the one that may have it.
    assert (hold(), first.tenure(), second._hold()) == (False, None, False)
    assert (hold(), first.tenure(), second._hold()) == (True, 2, False)
    assert (hold(), first.tenure(), second._hold()) == (False, 2, False)
    assert (hold(), first.tenure(), second._hold()) == (True, 2, False)
    assert second.tenure() is None


def test_the_name_of_a_deleted_generation_gives_no_lease(
    url: str, make: Callable[..., Lease]
) -> None:
    first, second, objects = make("first"), make("second", ttl=3600.0), Objects(url)
    assert first._hold()
    first.deadline.drop()  # paused for long
    objects.create("leases/test/000000000002.json", b"Another's, over.")
    objects.delete(["leases/test/000000000001.json"])
    second._mine = 2
    assert second._hold() and second._hold()
    objects.delete(["leases/test/000000000002.json"])
    assert not first._hold() and first.tenure() is None
    assert not first._hold() and first.tenure() is None
    assert second._hold() and second.tenure() == 3
    assert names(url) == ["000000000004.json", "000000000005.json"]


def test_what_a_holder_noted_reaches_the_next(make: Callable[..., Lease]) -> None:
    first, second = make("first"), make("second")
    assert first._hold()
    for number in (7, 5):
        first.note(number)
    assert first._hold() and not second._hold()
    assert (first.noted(), second.noted()) == (7, 7)


def test_what_is_no_lease_is_told(
    url: str, make: Callable[..., Lease], caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(logging.getLogger("hub"), "propagate", True)
    caplog.set_level(logging.INFO, "hub.lease")
    Objects(url).create("leases/test/000000000009.json", b"{}")
    Objects(url).create("leases/test/readme.txt", b"{}")
    with make("first", ttl=0.1) as first:
        wait_until(lambda: caplog.records, "a line of the log")
        assert "000000000009.json in the store is no lease" in caplog.text
        Objects(url).delete(["leases/test/000000000009.json"])
        wait_until(lambda: first.tenure() is not None, "the lease")
    # Once, however often it was looked at.
    assert [record.fields["status"] for record in caplog.records] == ["unknown", "held"]


def test_work_of_another_tenure_does_not_go_on() -> None:
    deadline = Deadline()
    deadline.extend(1, now() + 3600)
    deadline.expect(1)
    deadline.check()
    for tenure, end in ((1, now()), (2, now() + 3600)):
        deadline.extend(tenure, end)
        with pytest.raises(OperatorError, match="another one may deploy"):
            deadline.check()
    deadline.close()
