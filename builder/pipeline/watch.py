"""Requests a build whenever the content changes, from a thread of its own."""

import logging
import os
import threading
from typing import Self

import watchfiles

from builder.pipeline.rebuild import Rebuilder

# An editor or a checkout touches many files at once. They share one build.
GATHER_MILLISECONDS = 200
FIRST_LOOK_MILLISECONDS = 1000

log = logging.getLogger("hub.watch")


class Watch:
    """While entered, watches a content folder for a rebuilder."""

    def __init__(self, content: str, rebuilder: Rebuilder) -> None:
        self._root = os.path.realpath(content)
        self._rebuilder = rebuilder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        is_first = True
        try:
            for changes in watchfiles.watch(
                self._root,
                watch_filter=None,
                debounce=GATHER_MILLISECONDS,
                rust_timeout=FIRST_LOOK_MILLISECONDS,
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
            ):
                # A full check finds the changes from before the watch began.
                if is_first:
                    self._rebuilder.request(None)
                elif changes:
                    paths = [path for _, path in changes]
                    self._rebuilder.request(changed_repos(self._root, paths))
                is_first = False
        except (OSError, RuntimeError) as error:
            log.error(
                "Cannot watch %s any longer (%s). Restart to watch it again.", self._root, error
            )


def changed_repos(root: str, paths: list[str]) -> set[tuple[str, str]] | None:
    """The (owner, name) of the repos that contain these files; None if a file is in no repo."""
    repos = set()
    for path in paths:
        parts = os.path.relpath(path, root).split(os.sep)
        if len(parts) < 3:
            return None
        repos.add((parts[0], parts[1]))
    return repos
