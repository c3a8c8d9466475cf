"""Opens the store that commands write to: the content folder, or the database of --database."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from builder.model.content_tree import PRIVATE_FILE
from builder.store.content import check_folder
from builder.store.privacy import MARK, OPENED

if TYPE_CHECKING:
    from builder.model.metrics import Parts
    from builder.model.settings import Settings
    from builder.pipeline.context import Named
    from builder.pipeline.rebuild import Rebuilder
    from cli.options import Places
    from cli.standard_error import Progress
    from publisher.accounts.database import Database
    from publisher.nodes.turn import Turn
    from publisher.write.durable import FolderStore

# Interval of looking for a failure of the database.
_LOOK_SECONDS = 0.5


@contextlib.contextmanager
def open_store(places: Places, progress: Progress | None = None) -> Iterator[FolderStore]:
    """The store for a command; with a database, once the folder has everything that the database
    has. Raises OperatorError.
    """
    from publisher.write.durable import open_folder

    if not places.database_url:
        check_folder(places.content)
        yield open_folder(places.content)
        return
    # Loaded late: the libraries are optional, and slow to load.
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


def settle_shared(url: str, said: bool | None, is_private: bool) -> bool:
    """True if only members may read the hub of a database: as the option has ``said``, which is
    noted for all nodes; else by the database, or by this node's folders where it says nothing.
    Raises OperatorError.
    """
    from publisher.accounts.database import Database
    from publisher.nodes.transfer import put_hub_file, read_hub_file

    with Database(url) as database:
        known = read_hub_file(database, PRIVATE_FILE)
        if said is None and known is not None:
            return known != OPENED
        is_private = is_private if said is None else said
        mark = MARK if is_private else OPENED
        if mark != known and (is_private or known):
            put_hub_file(database, PRIVATE_FILE, mark)
    return is_private


def make_store(
    settings: Settings,
    database: Database,
    make_rebuilder: Callable[..., Rebuilder],
    *,
    has_quotas: bool,
) -> tuple[AbstractContextManager[FolderStore], Rebuilder, Parts]:
    """The store for a service, and its status for /readyz. Enter the store before the rebuilder
    that follows it. Raises OperatorError.
    """
    from publisher.write.durable import open_folder

    if not database.is_shared:
        return contextlib.nullcontext(open_folder(settings.content)), make_rebuilder(), {}
    from publisher.nodes.store import Shared

    def note(changed: Iterable[Named]) -> None:
        # Changes read at the start need no request: the first build looks at everything.
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
    """The turn for work that one node of a database does at a time; None: this is the only node."""
    if not database.is_shared:
        return None
    from publisher.nodes.turn import Turn

    return Turn(database.engine.connections, what)
