"""Object stores to test with: S3 by Moto, Azure's blobs by Azurite, and a folder.

The fixtures are known everywhere through ``conftest``.
"""

import base64
import contextlib
import hashlib
import hmac
import itertools
import sys
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.servers import DEADLINE_SECONDS, PROJECT, Process, clean_environment, free_port

# What Azurite accepts; its documentation names them.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_ALL_OF_S3 = """{"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}"""
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT")
_KEYS = ("AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY")

_numbers = itertools.count(1)


class ObjectStore(NamedTuple):
    """An empty place in a store: ``url`` is for ``--store``, and ``environment`` says where its
    server is, and has the credentials.
    """

    url: str
    environment: dict[str, str]

    @property
    def server(self) -> str:
        """HOST:PORT of the server; empty for a folder."""
        found = [self.environment[key] for key in _ENDPOINTS if key in self.environment]
        return urlsplit(found[0]).netloc if found else ""

    def through(self, address: str) -> Self:
        """The same, reached by a proxy at HOST:PORT."""
        return self._replace(environment={
            key: value.replace(self.server, address) if key in _ENDPOINTS else value
            for key, value in self.environment.items()
        })  # fmt: skip

    def with_wrong_key(self) -> Self:
        """The same, with another secret than the server's."""
        wrong = base64.b64encode(b"wrong").decode()
        return self._replace(environment={
            key: wrong if key in _KEYS else value for key, value in self.environment.items()
        })  # fmt: skip


class S3Server(NamedTuple):
    """A server that speaks S3, at HOST:PORT, with keys that it accepts."""

    address: str
    environment: dict[str, str]

    def make_bucket(self) -> ObjectStore:
        """A new bucket, and a prefix in it."""
        name = f"prompts-{next(_numbers)}"
        with contextlib.closing(self.client()) as client:
            client.create_bucket(Bucket=name)
        return ObjectStore(f"s3://{name}/hub", self.environment)

    def client(self, **options: Any) -> Any:
        """A client of boto3 with these keys, which its user closes; ``options`` are boto3's."""
        import boto3  # here, because every test process loads this module

        return boto3.client(
            "s3", endpoint_url=f"http://{self.address}", region_name=self.environment["AWS_REGION"],
            **{name.lower(): self.environment[name] for name in S3_KEYS}, **options,
        )  # fmt: skip


@contextlib.contextmanager
def running_s3(**variables: str) -> Iterator[S3Server]:
    """Moto's server, which checks signatures; with these variables."""
    port = free_port()
    # What it prints for each request is of no use, and Moto reads credentials like a client.
    process = Process(
        sys.executable, "-m", "tests.support.s3_server", str(port),
        env=clean_environment(PYTHONPATH=str(PROJECT), AWS_CONFIG_FILE="/dev/null", **variables),
    )  # fmt: skip
    try:
        process.wait_for_line("ready")
        yield S3Server(f"127.0.0.1:{port}", _accepted_by(f"http://127.0.0.1:{port}"))
    finally:
        process.stop()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with running_s3() as server:
        yield server


def _accepted_by(url: str) -> dict[str, str]:
    """Let a server check signatures from now on; variables with keys that it accepts."""
    import boto3

    iam = boto3.client(
        "iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="first",
        aws_secret_access_key="first",
    )  # fmt: skip
    iam.create_user(UserName="hub")
    key = iam.create_access_key(UserName="hub")["AccessKey"]
    iam.put_user_policy(UserName="hub", PolicyName="s3", PolicyDocument=_ALL_OF_S3)
    iam.close()
    answer = requests.post(f"{url}/moto-api/reset-auth", data=b"0", timeout=DEADLINE_SECONDS)
    answer.raise_for_status()
    return {
        "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }  # fmt: skip


@pytest.fixture
def s3_store(s3_server: S3Server) -> ObjectStore:
    return s3_server.make_bucket()


@pytest.fixture(scope="session")
def azure_server(installed_tools: None) -> Iterator[str]:
    """The URL of the account that Azurite has."""
    from tests.node import PACKAGES

    port = free_port()
    process = Process(
        "node", str(PACKAGES / "azurite/dist/src/blob/main.js"), "--blobHost", "127.0.0.1",
        "--blobPort", str(port), "--inMemoryPersistence", "--disableTelemetry", "--silent",
        "--skipApiVersionCheck",
    )  # fmt: skip
    try:
        process.wait_for_line("successfully listen")
        yield f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"
    finally:
        process.stop()


@pytest.fixture
def azure_store(azure_server: str) -> ObjectStore:
    name = f"prompts-{next(_numbers)}"
    _make_container(azure_server, name)
    return ObjectStore(f"az://{name}/hub", {
        "AZURE_STORAGE_ENDPOINT": azure_server, "AZURE_ALLOW_HTTP": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": AZURE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
    })  # fmt: skip


def _make_container(url: str, name: str) -> None:
    """Send the one request of Azure's that obstore has not, signed with the account's key."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = [f"{key}:{value}" for key, value in sorted(headers.items())]
    resource = f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{name}\nrestype:container"
    signed = "\n".join(["PUT", *[""] * 11, *lines, resource])
    secret = base64.b64decode(AZURE_KEY)
    signature = base64.b64encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest())
    headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{signature.decode()}"
    answer = requests.put(
        f"{url}/{name}", params={"restype": "container"}, headers=headers, timeout=DEADLINE_SECONDS
    )
    assert answer.status_code == 201, answer.text


@pytest.fixture
def folder_store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"file://{tmp_path}/store", {})


_SERVERS = ["s3_store", pytest.param("azure_store", marks=pytest.mark.tools)]


@pytest.fixture(params=["folder_store", *_SERVERS])
def object_store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each of the stores in turn; its variables are not set yet."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=_SERVERS)
def served_store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each of the stores that are servers in turn; its variables are not set yet."""
    return request.getfixturevalue(request.param)
