"""Where commands write what they publish: the content folder, or the database of --database."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builder.model.metrics import Parts
    from builder.model.settings import Settings
    from builder.pipeline.context import Named
    from builder.pipeline.rebuild import Rebuilder
    from cli.options import Places
    from cli.progress import Progress
    from publisher.accounts.database import Database
    from publisher.nodes.turn import Turn
    from publisher.write.store_protocol import Store

# How often it is looked whether the database fails.
_LOOK_SECONDS = 0.5


@contextlib.contextmanager
def open_store(places: Places, progress: Progress | None = None) -> Iterator[Store]:
    """For a command: with a database, once the folder has what that has. Raises OperatorError."""
    from publisher.write.store_protocol import open_folder

    if not places.database_url:
        yield open_folder(places.content)
        return
    # Late, since their library is optional, and takes long to load.
    from publisher.accounts.database import open_postgres
    from publisher.nodes.store import Shared

    with (
        contextlib.closing(open_postgres(places.database_url)) as engine,
        Shared(places.content, engine.connections) as store,
    ):
        while not store.wait_ready(_LOOK_SECONDS):
            store.check()
            status = store.status()
            if progress:
                known = status["applied"] + status["behind"]
                progress("Copying changes", status["applied"], known)
        yield store


def make_store(
    settings: Settings,
    database: Database,
    make_rebuilder: Callable[..., Rebuilder],
    *,
    has_quotas: bool,
) -> tuple[AbstractContextManager[Store], Rebuilder, Parts]:
    """For a service: the store, which is to be entered before the rebuilder that follows it, and
    what /readyz shows of it. Raises OperatorError.
    """
    from publisher.write.store_protocol import open_folder

    if not database.is_shared:
        return contextlib.nullcontext(open_folder(settings.content)), make_rebuilder(), {}
    from publisher.nodes.store import Shared

    def note(changed: Iterable[Named]) -> None:
        # What is read at the start is not asked for: the first build looks at everything.
        if store.wait_ready(0):
            rebuilder.request(changed)

    store = Shared(
        settings.content,
        database.engine.connections,
        has_quotas=has_quotas,
        on_applied=note,
        on_serial=lambda: rebuilder.note_serial(),
    )
    rebuilder = make_rebuilder(serial=lambda: store.serial, await_content=store.wait_ready)
    return store, rebuilder, {"store": store.status}


def make_turn(what: str, database: Database) -> Turn | None:
    """What only one of the nodes of a database does at a time; None: there is only this one."""
    if not database.is_shared:
        return None
    from publisher.nodes.turn import Turn

    return Turn(database.engine.connections, what)
