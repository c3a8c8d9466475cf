"""Where commands write what they publish: the content folder, or the store of --store."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from builder.model.metrics import Parts
    from builder.model.settings import Settings
    from builder.pipeline.context import Named
    from builder.pipeline.rebuild import Rebuilder
    from publisher.nodes.bucket import Bucket
    from publisher.nodes.lease import Lease
    from publisher.write.store import Store

# How often it is looked whether the store fails.
_LOOK_SECONDS = 0.5

store_option = click.option(
    "--store", "store_url", metavar="URL", envvar="HUB_STORE", show_envvar=True,
    help="Object store that many nodes share: s3://BUCKET/PREFIX, gs://… or az://…. The content "
    "folder is a copy of it then.",
)  # fmt: skip


@contextlib.contextmanager
def open_store(content: str, url: str | None) -> Iterator[Store]:
    """For a command: with a store, once the folder has what that has. Raises OperatorError."""
    from publisher.write.store import open_folder

    if not url:
        yield open_folder(content)
        return
    with _bucket(content, url) as bucket:
        while not bucket.wait_ready(_LOOK_SECONDS):
            bucket.check()
        yield bucket


def make_store(
    settings: Settings, url: str | None, make_rebuilder: Callable[..., Rebuilder], *,
    has_quotas: bool,
) -> tuple[AbstractContextManager[Store], Rebuilder, Parts]:  # fmt: skip
    """For a service: the store, which is to be entered before the rebuilder that follows it, and
    what /readyz shows of it. Raises OperatorError.
    """
    from publisher.write.store import open_folder

    if not url:
        return contextlib.nullcontext(open_folder(settings.content)), make_rebuilder(), {}

    def note(changed: Iterable[Named]) -> None:
        # What is read at the start is not asked for: the first build looks at everything.
        if bucket.wait_ready(0):
            changed = [*changed]
            rebuilder.request(changed if all(owner for owner, _ in changed) else None)

    bucket = _bucket(
        settings.content, url, has_quotas=has_quotas, on_applied=note,
        on_serial=lambda: rebuilder.note_serial(),
    )  # fmt: skip
    rebuilder = make_rebuilder(serial=lambda: bucket.serial, await_content=bucket.wait_ready)
    return bucket, rebuilder, {"store": bucket.status}


def make_lease(what: str, store: Bucket) -> Lease:
    """What one of the nodes of a store does at a time."""
    from publisher.nodes.lease import Lease

    return Lease(store.objects, what, socket.gethostname())


def _bucket(content: str, url: str, **options: Any) -> Bucket:
    # Late, since its library is optional, and takes long to load.
    from publisher.nodes.bucket import Bucket

    return Bucket(content, url, node=socket.gethostname(), **options)
