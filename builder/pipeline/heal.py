"""Finds files that the site has lost, by the state, in slices; the next build writes them again.

A restore, a cleaning job or a person may have removed them. No file is read.
"""

import os
import time
from collections.abc import Iterator

from builder.model.objects import SITE, params_of
from builder.pipeline.context import Context
from builder.store.state import State
from builder.store.state.work import Work

OBJECTS_PER_STEP = 100


def check_site(context: Context, seconds: float) -> bool:
    """Continue a look at all objects of the site, for about so many seconds. Returns true at its
    end. Notes objects with a missing file as work for the next build.
    """
    state = context.state
    end = time.monotonic() + seconds
    for object_id, lost in find_lost(state, context.site.root, state.checked()):
        if lost:
            context.lost.append(object_id)
            _note_lost(state, object_id)
        if time.monotonic() >= end:
            state.put_checked(object_id)
            return False
    state.put_checked("")
    return True


def find_lost(state: State, root: str, after: str = "") -> Iterator[tuple[str, list[str]]]:
    """The objects of a site, those after one in the order of ids, each with the files that it has
    lost.
    """
    while objects := state.files.after(after, OBJECTS_PER_STEP):
        for after, files in objects:
            yield after, [file for file in files if not os.path.lexists(f"{root}/{file}")]


def _note_lost(state: State, object_id: str) -> None:
    at = params_of(object_id)
    if "name" in at:
        state.todo.add(Work.REPO, ["{owner}/{name}".format_map(at)])
        state.todo.add(Work.HOME)  # which shows a prompt's text, from its file
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
        state.lists.put_page(None, "top", 1, b"")
        state.todo.add(Work.FIRST_PAGES, [""])
    else:
        state.todo.add(Work.CATALOGUE)
