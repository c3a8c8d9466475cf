"""Steady load on ``hubctl serve``: publications and readers that never pause.

Publications follow a fixed schedule, and latency counts from the scheduled time. Prints how far
behind the lists are, the latencies of publications and reads, and the number of errors.
"""

import argparse
import collections
import itertools
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from publishers import Connection, HubClient, UnexpectedAnswer, make_catalogue
from report import percentile, scratch_folder
from servers import free_port, started_server

PUBLISHERS = 8
WORDS = "review write the explain python a data agent summary mor".split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hubctl", default=f"{os.path.dirname(sys.executable)}/hubctl")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--repos", type=int, default=2_000)
    parser.add_argument("--rate", type=float, default=5, help="publications a second")
    parser.add_argument("--readers", type=int, default=2)
    options = parser.parse_args()
    # As Ctrl-C: ends the started processes.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with scratch_folder(None) as parent:
        folder = f"{parent}/hub"
        prompts, tokens = make_catalogue(options.repos, 1, folder)
        port = free_port()
        command = [
            options.hubctl, "serve", "--content", f"{folder}/content", "--out", f"{folder}/site",
            "--state", f"{folder}/state", "--port", str(port), "--rate-limit", "0",
            "--publish-limit", "0",
        ]  # fmt: skip
        with started_server(command, port, None, {"PYTHONPATH": ""}) as server:
            attack(options, server, prompts, tokens)


def attack(options, server, prompts, tokens) -> None:
    is_over = threading.Event()
    statuses: collections.Counter[str] = collections.Counter()
    published, reads, lags = [], [], []

    def publish(number: int) -> None:
        """Send every n-th publication."""
        with closing(HubClient(server, tokens)) as client:
            for scheduled in itertools.count(
                started + number / options.rate, PUBLISHERS / options.rate
            ):
                if is_over.wait(max(0.0, scheduled - time.monotonic())):
                    return
                try:
                    client.publish(random.choice(prompts))
                    statuses["publish 201"] += 1
                except UnexpectedAnswer as error:
                    statuses[f"publish {error.status}"] += 1
                published.append(time.monotonic() - scheduled)

    def read() -> None:
        paths = [f"/api/v1/repos?q={word}" for word in WORDS] + ["/", "/api/v1/repos?sort=new"]
        with closing(Connection(server)) as connection:
            while not is_over.wait(0.02):
                began = time.monotonic()
                path = random.choice(paths) if len(reads) % 50 else "/healthz"
                try:
                    answer = connection.get(path)[0] if "api" in path or "z" in path else None
                except UnexpectedAnswer as error:
                    statuses[f"read {error.status}"] += 1
                else:
                    if path == "/healthz":
                        lags.append(answer["lag_seconds"])
                reads.append(time.monotonic() - began)

    with closing(HubClient(server, tokens)) as client:
        client.settle()  # until the first build is done, all answers are 503
    started = time.monotonic()
    with ThreadPoolExecutor(PUBLISHERS + options.readers) as pool:
        jobs = [pool.submit(publish, number) for number in range(PUBLISHERS)]
        jobs += [pool.submit(read) for _ in range(options.readers)]
        try:
            time.sleep(options.seconds)
        finally:
            is_over.set()
    for job in jobs:
        job.result()
    print(
        f"{options.repos:,} repos, {options.seconds:g} s: lag at the end {lags[-1]:.1f} s, at most "
        f"{max(lags):.1f}; {len(published)} publications, p50 {percentile(published, 50):.2f} s, "
        f"p99 {percentile(published, 99):.2f}, longest {max(published):.2f}\n"
        f"{len(reads)} reads, longest {max(reads):.2f} s; {dict(statuses)}"
    )


if __name__ == "__main__":
    main()
