"""Finds files that the site has lost, by the state, in slices; the next build writes them again.

A restore, a cleaning job or a person may have removed them. No file is read.
"""

import os
import time

from builder.model.objects import SITE, params_of
from builder.pipeline.context import Context
from builder.store.state import State
from builder.store.state.work import Work

OBJECTS_PER_STEP = 100


def check_site(context: Context, seconds: float) -> bool:
    """Continue a look at all objects of the site, for about so many seconds. Returns true at its
    end. Notes objects with a missing file as work for the next build.
    """
    state, root = context.state, context.site.root
    end = time.monotonic() + seconds
    after = state.checked()
    while objects := state.files.after(after, OBJECTS_PER_STEP):
        for after, files in objects:
            if not all(os.path.lexists(f"{root}/{file}") for file in files):
                context.lost.append(after)
                _note_lost(state, after)
        if time.monotonic() >= end:
            state.put_checked(after)
            return False
    state.put_checked("")
    return True


def _note_lost(state: State, object_id: str) -> None:
    at = params_of(object_id)
    if "name" in at:
        state.todo.add(Work.REPO, ["{owner}/{name}".format_map(at)])
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
