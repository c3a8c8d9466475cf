"""Clients that publish to a hub or register with MLflow, one after another or in parallel, and the
catalogue for them.
"""

import http.client
import itertools
import json
import os
import random
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

from catalogue import Catalogue
from report import percentile
from servers import Server

from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts

SAMPLED = 1_000
ANSWER_SECONDS_MAX = 60
SETTLE_SECONDS_MAX = 600
SETTLE_EVERY_SECONDS = 0.01
LABEL = "production"
MLFLOW_API = "/api/2.0/mlflow"

_line_numbers = itertools.count(1)
_name_numbers = itertools.count(1)


class Prompt(NamedTuple):
    """A repo, and its first text."""

    owner: str
    name: str
    text: str

    @property
    def path(self) -> str:
        return f"/api/v1/repos/{self.owner}/{self.name}"

    @property
    def mlflow_name(self) -> str:
        return f"{self.owner}.{self.name}"

    def revised(self) -> str:
        """The first text with one more line, a different one each time."""
        return f"{self.text}\nPoint {next(_line_numbers)} of this list is new.\n"

    def renamed(self) -> "Prompt":
        """The prompt as a new repo of the same owner."""
        return self._replace(name=f"published-{next(_name_numbers)}")


class Latency(NamedTuple):
    """Milliseconds of one publication: until its answer, and until a reader has it."""

    answered: float
    visible: float


class Load(NamedTuple):
    """The throughput of parallel clients: milliseconds of a publication, and the server's processor
    time, with its work until lists are settled.
    """

    count: int
    per_second: float
    p50: float
    p99: float
    slowest: float
    settle_seconds: float = 0.0
    cpu_milliseconds: float = 0.0


class UnexpectedAnswer(SystemExit):
    """An unexpected status. Ends the benchmark unless it is caught."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Connection:
    """A client's connection to a server. ``headers`` are sent with every request.

    Any unexpected status raises UnexpectedAnswer.
    """

    def __init__(self, server: Server, headers: Mapping[str, str] | None = None) -> None:
        address = urllib.parse.urlsplit(server.url).netloc
        self._http = http.client.HTTPConnection(address, timeout=ANSWER_SECONDS_MAX)
        self._headers = headers or {}

    def get(
        self, path: str, expected: Sequence[int] = (200,), headers: Mapping[str, str] | None = None
    ) -> tuple[Any, str | None]:
        """The body, and the ETag if it has one."""
        return self._send("GET", path, None, headers or {}, expected)

    def post(
        self, path: str, body: Mapping[str, Any], expected: int,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # fmt: skip
        """The body of the answer."""
        return self._send_json("POST", path, body, expected, headers)

    def put(
        self, path: str, body: Mapping[str, Any], expected: int,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # fmt: skip
        """The body of the answer."""
        return self._send_json("PUT", path, body, expected, headers)

    def _send_json(
        self, method: str, path: str, body: Mapping[str, Any], expected: int,
        headers: Mapping[str, str] | None,
    ) -> Any:  # fmt: skip
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self._send(method, path, json.dumps(body), headers, (expected,))[0]

    def close(self) -> None:
        self._http.close()

    def _send(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str],
        expected: Sequence[int],
    ) -> tuple[Any, str | None]:  # fmt: skip
        self._http.request(method, path, body, {**self._headers, **headers})
        answer = self._http.getresponse()
        raw = answer.read()
        if answer.status not in expected:
            text = raw.decode(errors="replace")
            text = f"{method} {path}: {answer.status} instead of {expected}\n{text}"
            raise UnexpectedAnswer(answer.status, text)
        return (json.loads(raw) if raw else None), answer.headers["ETag"]


class HubClient:
    """Publishes to a hub with the token of each repo's owner."""

    def __init__(
        self, server: Server, tokens: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> None:
        self._connection = Connection(server, headers)
        self._tokens = tokens

    def publish(self, prompt: Prompt, **headers: str) -> dict[str, Any]:
        """Publish the first or next version of a repo; returns the hub's answer."""
        body = {"content": prompt.revised(), "changelog": "Revised."}
        headers["Authorization"] = f"Bearer {self._tokens[prompt.owner]}"
        return self._connection.post(f"{prompt.path}/versions", body, 201, headers)["data"]

    create = publish

    def publish_visibly(self, prompt: Prompt) -> tuple[Latency, dict[str, Any]]:
        """The time of a publication, and the hub's answer. Ends the benchmark if the next reader
        does not get it.
        """
        _, tag = self._connection.get(prompt.path, (200, 404))
        headers = {"If-None-Match": tag} if tag else {}
        started = time.perf_counter()
        published = self.publish(prompt)
        answered = time.perf_counter()
        body, _ = self._connection.get(prompt.path, (200,), headers)
        ended = time.perf_counter()
        seen = body["data"]["latest_version"]
        if seen != published["version"]:
            raise SystemExit(f"{prompt.path}: {published['version']} is published, {seen} is seen")
        latency = Latency((answered - started) * 1000, (ended - started) * 1000)
        return latency, published

    def prepare_move(self, prompt: Prompt) -> tuple[str, str]:
        """Give a repo two versions and a label; returns the version that it names, and the
        other.
        """
        latest = self._connection.get(prompt.path)[0]["data"]
        if latest["versions_count"] == 1:
            latest["latest_version"] = self.publish(prompt)["version"]
        named = latest.get("labels", {}).get(LABEL)
        if not named:
            named = "1.0.0"
            self._move(prompt, named, 201)
        return named, latest["latest_version"] if named == "1.0.0" else "1.0.0"

    def move_visibly(self, prompt: Prompt, before: str, after: str) -> Latency:
        """The time of a move from one version to another. Ends the benchmark if the next reader
        does not get it.
        """
        path = f"{prompt.path}/labels/{LABEL}"
        _, tag = self._connection.get(path)
        started = time.perf_counter()
        self._move(prompt, after, 200, expected=before)
        answered = time.perf_counter()
        body, _ = self._connection.get(path, (200,), {"If-None-Match": tag})
        ended = time.perf_counter()
        if body["data"]["version"] != after:
            raise SystemExit(f"{path}: moved to {after}, {body['data']['version']} is seen")
        return Latency((answered - started) * 1000, (ended - started) * 1000)

    def _move(self, prompt: Prompt, version: str, status: int, **fields: str) -> None:
        headers = {"Authorization": f"Bearer {self._tokens[prompt.owner]}"}
        body = {"version": version, **fields}
        self._connection.put(f"{prompt.path}/labels/{LABEL}", body, status, headers)

    def has(self, prompt: Prompt, version: str) -> bool:
        """True if readers get a version."""
        found, _ = self._connection.get(f"{prompt.path}/versions/{version}", (200, 404))
        return "data" in found

    def health(self) -> dict[str, Any]:
        # 503 until the site exists.
        return self._connection.get("/healthz", (200, 503))[0]

    def settle(self) -> dict[str, Any]:
        """Wait until the site exists and its lists have everything; returns the hub's
        status then.
        """
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while (health := self.health())["status"] != "ok":
            if time.monotonic() > deadline:
                raise SystemExit(f"the lists do not settle: {health}")
            time.sleep(SETTLE_EVERY_SECONDS)
        return health

    def close(self) -> None:
        self._connection.close()


class MlflowClient:
    """Registers prompts with MLflow."""

    def __init__(self, server: Server) -> None:
        self._connection = Connection(server)

    def create(self, prompt: Prompt) -> None:
        """Create a prompt with its first version."""
        self._post("registered-models/create", prompt, {"mlflow.prompt.is_prompt": "true"})
        self.publish(prompt)

    def publish(self, prompt: Prompt) -> None:
        """Register the next version of a prompt."""
        tags = {
            "mlflow.prompt.is_prompt": "true",
            "mlflow.prompt.text": prompt.revised(),
            "_mlflow_prompt_type": "text",
        }
        # The source is that of the library: the server requires one.
        self._post("model-versions/create", prompt, tags, source="dummy-source")

    def close(self) -> None:
        self._connection.close()

    def _post(self, method: str, prompt: Prompt, tags: Mapping[str, str], **fields: str) -> None:
        body = {
            "name": prompt.mlflow_name,
            "description": "Revised.",
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
            **fields,
        }
        self._connection.post(f"{MLFLOW_API}/{method}", body, 200)


Client = HubClient | MlflowClient


def publish_at_once(
    connect: Callable[[], Client], shares: Sequence[Sequence[Prompt]], seconds: float
) -> Load:
    """Clients publish in parallel until time is over, each to the prompts of its share in turn."""
    is_over = threading.Event()
    gate = threading.Barrier(len(shares) + 1)

    def work(share: Sequence[Prompt]) -> list[float]:
        milliseconds = []
        with closing(connect()) as client:
            gate.wait()
            try:
                for prompt in itertools.cycle(share):
                    milliseconds.append(milliseconds_of(client.publish, prompt))
                    if is_over.is_set():
                        break
            except BaseException:
                is_over.set()  # the others' figures are useless now
                raise
        return milliseconds

    with ThreadPoolExecutor(len(shares)) as pool:
        try:
            clients = [pool.submit(work, share) for share in shares]
            gate.wait()
            started = time.perf_counter()
            is_over.wait(seconds)
        finally:
            is_over.set()
        milliseconds = [one for client in clients for one in client.result()]
        elapsed = time.perf_counter() - started
    count = len(milliseconds)
    p50, p99, slowest = (percentile(milliseconds, percent) for percent in (50, 99, 100))
    return Load(count, count / elapsed, p50, p99, slowest)


def milliseconds_of(call: Callable[[Prompt], object], prompt: Prompt) -> float:
    started = time.perf_counter()
    call(prompt)
    return (time.perf_counter() - started) * 1000


def make_catalogue(
    size: int, seed: int, folder: str, versions: int = 1
) -> tuple[list[Prompt], dict[str, str]]:
    """Write it; returns some random repos, and tokens of all their owners."""
    os.mkdir(folder)
    catalogue = Catalogue(size, versions, seed)
    catalogue.write(f"{folder}/content")
    prompts = []
    for plan in random.Random(seed).sample(list(catalogue.plans()), min(SAMPLED, size)):
        with open(f"{folder}/content/{plan.owner}/{plan.name}/1.0.0.md") as file:
            prompts.append(Prompt(plan.owner, plan.name, file.read()))
    tokens = {}
    with Database(f"{folder}/state") as database:
        accounts = Accounts(database)
        for owner in sorted({prompt.owner for prompt in prompts}):
            accounts.add_owner(owner)
            tokens[owner], _ = accounts.create_token(owner, "bench")
    return prompts, tokens
