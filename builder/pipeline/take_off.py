"""Removes withdrawn texts from a site without a build, for callers that cannot wait for one or do
not know how the site was built. The next build writes the rest, and the reason why the files are
gone.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator

from builder.model.errors import OperatorError
from builder.model.names import LATEST
from builder.model.routes import ROUTES
from builder.store.locks import build_lock, count_build
from builder.store.site import Site
from builder.store.state import State
from builder.store.state.work import Work
from builder.write import langfuse_files
from builder.write.withdrawn import files_of, folders_left


def take_off(
    out: str,
    state: str,
    owner: str,
    name: str,
    versions: Collection[str],
    labels: Collection[str],
    on_wait: Callable[[], None] = lambda: None,
) -> int:
    """Remove all files of the site ``out`` that contain the text of some versions of a repo, or a
    diff of it. Returns their number.

    ``versions``: those that are withdrawn, and the next ones, which show what changed since them.
    ``labels``: those that named one of them, including LATEST if it did.
    Waits for a running build. Raises OperatorError.
    """
    if not os.path.isdir(out):
        return 0
    site = Site(out)
    os.makedirs(state, exist_ok=True)
    with build_lock(state, on_wait):
        count_build(state)
        _forget(state, f"{owner}/{name}")
        files = [*_files(owner, name, versions, labels)]
        # Only their content shows which of these have the text, so all are removed.
        files += langfuse_files.files_left(site, owner, name)
        for version in versions:
            files += folders_left(site, owner, name, version)
        return site.remove(*files)


def _files(
    owner: str, name: str, versions: Collection[str], labels: Collection[str]
) -> Iterator[str]:
    at = {"owner": owner, "name": name}
    for version in versions:
        yield from files_of("version", **at, version=version)
    for route in ROUTES:
        if route.scope == "label" and "{label}" in route.file and route.name != "label_history":
            yield from (route.file_for(**at, label=label) for label in labels)
    if LATEST in labels:
        yield from files_of("repo", **at)
        yield from files_of("versions", **at)


def _forget(state: str, repo_id: str) -> None:
    """Have the next build write all files of a repo."""
    path = State.path_in(state)
    if not os.path.exists(path):
        return
    try:
        with State(state) as memory:
            if memory.has_tables():
                memory.todo.add(Work.REPO, [repo_id])
    except sqlite3.Error as error:
        raise OperatorError(
            f"Cannot write to the build state {path}: {error}. Run `hubctl build --full`."
        ) from error
