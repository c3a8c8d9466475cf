"""An acknowledged publication is never lost, whichever system call fails.

In one run after another, each call of a publication is its process's last (SIGKILL), or fails with
EIO or ENOSPC. Errors skip the allocation of memory (``MEMORY_CALLS``) and the sending of the
answer, which do not touch the disk. A kill skips nothing, so it also happens after the work, before
the answer is sent. A kill cannot show lost writes, because the kernel keeps running: these are in
test_power_cut.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults import verdict
from tests.faults.strace import EIO, ENOSPC, KILL, MEMORY_CALLS, Call, Writers
from tests.faults.verdict import SITUATIONS, Situation


def sweep(
    writers: Writers, writer: str, situation: Situation, fault: str, folder: Path
) -> list[str]:
    """Do the fault to each call of a publication; all that is wrong after any of them."""
    clean = folder / "clean"
    clean.mkdir()
    situation.prepare(str(clean))
    run = writers.run(writer, str(clean), situation.work)
    assert run.acknowledged
    calls = run.calls
    if fault != KILL:
        calls = [call for call in calls[:-1] if call.name not in MEMORY_CALLS]

    def complaints(numbered: tuple[int, Call]) -> list[str]:
        number, call = numbered
        root = folder / str(number)
        root.mkdir()
        situation.prepare(str(root))
        found = _complaints(writers, writer, situation, fault, call, str(root))
        return [f"{fault} at {call}: {complaint}".replace(str(clean), "") for complaint in found]

    with ThreadPoolExecutor(2) as pool:
        return [found for some in pool.map(complaints, enumerate(calls)) for found in some]


def _complaints(
    writers: Writers, writer: str, situation: Situation, fault: str, call: Call, root: str
) -> list[str]:
    run = writers.run(writer, root, situation.work, fault, call)
    found = [*verdict.after_fault(root, situation, acknowledged=run.acknowledged)]
    if fault != KILL:
        found += verdict.after_refusal(root, situation, run.answer)
    return [*found, *verdict.after_retry(root, situation)]


@pytest.mark.parametrize("fault", [KILL, EIO])
def test_any_call(writers: Writers, situation: Situation, fault: str, tmp_path: Path):
    assert sweep(writers, "hub", situation, fault, tmp_path) == []


def test_no_space_at_any_call(writers: Writers, tmp_path: Path):
    """At each error the write path does the same except for its message, so one case is enough."""
    assert sweep(writers, "hub", SITUATIONS["with a label"], ENOSPC, tmp_path) == []


def test_the_trace_is_complete(writers: Writers, situation: Situation, tmp_path: Path):
    situation.prepare(str(tmp_path))
    names = [call.name for call in writers.run("hub", str(tmp_path), situation.work).calls]
    assert names[0] in ("openat", "newfstatat") and names[-1] == "sendto"
    assert {"flock", "getdents64", "openat", "write", "fsync", "close"} <= {*names}
    withdrawn = situation.work.startswith("-")
    count = 4 if withdrawn else 3 if situation.old else 6
    if "+" in situation.work:
        # The two files, their three folders, the root, which a first publication syncs anyway, and
        # the format.
        count += 5 + bool(situation.old) + ("+" not in "".join(situation.old))
    assert names.count("fsync") == count


@pytest.mark.parametrize(
    ("fault", "kinds"), [(KILL, {"torn", "retry", "build"}), (EIO, {"lost", "torn"})]
)
def test_the_sweep_bites(writers: Writers, fault: str, kinds: set[str], tmp_path: Path):
    for name in ("second", "first label", "withdrawn"):
        (tmp_path / name).mkdir()
        situation = SITUATIONS[name]
        found = sweep(writers, "careless", situation, fault, tmp_path / name)
        found_kinds = {re.search(r"\): (\w+): ", complaint)[1] for complaint in found}
        missed = {"build"} if situation.work.startswith("@") else set()
        assert found_kinds >= kinds - missed, found
