"""File systems: which they are, and whether they do what the hub relies on, found by trying it."""

import errno
import fcntl
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing

from builder.store.sqlite import primary_code
from operate.doctor.findings import Finding, Subject, ok, problem, warning
from publisher.write.disk import sync_folder

_MEMORY = ("tmpfs", "ramfs")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre", "fuse.sshfs")
_LASTING = {
    "--content": "prompts",
    "--state": "accounts and pull counts",
}
# A time with nanoseconds, to see how exactly a file keeps it.
_TIME_NS = 1_700_000_001_123_456_789

# What a probe says: None if all is well, else what is wrong.
Probe = Callable[[str], str | None]


def kinds(subject: Subject) -> Iterator[Finding]:
    """What must last is on a disk of this machine."""
    fine = []
    for option, path in subject.existing.items():
        kind = kind_of(path)
        holds = _LASTING.get(option)
        if kind is None:
            yield warning(f"The file system of {path} is unknown: /proc is missing.")
        elif holds and kind in _MEMORY:
            yield problem(
                f"{path} is in memory ({kind}): a restart of the machine loses the {holds}.",
                f"Move it to a disk, and pass the new folder with {option}.",
            )
        elif holds and kind == "overlay":
            yield problem(
                f"{path} is in a container's own layer ({kind}), so the {holds} go with the "
                "container.",
                "Mount a volume there: docs/operate/containers.md.",
            )
        elif holds and kind in _NETWORK:
            yield problem(
                f"{path} is on a network file system ({kind}), where locks of other machines may "
                "not count.",
                f"Move it to a disk of the machine that runs the hub, and pass it with {option}.",
            )
        else:
            fine.append(f"{path} on {kind}")
    if fine:
        yield ok(", ".join(fine))


def abilities(subject: Subject) -> Iterator[Finding]:
    """The folders take links, locks, synced folders and so on."""
    fine = []
    for option, path in subject.existing.items():
        if not os.access(path, os.W_OK):
            continue  # `folders.places` has told
        try:
            with tempfile.TemporaryDirectory(prefix=".doctor-", dir=path) as folder:
                faults = [fault for probe in _PROBES[option] if (fault := _run(probe, folder))]
        except OSError as error:
            yield problem(
                f"Cannot create files in {path}: {error.strerror}.",
                "Free disk space, or make the disk writable.",
            )
            continue
        for fault in faults:
            yield problem(
                f"The file system of {path} {fault}",
                f"Move the folder to ext4, XFS or btrfs, and pass it with {option}.",
            )
        if not faults:
            fine.append(path)
    if fine:
        yield ok(f"links, locks, syncing and times work in {', '.join(fine)}")


def _run(probe: Probe, folder: str) -> str | None:
    """What a probe says. Raises OSError where nothing but space is missing."""
    try:
        return probe(folder)
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        if isinstance(error, sqlite3.Error) and primary_code(error) == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        return f"fails at {probe.__name__}: {error}."


def hard_links(folder: str) -> str | None:
    """A version gets its name by a link, which never replaces another."""
    path = _file(folder, "linked")
    os.link(path, f"{path}-again")
    try:
        os.link(path, f"{path}-again")
    except FileExistsError:
        return None
    return "lets a link replace a file, so one version could overwrite another."


def locks_of_folders(folder: str) -> str | None:
    """Publishers take turns by locks of folders."""
    return _locks(folder, os.O_RDONLY | os.O_DIRECTORY)


def locks_of_files(folder: str) -> str | None:
    """Builds take turns by locks of files."""
    return _locks(_file(folder, "locked"), os.O_RDWR)


def _locks(path: str, flags: int) -> str | None:
    first, second = (os.open(path, flags | os.O_CLOEXEC) for _ in range(2))
    try:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    finally:
        os.close(first)
        os.close(second)
    return "gives one lock (flock) to two at once, so two publishers could lose a version."


def syncing(folder: str) -> str | None:
    """A publication is on the disk, with its name, before it is acknowledged."""
    sync_folder(folder)
    return None


def case(folder: str) -> str | None:
    """Names in capitals are other names."""
    _file(folder, "names")
    if os.path.exists(f"{folder}/NAMES"):
        return "does not tell capitals from small letters."
    return None


def times(folder: str) -> str | None:
    """Hosts make the ETag of a file's time, in seconds."""
    path = _file(folder, "timed")
    os.utime(path, ns=(_TIME_NS, _TIME_NS))
    if os.stat(path).st_mtime_ns // 10**9 != _TIME_NS // 10**9:
        return "rounds times to more than a second, so readers could take a new file for the old."
    return None


def wal(folder: str) -> str | None:
    """SQLite's log, with which readers and writers do not wait for each other."""
    with closing(sqlite3.connect(f"{folder}/wal.sqlite3", isolation_level=None)) as db:
        ((mode,),) = db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE one (a)")
    return None if mode == "wal" else "cannot hold SQLite's databases in WAL mode."


_PROBES: dict[str, tuple[Probe, ...]] = {
    "--content": (hard_links, locks_of_folders, syncing, times),
    "--state": (locks_of_folders, locks_of_files, syncing, wal),
    "--out": (case, times),
}


def _file(folder: str, name: str) -> str:
    path = f"{folder}/{name}"
    with open(path, "x") as file:
        file.flush()
        os.fsync(file.fileno())
    return path


def kind_of(path: str) -> str | None:
    """The type of the file system on which a path lies; None where the system does not tell."""
    real = os.path.realpath(path)
    found = None
    longest = -1
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                words = line.split()
                at = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[4])
                # Of two at one place, the later one is on top.
                if os.path.commonpath([at, real]) == at and len(at) >= longest:
                    longest, found = len(at), words[words.index("-") + 1]
    except (OSError, ValueError, IndexError):
        return None
    return found
