"""What goes wrong in a cluster while it is used: one trouble after another, each at some node."""

import random
from collections.abc import Callable

from tests.nodes.cluster import Cluster, Node, drop_requests
from tests.support.fault_proxy import Rule

STORE_FAULTS = ("cut", "lost", "late", "busy", "delay")


class Trouble:
    """Makes trouble drawn by ``chance``. Every fourth time all is well again; that ends."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self._count = 0
        self.made: list[str] = []

    def make(self) -> None:
        self._count += 1
        if self._count % 4 == 0:
            self.heal()
            return
        node = self._chance.choice(self._cluster.nodes)
        work: Callable[[Node], None] = self._chance.choice([
            self._kill, self._kill, self._pause, self._spoil_store, self._spoil_store,
            self._lose_store, self._spoil_accounts, self._lose_accounts, self._lose_limits,
        ])  # fmt: skip
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
            node.proxies.clear()
            node.start()

    def _pause(self, node: Node) -> None:
        if node.is_running:
            node.pause()

    def _spoil_store(self, node: Node) -> None:
        faults = self._chance.sample(STORE_FAULTS, 2)
        rules = drop_requests(*faults, chance=0.25, seed=self._chance.randrange(10**6))
        node.proxies.store.set_rules(*rules)

    def _lose_store(self, node: Node) -> None:
        node.proxies.store.set_rules(Rule(self._chance.choice(["cut", "hang", "lost", "late"])))

    def _spoil_accounts(self, node: Node) -> None:
        fault = self._chance.choice(["cut", "lost", "delay"])
        rules = drop_requests(fault, chance=0.1, seed=self._chance.randrange(10**6))
        node.proxies.accounts.set_rules(*rules)

    def _lose_accounts(self, node: Node) -> None:
        node.proxies.accounts.set_rules(Rule(self._chance.choice(["cut", "hang"])))

    def _lose_limits(self, node: Node) -> None:
        node.proxies.limits.set_rules(Rule(self._chance.choice(["cut", "hang", "lost"])))
