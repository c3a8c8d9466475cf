"""A hub to attack, on a free port of this machine, and a bystander who looks on."""

import argparse
import contextlib
import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

START_SECONDS_MAX = 120


def hubctl_option(description: str) -> str:
    """The path of the ``hubctl`` that the command line names."""
    parser = argparse.ArgumentParser(description=description)
    beside = Path(sys.executable).with_name("hubctl")
    parser.add_argument("--hubctl", default=str(beside), help="[default: %(default)s]")
    return parser.parse_args().hubctl


@contextlib.contextmanager
def serving(hubctl: str, folder: str, *options: str) -> Iterator[int]:
    """``hubctl serve`` on ``content`` below ``folder``; gives its port."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("HUB_")}
    command = [
        hubctl, "serve", "--content", f"{folder}/content", "--out", f"{folder}/site",
        "--state", f"{folder}/var", "--port", "0", "--trusted-proxy", "127.0.0.1", *options,
    ]  # fmt: skip
    log = Path(folder, "log")
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=variables)
    try:
        end = time.monotonic() + START_SECONDS_MAX
        while "(stop with Ctrl-C)" not in log.read_text():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{hubctl} does not serve:\n{log.read_text()}")
            time.sleep(0.05)
        line = next(line for line in log.read_text().splitlines() if "(stop with" in line)
        yield int(line.partition("http://127.0.0.1:")[2].partition("/")[0])
    finally:
        process.terminate()
        process.wait()


def ask(
    port: int, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, str, float]:
    """An answer, its body, and the seconds that it took. ``headers``: with _ in the place of -."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    began = time.perf_counter()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as wire:
        wire.request(method, path, body, names)
        response = wire.getresponse()
        text = response.read().decode()
    return response, text, time.perf_counter() - began


@contextlib.contextmanager
def bystander(look: Callable[[], float]) -> Iterator[list[float]]:
    """Calls ``look`` again and again meanwhile; gives the seconds that each took."""
    seconds: list[float] = []
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.wait(0.05):
            seconds.append(look())

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield seconds
    finally:
        is_over.set()
        thread.join()
