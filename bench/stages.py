"""Measures the time of each stage of a build.

``Stages`` wraps the builder's own functions with clocks, by name. A function that has been renamed
is left out, and its time counts as the rest. As a command, this is ``hubctl`` with these clocks,
and its last line of output is the times as JSON.
"""

import functools
import importlib
import json
import sys
import time
from collections.abc import Callable

from processes import ROOT

sys.path.insert(0, ROOT)

# Each stage, and its functions. A function that runs inside another one counts there.
STEPS = {
    "look": ["builder.pipeline.build:find_changes"],
    "repos": [
        "builder.pipeline.visible:_write_repos", "builder.pipeline.visible:_forget_repos",
    ],
    "owners": ["builder.pipeline.visible:_write_owners"],
    "lists": [
        "builder.pipeline.visible:_write_first_pages", "builder.pipeline.visible:find_stale_first",
        "builder.pipeline.settle:find_stale", "builder.pipeline.settle:write_page",
    ],
    "orphans": ["builder.pipeline.settle:Settling._remove_orphans"],
    "index": ["builder.search.index:update"],
    "catalogue": ["builder.pipeline.settle:Settling._write_catalogue_files"],
    "state": [
        "builder.pipeline.build:stamp",
        "builder.store.state:State.__init__", "builder.store.state:State.begin",
        "builder.store.state:State.end", "builder.store.state:State.close",
    ],
}  # fmt: skip
NAMES = tuple(STEPS)


class Stages:
    """Seconds of each stage since the last ``clear``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(NAMES, 0.0)
        self._is_running = False
        for stage, steps in STEPS.items():
            for step in steps:
                self._wrap(stage, step)

    def clear(self) -> None:
        self.seconds = dict.fromkeys(NAMES, 0.0)

    def _wrap(self, stage: str, step: str) -> None:
        module, _, path = step.partition(":")
        *parents, name = path.split(".")
        try:
            holder = functools.reduce(getattr, parents, importlib.import_module(module))
            setattr(holder, name, self._clocked(stage, getattr(holder, name)))
        except (ImportError, AttributeError):
            print(f"There is no {step} any more.", file=sys.stderr)

    def _clocked(self, stage: str, function: Callable) -> Callable:
        @functools.wraps(function)
        def clocked(*args, **kwargs):
            if self._is_running:
                return function(*args, **kwargs)
            self._is_running = True
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[stage] += time.perf_counter() - started
                self._is_running = False

        return clocked


def main() -> None:
    from cli.hubctl import main as hubctl

    stages = Stages()
    try:
        hubctl()
    finally:
        print(json.dumps(stages.seconds), flush=True)


if __name__ == "__main__":
    main()
