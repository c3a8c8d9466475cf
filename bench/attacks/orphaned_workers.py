"""Orphaned workers: kills a server while the workers of its build are stopped.

Publishes new versions, builds the site, then lets the workers continue. Prints how many files of
the site differ from the content, then and after two more builds.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from processes import process_tree
from report import scratch_folder
from servers import free_port, started_server

REPOS = 600
VERSIONS = ["1.0.0", "1.1.0", "1.2.0"]
WAIT_SECONDS_MAX = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hubctl", default=f"{os.path.dirname(sys.executable)}/hubctl")
    hubctl = parser.parse_args().hubctl
    with scratch_folder(None) as folder:
        publish(folder, VERSIONS[:1])
        port = free_port()
        folders = [f"--{name}={folder}/{name}" for name in ("content", "out", "state")]
        folders.append("--base-url=http://127.0.0.1:8000")
        command = [hubctl, "serve", *folders, "--port", str(port), "--watch"]
        with started_server(command, port, None, {"PYTHONPATH": ""}) as server:
            publish(folder, VERSIONS[:2])
            wait_for(lambda: any(is_built(folder, number) for number in range(REPOS)))
            workers = [pid for pid in process_tree(server.pid)[1:] if is_worker(pid)]
            for pid in workers:
                os.kill(pid, signal.SIGSTOP)
            os.kill(server.pid, signal.SIGKILL)
            publish(folder, VERSIONS)
            build(hubctl, folders)
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            wait_for(lambda: not any(map(is_worker, workers)))
        then = differing(hubctl, folders)
        for _ in range(2):
            build(hubctl, folders)
        print(
            f"{REPOS} repos, {len(workers)} workers stopped: {then} files differ when they have "
            f"gone on, {differing(hubctl, folders)} after two more builds"
        )


def publish(folder: str, versions: list[str]) -> None:
    """Put these versions of all repos in place at once, so one build takes them in."""
    for number in range(REPOS):
        where = f"{folder}/next/r{number}"
        os.makedirs(where)
        for version in versions:
            text = f"Version {version} of {number}.\n"
            record = {
                "title": f"Prompt {number}", "publisher": "ann",
                "published_at": f"2026-01-01T00:{version[2]}0:00Z",
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
            }  # fmt: skip
            for suffix, data in (("md", text), ("json", json.dumps(record))):
                with open(f"{where}/{version}.{suffix}", "w") as file:
                    file.write(data)
    os.makedirs(f"{folder}/content/ann", exist_ok=True)
    os.rename(f"{folder}/content/ann", f"{folder}/before-{versions[-1]}")
    os.rename(f"{folder}/next", f"{folder}/content/ann")


def is_built(folder: str, number: int) -> bool:
    return os.path.exists(f"{folder}/out/api/v1/repos/ann/r{number}/versions/{VERSIONS[1]}.json")


def is_worker(pid: int) -> bool:
    """True if a process renders repos and has not ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"spawn_main" in file.read()
    return False


def wait_for(condition) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"Nothing came of it within {WAIT_SECONDS_MAX} seconds.")
        time.sleep(0.002)


def build(hubctl: str, folders: list[str], *options: str) -> str:
    command = [hubctl, "build", "--queries", *folders, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
    return done.stdout + done.stderr


def differing(hubctl: str, folders: list[str]) -> int:
    found = re.search(r"([\d,]+) files of", build(hubctl, folders, "--check"))
    return int(found[1].replace(",", "")) if found else 0


if __name__ == "__main__":
    main()
