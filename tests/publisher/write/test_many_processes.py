"""Many processes publish to one repo at once: each version is stored as its answer says."""

from functools import partial
from pathlib import Path

from builder.model.names import Version
from builder.store import content
from builder.store.check import check
from publisher.write.drafts import make_draft
from publisher.write.durable import FolderStore
from publisher.write.publish import publish
from tests.support.children import processes_at_once
from tests.support.depth import some_of

PROCESSES = 16
PUBLICATIONS = some_of(24)
REPO = ("ann", "story")


def publish_some(root: str, process: int) -> dict[str, str]:
    """Publish texts that no other process does; the version that each was acknowledged as."""
    acknowledged = {}
    for number in range(PUBLICATIONS):
        text = f"Text {number} of process {process}."
        draft = make_draft({"content": text})
        acknowledged[text] = publish(FolderStore(root), *REPO, draft, publisher=REPO[0]).version
    return acknowledged


def test_all_are_acknowledged_and_none_is_lost(tmp_path: Path):
    root = str(tmp_path)
    acknowledged = {}
    for one in processes_at_once(PROCESSES, partial(publish_some, root)):
        acknowledged |= one
    versions = content.list_versions(root, *REPO).versions
    assert versions == [Version(1, 0, patch) for patch in range(PROCESSES * PUBLICATIONS)]
    texts = {content.read_version(root, *REPO, version)[1]: str(version) for version in versions}
    assert texts == acknowledged
    assert list(check(root)) == []
