"""Runs commands to their end and measures them: time, processor time, memory.

Memory of a tree of processes is sampled from ``/proc`` (Linux). A page that several of them share
counts once, by the kernel's proportional set size.
"""

import contextlib
import glob
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The operator's command of this source tree, not an installed one.
HUBCTL = [sys.executable, "-c", "from cli.hubctl import main; main()"]
SAMPLE_EVERY_SECONDS = 0.05


class Run(NamedTuple):
    """The cost of a finished command. ``single_bytes``: the peak memory of one of its processes."""

    seconds: float
    cpu_seconds: float
    single_bytes: int
    output: str


def environment() -> dict[str, str]:
    """The environment of child processes: ours, without variables that change the measurement."""
    # Without compiled modules and templates, a small build would mostly compile.
    left_out = ("HUB_", "PYTHONDONTWRITEBYTECODE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    return {**kept, "PYTHONPATH": ROOT}


def run(command: list[str], memory: "TreeMemory | None" = None, **options) -> Run:
    """Run a command to its end; stops the benchmark with its output if it fails."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment(), **options
        )
        if memory:
            memory.watch(process.pid)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            if memory:
                memory.stop()
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:1])} … ended with {process.returncode}:\n{text}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text)


class TreeMemory:
    """The peak memory of a process and all its descendants together."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.processes_max = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pid: int) -> None:
        self._thread = threading.Thread(target=self._sample, args=(pid,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join()

    def _sample(self, pid: int) -> None:
        while not self._ended.wait(SAMPLE_EVERY_SECONDS):
            pids = process_tree(pid)
            self.processes_max = max(self.processes_max, len(pids))
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, pids)))


def process_tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for parent in found:
        # Each thread has its own children.
        for path in glob.iglob(f"/proc/{parent}/task/*/children"):
            with contextlib.suppress(OSError), open(path) as file:  # it may have ended
                found += map(int, file.read().split())
    return found


def _proportional_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # it has ended
    return 0
