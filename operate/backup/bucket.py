"""A bucket as the place of backups."""

import contextlib
from collections.abc import Callable, Iterator

from operate.buckets import Bucket


class BucketPlace:
    """As ``FolderPlace``. The service compares each upload with its SHA-256."""

    checks_arrival = True

    def __init__(self, name: str, endpoint_url: str | None) -> None:
        self.name = name
        self._objects = Bucket(name, endpoint_url)
        self.get = self._objects.read
        self.delete = self._objects.delete

    @contextlib.contextmanager
    def lock(self, on_wait: Callable[[], None], *, shared: bool = False) -> Iterator[None]:
        # A bucket has no locks. Backups of one hub take turns by its state folder.
        yield

    def keys(self, folder: str) -> Iterator[str]:
        return (found.key for found in self._objects.list(folder))

    def put(self, key: str, data: bytes) -> None:
        self._objects.put(key, data, {"Content-Type": "application/octet-stream"})

    def sync(self) -> None:
        pass  # an object that was acknowledged is stored

    def close(self) -> None:
        pass
