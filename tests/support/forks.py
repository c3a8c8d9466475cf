"""Starts `hubctl` as a fork of a process that has already loaded its code, which saves a second
each.

The first start creates that process. For each command it forks a *keeper*. The keeper forks the
command, and reports its process ID and then its exit status. A command ends as any Python program
does.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

# Modules that `hubctl serve` loads, early or late.
_LOADED = (
    "cli.service", "cli.serve", "cli.config", "builder.search.with_tantivy",
    "uvicorn.lifespan.on", "uvicorn.loops.uvloop",
)  # fmt: skip
_REQUEST_BYTES_MAX = 1 << 20


class Fork:
    """A `hubctl` command, in place of ``subprocess.Popen``; what it writes goes to ``stdout``."""

    stdin = None

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], **_: Any) -> None:
        output, output_end = os.pipe()
        reports, reports_end = os.pipe()
        request = json.dumps([os.getcwd(), dict(env), *command[1:]]).encode()
        assert len(request) < _REQUEST_BYTES_MAX
        socket.send_fds(_loaded_process(), [request], [output_end, reports_end])
        os.close(output_end)
        os.close(reports_end)
        self.returncode: int | None = None
        self.stdout = os.fdopen(output, encoding="utf-8")
        self._reports = os.fdopen(reports, encoding="ascii")
        self.pid = int(self._reports.readline())

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._reports], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("hubctl", timeout)
            self.returncode = int(self._reports.readline())
            self._reports.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _loaded_process() -> socket.socket:
    """A socket for requests to the process with all code loaded. Closing it ends the process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=theirs, stdout=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
    atexit.register(process.wait)
    atexit.register(ours.close)  # runs first
    return ours


def _await_command() -> bool:
    """Fork for each request. Returns True in such a fork, and False at the end."""
    # The kernel reaps keepers, as no process waits for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asking = socket.socket(fileno=0)
    while True:
        request, descriptors, *_ = socket.recv_fds(asking, _REQUEST_BYTES_MAX, 2)
        if not request:
            return False
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output, reports = descriptors
    child = os.fork()
    if child:
        os.close(output)
        os.write(reports, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(reports, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.close(reports)
    os.dup2(os.open(os.devnull, os.O_RDONLY), asking.detach())
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    folder, environment, *sys.argv[1:] = json.loads(request)
    sys.argv[0] = "hubctl"
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    return True


if __name__ == "__main__":
    for module in _LOADED:
        import_module(module)
    gc.freeze()
    if _await_command():
        from cli.hubctl import main

        main()
