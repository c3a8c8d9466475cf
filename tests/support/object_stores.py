"""A server that speaks S3, by Moto."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import requests

from tests.support.servers import DEADLINE_SECONDS, PROJECT, Process, clean_environment, free_port

_ALL_OF_S3 = """{"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}"""
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class S3Server(NamedTuple):
    """A server that speaks S3, at HOST:PORT, with keys that it accepts."""

    address: str
    environment: dict[str, str]

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
    # Its output for each request is useless, and Moto reads credentials as a client does.
    process = Process(
        sys.executable, "-m", "tests.support.s3_server", str(port),
        env=clean_environment(PYTHONPATH=str(PROJECT), AWS_CONFIG_FILE="/dev/null", **variables),
    )  # fmt: skip
    try:
        process.wait_for_line("ready")
        yield S3Server(f"127.0.0.1:{port}", _accepted_by(f"http://127.0.0.1:{port}"))
    finally:
        process.stop()


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
