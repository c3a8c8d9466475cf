"""Starts `hubctl serve` and `hubctl mcp` as forks of processes that have loaded their modules.

Loading them is most of what a small hub's start costs, and tests start hundreds. All other commands
are started as users do, and so are the servers of `tests/test_dist.py` and those that
``sys.executable`` starts.

``python -m tests.support.forked FD MODULE…`` is such a process. It takes requests from the
connection FD, and tells there what it has started and what has ended.
"""

import functools
import gc
import gzip
import importlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle

# The commands that are started so, and what they load.
MODULES = {"serve": ("cli.serve", "cli.build", "cli.service"), "mcp": ("cli.mcp", "mcp_app.app")}


class Forked:
    """A process that was forked, with what the tests need of ``subprocess.Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = threading.Event()
        self.status = 0

    def poll(self) -> int | None:
        return os.waitstatus_to_exitcode(self.status) if self.ended.is_set() else None

    def wait(self, timeout: float) -> int:
        """The exit status. Raises TimeoutExpired."""
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired("hubctl", timeout)
        return os.waitstatus_to_exitcode(self.status)

    def send_signal(self, number: int) -> None:
        if not self.ended.is_set():
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Forker:
    """The process to fork, as this one sees it."""

    def __init__(self, command: str) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno()), *MODULES[command]],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._started: dict[int, Forked] = {}
        self._lock = threading.Lock()
        self._has_started = threading.Semaphore(0)
        self._last: Forked | None = None
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """What ends is told after its start."""
        while True:
            try:
                pid, status = self._connection.recv()
            except EOFError:
                return
            if status is None:
                self._started[pid] = self._last = Forked(pid)
                self._has_started.release()
            else:
                ended = self._started.pop(pid)
                ended.status = status
                ended.ended.set()

    def start(self, command: list[str], env: dict[str, str], output: int) -> Forked:
        with self._lock:
            self._connection.send((command, env, os.getcwd()))
            send_handle(self._connection, output, self._process.pid)
            assert self._has_started.acquire(timeout=300), "no process to fork"
            return self._last

    def close(self) -> None:
        self._connection.send(None)
        self._process.wait()
        self._listener.join()
        self._connection.close()


_forkers: dict[str, _Forker] = {}


def start(command: list[str], env: dict[str, str], output: int) -> Forked:
    """Run a command of `hubctl` whose standard output and error are the descriptor ``output``."""
    name = command[1]
    if name not in _forkers:
        _forkers[name] = _Forker(name)
    return _forkers[name].start(command, env, output)


def stop() -> None:
    """End the processes that were forked."""
    while _forkers:
        _forkers.popitem()[1].close()


def _serve(connection: Connection) -> None:
    """Fork for each request; returns in the children, and exits when nobody asks any more."""
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # is for the tests, which stop what they started
    signal.set_wakeup_fd(woken.fileno())
    while True:
        ready = wait([connection, wake])
        if wake in ready:
            wake.recv(4096)
            _tell_ended(connection)
        if connection in ready:
            try:
                request = connection.recv()
            except EOFError:  # the tests were killed
                request = None
            if not request:
                sys.exit()
            command, env, folder = request
            output = recv_handle(connection)
            pid = os.fork()
            if not pid:
                break
            os.close(output)
            connection.send((pid, None))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for one in (wake, woken, connection):
        one.close()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = command


def _tell_ended(connection: Connection) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        connection.send((pid, status))


def _warm_up() -> None:
    """Fill the caches that any build fills, such as templates; no thread is there when we fork."""
    gzip.compress = functools.lru_cache(maxsize=64)(gzip.compress)
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_in(folder)
        write_small_catalogue(settings.content)
        build(settings, index=False)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from builder.pipeline.build import build
    from cli.hubctl import main
    from tests.support.catalogues import settings_in, write_small_catalogue

    for module in sys.argv[2:]:
        importlib.import_module(module)
    _warm_up()
    _serve(Connection(int(sys.argv[1])))
    main(prog_name="hubctl")
