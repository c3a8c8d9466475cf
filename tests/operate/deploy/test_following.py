"""Deploying after the builds of a service: what goes, when, and how often a bucket is asked."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import Built, build
from operate.deploy import follower
from operate.deploy.follower import Deployer
from operate.deploy.run import Deployment, Destination
from tests.operate.deploy.conftest import PREFIX, expected
from tests.operate.deploy.links import broken, by_key
from tests.operate.deploy.proxy import Proxy
from tests.support.catalogues import settings_in, write_small_catalogue, write_version
from tests.support.servers import wait_until


class Turn:
    """That of two nodes, for this one. ``noted``: the serial that the other has deployed."""

    def __init__(self) -> None:
        self.generation: int | None = None
        self.noted = 0
        self.is_released = False

    def take(self) -> int | None:
        return self.generation

    def check(self, generation: int | None) -> None:
        if generation is None or generation != self.generation:
            raise OperatorError("Another node may deploy now.")

    def note(self, serial: int) -> None:
        self.noted = max(self.noted, serial)

    def release(self) -> None:
        self.is_released = True


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(follower, "RETRY_SECONDS_MAX", 0.05)
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.1)
    settings = settings_in(tmp_path)
    write_small_catalogue(settings.content)
    return settings


class Followed:
    """A site whose builds are followed to a bucket, through the proxy."""

    def __init__(self, site: Settings, deployer: Deployer, look) -> None:
        self.site, self.deployer, self._etags = site, deployer, look

    def publish(self, name: str, *, is_told: bool = True) -> Built:
        write_version(self.site.content, "ann", name, "1.0.0", f"Say {name}.\n")
        report = build(self.site, changed=[("ann", name)], index=False)
        if is_told:
            self.deployer.tell(report)
        return report

    def status(self) -> str:
        return self.deployer.status()["status"]

    def wait_for_all(self) -> None:
        """Until the bucket has the whole site, and nothing waits."""
        wait_until(lambda: self.status() == "ok" and self.has_all(), "a deployment")

    def has_all(self) -> bool:
        return self._etags().keys() == {PREFIX + key for key in expected(self.site.out)}


@pytest.fixture
def followed(site: Settings, opened: Destination, s3, bucket: str) -> Iterator[Followed]:
    with Deployer(Deployment(site.out, site.state, opened)) as deployer:
        deployer.tell(build(site, index=False))
        found = Followed(site, deployer, lambda: s3.etags(bucket))
        found.wait_for_all()
        yield found


def test_a_publication_costs_the_requests_for_its_files(followed: Followed, proxy: Proxy) -> None:
    before = expected(followed.site.out)
    proxy.seen.clear()
    followed.publish("fresh")
    followed.wait_for_all()
    after = expected(followed.site.out)
    # No listing, and no request for an object: only changes are uploaded, and a link never before
    # its target.
    changed = {PREFIX + key for key, data in after.items() if before.get(key) != data}
    puts = [seen for seen in proxy.seen if seen.method == "PUT"]
    assert {seen.key for seen in puts} == changed and len(puts) == len(changed)
    assert {seen.method for seen in proxy.seen} == {"PUT"}
    tree = dict(before)
    for seen in puts:
        key = seen.key.removeprefix(PREFIX)
        tree[key] = after[key]
        assert broken(tree, by_key) == []
    # The follower notes the end of a deployment after the last request.
    wait_until(lambda: followed.deployer.status()["serial"] == 5, "the deployed serial")
    status = followed.deployer.status()
    assert status["behind_seconds"] == 0.0 and "s3://" not in str(status)


def test_a_build_of_another_process_is_found(followed: Followed, proxy: Proxy) -> None:
    followed.publish("other", is_told=False)
    followed.wait_for_all()
    assert proxy.count("GET")
    followed.publish("own")
    followed.wait_for_all()


def test_files_that_a_withdrawal_removed_are_deleted(followed: Followed) -> None:
    path = Path(followed.site.content, "bob")
    for file in sorted(path.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    path.rmdir()
    for _ in range(2):  # the first build keeps files for readers of older lists
        followed.deployer.tell(build(followed.site, index=False))
    followed.wait_for_all()
    assert not any("bob" in key for key in followed._etags())


def test_a_failed_deployment_is_tried_again(
    followed: Followed, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    proxy.before = lambda seen: (403, "AccessDenied") if seen.method == "PUT" else None
    with caplog.at_level(logging.ERROR):
        followed.publish("late")
        wait_until(lambda: followed.deployer.status()["failures"] > 1, "two failures")
    status = followed.deployer.status()
    assert (status["status"], status["last_error"]) == (
        "failing", "The deployment failed. The log has the cause.",
    )  # fmt: skip
    assert "AccessDenied" in caplog.text
    proxy.before = lambda seen: None
    followed.wait_for_all()
    assert followed.deployer.status()["failures"] == 0


def test_of_several_nodes_the_one_that_has_the_turn_deploys(
    site: Settings, opened: Destination, s3, bucket: str, proxy: Proxy
) -> None:
    turn = Turn()
    with Deployer(Deployment(site.out, site.state, opened), turn) as deployer:
        followed = Followed(site, deployer, lambda: s3.etags(bucket))
        deployer.tell(build(site, index=False))
        assert followed.status() == "standby"
        # Its site is older than the one that the other node has deployed.
        turn.noted, turn.generation = 5, 1
        wait_until(lambda: followed.status() == "behind", "the turn")
        assert not proxy.seen
        followed.publish("newer")
        followed.wait_for_all()
        # It loses the turn in the middle of a deployment.
        proxy.seen.clear()

        def lose(seen) -> None:
            if seen.method == "PUT" and seen.number > 3:
                turn.generation = None

        proxy.before = lose
        followed.publish("lost")
        wait_until(lambda: followed.status() == "standby", "the loss of the turn")
        assert not followed.has_all()
        assert proxy.count("PUT") < 3 + 2 * 16
        proxy.before = lambda seen: None
        turn.generation = 3
        followed.wait_for_all()
    assert turn.is_released
