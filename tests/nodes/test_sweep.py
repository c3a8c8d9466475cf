"""A publication, a move of a label and a withdrawal while one request to the store fails, each in
turn: what was asked for is there whole or not at all, and asked again it is there once.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from publisher.nodes import copying
from publisher.nodes.about import identify
from publisher.nodes.objects import Objects
from publisher.nodes.snapshots import write_snapshot
from publisher.write.store import Folder
from tests.nodes.client import OUTCOMES, withdraw
from tests.nodes.cluster import Cluster, Node, numbers, running_cluster, running_services
from tests.nodes.rest import Repo, faults, log_faults, read_repo
from tests.publisher.nodes.conftest import LARGE
from tests.publisher.nodes.test_bucket import put
from tests.support.ceph import Ceph
from tests.support.fault_proxy import Rule, Seen
from tests.support.postgres import Postgres
from tests.support.servers import DEADLINE_SECONDS, wait_until

# Prompts that a withdrawal needs two of, for each request that it sends, and each fault.
COPIED = 80


class Request(NamedTuple):
    """One of those that a node sends: the ``nth`` whose target matches."""

    method: str
    target: str
    nth: int


class Work:
    """Something that is asked of a prompt which has two versions, again with the same key."""

    def __init__(self, sweep: "Sweep", repo: str) -> None:
        self.sweep = sweep
        self.repo = repo
        self.mark = f"Mark {next(numbers)}."
        self._key = f"key-{next(numbers)}"

    def ask(self, node: Node) -> bool:
        """Whether the node says that it is done; else it has to say that this is not known."""
        raise NotImplementedError

    def count(self, repo: Repo) -> int:
        """How many times it is there."""
        return repo.notes.count(self.mark)

    def send(self, node: Node, method: str, path: str, **body: str) -> bool:
        answer = self.sweep.send(node, method, f"{self.repo}/{path}", self._key, **body)
        if answer.status_code in (200, 201):
            return True
        code = answer.json()["error"]["code"]
        assert (answer.status_code, code) == (503, "storage_unavailable"), answer.text
        return False


class Publish(Work):
    """With a text that is an object of its own; one that is within the entry sends no more than
    ``Move`` does.
    """

    def __init__(self, sweep: "Sweep", repo: str) -> None:
        super().__init__(sweep, repo)
        self.mark += LARGE

    def ask(self, node: Node) -> bool:
        return self.send(node, "POST", "versions", content=self.mark)

    def count(self, repo: Repo) -> int:
        return [*repo.texts.values()].count(sha256(self.mark.encode()).hexdigest())


class Move(Work):
    def ask(self, node: Node) -> bool:
        return self.send(node, "PUT", "labels/production", version="1.0.0", note=self.mark)


class Withdraw(Work):
    """Of a prompt whose texts are in one entry with those of another."""

    def ask(self, node: Node) -> bool:
        told = withdraw(self.sweep.cluster, node, self.repo, 2, self.mark)
        assert told in OUTCOMES.values() or told.startswith("503: "), told
        return told in OUTCOMES.values()


class Sweep:
    """Two nodes: the first one's requests to the store fail, the second one's do not."""

    def __init__(self, cluster: Cluster, copied: list[str]) -> None:
        self.cluster = cluster
        self.failing, self.sound = cluster.nodes
        self._copied = copied

    def send(self, node: Node, method: str, path: str, key: str, **body: str) -> requests.Response:
        token = self.cluster.tokens[path.partition("/")[0]]
        return requests.request(
            method, f"{node.url}/api/v1/repos/{path}", json=body, timeout=DEADLINE_SECONDS,
            headers={"Authorization": f"Bearer {token}", "Idempotency-Key": key},
        )  # fmt: skip

    def prepare(self, kind: type[Work]) -> str:
        """A prompt of two versions, at both nodes, and of an owner of its own."""
        if kind is Withdraw:
            # So that it reads no other entries than those that it strips.
            objects = Objects(self.cluster.url)
            write_snapshot(objects, len([*objects.keys("log/")]))
            name = self._copied.pop()
            self.cluster.add_owners(name.partition("/")[0])
            return name
        owner = f"owner-{next(numbers)}"
        self.cluster.add_owners(owner)
        name = f"{owner}/story"
        for number in (1, 2):
            text = f"Text {number} of {name}."
            answer = self.send(
                self.sound, "POST", f"{name}/versions", f"key-{next(numbers)}", content=text
            )
            assert answer.status_code == 201, answer.text
        assert len(self.read(name).texts) == 2
        return name

    def read(self, name: str) -> Repo:
        """What both nodes have of a prompt, once they have all that is in the log."""
        objects = Objects(self.cluster.url)
        serial = identify(objects).serial + len([*objects.keys("log/")])
        for node in self.cluster.nodes:
            # So that it reads the log now: it decides in view of all that is there.
            path, key = f"{name}/labels/none", f"key-{next(numbers)}"
            refused = self.send(node, "PUT", path, key, version="9.9.9")
            assert refused.status_code == 404, refused.text
            wait_until(lambda node=node: node.serial >= serial, f"serial {serial} of {name}")
        one, two = (read_repo(node.settings.content, name) for node in self.cluster.nodes)
        assert one == two
        return one

    def requests_of(self, kind: type[Work]) -> list[Request]:
        """What the first node sends for a work where all goes well."""
        name = self.prepare(kind)
        self.failing.proxies.store.take_seen()
        assert kind(self, name).ask(self.failing)
        counts: Counter[tuple[str, str]] = Counter()
        found = []
        for seen in self.failing.proxies.store.take_seen():
            sort = (seen.method, _target_of(seen))
            found.append(Request(*sort, counts[sort]))
            counts[sort] += 1
        return found

    def complaints(self, kind: type[Work], request: Request, fault: str, lasts: bool) -> list[str]:
        """What is wrong after a work during which a request failed, and those like it if it
        ``lasts``.
        """
        name = self.prepare(kind)
        work = kind(self, name)
        times = 0 if lasts else 1
        rule = Rule(fault, request.method, request.target, request.nth, times=times)
        self.failing.proxies.store.set_rules(rule)
        is_done = work.ask(self.failing)
        self.failing.proxies.clear()
        found = []
        count = work.count(self.read(name))
        if count != 1 if is_done else count > 1:
            found.append(f"is there {count} times; acknowledged: {is_done}")
        for node in (self.sound, self.failing):
            if not work.ask(node):
                found.append(f"is not done by node {node.number} when it is asked again")
        count = work.count(self.read(name))
        if count != 1:
            found.append(f"is there {count} times after it was asked for again")
        return [f"{fault} {request} of {kind.__name__} {'on' if lasts else 'once'}: {one}"
                for one in found]  # fmt: skip


def _target_of(seen: Seen) -> str:
    """A pattern for requests of its kind."""
    path, _, query = seen.target.partition("?")
    if query:
        return r"\?" + query.partition("=")[0]
    return "/" + path.rpartition("/hub/")[2].partition("/")[0] + "/"


def _copy(folder: Path, url: str) -> list[str]:
    """Begin a store with prompts, each two in one entry: one of each two."""
    folder.mkdir()
    names = [f"copied-{number:03}" for number in range(COPIED)]
    for owner in names:
        for number in (1, 2):
            put(Folder(str(folder)), f"Text {number} of {owner}.", owner=owner, sync=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "BATCH_CHANGES_MAX", 4)
        copying.copy_to_store(str(folder), url, lambda *_: None)
    return [f"{owner}/story" for owner in names[::2]]


@pytest.fixture(scope="module")
def sweep(
    ceph: Ceph, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sweep]:
    folder = tmp_path_factory.mktemp("sweep")
    store = ceph.gateways[0].server.make_bucket()
    with (
        pytest.MonkeyPatch.context() as patch,
        running_services(store, postgres, folder) as services,
    ):
        for key, value in store.environment.items():
            patch.setenv(key, value)
        copied = _copy(folder / "copied", store.url)
        with running_cluster(folder, services, (), (0, 0)) as cluster:
            yield Sweep(cluster, copied)


# Those that change nothing, by which an answer that is lost is as a request that was cut.
READS = ("GET", "HEAD")


@pytest.mark.parametrize("kind", [Publish, Move, Withdraw])
@pytest.mark.parametrize(("fault", "lasts"), [("cut", False), ("lost", False), ("lost", True)])
def test_any_request(kind: type[Work], fault: str, lasts: bool, sweep: Sweep) -> None:
    requests_sent = sweep.requests_of(kind)
    assert {request.method for request in requests_sent} >= {"PUT"}
    if (fault, lasts) == ("lost", False):
        requests_sent = [one for one in requests_sent if one.method not in READS]
    found = [
        complaint
        for request in requests_sent
        for complaint in sweep.complaints(kind, request, fault, lasts)
    ]
    assert not found, "\n".join([*found, sweep.cluster.output])
    root = sweep.sound.settings.content
    names = [f"{owner.name}/story" for owner in Path(root).iterdir() if owner.is_dir()]
    assert faults(root, names, []) == []
    assert log_faults(Objects(sweep.cluster.url), []) == []
    assert copying.check_store(sweep.cluster.url, lambda *_: None).faults == []
