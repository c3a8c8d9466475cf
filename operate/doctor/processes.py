"""Which processes use the state folder, as the kernel's list of locks tells."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from builder.store.locks import BUILD_LOCK, WORKERS_LOCK
from operate.doctor.findings import Finding, Subject, ok, problem, warning
from operate.doctor.folders import name_of
from operate.doctor.machine import FILES_MIN, RAISE_FILES
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE

_COMMAND_CHARS_MAX = 100
# Of the URL of a database, with the user's name.
_password = re.compile(r"(?<=://)\S*@|(?<=[?&]password=)[^&]*")


class _Holder(NamedTuple):
    """A process that has a lock; what of it cannot be known is None."""

    pid: int
    user: int | None
    command: str | None

    def __str__(self) -> str:
        told = f"process {self.pid}"
        if self.user is not None:
            told += f" of {name_of(self.user)}"
        return f"{told} ({self.command})" if self.command else told


def holders(subject: Subject) -> Iterator[Finding]:
    """Who has the accounts open, who builds, and whether a killed build left workers."""
    state = subject.settings.state
    if not os.path.isdir(state):
        return
    try:
        # SQLite locks this file as long as a database is open.
        users = _holders(f"{state}/{ACCOUNTS_FILE}-shm")
        builders = _holders(f"{state}/{BUILD_LOCK}")
        workers = _holders(f"{state}/{WORKERS_LOCK}")
    except OSError as error:
        yield warning(f"Cannot tell who uses {state}: {error.strerror}.")
        return
    for one in builders:
        yield ok(f"{one} is building")
    if workers and not builders:
        yield problem(
            f"Workers of a killed build still lock {state}/{WORKERS_LOCK}: "
            f"{', '.join(map(str, workers))}.",
            f"If the next build does not start, run: kill -9 "
            f"{' '.join(str(one.pid) for one in workers)}",
        )
    owner = os.stat(state).st_uid
    for one in users:
        yield ok(f"{one} has the accounts open")
        if one.user not in (None, owner):
            yield problem(
                f"{one} works in {state}, which belongs to {name_of(owner)}.",
                f"Stop it, run as root `chown -R {name_of(owner)}` on the three folders, and start "
                f"it as {name_of(owner)}.",
            )
        limit = _files_limit(one.pid)
        if limit is not None and limit < FILES_MIN:
            yield warning(
                f"{one} may open only {limit:,} files, which limits its connections.",
                RAISE_FILES,
            )
    if not users and not builders and not workers:
        yield ok(f"no process uses {state}")


def _holders(path: str) -> list[_Holder]:
    """Who has a lock on a file. Raises OSError where the system does not tell."""
    try:
        inode = os.stat(path).st_ino
    except FileNotFoundError:
        return []
    pids = set()
    with open("/proc/locks", encoding="ascii") as file:
        for line in file:
            words = line.split()
            # `->`: who waits. The device is that of the whole disk on some file systems.
            if "->" not in words and int(words[5].rpartition(":")[2]) == inode:
                pids.add(int(words[4]))
    # 0 and less: in a container whose processes are not shown here.
    return [_holder(pid) for pid in sorted(pids) if pid > 0 and pid != os.getpid()]


def _holder(pid: int) -> _Holder:
    try:
        user = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return _Holder(pid, None, None)
    words = [os.path.basename(word) for word in words[:2]] + words[2:]
    words = [_password.sub("", word) for word in words]
    return _Holder(pid, user, " ".join(filter(None, words))[:_COMMAND_CHARS_MAX])


def _files_limit(pid: int) -> int | None:
    """How many files a process may open; None where that cannot be known."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("Max open files"))
        return int(line.split()[3])
    except (OSError, StopIteration, ValueError):
        return None
