"""Output of the benchmarks: progress, an aligned table, and a line about the machine."""

import math
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager


def scratch_folder(parent: str | None) -> AbstractContextManager[str]:
    """A temporary folder: in ``parent``, else in memory if possible."""
    if parent is None and os.access("/dev/shm", os.W_OK):
        parent = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="hub-bench-", dir=parent)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: the first column left-aligned, the others right-aligned; None is a dash."""
    lines = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    print(f"\n{title}")
    for line in lines:
        first, *others = (
            value.ljust(width) if at == 0 else value.rjust(width)
            for at, (value, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *others]).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_machine(folder: str) -> None:
    """Print one line about the machine. ``folder``: that of the files."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"\n{cores} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {_file_system(folder)}"
    )


def _file_system(folder: str) -> str:
    """The type of a folder's file system, if the system shows it."""
    path = os.path.realpath(folder)
    best = ("", "unknown file system")
    try:
        with open("/proc/mounts") as file:
            for line in file:
                _, mount, kind = line.split()[:3]
                if os.path.commonpath([path, mount]) == mount and len(mount) >= len(best[0]):
                    best = (mount, kind)
    except (OSError, ValueError):
        pass
    return best[1]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The lowest and the highest."""
    return f"{min(values):.{digits}f}–{max(values):.{digits}f}"


def percentile(values: Iterable[float], percent: float) -> float:
    """The lowest value that at least ``percent`` percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
