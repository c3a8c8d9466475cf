"""A bucket as the destination: of AWS, or of any other service that speaks S3.

The only importer of boto3, which is an optional dependency.
"""

import base64
import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        HTTPClientError,
        NoCredentialsError,
    )
except ImportError as error:
    from builder.model.errors import OperatorError

    raise OperatorError(
        f"Using s3:// needs the boto3 library ({error}). Install it with `pip install boto3`."
    ) from None

from builder.model.errors import OperatorError
from operate.deploy.order import Put, cache_control

ATTEMPTS = 5
CONNECT_SECONDS, READ_SECONDS = 10, 60

_NAME = re.compile(r"s3://([^/]+)(?:/(.*))?", re.DOTALL)
_AWS = re.compile(r"\.amazonaws\.com(\.cn)?(:\d+)?$")
_MD5 = re.compile("[0-9a-f]{32}")
# Encrypted with a key of one's own, an object's ETag is not the MD5 of what was sent.
_ETAG_IS_MD5 = (None, "AES256")

_ADVICE = {
    "NoSuchBucket": "Create it, or correct its name or --endpoint-url.",
    "AccessDenied": "Allow these credentials to list the bucket and to get, put and delete its "
    "objects.",
    "InvalidAccessKeyId": "The service does not know this access key. Check the credentials and "
    "--endpoint-url.",
    "SignatureDoesNotMatch": "Check the credentials.",
    "ExpiredToken": "Get new credentials.",
    "RequestTimeTooSkewed": "Set the clock of this machine.",
    "PermanentRedirect": "The bucket is in another region. Set AWS_REGION to that region.",
    "AuthorizationHeaderMalformed": "The bucket is in another region. Set AWS_REGION to that "
    "region.",
    "BadDigest": "The upload was damaged on the way. Try again.",
    "SlowDown": "The service is busy. Try again later, or use fewer --jobs.",
    "ServiceUnavailable": "The service is busy. Try again later, or use fewer --jobs.",
    "XMinioParentIsObject": "This service cannot store both `a` and `a/b`. Deploy with "
    "--files-only.",
}
# What services answer to a HEAD, which has no room for a code, or call it themselves.
_ADVICE |= {"403": _ADVICE["AccessDenied"], "InvalidSecurity": _ADVICE["InvalidAccessKeyId"]}


class Connection:
    """A bucket, and a prefix of its keys, through boto3's ``client``. ``jobs``: how many threads
    use it.
    """

    def __init__(self, name: str, *, jobs: int, endpoint_url: str | None) -> None:
        self.name = name
        self.bucket, self.prefix = _parse(name)
        with self.explained("use the bucket"):
            self.client = _client(jobs, endpoint_url)
        self.identity = f"{self.client.meta.endpoint_url} {self.bucket} {self.prefix}"

    def objects(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """What the service says of each object whose key begins so."""
        pages = self.client.get_paginator("list_objects_v2")
        with self.explained("list the bucket"):
            for page in pages.paginate(Bucket=self.bucket, Prefix=self.prefix + prefix):
                yield from page.get("Contents", ())

    def delete(self, key: str) -> None:
        # One by one: they are few and free, and not every service takes a list of them.
        with self.explained(f"delete {key}"):
            self.client.delete_object(Bucket=self.bucket, Key=self.prefix + key)

    def close(self) -> None:
        self.client.close()

    @contextlib.contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn what the client raises into OperatorError, which says what cannot be done."""
        try:
            yield
        except ClientError as error:
            answer = error.response.get("Error", {})
            code = str(answer.get("Code", ""))
            said = ": ".join(filter(None, (code, str(answer.get("Message", ""))))).rstrip(".")
            advice = _ADVICE.get(code, "Fix that and try again.")
            raise OperatorError(f"Cannot {what}: {said} ({self.name}). {advice}") from error
        except NoCredentialsError as error:
            raise OperatorError(
                f"No credentials for {self.name}. Set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, set AWS_PROFILE, or give this machine a role."
            ) from error
        except HTTPClientError as error:
            raise OperatorError(
                f"Cannot {what}: {_reason(error)} ({self.name}). Check --endpoint-url, and try "
                "again when the service answers."
            ) from error
        except (BotoCoreError, ValueError) as error:
            raise OperatorError(f"Cannot {what}: {_reason(error)} ({self.name}).") from error


class Bucket(Connection):
    """See ``Destination``. A mark is an ETag."""

    has_rules = False

    def __init__(
        self, name: str, *, jobs: int, endpoint_url: str | None, check: Callable[[], None]
    ) -> None:
        super().__init__(name, jobs=jobs, endpoint_url=endpoint_url)
        for change in ("PutObject", "DeleteObject"):
            # Before each attempt: the library makes several, with pauses.
            self.client.meta.events.register(f"before-send.s3.{change}", lambda **_: check())

    def list(self) -> Iterator[tuple[str, str]]:
        for found in self.objects():
            yield found["Key"].removeprefix(self.prefix), _etag(found)

    def holds(self, put: Put) -> bool:
        if put.old != put.md5.hex():
            return False
        with self.explained(f"inspect {put.key}"):
            # The listing says nothing of headers: somebody may have put it there without any.
            head = self.client.head_object(Bucket=self.bucket, Key=self.prefix + put.key)
        headers = head.get("ContentType"), head.get("CacheControl"), head.get("ContentEncoding")
        return headers == (put.route.media, cache_control(put.route), None)

    def put(self, put: Put, path: str) -> str:
        with self.explained(f"upload {put.key}"), open(path, "rb") as file:
            answer = self.client.put_object(
                Bucket=self.bucket,
                Key=self.prefix + put.key,
                Body=file,
                ContentLength=put.size,
                ContentMD5=base64.b64encode(put.md5).decode(),
                ContentType=put.route.media,
                CacheControl=cache_control(put.route),
            )
        etag = _etag(answer)
        is_md5 = answer.get("ServerSideEncryption") in _ETAG_IS_MD5 and _MD5.fullmatch(etag)
        if is_md5 and etag != put.md5.hex():
            raise OperatorError(
                f"{put.key} was changed on its way to {self.name}: its ETag is {etag}, not "
                f"{put.md5.hex()}. Try again. If that fails too, check for a proxy that "
                "rewrites uploads."
            )
        return etag

    def end_group(self) -> None:
        pass  # an object that was acknowledged is there


def _reason(error: Exception) -> str:
    return str(error).rstrip(".")


def _parse(name: str) -> tuple[str, str]:
    """The bucket of a name, and the prefix of its keys: empty, or with a slash at its end."""
    found = _NAME.fullmatch(name)
    prefix = (found[2] or "").rstrip("/") if found else ""
    if not found or {"", ".", ".."} & set(prefix.split("/") if prefix else ()):
        raise OperatorError(
            f"Invalid destination {name!r}. Use s3://BUCKET or s3://BUCKET/PREFIX, without empty "
            "parts in PREFIX."
        )
    return found[1], prefix and f"{prefix}/"


def _client(jobs: int, endpoint_url: str | None) -> Any:
    session = boto3.Session()
    retries: dict[str, Any] = {"mode": "standard"}
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        retries["total_max_attempts"] = ATTEMPTS
    config = Config(
        retries=retries,
        # A connection may come back a little after its thread has gone on to the next.
        max_pool_connections=2 * jobs,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        # Content-MD5 is what every service knows; newer checksums some refuse.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    client = session.client("s3", endpoint_url=endpoint_url, config=config)
    if _AWS.search(client.meta.endpoint_url):
        return client
    # Other services have no host name for each bucket, unless the user's settings say so.
    style = {"addressing_style": "path"} | (client.meta.config.s3 or {})
    client.close()
    return session.client("s3", endpoint_url=endpoint_url, config=config.merge(Config(s3=style)))


def _etag(answer: dict[str, Any]) -> str:
    return answer["ETag"].removeprefix("W/").strip('"')
