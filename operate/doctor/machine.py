"""The machine: its clock, disk and memory, and how many files a process may open."""

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from builder.model.plural import counted
from operate.doctor.findings import Finding, Subject, ok, problem, warning
from server.connections import connections_max

CLOCK_SECONDS_MAX = 2
FILES_MIN = 4096
RAISE_FILES = "Raise the limit: LimitNOFILE=16384 in the unit of systemd, or `ulimit -n 16384`."
MEMORY_BYTES_MIN = 256 * 2**20
# A publication needs less than a megabyte; a build of the whole site as much as the site has.
FREE_BYTES_MIN = 100 * 2**20
FREE_BYTES_WARNING = 2**30
FREE_INODES_MIN = 1000
FREE_SHARE_WARNING = 0.05


def clock(subject: Subject) -> Iterator[Finding]:
    """The clock is not in the past, and the same for files."""
    now = time.time()
    installed = os.stat(__file__).st_mtime
    if now < installed:
        yield problem(
            f"The clock says {_date(now)}, but hub was installed on {_date(installed)}.",
            "Set the clock, and keep it right with NTP: versions, tokens and counts have its time.",
        )
    for path in subject.existing.values():
        if not os.access(path, os.W_OK):
            continue
        try:
            with tempfile.NamedTemporaryFile(prefix=".doctor-", dir=path) as file:
                before = time.time()
                file.write(b"now")
                file.flush()
                written = os.fstat(file.fileno()).st_mtime
        except OSError:
            continue  # `file_systems.abilities` has told
        apart = how_far_apart(written, before, time.time())
        if abs(apart) > CLOCK_SECONDS_MAX:
            yield problem(
                f"The times of new files in {path} are {abs(apart):.0f} seconds "
                f"{'ahead of' if apart > 0 else 'behind'} this machine's clock.",
                "Set both clocks with NTP, or use a disk of this machine.",
            )
            return
    if now >= installed:
        yield ok(f"{_date(now)}, as for new files")


def how_far_apart(told: float, before: float, after: float) -> float:
    """By how many seconds another clock, asked between two moments of ours, is ahead of it."""
    return told - min(max(told, before), after)


def open_files(subject: Subject) -> Iterator[Finding]:
    """As this user may open them; `processes.holders` tells of a running service."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(soft, hard) if hard != resource.RLIM_INFINITY else 2**31
    told = f"{limit:,} files, so {counted(connections_max(limit), 'connection')} at once"
    if limit < FILES_MIN:
        yield warning(
            f"A process may open only {told}.",
            RAISE_FILES,
        )
    else:
        yield ok(f"a process may open {told}")


def disk(subject: Subject) -> Iterator[Finding]:
    """Space and inodes that are left for this user, once for each disk."""
    seen = set()
    for path in subject.existing.values():
        device = os.stat(path).st_dev
        if device in seen:
            continue
        seen.add(device)
        found = os.statvfs(path)
        free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
        told = f"The disk of {path} has {_size(free)} of {_size(total)} left"
        do = "Free space or enlarge the disk. Without space, publishing stops; reading goes on."
        if free < FREE_BYTES_MIN:
            yield problem(f"{told}.", do)
        elif free < min(FREE_BYTES_WARNING, total * FREE_SHARE_WARNING):
            yield warning(f"{told}.", do)
        # Some file systems do not count inodes.
        elif found.f_files and found.f_favail < FREE_INODES_MIN:
            yield problem(
                f"The disk of {path} can hold only {counted(found.f_favail, 'more file')}: it has "
                "hardly any inodes left.",
                "Remove files, or move the folder to a file system with more inodes. A site has "
                "about ten files for each version.",
            )
        else:
            yield ok(told[0].lower() + told[1:])


def memory(subject: Subject) -> Iterator[Finding]:
    """What is left to new processes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return
    if available < MEMORY_BYTES_MIN:
        yield warning(
            f"Only {_size(available)} of memory are available.",
            "End other programs or add memory. A hub needs some 150 MB; a full build of 100,000 "
            "prompts more.",
        )
    else:
        yield ok(f"{_size(available)} available")


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
