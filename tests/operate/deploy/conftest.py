"""A site before and after some changes, and a bucket of a server that speaks S3."""

import contextlib
import hashlib
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from builder.model.matching import match_file
from builder.model.settings import Settings
from builder.pipeline.build import build
from operate.deploy.bucket import RETRIES
from operate.deploy.run import Deployment, Destination, open_destination
from tests.operate.deploy.proxy import Proxy
from tests.support.catalogues import (
    edit_record,
    read_tree,
    settings_in,
    write_small_catalogue,
    write_version,
)
from tests.support.object_stores import S3_KEYS, running_s3

PAGE_KEYS = 40
PREFIX = "site/"
FILES = {"a+b/c@2x.png": b"\x89\0\xff", "scripts/run+.sh": b"true\n"}


class Sites(NamedTuple):
    """Two states of one site, as settings; tests must not change them."""

    old: Settings
    new: Settings


def change(content: str) -> None:
    """Add a repo of a new owner with a new tag, versions, a title; remove an owner with files."""
    write_version(content, "cat", "poem", "1.0.0", "Write a poem.\n", tags=["fresh", "code"])
    write_version(content, "ann", "review", "1.2.0", "Review {{code}} twice.\n", tags=["fresh"])
    edit_record(Path(content, "ann", "story", "1.0.0.json"), title="Another title")
    write_version(content, "ann", "lint", "1.1.0", "Lint.\n", {"scripts/run+.sh": b"false\n"})
    shutil.rmtree(Path(content, "bob"))


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Sites:
    folder = tmp_path_factory.mktemp("sites")
    old, new = settings_in(folder / "old"), settings_in(folder / "new")
    for settings in (old, new):
        write_small_catalogue(settings.content)
        for owner in ("ann", "bob"):
            write_version(settings.content, owner, "lint", "1.0.0", "Lint.\n", FILES)
        build(settings, index=False)
    change(new.content)
    # The second build removes files that the first one kept for readers of the older lists.
    for _ in range(2):
        build(new, index=False)
    return Sites(old, new)


class Done(NamedTuple):
    """The counts of a deployment."""

    new: int
    changed: int
    deleted: int


def deploy_to(destination: Destination, settings: Settings, **options: bool) -> Done:
    """Deploy a site with a state folder of its own."""
    state = f"{settings.state}-deploys"
    steps = Deployment(settings.out, state, destination, **options).run({})
    kinds = [step.is_new if step.file else None for step in steps]
    return Done(kinds.count(True), kinds.count(False), kinds.count(None))


class S3(NamedTuple):
    """A server that speaks S3, as its owner sees it, and keys that it accepts."""

    url: str
    client: object
    environment: dict[str, str]

    def etag(self, bucket: str, key: str) -> str | None:
        """That of an object; None where it is not there."""
        try:
            return self.client.head_object(Bucket=bucket, Key=key)["ETag"].strip('"')
        except ClientError:
            return None

    def etags(self, bucket: str) -> dict[str, str]:
        """The ETag of each object, by key."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return {
            found["Key"]: found["ETag"].strip('"')
            for page in pages
            for found in page.get("Contents", ())
        }


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """Moto's server: it checks signatures, and lists some objects at a time."""
    with running_s3(MOTO_S3_DEFAULT_MAX_KEYS=str(PAGE_KEYS)) as server:
        environment = {name: server.environment[name] for name in S3_KEYS}
        config = Config(retries={"total_max_attempts": 1})
        with contextlib.closing(server.client(config=config)) as client:
            yield S3(f"http://{server.address}", client, environment)


_numbers = itertools.count()


@pytest.fixture
def bucket(s3: S3, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an empty bucket; the credentials for it are in the environment."""
    for key in [key for key in os.environ if key.startswith("AWS_")]:
        monkeypatch.delenv(key)
    # This machine has no role.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    # Pauses between attempts grow to several seconds.
    monkeypatch.setitem(RETRIES, "max_retries", 1)
    for key, value in s3.environment.items():
        monkeypatch.setenv(key, value)
    name = f"prompts-{next(_numbers)}"
    s3.client.create_bucket(Bucket=name)
    return name


@pytest.fixture
def proxy(s3: S3) -> Iterator[Proxy]:
    """A proxy before the server, to make trouble."""
    with Proxy(s3.url) as proxy:
        yield proxy


def expected(site: str) -> dict[str, bytes]:
    """The objects of a site in a bucket: each file, and again under its URL."""
    tree = read_tree(site)
    for file, data in list(tree.items()):
        url = match_file(file).url.removeprefix("/")
        tree[url or file] = data
    return tree


class Look:
    """Looks at what a bucket has, as bytes of one of the two sites."""

    def __init__(self, s3: S3, bucket: str, sites: Sites) -> None:
        self.s3, self.bucket = s3, bucket
        trees = [expected(settings.out) for settings in sites]
        self.known = {
            hashlib.md5(data).hexdigest(): data for tree in trees for data in tree.values()
        }

    def __call__(self) -> dict[str, bytes]:
        """The objects below the prefix; what is of neither site is empty."""
        return {
            key.removeprefix(PREFIX): self.known.get(etag, b"")
            for key, etag in self.s3.etags(self.bucket).items()
            if key.startswith(PREFIX)
        }


@pytest.fixture
def look(s3: S3, bucket: str, sites: Sites) -> Look:
    return Look(s3, bucket, sites)


@pytest.fixture
def opened(bucket: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Destination:
    """The bucket, through the proxy."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    return open_destination(f"s3://{bucket}/{PREFIX}")
