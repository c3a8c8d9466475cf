"""A bucket as the destination: of AWS, or of any other service that speaks S3."""

from collections.abc import Callable, Iterator

from builder.model.errors import OperatorError
from operate import buckets
from operate.deploy.order import Put, cache_control


class Bucket:
    """See ``Destination``. A mark is an ETag, which is the MD5 unless the service encrypts with a
    key of the user's.
    """

    has_rules = False

    def __init__(self, name: str, endpoint_url: str | None, check: Callable[[], None]) -> None:
        self._objects = buckets.Bucket(name, endpoint_url)
        self._check = check
        self.identity = self._objects.identity

    def list(self) -> Iterator[tuple[str, str]]:
        return ((found.key, found.etag) for found in self._objects.list())

    def holds(self, put: Put) -> bool:
        if put.old != put.md5.hex():
            return False
        # The listing has no headers: another tool may have put the object without any.
        found = self._objects.headers(put.key)
        return _headers(put) == {
            name: found[name] for name in (*_headers(put), "Content-Encoding") if name in found
        }

    def put(self, put: Put, path: str) -> str:
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise OperatorError(f"Cannot read {path}: {error.strerror}. Deploy again.") from error
        self._check()
        return self._objects.put(put.key, data, _headers(put))

    def delete(self, key: str) -> None:
        self._check()
        self._objects.delete(key)

    def end_group(self) -> None:
        pass  # an object that was acknowledged is stored

    def close(self) -> None:
        pass


def _headers(put: Put) -> dict[str, str]:
    return {"Content-Type": put.route.media, "Cache-Control": cache_control(put.route)}
