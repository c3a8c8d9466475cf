"""An acknowledged publication outlasts a power cut; one before it leaves nothing torn.

The calls of a publication are traced and played on a model of a disk that keeps what was synced
and, of the rest, any part. Whatever it may hold after any call must be as good as after a crash.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from operate.content_check import check
from tests.faults import trees, verdict
from tests.faults.power import Disk
from tests.faults.strace import EIO, KILL, MEMORY_CALLS, Call, Writers
from tests.faults.verdict import SITUATIONS, Situation
from tests.support.depth import rotating


def prepare(situation: Situation, root: Path, *, ordered: bool = True) -> Disk:
    """The situation in a new folder, and the disk below it, which has all of it."""
    root.mkdir()
    situation.prepare(str(root))
    return Disk(str(root), trees.read(str(root)), ordered=ordered)


def cut(disk: Disk, calls: list[Call], situation: Situation) -> Iterator[str]:
    """Play calls, and cut the power after each; what is wrong with what may be left then."""
    judged, acknowledged = set(), False
    for call in calls:
        disk.play(call)
        acknowledged |= '"ACK ' in call.args
        for tree in disk.outcomes():
            if (tree, acknowledged) not in judged:
                judged.add((tree, acknowledged))
                for complaint in judge(tree, situation.work, acknowledged):
                    yield f"cut after {call}: {complaint}"


@cache
def judge(tree: trees.Tree, work: str, acknowledged: bool) -> list[str]:
    """Faults of a content folder after a power cut, and of the work that continues from it."""
    situation = next(some for some in SITUATIONS.values() if some.work == work)
    with TemporaryDirectory() as folder:
        root = f"{folder}/content"
        trees.write(tree, root)
        return [
            *verdict.after_fault(root, situation, acknowledged=acknowledged),
            *verdict.after_retry(root, situation),
        ]


def test_at_any_call(writers: Writers, situation: Situation, tmp_path: Path):
    root = tmp_path / "content"
    disk = prepare(situation, root)
    run = writers.run("hub", str(root), situation.work)
    assert run.acknowledged
    assert list(cut(disk, run.calls, situation)) == []
    # Nothing at all is left to chance once it is acknowledged.
    assert disk.outcomes() == {trees.read(str(root))}


def test_on_a_disk_without_order(writers: Writers, situation: Situation, tmp_path: Path):
    """Without a journal a record may be stored before its text or its files. It is refused, and
    readers never see it.
    """
    root = tmp_path / "content"
    disk = prepare(situation, root, ordered=False)
    *calls, answer = writers.run("hub", str(root), situation.work).calls
    found = list(cut(disk, calls, situation))
    known = re.compile(r"record without text|\.files/.*: missing; restore", re.DOTALL)
    assert [complaint for complaint in found if not known.search(complaint)] == []
    assert list(cut(disk, [answer], situation)) == []


# The works that write new folders, the first files, versions with labels, labels alone, and
# withdrawals.
@pytest.mark.parametrize(
    "name", rotating(["first", "first files", "with a label", "moved label", "withdrawn"])
)
@pytest.mark.parametrize("fault", [KILL, EIO])
def test_after_a_fault_and_a_retry(writers: Writers, name: str, fault: str, tmp_path: Path):
    """An fsync that failed is none; who retries may find a version that is not on the disk."""
    situation = SITUATIONS[name]
    prepare(situation, tmp_path / "clean")
    *calls, _ = writers.run("hub", str(tmp_path / "clean"), situation.work).calls
    for number, call in enumerate(call for call in calls if call.name not in MEMORY_CALLS):
        root = tmp_path / str(number)
        disk = prepare(situation, root)
        failed = writers.run("hub", str(root), situation.work, fault, call)
        retried = writers.run("hub", str(root), situation.work)
        assert retried.acknowledged
        found = list(cut(disk, [*failed.calls, *retried.calls], situation))
        assert found == [], f"{fault} at {call}"


def test_every_fsync_counts(writers: Writers, situation: Situation, tmp_path: Path):
    root = tmp_path / "content"
    prepare(situation, root)
    before = trees.read(str(root))
    calls = writers.run("hub", str(root), situation.work).calls
    syncs = [call for call in calls if call.name == "fsync"]
    if situation == SITUATIONS["moved label"]:
        # The fsync of the repo's folder, which has not changed; see the next test.
        del syncs[0]
    if situation.work.startswith("-"):
        # The fsync of the folder of withdrawals, for a disk without order; see its test.
        del syncs[0]
    if situation == SITUATIONS["second with files"]:
        # The fsync of the root, for a format that a dead process has raised; see the test above.
        del syncs[0]
    assert syncs
    for sync in syncs:
        without = [call for call in calls if call is not sync]
        found = cut(Disk(str(root), before), without, situation)
        assert next(found, None), f"The model does not see that {sync} is missing."


def test_a_label_does_not_outlive_its_version(writers: Writers, tmp_path: Path):
    """The publisher of the version may have died before the version was on the disk."""
    prepare(SITUATIONS["second"], tmp_path / "clean")
    calls = writers.run("hub", str(tmp_path / "clean"), "Two.").calls
    committed = max(number for number, call in enumerate(calls) if call.name.startswith("link"))
    root = tmp_path / "content"
    disk = prepare(SITUATIONS["second"], root)
    died = writers.run("hub", str(root), "Two.", KILL, calls[committed + 1])
    moved = writers.run("hub", str(root), "@1.0.1")
    assert not died.acknowledged and moved.acknowledged
    for call in [*died.calls, *moved.calls]:
        disk.play(call)
        for tree in disk.outcomes():
            with TemporaryDirectory() as folder:
                trees.write(tree, f"{folder}/content")
                faults = [*check(f"{folder}/content")]
                assert not [
                    fault for fault in faults if "which is not a version" in fault.reason
                ], call


@pytest.mark.parametrize("writer", ["unsynced", "careless"])
def test_the_model_bites(writers: Writers, situation: Situation, writer: str, tmp_path: Path):
    disk = prepare(situation, tmp_path / "content")
    run = writers.run(writer, str(tmp_path / "content"), situation.work)
    assert run.acknowledged
    missed = {"torn", "lost"}
    *calls, answer = run.calls
    for call in calls:
        disk.play(call)
    for found in cut(disk, [answer], situation):
        missed.discard(found.split(": ")[1])
        if not missed:
            return
    pytest.fail(f"The model sees nothing {missed}.")
