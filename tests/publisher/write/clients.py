"""Clients of live servers: they publish and read, and compare that with what is stored."""

import hashlib
import http.client
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self
from urllib.parse import urlsplit

from builder.model.names import Version
from builder.model.settings import Settings
from builder.store import content
from tests.support.servers import DEADLINE_SECONDS

OPTIONS = ("--publish-limit", "0", "--rate-limit", "0")


@dataclass
class Answer:
    """An answer as it came. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @cached_property
    def data(self) -> Any:
        return json.loads(self.body)["data"]


class Client:
    """One kept connection to one host, with a cache that validates each time, as browsers do.

    ``validator``: the header of an answer that identifies its state, and the header of a
    conditional request.
    """

    ETAG = ("etag", "If-None-Match")
    TIME = ("last-modified", "If-Modified-Since")

    def __init__(self, url: str, validator: tuple[str, str] = ETAG, token: str = "") -> None:
        self._connection = http.client.HTTPConnection(
            urlsplit(url).netloc, timeout=DEADLINE_SECONDS
        )
        self._connection.connect()
        self._connection.auto_open = 0
        self._said, self._ask = validator
        self._token = token
        self._kept: dict[str, Answer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def read(self, path: str) -> Answer:
        """The current answer, or the last one if the host says that it is unchanged."""
        kept = self._kept.get(path)
        answer = self._ask_for(path, kept)
        if kept and answer.status == 304:
            return kept
        assert answer.status == 200, f"a pointer into nothing: {path}: {answer}"
        self._kept[path] = answer
        return answer

    def is_unchanged(self, path: str) -> bool:
        """True if the host says that the last answer is unchanged."""
        return self._ask_for(path, self._kept[path]).status == 304

    def follow(self, url: str) -> Answer:
        return self.read(urlsplit(url).path)

    def publish(self, repo: str, text: str) -> Answer:
        """Publish with a key that follows from the text, so that it can be sent again."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Idempotency-Key": text,
        }
        body = json.dumps({"content": text}).encode()
        return self._send("POST", f"/api/v1/repos/{repo}/versions", headers, body)

    def _ask_for(self, path: str, kept: Answer | None) -> Answer:
        return self._send("GET", path, {self._ask: kept.headers[self._said]} if kept else {})

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        """Raises OSError where the connection is gone."""
        try:
            self._connection.request(method, path, body, headers)
            # A host that sends head and body apart waits for the head to be acknowledged.
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            response = self._connection.getresponse()
            data = response.read()
        except http.client.HTTPException as error:
            raise ConnectionResetError("closed within an answer") from error
        received = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, received, data)


class Ledger:
    """Acknowledged and seen texts by repo and version. Each text is published once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acknowledged: dict[tuple[str, str], str] = {}
        self.serial = 0
        self._seen: dict[tuple[str, str], str] = {}
        self._seen_latest: list[tuple[str, str, str]] = []

    def acknowledge(self, answer: Answer, text: str) -> None:
        assert answer.status == 201, answer
        place = (f"{answer.data['owner']}/{answer.data['name']}", answer.data["version"])
        with self._lock:
            assert place not in self.acknowledged, f"{place} twice"
            self.acknowledged[place] = text
            self.serial = max(self.serial, answer.data["serial"])

    def note(self, repo: str, version: str, text: str) -> None:
        """Note that a reader has seen this text as this version."""
        with self._lock:
            assert self._seen.setdefault((repo, version), text) == text

    def note_latest(self, repo: str, text: str, version: str) -> None:
        """Note that a reader who knew this version has seen this text as the latest."""
        self._seen_latest.append((repo, text, version))

    def check(self, settings: Settings) -> None:
        """All that was acknowledged is stored, once, and all that was seen is of it."""
        stored = {}
        for owner in content.list_owners(settings.content):
            for name in content.list_repos(settings.content, owner):
                for version in content.list_versions(settings.content, owner, name).versions:
                    _, text = content.read_version(settings.content, owner, name, version)
                    stored[f"{owner}/{name}", str(version)] = text
        assert stored == self.acknowledged
        assert len(set(stored.values())) == len(stored)
        assert self._seen.items() <= stored.items()
        version_of = {(repo, text): version for (repo, version), text in stored.items()}
        for repo, text, version in self._seen_latest:
            assert Version.parse(version_of[repo, text]) >= Version.parse(version)


def check_sha256(text: str, expected: str) -> str:
    assert hashlib.sha256(text.encode()).hexdigest() == expected
    return text


def check_published(client: Client, ledger: Ledger, repo: str, version: str, text: str) -> None:
    """Every endpoint of a repo has a version, or a later one where it shows the latest."""

    def check_new(row: dict[str, Any], key: str = "latest_version") -> None:
        assert Version.parse(row[key]) >= Version.parse(version), f"{row} is older than {version}"

    api = f"/api/v1/repos/{repo}"
    owner, _, name = repo.partition("/")
    ledger.note_latest(repo, client.read(f"{api}/raw.txt").body.decode(), version)
    latest = client.read(f"{api}.json").data
    check_new(latest)
    ledger.note(repo, latest["latest_version"], check_sha256(latest["content"], latest["sha256"]))
    rows = client.read(f"{api}/versions.json").data
    check_new(rows[0], "version")
    (row,) = (row for row in rows if row["version"] == version)
    one = client.read(f"{api}/versions/{version}.json").data
    assert one["content"] == text and row.items() <= one.items()
    assert check_sha256(client.follow(row["raw_url"]).body.decode(), row["sha256"]) == text
    assert (row["diff_url"] is None) == (version == "1.0.0")
    if row["diff_url"]:
        assert f"+{text}" in client.follow(row["diff_url"]).body.decode()
    user = client.read(f"/api/v1/users/{owner}.json").data
    check_new(*(row for row in user["repos"] if row["name"] == name))
    for row in client.read("/api/v1/repos/_/top/1.json").data:
        if (row["owner"], row["name"]) == (owner, name):
            check_new(row)
    assert text in client.read(f"/{repo}/{version}.html").body.decode()
    assert client.read(f"/{repo}.html").body


def run_together(*jobs: Callable[[], object]) -> list[Any]:
    """Run jobs in threads; raises what one of them has raised."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]
