"""A bucket as the place of backups."""

import base64
import contextlib
import hashlib
from collections.abc import Callable, Iterator

from botocore.exceptions import ClientError

from builder.model.errors import OperatorError
from operate.deploy.bucket import Connection

_MISSING = ("NoSuchKey", "404")


class BucketPlace(Connection):
    """As ``FolderPlace``. The service compares each upload with its MD5."""

    checks_arrival = True

    @contextlib.contextmanager
    def lock(self, on_wait: Callable[[], None], *, shared: bool = False) -> Iterator[None]:
        # A bucket has no locks. Backups of one hub take turns by its state folder.
        yield

    def keys(self, prefix: str) -> Iterator[str]:
        return (found["Key"].removeprefix(self.prefix) for found in self.objects(prefix))

    def get(self, key: str, bytes_max: int) -> bytes | None:
        with self.explained(f"read {key}"):
            try:
                answer = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _MISSING:
                    return None
                raise
            with contextlib.closing(answer["Body"]) as body:
                data = body.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise OperatorError(
                f"{key} in {self.name} has more than {bytes_max:,} bytes. It is no file of a "
                "backup: remove it, or choose another snapshot."
            )
        return data

    def put(self, key: str, data: bytes) -> None:
        with self.explained(f"upload {key}"):
            self.client.put_object(
                Bucket=self.bucket,
                Key=self.prefix + key,
                Body=data,
                ContentMD5=base64.b64encode(
                    hashlib.md5(data, usedforsecurity=False).digest()
                ).decode(),
                ContentType="application/octet-stream",
            )

    def sync(self) -> None:
        pass  # an object that was acknowledged is there
