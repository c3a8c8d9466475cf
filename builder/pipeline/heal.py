"""Finds files that the site has lost, by the state, in slices; the next build writes them again.

A restore, a cleaning job or a person may have removed them. No file is read: folders are listed,
and after the first look only those that have changed since.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Collection, Iterator
from functools import lru_cache

from builder.model.objects import SITE, params_of
from builder.pipeline.context import Context
from builder.store.site import Site
from builder.store.state import State
from builder.store.state.work import Work

OBJECTS_PER_STEP = 100
# Objects in the order of their ids share the last few folders.
_FOLDERS_KEPT = 16


def check_site(context: Context, seconds: float) -> bool:
    """Continue a look at all objects of the site, for about so many seconds. Returns true at its
    end. Notes objects with a missing file as work for the next build.
    """
    state, site = context.state, context.site
    end = time.monotonic() + seconds
    last, begun, after = state.looked()
    begun = begun or site.changed_ns()
    for object_id, lost in find_lost(state, site.root, after, last):
        if lost:
            context.lost.append(object_id)
            _note_lost(state, object_id)
        if time.monotonic() >= end:
            state.put_looked(last, begun, object_id)
            return False
    state.put_looked(begun)
    return True


def find_lost(
    state: State, root: str, after: str = "", looked_ns: int = 0
) -> Iterator[tuple[str, list[str]]]:
    """The objects of a site, those after one in the order of ids, each with the files that it has
    lost. ``looked_ns``: folders that have not changed since this time have all of their files.
    """
    names_in = lru_cache(_FOLDERS_KEPT)(lambda folder: _names_in(f"{root}/{folder}", looked_ns))

    def is_lost(file: str) -> bool:
        folder, _, name = file.rpartition("/")
        names = names_in(folder)
        return names is not None and name not in names

    while groups := [*state.files.after(after, OBJECTS_PER_STEP)]:
        for objects, folders in groups:
            is_same = all(names_in(folder) is None for folder in folders)
            for after in objects:
                yield after, [] if is_same else [*filter(is_lost, state.files.of(after))]


def lost_files(folder: str, root: str) -> list[str]:
    """The files that a site has lost since its last build, by the state in ``folder``; none if that
    is the state of another site, or cannot be read.
    """
    path = State.path_in(folder)
    if not os.path.exists(path) or State.is_of_another_release(folder):
        return []
    with contextlib.suppress(sqlite3.Error), State(folder, read_only=True) as state:
        if state.has_left(Site(root).mark()):
            return [file for _, files in find_lost(state, root) for file in files]
    return []


def _names_in(folder: str, looked_ns: int) -> Collection[str] | None:
    """The names in a folder; None if it has not changed since."""
    try:
        # No program can set this time back. ``looked_ns`` is that of a file of the same disk.
        is_same = looked_ns and os.stat(folder).st_ctime_ns < looked_ns
        return None if is_same else frozenset(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _note_lost(state: State, object_id: str) -> None:
    at = params_of(object_id)
    if "name" in at:
        state.todo.add(Work.REPO, ["{owner}/{name}".format_map(at)])
        state.todo.add(Work.HOME)  # which shows one of the prompts, read from the site
    elif "owner" in at:
        state.todo.add(Work.OWNER, [at["owner"]])
    elif "sort" in at:
        tag = at.get("tag")
        state.lists.put_page(tag, at["sort"], int(at["page"]), b"")
        for work in (Work.FIRST_PAGES, Work.LIST):
            state.todo.add(work, [tag or ""])
    elif object_id == SITE:
        for work in (Work.FIXED, Work.HOME, Work.TAGS, Work.WITHDRAWN, Work.CATALOGUE):
            state.todo.add(work)
        state.todo.add(Work.FIRST_PAGES, [""])
    else:
        state.todo.add(Work.CATALOGUE)
