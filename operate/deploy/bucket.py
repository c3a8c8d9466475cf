"""A bucket as the destination, of AWS or of any other service that speaks S3."""

from collections.abc import AsyncIterator

from builder.model.errors import explained
from operate import buckets
from operate.deploy.order import Step


class Bucket:
    """See ``Destination``. A mark is an ETag. It is the MD5, unless the service encrypts with the
    user's own key.
    """

    has_rules = False

    def __init__(self, name: str, endpoint_url: str | None) -> None:
        self._objects = buckets.Bucket(name, endpoint_url)
        self.identity = self._objects.identity
        self.delete = self._objects.delete_async

    async def pages(self) -> AsyncIterator[list[tuple[str, str]]]:
        async for page in self._objects.pages_async():
            yield [(found.key, found.etag) for found in page]

    async def holds(self, step: Step) -> bool:
        if step.old != step.md5.hex():
            return False
        # A listing has no headers, and another tool may have uploaded the object without them.
        found = await self._objects.headers_async(step.key)
        names = (*step.headers, "Content-Encoding")
        return step.headers == {name: found[name] for name in names if name in found}

    async def put(self, step: Step) -> str:
        with explained("read", step.copy, "Deploy again."), open(step.copy, "rb") as file:
            data = file.read()
        return await self._objects.put_async(step.key, data, step.headers)

    async def end_group(self) -> None:
        pass  # an acknowledged object is durable
