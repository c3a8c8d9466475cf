"""Nodes over Ceph, a store that clusters run in life. It has two gateways, which know of each other
only by what is in the store.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from publisher.nodes import bucket as bucket_module
from publisher.nodes import log as log_module
from publisher.nodes.objects import JOBS, Objects, StoreUnavailable
from tests.nodes.cluster import running_cluster, running_services
from tests.nodes.test_machine import OWNERS, Run, verdict
from tests.publisher.nodes import test_bucket, test_objects
from tests.publisher.nodes.conftest import LARGE, Nodes
from tests.publisher.nodes.faulty import FaultyObjects
from tests.publisher.nodes.test_objects import opened
from tests.support.ceph import Ceph, Gateway
from tests.support.object_stores import ObjectStore
from tests.support.postgres import Postgres

OPERATIONS = 60


@pytest.fixture
def both(ceph: Ceph, ceph_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> list[Objects]:
    """The same bucket by each of the gateways."""
    return [opened(ceph_store.through(one.server.address), monkeypatch) for one in ceph.gateways]


@pytest.fixture
def nodes(
    ceph_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Nodes]:
    """Nodes in this process."""
    for key, value in ceph_store.environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(log_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(bucket_module, "Objects", FaultyObjects)
    made = Nodes(tmp_path)
    made.url = ceph_store.url
    yield made
    made.stop_all()


@pytest.mark.parametrize("proof", [
    test_objects.test_an_object_is_created_once, test_objects.test_one_of_many_creates_it,
    test_objects.test_listing, test_objects.test_deleting, test_objects.test_probe,
])  # fmt: skip
def test_objects_as_in_other_stores(proof: Callable[[Objects], None], both: list[Objects]) -> None:
    proof(both[0])


@pytest.mark.parametrize("proof", [
    test_objects.test_a_prefix_apart, test_objects.test_wrong_credentials,
    test_objects.test_no_such_bucket,
])  # fmt: skip
def test_access_as_to_other_stores(
    proof: Callable[..., None], ceph_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof(ceph_store, monkeypatch)


def test_one_of_many_at_two_gateways_creates_it(both: list[Objects]) -> None:
    """Each gateway has it at once, whichever created it."""
    for number in range(20):
        key = f"race/{number:02}"
        texts = [b"%d" % text for text in range(JOBS)]
        won = [*both[0].each(lambda text, key=key: both[int(text) % 2].create(key, text), texts)]
        assert sum(won) == 1
        for objects in both:
            assert objects.get(key, 10) == texts[won.index(True)]
            assert sorted(objects.keys("race/"))[-1] == key


def test_a_gateway_is_killed(ceph: Ceph, both: list[Objects]) -> None:
    """What it has said is there; of the rest, each object is there whole and listed, or not at all,
    and nothing comes later.
    """
    killed, sound = both
    keys = [f"log/{number:03}" for number in range(4 * JOBS)]

    def create(key: str) -> bool:
        if key == keys[2 * JOBS]:
            ceph.gateways[0].kill()
        with contextlib.suppress(StoreUnavailable):
            return killed.create(key, key.encode())
        return False

    try:
        answers = [*killed.each(create, keys)]
        acknowledged = {key for key, is_new in zip(keys, answers, strict=True) if is_new}
        listed = {*sound.keys("log/")}
        assert {key for key in keys if sound.get(key, 10) == key.encode()} == listed
        assert acknowledged <= listed < {*keys}
    finally:
        ceph.gateways[0].start()
    assert {key for key in keys if not killed.create(key, b"other")} == listed


@pytest.mark.parametrize("proof", [
    test_bucket.test_all_publications_of_many_at_once_are_there,
    test_bucket.test_a_quota_holds_over_all_nodes,
    partial(test_bucket.test_a_withdrawn_text_is_nowhere, more=LARGE),
])  # fmt: skip
def test_publishing_as_over_other_stores(proof: Callable[[Nodes], None], nodes: Nodes) -> None:
    proof(nodes)


class Outages:
    """Takes the place of other trouble: one gateway after another is killed, and started again."""

    def __init__(self, gateways: list[Gateway]) -> None:
        self._next = itertools.cycle(gateways)
        self._killed: Gateway | None = None
        self.made: list[str] = []

    def make(self) -> None:
        if self._killed:
            self.heal()
            return
        self._killed = next(self._next)
        self._killed.kill()
        self.made.append(f"kill {self._killed.server.address}")

    def heal(self) -> None:
        if self._killed:
            self._killed.start()
            self._killed = None


def test_nodes_while_gateways_are_killed(
    ceph: Ceph,
    ceph_store: ObjectStore,
    postgres: Postgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of the nodes, which run as in life, is at a gateway of its own."""
    for key, value in ceph_store.environment.items():
        monkeypatch.setenv(key, value)
    addresses = tuple(gateway.server.address for gateway in ceph.gateways)
    outages = Outages(ceph.gateways)
    with (
        running_services(ceph_store, postgres, tmp_path) as services,
        running_cluster(tmp_path, services, OWNERS, (0, 60), addresses) as cluster,
    ):
        run = Run(cluster, 1, outages)
        try:
            run.go(OPERATIONS)
            assert verdict(cluster, run, services)
            assert outages.made
        except BaseException as error:
            error.add_note("\n".join([*outages.made, cluster.output]))
            raise
        finally:
            outages.heal()
