"""Deploying after the builds of a service: what goes, when, and how often a bucket is asked."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import Built, build
from operate.deploy import follower
from operate.deploy.follower import Deployer
from operate.deploy.options import Job, Options
from tests.operate.deploy.conftest import PREFIX, S3, change, expected
from tests.operate.deploy.links import broken, by_key
from tests.operate.deploy.proxy import Proxy
from tests.support.catalogues import read_tree, settings_in, write_small_catalogue, write_version
from tests.support.servers import wait_until


@pytest.fixture
def site(tmp_path: Path) -> Settings:
    settings = settings_in(tmp_path)
    write_small_catalogue(settings.content)
    return settings


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "RETRY_SECONDS_MAX", 0.05)


class Followed:
    """A site whose builds are followed to a bucket, through the proxy."""

    def __init__(self, site: Settings, deployer: Deployer, s3: S3, bucket: str) -> None:
        self.site = site
        self.deployer = deployer
        self._s3, self._bucket = s3, bucket

    def build(self, *changed: tuple[str, str | None], is_settled: bool = True) -> Built:
        report = build(self.site, changed=changed or None, index=False)
        self.deployer.tell(report._replace(is_settled=is_settled))
        return report

    def publish(self, name: str, version: str = "1.0.0") -> Built:
        write_version(self.site.content, "ann", name, version, f"Say {version}.\n")
        return self.build(("ann", name))

    def wait(self) -> None:
        """Until nothing waits for a deployment."""
        wait_until(lambda: self.deployer.status()["status"] == "ok", "a deployment")

    def has(self, key: str) -> bool:
        return self._s3.etag(self._bucket, PREFIX + key) is not None

    def has_all(self) -> bool:
        wanted = {
            PREFIX + key: hashlib.md5(data).hexdigest()
            for key, data in expected(self.site.out).items()
        }
        # The last of them first: repeated listings are slow.
        last = "api/v1/hub.json"
        is_last_there = self._s3.etag(self._bucket, PREFIX + last) == wanted[PREFIX + last]
        return is_last_there and self._s3.etags(self._bucket) == wanted


@pytest.fixture
def job(site: Settings, bucket: str, proxy: Proxy, short_pauses: None) -> Job:
    return Job(site.out, site.state, f"s3://{bucket}/{PREFIX}", proxy.url, Options(jobs=8))


@pytest.fixture
def followed(site: Settings, job: Job, s3: S3, bucket: str) -> Iterator[Followed]:
    with Deployer(job) as deployer:
        yield Followed(site, deployer, s3, bucket)


def test_a_publication_costs_the_requests_for_its_files(followed: Followed, proxy: Proxy) -> None:
    followed.build()
    followed.wait()
    assert followed.has_all()
    before = expected(followed.site.out)
    proxy.seen.clear()
    followed.publish("fresh")
    followed.wait()
    after = expected(followed.site.out)
    assert followed.has_all()
    # No listing, and no request for an object: only changes are uploaded, and a link never before
    # its target.
    changed = {PREFIX + key for key, data in after.items() if before.get(key) != data}
    assert {(seen.method, seen.key) for seen in proxy.seen} == {("PUT", key) for key in changed}
    assert len(proxy.seen) == len(changed)
    tree = dict(before)
    for seen in proxy.seen:
        key = seen.key.removeprefix(PREFIX)
        tree[key] = after[key]
        assert broken(tree, by_key) == []
    status = followed.deployer.status()
    assert (status["status"], status["serial"], status["behind_seconds"]) == ("ok", 5, 0.0)
    assert status["deployed_at"] and "s3://" not in str(status)


def test_changes_of_several_builds_are_deployed_when_one_settles(
    followed: Followed, proxy: Proxy
) -> None:
    followed.build()
    followed.wait()
    proxy.seen.clear()
    change(followed.site.content)
    followed.build(is_settled=False)
    followed.build(is_settled=False)  # removes files that the first build kept
    assert followed.deployer.status()["status"] == "behind" and not proxy.seen
    followed.build()
    followed.wait()
    assert followed.has_all() and proxy.count("DELETE") > 0 == proxy.count("GET")


def test_under_constant_load_unsettled_builds_are_deployed(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "UNSETTLED_SECONDS_MAX", 0.0)
    followed.build(is_settled=False)
    followed.wait()
    assert followed.has_all()


def test_publications_during_a_deployment_share_the_next(followed: Followed, proxy: Proxy) -> None:
    followed.build()
    followed.wait()
    begun, go_on = threading.Event(), threading.Event()

    def hold(seen: object) -> None:
        begun.set()
        assert go_on.wait(300)

    proxy.before = hold
    followed.publish("one")
    assert begun.wait(300)
    status = followed.deployer.status()
    assert status["status"] == "behind" and status["behind_seconds"] > 0
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        followed.publish("two", version)
    proxy.before = lambda seen: None
    go_on.set()
    followed.wait()
    assert followed.has_all()
    # The prompt's record went once, for three versions.
    record = f"{PREFIX}api/v1/repos/ann/two.json"
    assert sum(seen.key == record for seen in proxy.seen) == 1


def test_after_a_failure_everything_is_compared(followed: Followed, proxy: Proxy) -> None:
    followed.build()
    followed.wait()
    proxy.before = lambda seen: "cut"
    followed.publish("late")
    wait_until(lambda: followed.deployer.status()["failures"] > 1, "two failures")
    status = followed.deployer.status()
    assert status["status"] == "failing" and status["failing_since"]
    assert "The log has the cause" in status["last_error"]
    followed.publish("later")
    proxy.before = lambda seen: None
    proxy.seen.clear()
    followed.wait()
    assert followed.has_all() and proxy.count("GET") > 0
    assert followed.deployer.status()["last_error"] is None


def test_builds_of_other_processes_are_noticed(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.05)
    followed.build()
    followed.wait()
    write_version(followed.site.content, "ann", "aside", "1.0.0", "Say it.\n")
    build(followed.site, index=False)  # in a process of its own, as it were
    wait_until(lambda: followed.has("ann/aside"), "the other build")
    followed.publish("own")
    followed.wait()
    assert followed.has_all()


def test_a_failed_build_leaves_nothing_out(followed: Followed) -> None:
    followed.build()
    followed.wait()
    followed.deployer.tell(OperatorError("No space left."))
    assert followed.deployer.status()["status"] == "ok"
    followed.publish("next")
    followed.wait()
    assert followed.has_all()


def test_it_stops_during_an_upload_and_continues_at_the_next_start(
    site: Settings, job: Job, s3: S3, bucket: str, proxy: Proxy
) -> None:
    stuck = threading.Event()

    def hold(seen: object) -> None:
        if proxy.count("PUT") > 20:
            assert stuck.wait(300)

    proxy.before = hold
    report = build(site, index=False)
    with Deployer(job) as deployer:
        deployer.tell(report)
        wait_until(lambda: proxy.count("PUT") > 20, "some uploads")
    # The uploads would never end.
    assert "deploy" not in {thread.name for thread in threading.enumerate()}
    stuck.set()
    proxy.before = lambda seen: None
    assert not list(Path(site.state).glob("deploy-following*"))
    with Deployer(job) as deployer:
        deployer.tell(build(site, index=False))
        followed = Followed(site, deployer, s3, bucket)
        followed.wait()
        assert followed.has_all()


def test_an_invalid_destination_is_refused_at_the_start(site: Settings) -> None:
    for name, message in (("s3:/x", "Unknown kind"), (site.out, "overlap"), ("s3://", "Invalid")):
        with pytest.raises(OperatorError, match=message):
            Deployer(Job(site.out, site.state, name, None, Options())).__enter__()


def test_a_folder_follows_without_a_listing(site: Settings, tmp_path: Path, short_pauses: None):
    target = tmp_path / "public"
    with Deployer(Job(site.out, site.state, str(target), None, Options())) as deployer:
        deployer.tell(build(site, index=False))
        wait_until(lambda: deployer.status()["status"] == "ok", "a deployment")
        # A change by another program stays until the next comparison.
        Path(target, "top.html").write_text("Mine.")
        write_version(site.content, "ann", "story", "1.1.0", "Tell it.\n")
        deployer.tell(build(site, changed=[("ann", "story")], index=False))
        wait_until(lambda: deployer.status()["status"] == "ok", "a deployment")
    assert read_tree(str(target)) == read_tree(site.out)
