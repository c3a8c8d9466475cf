"""What these attacks share: a server of their own, and a bystander who reads beside them."""

import argparse
import contextlib
import http.client
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Self

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from processes import ROOT
from servers import free_port

START_SECONDS_MAX = 120
ANSWER_SECONDS_MAX = 240


def options(doc: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc.partition(";")[0])
    beside = os.path.join(os.path.dirname(sys.executable), "hubctl")
    parser.add_argument("--hubctl", default=beside, metavar="PATH", help="[default: ours]")
    return parser.parse_args()


class Attacked:
    """`hubctl serve` on a copy of the sample prompts, as a context manager. ``site`` is its folder.

    ``open_files`` is its hard limit of open files, if it is to have another.
    """

    def __init__(self, hubctl: str, open_files: int | None = None) -> None:
        self._command = hubctl
        self._open_files = open_files

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp()
        self.site = f"{self._folder}/site"
        self.port = free_port()
        shutil.copytree(f"{ROOT}/content", f"{self._folder}/content")
        self._process = subprocess.Popen(
            [self._command, "serve", "--content", f"{self._folder}/content", "--out", self.site,
             "--state", f"{self._folder}/state", "--port", str(self.port), "--rate-limit", "0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=self._limit,
        )  # fmt: skip
        self.pid = self._process.pid
        end = time.monotonic() + START_SECONDS_MAX
        while status_of(self, "127.0.0.9") != 200:
            if self._process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{self._command} did not start.")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)

    def _limit(self) -> None:
        if self._open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._open_files, self._open_files))


def status_of(server: Attacked, source: str, seconds_max: float = 5) -> int | str:
    """The status of ``GET /`` for a client at this address, or what went wrong instead."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", server.port, timeout=seconds_max, source_address=(source, 0)
    )
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/")
            return connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__


@contextlib.contextmanager
def slowest_seconds(server: Attacked) -> Iterator[list[float]]:
    """The longest ``GET /`` of a bystander, read again and again as long as the block runs."""
    slowest = [0.0]
    ended = threading.Event()

    def read_on() -> None:
        while not ended.is_set():
            begun = time.monotonic()
            status_of(server, "127.0.0.9", ANSWER_SECONDS_MAX)
            slowest[0] = max(slowest[0], time.monotonic() - begun)
            ended.wait(0.02)

    thread = threading.Thread(target=read_on)
    thread.start()
    try:
        yield slowest
    finally:
        ended.set()
        thread.join()


def memory_mib(pid: int) -> int:
    """The most memory that a process has had, in MiB."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) // 1024
