"""A bucket as the destination, of AWS or of any other service that speaks S3."""

import contextlib
import re
from collections.abc import Iterator
from datetime import timedelta
from os import environ

from builder.model.errors import OperatorError
from builder.model.matching import match_file
from operate.deploy.order import File, Step

try:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store
except ImportError as error:
    raise OperatorError(
        f"Using s3:// needs the obstore library ({error}). Install it with `pip install obstore`."
    ) from None

# No attempt begins after ``retry_timeout``: another node may deploy by then.
RETRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}
_NAME = re.compile(r"s3://([A-Za-z0-9._-]+)((?:/[^/]+)*)/?")
# obstore panics on names that a URL cannot contain.
_is_endpoint = re.compile(
    r"(https?://([\w.-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?(/[\w.~-]+)*/?)?"
).fullmatch
_ADVICE = {
    "NoSuchBucket": "Create the bucket, or correct its name or AWS_ENDPOINT_URL.",
    "InvalidAccessKeyId|InvalidSecurity|SignatureDoesNotMatch|ExpiredToken": "Check the "
    "credentials, and AWS_ENDPOINT_URL.",
    "latest/(?:api|meta-data)/|MissingSecretAccessKey": "Set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or give this machine a role.",
    "PermanentRedirect|AuthorizationHeaderMalformed|LOCATION": "Set AWS_REGION to the bucket's.",
    "AccessDenied|status code: 403": "Let these credentials list, put and delete objects.",
    "ParentIsObject": "This service cannot store both `a` and `a/b`. Deploy with --files-only.",
}


class Bucket:
    """See ``Destination``. A mark is an ETag: the MD5, unless the service encrypts with the user's
    own key. AWS's variables have the credentials, the region and the address of the service.
    """

    has_rules = False

    def __init__(self, name: str) -> None:
        self._name = name
        found = _NAME.fullmatch(name)
        if not found or {".", ".."} & set(found[2].split("/")):
            raise OperatorError(
                f"Invalid destination {name!r}. Use s3://BUCKET or s3://BUCKET/PREFIX."
            )
        self._prefix = found[2].lstrip("/") and f"{found[2].lstrip('/')}/"
        endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or ""
        if not _is_endpoint(endpoint):
            raise OperatorError(
                f"Invalid AWS_ENDPOINT_URL {endpoint!r}. Use one such as https://s3.example.org."
            )
        with self._explained("use"):
            self._store = S3Store(
                found[1],
                # Other services have no host name for each bucket, and TLS certificates match none
                # with dots.
                virtual_hosted_style_request=not endpoint and "." not in found[1],
                # Not every service supports the deletion of many objects in one request.
                disable_bulk_delete=True,
                client_options={"allow_http": True, "timeout": timedelta(minutes=5)},
                retry_config=RETRIES,
                **({"aws_endpoint_url_s3": endpoint.rstrip("/")} if endpoint else {}),
            )

    def objects(self) -> dict[str, str]:
        with self._explained("list"):
            pages = obstore.list(self._store, self._prefix or None)
            # A folder that a console shows is an empty object, whose name ends with a slash.
            return {
                key: one["e_tag"].strip('"')
                for page in pages
                for one in page
                if match_file(key := one["path"].removeprefix(self._prefix)) or one["size"]
            }

    def holds(self, key: str, mark: str, file: File) -> bool:
        return mark == file.md5

    def put(self, step: Step, file: File, data: bytes) -> str:
        # The service compares the bytes with the SHA-256 that is signed with the request.
        path, headers = self._prefix + step.key, step.headers
        with self._explained(f"upload {step.key} to"):
            obstore.put(self._store, path, data, attributes=headers, use_multipart=False)
        return file.md5

    def delete(self, key: str) -> None:
        with self._explained(f"delete {key} from"), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, self._prefix + key)

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn errors of obstore into OperatorError. ``what``: the work that failed."""
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            text = str(error)
            advice = [advice for codes, advice in _ADVICE.items() if re.search(codes, text)]
            code = re.search("<Code>(.*?)</Code>", text)
            reason = code[1] if code else text.splitlines()[0].rstrip(".")
            then = advice[0] if advice else "Try again when the service answers."
            raise OperatorError(f"Cannot {what} {self._name}: {reason}. {then}") from error
