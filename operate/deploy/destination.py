"""What the rest of a deployment knows of where it goes to, and which kind a name means."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from builder.model.errors import OperatorError
from operate.deploy.folder import Folder
from operate.deploy.order import Put

# An address, also one with a slash too few; ``./`` before it makes it a path.
_has_scheme = re.compile(r"[a-z0-9+.-]+:/", re.IGNORECASE).match


class Destination(Protocol):
    """Somewhere to put objects. All but ``close`` may raise OperatorError; ``holds``, ``put`` and
    ``delete`` are called from several threads, each key from one at a time.

    A mark is a text that differs whenever the bytes of an object do. ``identity`` is the same for
    each way to spell the destination. ``has_rules``: whether a URL finds its file by rules of the
    host, and not only under its very key.
    """

    identity: str
    has_rules: bool

    def list(self) -> Iterator[tuple[str, str]]:
        """Key and mark of each object that is there, whoever put it."""

    def holds(self, put: Put) -> bool:
        """Whether an object that is there has the very bytes and headers."""

    def put(self, put: Put, path: str) -> str:
        """Upload the file at ``path``; returns the mark it gets."""

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is none."""

    def end_group(self) -> None:
        """See to it that all that was done outlives a power cut of the destination."""

    def close(self) -> None:
        """Let connections go."""


class Nowhere(Destination):
    """A destination with nothing there, for dry runs: the plan has the whole site."""

    identity = "nowhere"
    has_rules = False

    def list(self) -> Iterator[tuple[str, str]]:
        return iter(())


def open_destination(
    name: str | None, *, endpoint_url: str | None = None,
    apart_from: Iterable[str] = (), check: Callable[[], None] = lambda: None,
) -> Destination:  # fmt: skip
    """The destination that people mean by a name: ``s3://bucket/prefix``, a folder's path, or
    None for ``Nowhere``.

    ``endpoint_url``: where S3 is spoken; by default what the client library finds
    (AWS_ENDPOINT_URL, the user's files), in the end AWS. ``apart_from``: folders that must not
    hold the destination, nor lie in it. ``check`` is called, in any thread, right before an object
    changes; what it raises keeps the object as it is. Raises OperatorError.
    """
    if name is None:
        return Nowhere()
    if name.startswith("s3://"):
        from operate.deploy.bucket import Bucket  # an optional library, and a slow one

        return Bucket(name, endpoint_url, check)
    if not name.strip():
        raise OperatorError(
            "The destination is empty. If it comes from a variable, set the variable. Pass a "
            "folder (/var/www/prompts) or s3://BUCKET/PREFIX."
        )
    if _has_scheme(name):
        raise OperatorError(
            f"Unknown kind of destination {name!r}. Pass a folder (/var/www/prompts) or "
            "s3://BUCKET/PREFIX; add --endpoint-url for a service other than AWS."
        )
    return Folder(name, apart_from, check)
