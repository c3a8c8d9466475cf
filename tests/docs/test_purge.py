"""The receiver of docs/operate/purge.md, called by a hub that deploys after each publication."""

import json
import re
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest

from builder.model.settings import Settings
from tests.support.catalogues import read_tree
from tests.support.servers import (
    PROJECT,
    Process,
    Server,
    add_publisher,
    clean_environment,
    free_port,
    in_thread,
    serve_command,
    wait_until,
)

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BASE = "https://prompts.example.org"


class Cloudflare(BaseHTTPRequestHandler):
    """Takes note of what is to be purged."""

    def do_POST(self) -> None:
        assert self.headers["Authorization"] == "Bearer for-purges"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.purges.append(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def receiver() -> str:
    text = (PROJECT / "docs/operate/purge.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```python\n(# purge\.py.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return found


def test_a_publication_purges_its_pages(small: Settings, tmp_path: Path) -> None:
    cloudflare = ThreadingHTTPServer(("127.0.0.1", 0), Cloudflare)
    cloudflare.purges = purges = []
    port, target = free_port(), tmp_path / "public"
    token = add_publisher(small, "carol")
    with in_thread(cloudflare):
        purge = Process(
            sys.executable, "-c", receiver(),
            env=clean_environment(
                HUB_ON_DEPLOYED_SECRET=SECRET, PORT=str(port), PURGE_TOKEN="for-purges",
                PURGE_URL=f"http://127.0.0.1:{cloudflare.server_port}/",
            ),
        )  # fmt: skip
        process = Process(
            *serve_command(small, "--base-url", BASE, "--deploy", str(target)),
            env=clean_environment(
                HUB_ON_DEPLOYED=f"http://127.0.0.1:{port}/", HUB_ON_DEPLOYED_SECRET=SECRET
            ),
        )  # fmt: skip
        try:
            server = Server(process, small)
            # Caches may hold any earlier file, more than one request can name: everything is
            # purged.
            wait_until(lambda: purges, "the first purge")
            assert purges.pop() == {"purge_everything": True}
            answer = server.request(
                "POST", "/api/v1/repos/carol/hello/versions", json={"content": "Hello.\n"},
                headers={"Authorization": f"Bearer {token}"},
            )  # fmt: skip
            assert answer.status_code == 201
            wait_until(lambda: purges, "the purge of a publication")
            assert {f"{BASE}/carol/hello", f"{BASE}/carol/hello.html", f"{BASE}/"} <= {
                url for sent in purges for url in sent["files"]
            }
            wait_until(lambda: read_tree(str(target)) == read_tree(small.out), "the deployment")
            assert server.close() == 0
            # From here on nothing else requests purges.
            check_forgeries(f"http://127.0.0.1:{port}/", purges)
        finally:
            process.stop()
            purge.stop()
    events = [json.loads(line) for line in process.lines if line.startswith("{")]
    levels = [event["level"] for event in events if event["event"] == "deployment"]
    assert len(levels) >= 2 and {*levels} == {"info"}


def check_forgeries(url: str, purges: list) -> None:
    before = len(purges)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
    request = urllib.request.Request(url, b'{"data": {"everything": true}}', headers)
    with pytest.raises(HTTPError, match="401"):
        urllib.request.urlopen(request)
    assert len(purges) == before
