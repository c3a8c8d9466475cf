"""Removes withdrawn texts from a site without a build, for callers that cannot wait for one or do
not know how the site was built. The next build writes the rest, and the reason why the files are
gone.
"""

import os
import sqlite3
from collections.abc import Callable, Collection

from builder.model.errors import OperatorError
from builder.model.matching import Match
from builder.model.names import LATEST
from builder.store.locks import build_lock, count_build
from builder.store.site import Site
from builder.store.state import State
from builder.store.state.left import files_left
from builder.store.state.work import Work


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
        found = files_left(site, owner, name)
        return site.remove(*(file for file, one in found if _shows(one, versions, labels)))


def _shows(match: Match, versions: Collection[str], labels: Collection[str]) -> bool:
    """True if a file may have the text of one of these versions."""
    route, at = match
    if route.scope in ("langfuse", "withdrawn"):
        return route.scope == "langfuse"  # Only their content shows which of these have the text.
    if "version" in at:
        return at["version"] in versions
    if route.scope == "label":
        return at.get("label") in labels and route.name != "label_history"
    return LATEST in labels


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
