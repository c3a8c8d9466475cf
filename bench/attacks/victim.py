"""A hub to attack, on a free port of this machine, and a bystander that measures it."""

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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

START_SECONDS_MAX = 120
ANSWER_SECONDS_MAX = 240
SAMPLES = Path(__file__).parents[2] / "content"
# Options of a hub that trusts X-Forwarded-For.
BEHIND_PROXY = ("--trusted-proxy", "127.0.0.1")


class Victim(NamedTuple):
    """A running ``hubctl serve``: its port, its process, and the folder of its site."""

    port: int
    pid: int
    site: str


def hubctl_option(doc: str) -> str:
    """The path of the ``hubctl`` in the command line. ``doc``: the script's docstring."""
    parser = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    beside = Path(sys.executable).with_name("hubctl")
    parser.add_argument("--hubctl", default=str(beside), help="[default: %(default)s]")
    return parser.parse_args().hubctl


@contextlib.contextmanager
def serving(
    hubctl: str, folder: str, *options: str, open_files: int | None = None
) -> Iterator[Victim]:
    """``hubctl serve`` on ``content`` below ``folder``. ``open_files``: the hard limit of its open
    files.
    """

    def limit() -> None:
        if open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))

    variables = {key: value for key, value in os.environ.items() if not key.startswith("HUB_")}
    site = f"{folder}/site"
    command = [
        hubctl, "serve", "--content", f"{folder}/content", "--out", site,
        "--state", f"{folder}/var", "--port", "0", *options,
    ]  # fmt: skip
    log = Path(folder, "log")
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=variables, preexec_fn=limit
        )
    try:
        end = time.monotonic() + START_SECONDS_MAX
        while "(stop with Ctrl-C)" not in log.read_text():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{hubctl} does not serve:\n{log.read_text()}")
            time.sleep(0.05)
        line = next(line for line in log.read_text().splitlines() if "(stop with" in line)
        port = int(line.partition("http://127.0.0.1:")[2].partition("/")[0])
        yield Victim(port, process.pid, site)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def serving_samples(hubctl: str, *, open_files: int | None = None) -> Iterator[Victim]:
    """As ``serving``, on a copy of the sample prompts, without a limit of reads."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SAMPLES, f"{folder}/content")
        with serving(hubctl, folder, "--rate-limit", "0", open_files=open_files) as victim:
            yield victim


def ask(
    port: int, method: str, path: str, body: str | None = None, *, source: str = "127.0.0.1",
    seconds_max: float = 60, **headers: str,
) -> tuple[http.client.HTTPResponse, str, float]:  # fmt: skip
    """The answer, its body, and the seconds that it took. ``source``: the client's address.
    ``headers``: with _ instead of -.
    """
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    began = time.perf_counter()
    wire = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=seconds_max, source_address=(source, 0)
    )
    with contextlib.closing(wire):
        wire.request(method, path, body, names)
        response = wire.getresponse()
        text = response.read().decode()
    return response, text, time.perf_counter() - began


def status_of(port: int, source: str, seconds_max: float = 5) -> int | str:
    """The status of ``GET /`` for a client at this address, or the failure."""
    try:
        return ask(port, "GET", "/", source=source, seconds_max=seconds_max)[0].status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__


def home_seconds(port: int) -> float:
    """The seconds of ``GET /`` for a client at another address, with or without an answer."""
    began = time.perf_counter()
    status_of(port, "127.0.0.9", ANSWER_SECONDS_MAX)
    return time.perf_counter() - began


@contextlib.contextmanager
def bystander(look: Callable[[], float]) -> Iterator[list[float]]:
    """Calls ``look`` repeatedly while entered, at least once; yields the seconds of each call."""
    seconds: list[float] = []
    is_over = threading.Event()

    def go_on() -> None:
        seconds.append(look())
        while not is_over.wait(0.05):
            seconds.append(look())

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield seconds
    finally:
        is_over.set()
        thread.join()


def memory_mib(pid: int) -> int:
    """The peak memory of a process, in MiB."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) // 1024
