"""Nodes behind a PgBouncer that gives each transaction another connection."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from publisher.nodes import commits as commits_module
from tests.publisher.nodes.conftest import LONG, Nodes
from tests.publisher.nodes.test_store import key_of, label, meet, put, take_back
from tests.support.postgres import Postgres
from tests.support.postgres_pair import running_pgbouncer


@pytest.fixture(scope="module")
def pgbouncer(postgres: Postgres) -> Iterator[str]:
    with running_pgbouncer(postgres) as address:
        yield address


def by_way_of(nodes: Nodes, address: str) -> str:
    there = f"127.0.0.1:{nodes.postgres.port}"
    assert there in nodes.url
    return f"{nodes.url.replace(there, address)}?sslmode=disable"


def test_nodes_publish(pgbouncer: str, nodes: Nodes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", LONG)
    url = by_way_of(nodes, pgbouncer)
    stores = [nodes.start(name, url) for name in ("one", "two")]

    def work(number: int) -> list[str]:
        return [put(stores[number % 2], f"{number}/{at}\n").version for at in range(5)]

    with ThreadPoolExecutor(4) as pool:
        versions = [version for some in pool.map(work, range(4)) for version in some]
    assert sorted(versions) == sorted(f"1.0.{number}" for number in range(20))
    first = put(stores[0], "keyed\n", idempotency_key=key_of(nodes, "one"))
    meet(nodes, *stores)
    assert put(stores[1], "keyed\n", idempotency_key=key_of(nodes, "two")) == first
    label(stores[0], "1.0.3")
    take_back(stores[1], "1.0.3")
    meet(nodes, *stores)
    assert nodes.content("one") == nodes.content("two")
