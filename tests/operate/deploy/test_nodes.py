"""Deploying from several nodes, which take turns: none that is killed, stopped or paused
leaves older files at the destination.
"""

import contextlib
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store.site import read_hub
from operate.deploy import follower
from operate.deploy.destination import open_destination
from operate.deploy.follower import Deployer
from operate.deploy.options import Job, Options
from operate.deploy.run import Hooks, deploy
from publisher.accounts.database import Database
from publisher.accounts.postgres_pool import Connections
from publisher.nodes.turn import Turn
from tests.operate.deploy.conftest import PREFIX, S3, Sites, deploy_to, expected, listed
from tests.operate.deploy.proxy import Proxy, Seen
from tests.operate.deploy.test_following import Followed
from tests.support.catalogues import read_tree, settings_in, write_version
from tests.support.postgres import Postgres
from tests.support.servers import Process, wait_until

SECONDS = 2.0
Start = Callable[[str, str], "Node"]


class Node(Process):
    """A process that deploys ``settings`` when it is its turn."""

    def __init__(self, settings: Settings, **given: object) -> None:
        self.settings = settings
        self._given = json.dumps(given | {"settings": settings._asdict()})
        super().__init__(
            sys.executable, "-m", "tests.operate.deploy.node", self._given,
            env=dict(os.environ), stdin=subprocess.PIPE,
        )  # fmt: skip

    def status(self) -> str:
        """The present deployment status, and its serial."""
        statuses = [line for line in self.lines if line.startswith("Status ")]
        return statuses[-1].removeprefix("Status ") if statuses else ""

    def build(self) -> None:
        """Build what the content has now, as a node does that follows the others."""
        number = sum(line.startswith("Built") for line in self.lines)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.wait_for_line(f"Built {number}.")


def serial_of(settings: Settings) -> int:
    return read_hub(settings.out).serial


@pytest.fixture
def content(tmp_path: Path) -> str:
    """One prompt, since each file of the site costs each deployment requests."""
    settings = settings_in(tmp_path)
    write_version(settings.content, "ann", "story", "1.0.0", "Tell a story.\n")
    return settings.content


@pytest.fixture
def database_url(postgres: Postgres) -> str:
    url = postgres.new_database()
    Database(url).close()
    return url


@pytest.fixture
def make_turn(database_url: str) -> Iterator[Callable[[], Turn]]:
    """Each is another node's."""
    with contextlib.closing(Connections(database_url)) as connections:
        yield lambda: Turn(connections, "deploy", seconds=SECONDS)


@pytest.fixture
def start(tmp_path: Path, content: str, bucket: str, database_url: str) -> Iterator[Start]:
    """Starts a node of this name, which reaches the bucket at this URL, and builds its site."""
    nodes = []

    def start(name: str, endpoint: str) -> Node:
        settings = settings_in(tmp_path / name)._replace(content=content)
        node = Node(
            settings, bucket=f"s3://{bucket}/{PREFIX}", endpoint=endpoint, seconds=SECONDS,
            database=database_url,
        )  # fmt: skip
        nodes.append(node)
        node.build()
        return node

    yield start
    for node in nodes:
        node.send(signal.SIGCONT)
        node.stop(signal.SIGKILL)


def test_another_node_takes_over(
    start: Start, content: str, s3: S3, bucket: str, tmp_path: Path
) -> None:
    def deployed(node: Node) -> Callable[[], bool]:
        return lambda: Followed(node.settings, None, s3, bucket).has_all()

    first = start("first", s3.url)
    wait_until(deployed(first), "the first deployment")
    second = start("second", s3.url)
    assert second.status() == "standby None"
    write_version(content, "ann", "story", "1.1.0", "Tell it.\n")
    second.build()
    assert not deployed(second)()
    first.build()
    wait_until(deployed(first), "a publication")
    # Every node builds the same site.
    assert read_tree(first.settings.out) == read_tree(second.settings.out)
    first.stop(signal.SIGKILL)
    write_version(content, "ann", "story", "1.2.0", "Tell it again.\n")
    second.build()
    wait_until(deployed(second), "the other node's deployment")
    third = start("third", s3.url)
    assert second.stop() == 0
    wait_until(lambda: third.status() == f"ok {serial_of(third.settings)}", "the third node")
    assert deployed(third)()


def test_a_paused_holder_leaves_no_older_file(
    start: Start, content: str, s3: S3, bucket: str, proxy: Proxy, tmp_path: Path,
    make_turn: Callable[[], Turn], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(follower, "RETRY_SECONDS_MAX", 0.05)
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.1)
    first = start("first", proxy.url)
    wait_until(lambda: first.status().startswith("ok"), "the first deployment")
    # The upload of a prompt's record is under way, and no other, when the node is paused.
    record = "api/v1/repos/ann/story.json"
    held, landing, landed = threading.Event(), threading.Event(), threading.Event()

    def hold(seen: Seen) -> None:
        if (seen.method, seen.key) == ("PUT", PREFIX + record):
            held.set()
            assert landing.wait(300)

    proxy.before = hold
    write_version(content, "ann", "story", "1.1.0", "Tell it.\n")
    first.build()
    assert held.wait(300)
    first.send(signal.SIGSTOP)
    # Another node takes over, with a later publication.
    write_version(content, "ann", "story", "1.2.0", "Tell it again.\n")
    second = settings_in(tmp_path / "second")._replace(content=content)
    report = build(second, index=False)
    with Proxy(s3.url) as way:
        job = Job(second.out, second.state, f"s3://{bucket}/{PREFIX}", way.url, Options(jobs=8))
        with Deployer(job, turn=make_turn()) as deployer:

            def wait_to_compare_again(seen: Seen) -> None:
                if seen.method == "GET" and deployer.status()["deployed_at"]:
                    assert landed.wait(300)

            way.before = wait_to_compare_again
            followed = Followed(second, deployer, s3, bucket)
            deployer.tell(report)
            wait_until(lambda: deployer.status()["deployed_at"], "the other node's deployment")
            assert followed.has_all()
            # Only now the destination stores the uploads under way.
            landing.set()
            stale = hashlib.md5(expected(first.settings.out)[record]).hexdigest()
            wait_until(lambda: s3.etags(bucket)[PREFIX + record] == stale, "an older file")
            assert not followed.has_all()
            uploads = proxy.count("PUT")
            first.send(signal.SIGCONT)
            wait_until(lambda: first.status().startswith("standby"), "the end of its turn")
            landed.set()
            wait_until(followed.has_all, "the repair")
            assert deployer.status()["has_turn"]
    # The turn was released, so the first node has it again. Its site is older than the
    # destination's.
    wait_until(lambda: first.status().startswith("behind"), "its turn again")
    first.build()
    wait_until(lambda: first.status() == f"ok {serial_of(second)}", "its site")
    assert proxy.count("PUT") == uploads  # only files that the other node has deployed
    assert Followed(first.settings, None, s3, bucket).has_all()


def test_a_site_that_is_older_than_the_destination_waits(
    content: str, s3: S3, bucket: str, proxy: Proxy, tmp_path: Path, make_turn: Callable[[], Turn],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.05)

    earlier, later = make_turn(), make_turn()
    assert earlier.take() and not later.take()
    earlier.note(2)
    earlier.release()
    settings = settings_in(tmp_path / "site")._replace(content=content)
    job = Job(settings.out, settings.state, f"s3://{bucket}/{PREFIX}", proxy.url, Options(jobs=8))
    with Deployer(job, turn=later) as deployer:
        deployer.tell(build(settings, index=False))
        wait_until(lambda: deployer.status()["has_turn"], "its turn")
        assert deployer.status()["status"] == "behind" and not proxy.seen
        write_version(content, "ann", "story", "1.1.0", "Tell it.\n")
        deployer.tell(build(settings, index=False))
        wait_until(lambda: deployer.status()["status"] == "ok", "the deployment")
    write_version(content, "ann", "story", "1.2.0", "Tell it again.\n")
    # Later holders of the turn wait until they have what this one has deployed.
    last = make_turn()
    assert last.take() and last.noted == serial_of(settings) == 2
    assert Followed(settings, deployer, s3, bucket).has_all()


@pytest.mark.parametrize("kind", ["bucket", "folder"])
def test_nothing_changes_after_the_check_fails(
    kind: str, sites: Sites, s3: S3, bucket: str, tmp_path: Path
) -> None:
    name = f"s3://{bucket}/{PREFIX}" if kind == "bucket" else f"{tmp_path}/public"
    destination = open_destination(name, endpoint_url=s3.url)

    def deploy_checked(settings: Settings, checks: int) -> None:
        left = itertools.repeat(None, checks)

        def check() -> None:
            if next(left, check):
                raise OperatorError("Another node deploys.")

        hooks = Hooks(check=check)
        deploy(settings.out, str(tmp_path / "state"), destination, Options(), hooks)

    with pytest.raises(OperatorError, match="Another node deploys"):
        deploy_checked(sites.old, 3)
    assert len(listed(destination)) == 3
    deploy_to(destination, sites.new, tmp_path / "state")
    before = listed(destination)
    # Among the steps from the new site to the old one are deletions.
    with pytest.raises(OperatorError, match="Another node deploys"):
        deploy_checked(sites.old, 0)
    assert listed(destination) == before
