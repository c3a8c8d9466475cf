"""A bucket as the place of backups."""

from collections.abc import Iterator

from operate.buckets import Bucket


class BucketPlace(Bucket):
    """A bucket for ``FolderPlace``'s methods. The service compares each upload with its SHA-256."""

    get = Bucket.read

    def keys(self, folder: str) -> Iterator[str]:
        return (found.key for found in self.list(folder))

    def put(self, key: str, data: bytes) -> None:
        super().put(key, data, {"Content-Type": "application/octet-stream"})
