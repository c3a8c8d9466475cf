"""Builds with two worker processes, and a fault in one of them; for ``test_pool``.

``python -m tests.support.faulty_workers METHOD PLATFORM FAULT SETTING…``: METHOD is how workers
start, fork or spawn; PLATFORM what ``sys.platform`` says; FAULT a key of ``FAULTS``, or ``none``.
Prints how many files the build has written, and how many it has left unchanged.
"""

import errno
import os
import pickle
import signal
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any

from builder.emit import pool
from builder.model.settings import Settings
from builder.pipeline.build import build

# A worker's file at which it happens: in the middle of a batch, and of a repo.
FILE = 23

_open, _rename, _send, _files = os.open, os.rename, Connection.send, count(1)


def stop_before_a_file(path: str, flags: int, *args: Any, **options: Any) -> int:
    if parent_process() and flags & os.O_CREAT and next(_files) == FILE:
        os.kill(os.getpid(), signal.SIGSTOP)
    return _open(path, flags, *args, **options)


def die_at_a_rename(source: str, target: str) -> None:
    if parent_process() and next(_files) == FILE:
        os.kill(os.getpid(), signal.SIGKILL)
    _rename(source, target)


def die_alone_at_a_rename(source: str, target: str) -> None:
    if parent_process() and next(_files) == FILE:
        with suppress(FileExistsError):  # the other worker has died
            os.open(f"{settings.state}/died", os.O_CREAT | os.O_EXCL)
            os.kill(os.getpid(), signal.SIGKILL)
    _rename(source, target)


def die_in_an_answer(self: Connection, message: object) -> None:
    if parent_process():
        data = pickle.dumps(message)
        os.write(self.fileno(), struct.pack("!i", len(data)) + data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    _send(self, message)


def fork_nothing() -> int:
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


FAULTS = {
    "stop": (os, "open", stop_before_a_file),
    "die": (os, "rename", die_at_a_rename),
    "die alone": (os, "rename", die_alone_at_a_rename),
    "die in an answer": (Connection, "send", die_in_an_answer),
    "no fork": (os, "fork", fork_nothing),
}


def run() -> None:
    report = build(settings, index=False)
    print(report.written, report.unchanged)


# Spawned workers load this module, too.
method, platform, fault = sys.argv[1:4]
settings = Settings(*sys.argv[4:])
pool.REPOS_PER_PROCESS_MIN = 10
pool.REPOS_PER_BATCH = 5
os.cpu_count = lambda: 2
sys.platform = platform
if fault in FAULTS:
    setattr(*FAULTS[fault])

if __name__ == "__main__":
    if method == "fork":
        run()
    else:  # a second thread is running
        with ThreadPoolExecutor(1) as threads:
            threads.submit(run).result()
