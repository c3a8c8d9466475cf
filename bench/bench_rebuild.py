"""A rebuild after one new version, as a share of a cold build of the same kind.

Two paths: the service's, whose process runs already and knows the changed repo; and a whole
``hubctl build``, which starts Python and checks the whole tree. Each with and without the search
index. New versions go to different repos each time, so that the number of list pages between a
repo's old and new place varies as in use.
"""

import argparse
import json
import os
import random
import shutil
import sys
import time
from typing import NamedTuple

from catalogue import Catalogue, publish
from processes import run
from report import median, print_machine, print_table, scratch_folder, spread
from stages import NAMES, Stages

from builder.model.settings import Settings
from builder.pipeline.build import build

STAGED_HUBCTL = [sys.executable, os.path.join(os.path.dirname(__file__), "stages.py")]


class Timing(NamedTuple):
    """One build: its total, and its stages."""

    seconds: float
    stages: dict[str, float]
    files: int | None = None


class Kind(NamedTuple):
    """A kind of build: with or without the search index, each with its own site and state."""

    index: bool
    settings: Settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repos", type=int, default=10_000, metavar="N")
    parser.add_argument("--versions", type=int, default=3, metavar="M", help="of each repo")
    parser.add_argument("--rounds", type=int, default=9, metavar="K", help="new versions a path")
    parser.add_argument("--cold-rounds", type=int, default=3, metavar="K", help="cold builds")
    parser.add_argument("--no-index", action="store_true", help="leave out the index's rows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    with scratch_folder(options.scratch) as folder:
        measure(options, folder)


def measure(options: argparse.Namespace, folder: str) -> None:
    catalogue = Catalogue(options.repos, options.versions, options.seed)
    tree = f"{folder}/content"
    catalogue.write(tree)
    repos = [(plan.owner, plan.name) for plan in catalogue.plans()]
    random.Random(options.seed).shuffle(repos)
    kinds = [
        Kind(index, Settings(tree, f"{folder}/site-{index}", f"{folder}/state-{index}"))
        for index in ((False,) if options.no_index else (False, True))
    ]
    stages = Stages()
    cold = {kind: [_cold(kind)] for kind in kinds}
    service: dict[Kind, list[Timing]] = {kind: [] for kind in kinds}
    command: dict[Kind, list[Timing]] = {kind: [] for kind in kinds}
    # The other cold builds come in between: a temporary slowdown of the machine affects all. The
    # first round is not counted, since it warms caches for the later ones.
    every = max(1, options.rounds // max(1, options.cold_rounds - 1))
    for round_number in range(options.rounds + 1):
        for timings, measure_one in ((service, _service), (command, _command)):
            repo = repos.pop()
            publish(tree, *repo, f"A line of round {round_number}.")
            for kind in kinds:
                timing = measure_one(kind, repo, stages)
                if round_number:
                    timings[kind].append(timing)
        if round_number and round_number % every == 0 and len(cold[kinds[0]]) < options.cold_rounds:
            for kind in kinds:
                cold[kind].append(_cold(kind))
    rows = []
    for kind in kinds:
        suffix = ", with index" if kind.index else ""
        base = median([one.seconds for one in cold[kind]])
        rows.append(_row(f"cold{suffix}", cold[kind], base))
        rows.append(_row(f"service{suffix}", service[kind], base))
        rows.append(_row(f"whole command{suffix}", command[kind], base))
    print_table(
        f"One new version among {options.repos:,} repos × {options.versions}, median ms",
        ("", "total", "lowest–highest", "% of cold", "files", *NAMES, "rest"),
        rows,
    )
    print("rest: start of Python, modules and templates; stages are named in bench/stages.py")
    print_machine(folder)


def _row(name: str, timings: list[Timing], base: float) -> list[object]:
    seconds = [one.seconds for one in timings]
    parts = [round(1000 * median([one.stages[stage] for one in timings]), 1) for stage in NAMES]
    rest = 1000 * median([one.seconds - sum(one.stages.values()) for one in timings])
    milliseconds = [1000 * one for one in seconds]
    files = [one.files for one in timings if one.files is not None]
    return [
        name, median(milliseconds), spread(milliseconds, 0), f"{median(seconds) / base:.1%}",
        int(median(files)) if files else None, *parts, round(rest, 1),
    ]  # fmt: skip


def _cold(kind: Kind) -> Timing:
    for folder in (kind.settings.out, kind.settings.state):
        shutil.rmtree(folder, ignore_errors=True)
    return _command(kind)


def _command(kind: Kind, *_: object) -> Timing:
    """A whole process, which checks the whole tree."""
    settings = kind.settings
    done = run([
        *STAGED_HUBCTL, "build", "--index" if kind.index else "--no-index",
        "--content", settings.content, "--out", settings.out, "--state", settings.state,
    ])  # fmt: skip
    return Timing(done.seconds, json.loads(done.output.splitlines()[-1]))


def _service(kind: Kind, repo: tuple[str, str], stages: Stages) -> Timing:
    """A build in a running process that knows the change."""
    stages.clear()
    started = time.perf_counter()
    report = build(kind.settings, changed={repo}, index=kind.index)
    seconds = time.perf_counter() - started
    if report.rendered != 1:
        raise SystemExit(f"not a rebuild: {report.rendered:,} repos were rendered")
    return Timing(seconds, stages.seconds, report.written)


if __name__ == "__main__":
    main()
