"""Nodes over a store in a folder."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.nodes import bucket as bucket_module
from publisher.nodes import log as log_module
from publisher.nodes.bucket import Bucket
from publisher.nodes.entries import BLOB_BYTES_MAX, INLINE_BYTES_MAX
from publisher.nodes.objects import Objects
from tests.publisher.nodes.faulty import FaultyObjects

# What a failing wait takes, at most.
LONG = 300
# Makes a text so long that it is a blob.
LARGE = "x" * INLINE_BYTES_MAX


class Nodes:
    """Starts and stops nodes of one store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = f"file://{root}/store"
        self._running: dict[str, contextlib.ExitStack] = {}

    def start(self, name: str, **options: object) -> Bucket:
        """A node, once it has what the store has; its content folder has its name."""
        stack = contextlib.ExitStack()
        bucket = stack.enter_context(Bucket(str(self.root / name), self.url, node=name, **options))
        assert bucket.wait_ready(LONG)
        self._running[name] = stack
        return bucket

    def stop(self, name: str) -> None:
        self._running.pop(name).close()

    def stop_all(self) -> None:
        for name in [*self._running]:
            self.stop(name)

    def stores(self, text: str) -> bool:
        """Whether any object has a text in it."""
        objects = Objects(self.url)
        found = objects.each(lambda key: objects.get(key, BLOB_BYTES_MAX), objects.keys(""))
        return any(text.encode() in data for data in found)

    def content(self, name: str) -> dict[str, bytes]:
        """The files of a node's folder, without what is its own."""
        folder = self.root / name
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != ".hub-store"
        }


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    monkeypatch.setattr(log_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(bucket_module, "Objects", FaultyObjects)
    (tmp_path / "store").mkdir()
    made = Nodes(tmp_path)
    yield made
    made.stop_all()
