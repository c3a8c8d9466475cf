"""A client of the nodes that does one operation after another, and notes what came of each."""

import contextlib
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import requests

from tests.nodes.cluster import AGENT, Cluster, Node, numbers
from tests.publisher.web.pages.conftest import Visitor
from tests.support.linearizability import UNKNOWN, Operation

LABELS = ("production", "canary")
LARGE = "x" * 40_000
TIMEOUT_SECONDS = 15
ATTEMPTS_MAX = 8
PAUSE_SECONDS = 0.1
# Results in the history by the code of an answer.
REFUSALS = {
    "base_version_mismatch": "conflict", "label_moved": "conflict",
    "version_not_found": "missing", "repo_not_found": "missing", "version_withdrawn": "withdrawn",
}  # fmt: skip
OUTCOMES = {" is withdrawn. ": "withdrawn", " withdrawn before, on ": "unchanged"}
# A node that knows no other version has nothing to withdraw; it may be behind.
NOTHING_LEFT = "all of it is withdrawn."
AGAIN = ("unavailable", "storage_unavailable")


class Published(NamedTuple):
    """A publication that was acknowledged, and by which process of a node. ``serial``: that of the
    answer, which is later than the publication where the request was sent again.
    """

    repo: str
    number: int
    text: str
    serial: int
    node: Node
    starts: int


class Notes:
    """Knowledge that all clients share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.history: list[Operation] = []
        self.published: list[Published] = []
        self.by_repo: dict[str, list[Published]] = defaultdict(list)
        self.withdrawing: set[tuple[str, int]] = set()
        self.complaints: list[str] = []
        self.done = 0

    def note(self, operation: Operation) -> None:
        with self.lock:
            self.history.append(operation)
            self.done += 1

    def complain(self, text: str) -> None:
        with self.lock:
            self.complaints.append(text)

    def add(self, published: Published) -> None:
        with self.lock:
            self.published.append(published)
            self.by_repo[published.repo].append(published)


class Answer(NamedTuple):
    """``result`` is UNKNOWN where it is not known what came of a request."""

    result: Any
    data: dict[str, Any]


def version_of(number: int) -> str:
    return f"1.0.{number - 1}"


def number_of(version: str | None) -> int:
    return int(version.rpartition(".")[2]) + 1 if version else 0


def withdraw(cluster: Cluster, node: Node, repo: str, number: int, note: str) -> str:
    """Withdraw a version on the pages of a node.

    Returns ``withdrawn`` or ``unchanged``; if the result is unknown, the text of the page.
    """
    owner, _, name = repo.partition("/")
    visitor = Visitor(node.url, "127.0.0.1", AGENT)
    visitor.session.cookies.set(
        "hub-account", cluster.secrets[owner], domain="127.0.0.1", path="/account"
    )
    fields = {"version": version_of(number), "reason": "error", "note": note}
    with contextlib.closing(visitor.session):
        page = visitor.get(f"/account/prompts/{owner}/{name}/withdraw")
        if page.status == 200 and NOTHING_LEFT not in page.words:
            page = visitor.submit("/withdraw", **fields)
        if any(form.action.endswith("/confirm") for form in page.forms):
            page = visitor.submit("/confirm")
    for words, result in OUTCOMES.items():
        if page.status == 200 and words in page.words:
            return result
    return f"{page.status}: {page.words}"


class Client:
    """Does operations drawn by ``chance`` on some repos, at any node."""

    def __init__(
        self, cluster: Cluster, notes: Notes, repos: tuple[str, ...], chance: random.Random
    ) -> None:
        self._cluster = cluster
        self._notes = notes
        self._repos = repos
        self._chance = chance
        self._session = requests.Session()

    def do_one(self) -> None:
        (work,) = self._chance.choices(
            [self.publish, self.move, self.withdraw, self.read], [50, 25, 3, 22]
        )
        work(self._chance.choice(self._repos))

    def close(self) -> None:
        self._session.close()

    # Operations

    def publish(self, repo: str) -> None:
        base = (self._chance.random() < 0.3 and self._some_number(repo, newest=True)) or None
        labels = (self._chance.choice(LABELS),) if self._chance.random() < 0.2 else ()
        number = next(numbers)
        text = f"Text {number}." + (LARGE if number % 4 == 0 else "")
        body: dict[str, Any] = {"content": text, "labels": [*labels]}
        if base:
            body["base_version"] = version_of(base)
        arguments = (sha256(text.encode()).hexdigest(), base, labels)

        def understand(data: dict[str, Any]) -> int:
            return number_of(data["version"])

        node, answer = self._send("POST", repo, "versions", body, "publish", arguments, understand)
        if isinstance(answer.result, int):
            published = Published(
                repo, answer.result, text, answer.data["serial"], node, node.starts
            )
            self._notes.add(published)
            self._read(published, node)

    def move(self, repo: str) -> None:
        number = self._some_number(repo)
        if not number:
            return
        label = self._chance.choice(LABELS)
        body: dict[str, Any] = {"version": version_of(number), "note": f"Note {next(numbers)}"}
        expected = None
        if self._chance.random() < 0.4:
            expected = self._some_number(repo) if self._chance.random() < 0.8 else 0
            body["expected"] = version_of(expected) if expected else None
        arguments = (label, number, expected)

        def understand(data: dict[str, Any]) -> str:
            return "unchanged" if data["unchanged"] else "moved"

        self._send(
            "PUT", repo, f"labels/{label}", body, "move", arguments, understand, body["note"]
        )

    def withdraw(self, repo: str) -> None:
        number = self._some_number(repo)
        if not number:
            return
        with self._notes.lock:
            self._notes.withdrawing.add((repo, number))
        note = f"Note {next(numbers)}"
        operation = Operation(
            repo, "withdraw", (number,), UNKNOWN, time.monotonic(), note=note
        )  # fmt: skip
        node = self._chance.choice(self._cluster.nodes)
        with contextlib.suppress(requests.RequestException):
            result = withdraw(self._cluster, node, repo, number, note)
            if result in OUTCOMES.values():
                operation = operation._replace(result=result, returned=time.monotonic())
        self._notes.note(operation)

    def read(self, repo: str) -> None:
        """Every acknowledged version can be read at each node whose lists have its serial."""
        with self._notes.lock:
            known = [*self._notes.by_repo[repo]]
            self._notes.done += 1
        if known:
            published = self._chance.choice(known)
            node = self._chance.choice(self._cluster.nodes)
            self._read(published, node)

    def _read(self, published: Published, node: Node) -> None:
        path = f"/api/v1/repos/{published.repo}/versions/{version_of(published.number)}"
        starts = node.starts
        try:
            hub = self._session.get(f"{node.url}/api/v1/hub.json", timeout=TIMEOUT_SECONDS)
            answer = self._session.get(node.url + path, timeout=TIMEOUT_SECONDS)
        except requests.RequestException:
            return
        is_own = node is published.node and starts == published.starts == node.starts
        has_it = hub.ok and hub.json()["data"]["serial"] >= published.serial
        if answer.status_code == 200:
            found = answer.json()["data"]["content"]
            if found != published.text:
                self._notes.complain(f"{path} is {found!r}, not {published.text!r}")
        elif answer.status_code == 410:
            if (published.repo, published.number) not in self._notes.withdrawing:
                self._notes.complain(f"{path} is withdrawn, and nobody did that")
        elif answer.status_code != 503 and (is_own or has_it):
            self._notes.complain(
                f"node {node.number}: {path}: {answer.status_code} {answer.text[:300]}"
            )

    # Requests

    def _some_number(self, repo: str, newest: bool = False) -> int:
        """The number of an acknowledged version; 0 if there is none."""
        with self._notes.lock:
            known = [one.number for one in self._notes.by_repo[repo]]
        if not known:
            return 0
        return max(known) if newest else self._chance.choice(known[-6:])

    def _send(
        self, method: str, repo: str, path: str, body: dict[str, Any], kind: str,
        arguments: tuple, understand: Callable[[dict[str, Any]], Any], note: str = "",
    ) -> tuple[Node, Answer]:  # fmt: skip
        """Send a request, again with its key if it has one, and note what came of it."""
        has_key = self._chance.random() < 0.6
        headers = {"Authorization": f"Bearer {self._cluster.tokens[repo.partition('/')[0]]}"}
        if has_key:
            headers["Idempotency-Key"] = f"key-{next(numbers)}"
        url = f"/api/v1/repos/{repo}/{path}"
        first = called = time.monotonic()
        unsure = False
        for attempt in range(ATTEMPTS_MAX if has_key else 1):
            if attempt:
                time.sleep(PAUSE_SECONDS * attempt)
            node = self._chance.choice(self._cluster.nodes)
            called = time.monotonic()
            answer = self._send_once(node, method, url, body, headers, understand)
            if answer.result is not UNKNOWN:
                break
            unsure = True
        operation = Operation(repo, kind, arguments, UNKNOWN, first, note=note)
        if answer.result is UNKNOWN or (unsure and answer.result in REFUSALS.values()):
            self._notes.note(operation)
        if answer.result is not UNKNOWN:
            is_late = unsure and answer.result in REFUSALS.values()
            if is_late and kind == "publish" and answer.result == "withdrawn":
                return node, answer  # its own text, withdrawn in the meantime
            self._notes.note(
                operation._replace(
                    result=answer.result, called=called if is_late else first,
                    returned=time.monotonic(),
                )
            )  # fmt: skip
        return node, answer

    def _send_once(
        self, node: Node, method: str, path: str, body: dict[str, Any], headers: dict[str, str],
        understand: Callable[[dict[str, Any]], Any],
    ) -> Answer:  # fmt: skip
        try:
            answer = self._session.request(
                method, node.url + path, json=body, headers=headers, timeout=TIMEOUT_SECONDS
            )
            data = answer.json()
        except (requests.RequestException, ValueError):
            return Answer(UNKNOWN, {})
        if answer.status_code < 300:
            return Answer(understand(data["data"]), data["data"])
        code = data["error"]["code"]
        if code not in REFUSALS and code not in AGAIN:
            self._notes.complain(
                f"node {node.number}: {method} {path}: {answer.status_code} {answer.text[:500]}"
            )
        return Answer(REFUSALS.get(code, UNKNOWN), {})
