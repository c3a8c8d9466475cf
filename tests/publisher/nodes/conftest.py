"""Nodes of one database, in this process."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.accounts.database import Database
from publisher.nodes.store import Shared
from tests.support.postgres import Postgres

# Seconds after which a wait fails.
LONG = 300


class Nodes:
    """Starts and stops nodes of one database, each with a content folder of its name."""

    def __init__(self, root: Path, postgres: Postgres) -> None:
        self.root = root
        self.postgres = postgres
        self.url = postgres.new_database()
        self._running: dict[str, contextlib.ExitStack] = {}
        self.databases: dict[str, Database] = {}

    def start(self, name: str, url: str = "", **options: object) -> Shared:
        """A node, once it has what the database has."""
        store = self.begin(name, url, **options)
        assert store.wait_ready(LONG)
        return store

    def begin(self, name: str, url: str = "", **options: object) -> Shared:
        """A node; does not wait."""
        with contextlib.ExitStack() as stack:
            database = self.databases[name] = stack.enter_context(Database(url or self.url))
            store = Shared(str(self.root / name), database.engine.connections, **options)
            stack.enter_context(store)
            self._running[name] = stack.pop_all()
        return store

    def stop(self, name: str) -> None:
        self._running.pop(name).close()

    def stop_all(self) -> None:
        for name in [*self._running]:
            self.stop(name)

    def execute(self, *statements: str) -> list[tuple]:
        return self.postgres.execute(self.url.rpartition("/")[2], *statements)

    def content(self, name: str) -> dict[str, bytes]:
        """The files of a node's folder, without what is its own."""
        folder = self.root / name
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != ".hub-store"
        }


@pytest.fixture
def nodes(tmp_path: Path, postgres: Postgres) -> Iterator[Nodes]:
    made = Nodes(tmp_path, postgres)
    yield made
    made.stop_all()
