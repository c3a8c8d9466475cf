"""Destinations of a deployment, and the choice of one by its name."""

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from operate.deploy.folder import Folder
from operate.deploy.order import Step
from operate.folders import is_bucket


class Destination(Protocol):
    """A place for objects. Every method may raise OperatorError.

    A mark is a text that differs whenever the bytes of an object do. ``identity`` is the same for
    all spellings of a destination. ``has_rules``: the host derives the file of a URL by rules, so a
    URL needs no key of its own.
    """

    identity: str
    has_rules: bool

    def pages(self) -> AsyncIterator[list[tuple[str, str]]]:
        """Key and mark of all objects in pages, including objects that are not the site's."""

    async def holds(self, step: Step) -> bool:
        """True if the object that exists has exactly these bytes and headers."""

    async def put(self, step: Step) -> str:
        """Upload the file of a step; returns the object's mark."""

    async def delete(self, key: str) -> None:
        """Remove an object; a missing one is no error."""

    async def end_group(self) -> None:
        """Make all steps before this survive a power cut of the destination."""


class Nowhere:
    """A destination without objects, for dry runs: the plan has the whole site."""

    identity = "nowhere"
    has_rules = False

    async def pages(self) -> AsyncIterator[list[tuple[str, str]]]:
        yield []


def open_destination(
    name: str | None, *, endpoint_url: str | None = None, apart_from: Iterable[str] = ()
) -> Destination:
    """The destination of a name: ``s3://bucket/prefix``, a folder's path, or None for ``Nowhere``.

    ``endpoint_url``: the address of the S3 service; by default that of AWS_ENDPOINT_URL, or AWS.
    ``apart_from``: folders that must not overlap with the destination. Raises OperatorError.
    """
    if name is None:
        return Nowhere()
    if is_bucket(name, "destination", "/var/www/prompts"):
        # loaded late: an optional library, and slow to load
        from operate.deploy.bucket import Bucket

        return Bucket(name, endpoint_url)
    return Folder(name, apart_from)
