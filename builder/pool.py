"""Renders repos, in several processes where there are enough of them to pay."""

import os
import threading
from collections.abc import Iterator
from multiprocessing import get_context

from builder.errors import ContentError, Fault
from builder.repos import RepoRenderer, Task
from builder.settings import Settings
from builder.site import Site, Tally
from builder.state import RepoRow

# Starting a process costs as much as rendering some hundred repos.
REPOS_PER_PROCESS_MIN = 250
REPOS_PER_BATCH = 50


def render_repos(tasks: list[Task], settings: Settings, site: Site) -> Iterator[RepoRow]:
    """Write the files of these repos and yield their rows as they get done, in any order.

    Raises ContentError with all faults found, once the faultless repos are done.
    """
    faults: list[Fault] = []
    processes = min(os.cpu_count() or 1, len(tasks) // REPOS_PER_PROCESS_MIN)
    if processes < 2:
        renderer = RepoRenderer(settings, site)
        for task in tasks:
            rows, batch_faults = _render([task], renderer)
            faults += batch_faults
            yield from rows
    else:
        batches = [
            tasks[start : start + REPOS_PER_BATCH]
            for start in range(0, len(tasks), REPOS_PER_BATCH)
        ]
        # A fork copies the warm interpreter, but only the thread that calls it.
        method = "fork" if threading.active_count() == 1 and hasattr(os, "fork") else "spawn"
        with get_context(method).Pool(processes, _start, (settings, site)) as pool:
            for rows, batch_faults, tally in pool.imap_unordered(_render_batch, batches):
                faults += batch_faults
                site.tally.add(tally)
                yield from rows
    if faults:
        raise ContentError(sorted(faults))


_renderer: RepoRenderer


def _start(settings: Settings, site: Site) -> None:
    global _renderer
    _renderer = RepoRenderer(settings, site)


def _render_batch(tasks: list[Task]) -> tuple[list[RepoRow], list[Fault], Tally]:
    tally = _renderer.site.tally = Tally()
    return *_render(tasks, _renderer), tally


def _render(tasks: list[Task], renderer: RepoRenderer) -> tuple[list[RepoRow], list[Fault]]:
    rows, faults = [], []
    for task in tasks:
        try:
            rows.append(renderer.render(task))
        except ContentError as error:
            faults += error.faults
    return rows, faults
