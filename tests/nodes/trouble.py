"""Faults of a cluster in use: one after another, each at some node."""

import random
from collections.abc import Callable

from tests.nodes.cluster import Cluster, Node, drop_requests
from tests.support.fault_proxy import Rule

FAULTS = ("cut", "lost", "late", "delay")


class Trouble:
    """Makes trouble drawn by ``chance``. Every fourth time all is well again; that ends."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self._count = 0
        # Each kind once, before any comes again.
        self._left: list[Callable[[Node], None]] = []
        self.made: list[str] = []

    def make(self) -> None:
        self._count += 1
        if self._count % 4 == 0:
            self.heal()
            return
        if self._chance.random() < 0.5:
            self._cluster.pair.cancel_waits()
        node = self._chance.choice(self._cluster.nodes)
        if not self._left:
            self._left = [
                self._kill, self._kill, self._pause, self._spoil, self._spoil, self._lose,
                self._crash_primary, self._lose_standby, self._fail_over,
            ]  # fmt: skip
            self._chance.shuffle(self._left)
        work = self._left.pop()
        self.made.append(f"{work.__name__} of node {node.number}")
        work(node)

    def heal(self) -> None:
        self.made.append("heal")
        self._cluster.heal()

    def _kill(self, node: Node) -> None:
        if not node.is_running:
            return
        node.resume()
        node.kill()
        if self._chance.random() < 0.4:
            node.wipe()
        if self._chance.random() < 0.7:
            node.proxy.set_rules()
            node.start()

    def _pause(self, node: Node) -> None:
        if node.is_running:
            node.pause()

    def _spoil(self, node: Node) -> None:
        faults = self._chance.sample(FAULTS, 2)
        rules = drop_requests(*faults, chance=0.1, seed=self._chance.randrange(10**6))
        node.proxy.set_rules(*rules)

    def _lose(self, node: Node) -> None:
        fault = self._chance.choice(["cut", "hang", "lost", "late"])
        node.proxy.set_rules(Rule(fault))

    def _crash_primary(self, node: Node) -> None:
        primary = self._cluster.pair.primary
        primary.stop()
        primary.start()

    def _lose_standby(self, node: Node) -> None:
        self._cluster.pair.standby.stop()

    def _fail_over(self, node: Node) -> None:
        self._cluster.fail_over()
