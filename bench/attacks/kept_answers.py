"""Sends an unchanged text with many bad tags again and again, each time with a new Idempotency-Key.
Prints the size of an answer, and of its entry in the accounts database.

    python bench/attacks/kept_answers.py [--hubctl PATH]
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from servers import Server, free_port, started_server

# The number in the original attack, and the most that front matter may have now.
TAGS = (36_000, 900)
REQUESTS = 12  # below the limit a minute, for both together


def publish(server: Server, token: str, key: str, count: int) -> int:
    """Publish a text with ``count`` bad tags; returns the bytes of the answer."""
    tags = ", ".join(["'?'"] * count)
    text = f"---\ntags: [{tags}]\n---\nOne."
    request = urllib.request.Request(
        f"{server.url}/api/v1/repos/ann/story/versions",
        json.dumps({"content": text}).encode(),
        {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        },
    )
    try:
        answer = urllib.request.urlopen(request, timeout=120)
    except urllib.error.HTTPError as refused:
        answer = refused
    with answer:
        return len(answer.read())


def database_bytes(path: str) -> int:
    """The size of the database, including its write-ahead log."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return os.path.getsize(path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hubctl", default=str(Path(sys.executable).with_name("hubctl")))
    hubctl = parser.parse_args().hubctl
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/content")
        port = free_port()
        # An empty PYTHONPATH, since another hubctl has its own code.
        variables = {
            "PYTHONPATH": "", "HUB_CONTENT": f"{folder}/content", "HUB_OUT": f"{folder}/site",
            "HUB_STATE": f"{folder}/var",
        }  # fmt: skip
        token = ""
        for command in (["owner", "add", "ann"], ["token", "create", "ann", "--name", "attack"]):
            token = subprocess.run(
                [hubctl, *command], env=os.environ | variables, check=True, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True,
            ).stdout.strip()  # fmt: skip
        with started_server(
            [hubctl, "serve", "--port", str(port)], port, None, variables
        ) as server:
            path = f"{folder}/var/accounts.sqlite3"
            for count in TAGS:
                publish(server, token, f"first {count}", count)
                before = database_bytes(path)
                keys = [f"{count} {number:0240}" for number in range(REQUESTS)]
                sizes = [publish(server, token, key, count) for key in keys]
                grown = database_bytes(path) - before
                print(
                    f"{count:,} bad tags in an unchanged text, {REQUESTS} times with a new key: an "
                    f"answer had {max(sizes):,} bytes; accounts.sqlite3 grew by "
                    f"{grown // REQUESTS:,} bytes for each."
                )


if __name__ == "__main__":
    main()
