"""Many processes publish to one repo at once: all get in, each as what it was told."""

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from builder.model.names import Version
from builder.store import content
from builder.store.check import check
from publisher.write.drafts import make_draft
from publisher.write.publish import publish
from publisher.write.store import Folder
from tests.support.depth import some_of
from tests.support.servers import DEADLINE_SECONDS

PROCESSES = 16
PUBLICATIONS = some_of(24)
REPO = ("ann", "story")


def publish_some(root: str, process: int, start: Barrier, told: Connection) -> None:
    """Publish texts that nobody else does; tell for each the version it was acknowledged as."""
    start.wait(DEADLINE_SECONDS)
    acknowledged = {}
    for number in range(PUBLICATIONS):
        text = f"Text {number} of process {process}."
        draft = make_draft({"content": text})
        acknowledged[text] = publish(Folder(root), *REPO, draft, publisher=REPO[0]).version
    told.send(acknowledged)


def test_all_are_acknowledged_and_none_is_lost(tmp_path: Path):
    root = str(tmp_path)
    context = multiprocessing.get_context("fork")
    start = context.Barrier(PROCESSES)
    running = []
    for process in range(PROCESSES):
        told, tell = context.Pipe(duplex=False)
        child = context.Process(target=publish_some, args=(root, process, start, tell), daemon=True)
        child.start()
        tell.close()
        running.append((child, told))
    acknowledged = {}
    for child, told in running:
        with told:
            acknowledged |= told.recv()
        child.join()
        assert child.exitcode == 0

    versions = content.list_versions(root, *REPO).versions
    assert versions == [Version(1, 0, patch) for patch in range(PROCESSES * PUBLICATIONS)]
    texts = {content.read_version(root, *REPO, version)[1]: str(version) for version in versions}
    assert texts == acknowledged
    assert list(check(root)) == []
