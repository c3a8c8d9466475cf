"""Builds again whenever the content changes, in a thread of its own."""

import os
import threading
from collections.abc import Callable
from typing import Self

import watchfiles

from builder.build import Report, build
from builder.errors import HubError, OperatorError
from builder.settings import Settings

# An editor or a checkout touches many files at once: one build for all of them.
GATHER_MILLISECONDS = 200
FIRST_LOOK_MILLISECONDS = 1000


class Watch:
    """While entered, rebuilds the site. ``tell`` gets each report, or the error that there was.

    A build that fails is tried again with the next change.
    """

    def __init__(self, settings: Settings, tell: Callable[[Report | HubError], None]) -> None:
        self._settings = settings
        self._tell = tell
        self._is_behind = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        root = os.path.realpath(self._settings.content)
        is_first = True
        try:
            for changes in watchfiles.watch(
                root,
                watch_filter=None,
                debounce=GATHER_MILLISECONDS,
                rust_timeout=FIRST_LOOK_MILLISECONDS,
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
            ):
                # What changed before the watch began is found by looking at everything once.
                if is_first:
                    self._build(None)
                elif changes:
                    self._build(changed_repos(root, [path for _, path in changes]))
                is_first = False
        except (OSError, RuntimeError) as error:
            self._tell(OperatorError(f"Cannot watch {root} any more ({error}); restart to go on."))

    def _build(self, changed: set[tuple[str, str]] | None) -> None:
        # What a build that failed was to take in, the next one finds by looking at everything.
        try:
            report = build(self._settings, changed=None if self._is_behind else changed)
        except HubError as error:
            self._is_behind = True
            self._tell(error)
        else:
            self._is_behind = False
            self._tell(report)


def changed_repos(root: str, paths: list[str]) -> set[tuple[str, str]] | None:
    """The (owner, name) of the repos that these files are in; None where one is in no repo."""
    repos = set()
    for path in paths:
        parts = os.path.relpath(path, root).split(os.sep)
        if len(parts) != 3:
            return None
        repos.add((parts[0], parts[1]))
    return repos
