"""Many processes publish to one repo at once: each version is stored as its answer says."""

from functools import partial
from pathlib import Path

from operate.content_check import check
from tests.publisher.write.acts import code_of, put, texts_of, versions_of
from tests.support.children import processes_at_once
from tests.support.depth import some_of

PROCESSES = 16
PUBLICATIONS = some_of(24)


def publish_some(root: str, process: int) -> dict[str, str]:
    """Publish texts that no other process does; the version that each was acknowledged as."""
    acknowledged = {}
    for number in range(PUBLICATIONS):
        text = f"Text {number} of process {process}."
        # A refused publication to a repo that is not there yet removes its folder again.
        assert code_of(put, root, "x", base_version="9.9.9") == "base_version_mismatch"
        acknowledged[text] = put(root, text).version
    return acknowledged


def test_all_are_acknowledged_and_none_is_lost(tmp_path: Path):
    root = str(tmp_path)
    acknowledged = {}
    for one in processes_at_once(PROCESSES, partial(publish_some, root)):
        acknowledged |= one
    versions = versions_of(root)
    assert versions == [f"1.0.{patch}" for patch in range(PROCESSES * PUBLICATIONS)]
    assert dict(zip(texts_of(root), versions, strict=True)) == acknowledged
    assert list(check(root)) == []
