"""A bucket of any service that speaks S3. The only importer of obstore, an optional dependency.

A method whose name ends with ``_async`` ends its request when its task is canceled.

The service compares each upload with the SHA-256 that is signed with it
(docs.aws.amazon.com, "Signature Calculations: Transferring Payload in a Single Chunk").
"""

import contextlib
import html
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta
from os import environ
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from builder.model.errors import OperatorError

try:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store
except ImportError as error:
    raise OperatorError(
        f"Using s3:// needs the obstore library ({error}). Install it with `pip install obstore`."
    ) from None

CONNECT_SECONDS, REQUEST_SECONDS = 10, 300
# For requests that a busy service refuses or whose connection fails. No attempt begins after
# ``retry_timeout``: another node may deploy by then.
RETRIES = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=20),
    "backoff": {"init_backoff": timedelta(seconds=0.5), "max_backoff": timedelta(seconds=8)},
}
PAGE_KEYS = 1000

_NAME = re.compile(r"s3://([A-Za-z0-9._-]+)(?:/(.*))?", re.DOTALL)
# obstore panics on names that a URL cannot contain.
_ENDPOINT = re.compile(
    r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?(/[A-Za-z0-9._~-]+)*/?"
)
_REGION = re.compile(r"[A-Za-z0-9-]+")

_REGION_ADVICE = "The bucket is in another region. Set AWS_REGION to that region."
_BUSY_ADVICE = "The service is busy. Try again later, or use fewer --jobs."
_KEY_ADVICE = "The service does not know this access key. Check the credentials and --endpoint-url."
_DENIED_ADVICE = (
    "Allow these credentials to list the bucket and to get, put and delete its objects."
)
_CERTIFICATE_ADVICE = (
    "The certificate of the service is not trusted. Set AWS_CA_BUNDLE to a file with that of its "
    "authority."
)
_ADVICE = {
    "NoSuchBucket": "Create it, or correct its name or --endpoint-url.",
    "AccessDenied": _DENIED_ADVICE,
    "403": _DENIED_ADVICE,  # the answer to a HEAD has no error code
    "InvalidAccessKeyId": _KEY_ADVICE,
    "InvalidSecurity": _KEY_ADVICE,
    "SignatureDoesNotMatch": "Check the credentials.",
    "ExpiredToken": "Get new credentials.",
    "RequestTimeTooSkewed": "Set the clock of this machine.",
    "PermanentRedirect": _REGION_ADVICE,
    "AuthorizationHeaderMalformed": _REGION_ADVICE,
    "XAmzContentSHA256Mismatch": "The upload was damaged on the way. Try again.",
    "SlowDown": _BUSY_ADVICE,
    "ServiceUnavailable": _BUSY_ADVICE,
    "503": _BUSY_ADVICE,
    "XMinioParentIsObject": "This service cannot store both `a` and `a/b`. Deploy with "
    "--files-only.",
}
_NO_CREDENTIALS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role. For a profile "
    'of the AWS CLI, run `eval "$(aws configure export-credentials --format env)"` first.'
)


class Listed(NamedTuple):
    """An object in a listing."""

    key: str
    etag: str
    size: int


class Bucket:
    """The objects of ``s3://BUCKET/PREFIX``, by the rest of their keys. Safe for any number of
    threads.

    All methods may raise OperatorError. ``identity`` is the same for each way to spell the bucket.
    """

    def __init__(self, name: str, endpoint_url: str | None) -> None:
        self.name = name
        bucket, self._prefix = _parse(name)
        endpoint, region = _find_endpoint(endpoint_url), _find_region()
        where = {"aws_endpoint_url_s3": endpoint} if endpoint else {}
        client = {
            "allow_http": endpoint.startswith("http:"),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
            "timeout": timedelta(seconds=REQUEST_SECONDS),
        }
        authorities = environ.get("AWS_CA_BUNDLE")
        with self._explained(f"use AWS_CA_BUNDLE {authorities}" if authorities else "use S3"):
            if authorities:
                client["root_certificate"] = Path(authorities).read_bytes()
            self._store = S3Store(
                bucket,
                region=region,
                # Other services have no host name for each bucket, and TLS certificates match none
                # with dots.
                virtual_hosted_style_request=not endpoint and "." not in bucket,
                # Not every service supports the deletion of many objects in one request.
                disable_bulk_delete=True,
                client_options=client,
                retry_config=RETRIES,
                **where,
            )
        service = endpoint or f"https://s3.{region}.amazonaws.com"
        self.identity = f"{service} {bucket} {self._prefix}"

    def list(self, folder: str = "") -> Iterator[Listed]:
        """The objects whose keys begin with ``folder``, which is empty or ends with a slash."""
        with self._explained("list the bucket"):
            pages = obstore.list(self._store, self._prefix + folder or None, chunk_size=PAGE_KEYS)
            for page in pages:
                for found in page:
                    if found["size"] or self._is_object(found):
                        yield self._listed(found)

    async def pages_async(self) -> AsyncIterator[Sequence[Listed]]:
        """All objects, in pages."""
        with self._explained("list the bucket"):
            pages = obstore.list(self._store, self._prefix or None, chunk_size=PAGE_KEYS)
            async for page in pages:
                yield [
                    self._listed(found)
                    for found in page
                    if found["size"] or await self._is_object_async(found)
                ]

    def _listed(self, found: Mapping) -> Listed:
        key = found["path"].removeprefix(self._prefix)
        return Listed(key, _etag(found["e_tag"]), found["size"])

    def _is_object(self, found: Mapping) -> bool:
        """False for a folder that a console shows: obstore lists the empty object `a/` as `a`."""
        with contextlib.suppress(FileNotFoundError):
            return obstore.head(self._store, found["path"])["e_tag"] == found["e_tag"]
        return False

    async def _is_object_async(self, found: Mapping) -> bool:
        with contextlib.suppress(FileNotFoundError):
            head = await obstore.head_async(self._store, found["path"])
            return head["e_tag"] == found["e_tag"]
        return False

    def read(self, key: str, bytes_max: int) -> bytes | None:
        """An object's bytes; None if it does not exist. Raises if it has more than
        ``bytes_max``.
        """
        with self._explained(f"read {key}"):
            try:
                found = obstore.get(self._store, self._prefix + key)
            except FileNotFoundError as error:
                if _reason(error)[0] == "NoSuchBucket":
                    raise
                return None
            size = found.meta["size"]
            if size > bytes_max:
                raise OperatorError(
                    f"{key} in {self.name} has more than {bytes_max:,} bytes, so it is not a file "
                    "of a backup. Remove it, or choose another snapshot."
                )
            return bytes(found.bytes())

    async def headers_async(self, key: str) -> Mapping[str, str]:
        """An object's ``Content-Type``, ``Cache-Control`` and so on."""
        with self._explained(f"inspect {key}"):
            options = {"head": True}
            found = await obstore.get_async(self._store, self._prefix + key, options=options)
            return found.attributes

    def put(self, key: str, data: bytes, headers: Mapping[str, str]) -> str:
        """Store an object with these headers; returns its ETag."""
        with self._explained(f"upload {key}"):
            stored = obstore.put(
                self._store, self._prefix + key, data, attributes=dict(headers), use_multipart=False
            )
            return _etag(stored["e_tag"])

    async def put_async(self, key: str, data: bytes, headers: Mapping[str, str]) -> str:
        """See ``put``."""
        with self._explained(f"upload {key}"):
            stored = await obstore.put_async(
                self._store, self._prefix + key, data, attributes=dict(headers), use_multipart=False
            )
            return _etag(stored["e_tag"])

    def delete(self, key: str) -> None:
        """Remove an object; a missing one is no error."""
        with self._explained(f"delete {key}"), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, self._prefix + key)

    async def delete_async(self, key: str) -> None:
        """See ``delete``."""
        with self._explained(f"delete {key}"), contextlib.suppress(FileNotFoundError):
            await obstore.delete_async(self._store, self._prefix + key)

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn errors of obstore into OperatorError. ``what``: the work that failed."""
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            code, message, advice = _reason(error)
            reason = ": ".join(filter(None, (code, message))).rstrip(".")
            raise OperatorError(f"Cannot {what}: {reason} ({self.name}). {advice}") from error


def _parse(name: str) -> tuple[str, str]:
    """The bucket of a name, and the prefix of its keys: empty, or with a slash at the end."""
    found = _NAME.fullmatch(name)
    prefix = (found[2] or "").rstrip("/") if found else ""
    if not found or {"", ".", ".."} & set(prefix.split("/") if prefix else ()):
        raise OperatorError(
            f"Invalid destination {name!r}. Use s3://BUCKET or s3://BUCKET/PREFIX, without empty "
            "parts in PREFIX."
        )
    return found[1], prefix and f"{prefix}/"


def _find_endpoint(given: str | None) -> str:
    """The address of the service, found in the order of AWS's own tools; empty for AWS."""
    found = given or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or ""
    with contextlib.suppress(ValueError):
        if not found or (_ENDPOINT.fullmatch(found) and urlsplit(found).port != 0):
            return found.rstrip("/")
    raise OperatorError(
        f"Invalid address of an S3 service {found!r}. Pass one such as https://s3.example.org to "
        "--endpoint-url."
    )


def _find_region() -> str:
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    if not _REGION.fullmatch(region):
        raise OperatorError(f"Invalid AWS_REGION {region!r}. Set it to one such as us-east-1.")
    return region


def _etag(given: str) -> str:
    return given.removeprefix("W/").strip('"')


def _reason(error: Exception) -> tuple[str, str, str]:
    """The service's error code, its message, and advice.

    obstore puts everything into one text: the request, the answer, and its own description of both.
    """
    text, _, records = str(error).partition("\n\nDebug source:")
    if re.search("/latest/(api|meta-data)/", text) or "MissingSecretAccessKey" in records:
        return "no credentials", "", _NO_CREDENTIALS
    if "redirect without LOCATION" in text:
        return "", "the service redirects the request", _REGION_ADVICE
    if found := re.search("<Code>(.*?)</Code>", text):
        message = re.search("<Message>(.*?)</Message>", text, re.DOTALL)
        said = html.unescape(message[1]) if message else ""
        return found[1], said, _ADVICE.get(found[1], "Fix that and try again.")
    if found := re.search(r"status code: (\d+)([\w ]*)", text):
        return found[1], found[2].strip(), _ADVICE.get(found[1], "Fix that and try again.")
    if "invalid path" in text:
        advice = "Remove that object, or choose a prefix that holds nothing else."
        return "", text.splitlines()[0], advice
    if "kind: Timeout" in records:
        advice = "Try again when the service answers. On a slow network, use fewer --jobs."
        return "", f"not done within {REQUEST_SECONDS} seconds", advice
    if "HTTP error" in text:
        causes = re.findall(r'(?:message|error): "([^"]+)"', records)
        said = (causes or re.findall(r"\b[A-Z]\w+", records) or ["no answer"])[-1]
        advice = "Check --endpoint-url, and try again when the service answers."
        return "", said, _CERTIFICATE_ADVICE if "InvalidCertificate" in records else advice
    return "", text.splitlines()[0], "Fix that and try again."
