"""Runs publications under strace: lists their system calls, and makes a chosen one fail."""

import json
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.servers import DEADLINE_SECONDS

KILL = "signal=KILL"
EIO = "error=EIO"
ENOSPC = "error=ENOSPC"

# Python may allocate memory at any time. An error there is none of the disk's, and says nothing
# about a publication.
MEMORY_CALLS = ("brk", "madvise", "mmap", "mremap", "munmap")

_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+|\?).*")
# The child's, not the publication's: the wait for its start, and its end.
_AROUND = ("recvfrom", "restart_syscall", "exit_group")


class Call(NamedTuple):
    """A system call as strace shows it; ``number`` counts those of its name, from 1.

    ``result`` is negative where it failed, and None where the process died in it.
    """

    name: str
    number: int
    args: str
    result: int | None

    def __str__(self) -> str:
        return f"{self.name} #{self.number} ({self.args})"


class Run(NamedTuple):
    """The result of a publication. ``answer`` is empty if the process died; the last call shows
    where.
    """

    answer: str
    calls: list[Call]

    @property
    def acknowledged(self) -> bool:
        return self.answer.startswith("ACK ")


class Writers:
    """Publications to order, each in a process of its own, with its system calls watched."""

    def __init__(self, address: bytes) -> None:
        self._address = address

    def run(
        self, writer: str, root: str, text: str, fault: str = "", call: Call | None = None
    ) -> Run:
        """Let a writer publish ``text``, with ``fault`` done to ``call`` if it is given.

        A call that gets an error is not made; one that gets the signal is not made either.
        Raises RuntimeError where strace cannot watch, or the fault has not come about.
        """
        log = Path(f"{root}.strace")
        options = ["-e", f"inject={call.name}:{fault}:when={call.number}"] if call else ["-y"]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(DEADLINE_SECONDS)
            connection.connect(self._address)
            connection.send(json.dumps({"writer": writer, "root": root, "text": text}).encode())
            pid = connection.recv(64).decode()
            with subprocess.Popen(
                ["strace", "-o", log, "-s", "65536", *options, "-p", pid], stderr=subprocess.PIPE
            ) as tracer:
                said = tracer.stderr.readline().decode()
                if "attached" not in said:
                    raise RuntimeError(f"strace cannot watch a process on this machine: {said}")
                connection.send(b"go")
                answer = connection.recv(65536).decode()
        shown = log.read_text(encoding="utf-8")
        if call and ("killed by SIGKILL" if fault == KILL else "(INJECTED)") not in shown:
            raise RuntimeError(f"{fault} did not come about at {call}:\n{shown}")
        return Run(answer, _parse(shown))


def _parse(log: str) -> list[Call]:
    calls, counts = [], Counter()
    for found in filter(None, map(_CALL.fullmatch, log.splitlines())):
        name, args, result = found.groups()
        if name not in _AROUND:
            counts[name] += 1
            calls.append(Call(name, counts[name], args, None if result == "?" else int(result)))
    return calls


@contextmanager
def start_writers() -> Iterator[Writers]:
    """Writers, for as long as the context lasts."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("")  # Linux chooses a name, which is no file
        listener.listen()
        with subprocess.Popen(
            [sys.executable, "-m", "tests.faults.writers", str(listener.fileno())],
            stdin=subprocess.PIPE, pass_fds=[listener.fileno()],
            cwd=Path(__file__).parents[2],
        ):  # fmt: skip
            yield Writers(listener.getsockname())
