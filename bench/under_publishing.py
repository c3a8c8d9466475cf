"""Reads at a steady rate through nginx while a live ``hubctl serve`` takes publications."""

import itertools
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from hosted import Bench, ratio_of, settle
from processes import HUBCTL, run
from publishers import HubClient, Prompt, UnexpectedAnswer
from report import median, percentile, print_table, say
from servers import BASE_URL, Server, generated_nginx, pinned
from steady import Read, read_steadily, reading_process

QUIET, PUBLISHING, BUILDING = "nothing else", "publications", "and full builds"
PUBLISHERS = 8
SHOWN = 20  # wrong answers to print


class Published(NamedTuple):
    """A publication that readers must have from ``at`` on, by the monotonic clock.
    ``milliseconds``: from the scheduled time until its answer.
    """

    path: str
    version: str
    at: float
    milliseconds: float


class Phase(NamedTuple):
    """The steady reads of one phase. ``stale``: reads that got an older version than the one
    published when they were sent. ``proved``: the reads that could have been stale.
    """

    milliseconds: list[float]
    errors: list[str]
    stale: list[str]
    proved: int
    late: float
    busy: float
    published: list[Published]
    postponed: int
    builds: int


def read_under_publishing(bench: Bench) -> None:
    """Run phases in turns, in the opposite order every other round.

    Ends the benchmark if any answer was an error, cut off, or of an old version.
    """
    options = bench.options
    phases: dict[str, list[Phase]] = {QUIET: [], PUBLISHING: [], BUILDING: []}
    publications = itertools.cycle(bench.prompts)
    paths = _mixed_paths(bench.prompts, options.seed)
    with (
        _on_core(bench.client_core),  # publishers are threads of this process
        generated_nginx(bench.site, bench.folder, bench.service_core) as front,
        reading_process(bench.client_core) as reader,
    ):
        reader.submit(read_steadily, front.url, paths, options.rate, 2).result()  # to warm up
        for number in range(options.phase_rounds):
            for name in list(phases)[:: -1 if number % 2 else 1]:
                phase = _measure_phase(bench, name, front, reader, paths, publications)
                phases[name].append(phase)
                say(f"  round {number + 1}, {name}: {_described(phase)}")
                settle(bench)
    _show_phases(bench, phases)
    if wrong := [
        one for them in phases.values() for phase in them for one in phase.errors + phase.stale
    ]:
        raise SystemExit(f"{len(wrong):,} wrong answers:\n" + "\n".join(wrong[:SHOWN]))


def _mixed_paths(prompts: Sequence[Prompt], seed: int) -> list[str]:
    """The paths that readers request: mostly repos, all of them files."""
    kinds = {
        "{0.path}": 8, "{0.path}/raw": 4, "{0.path}/raw?version=1.0.0": 1, "{0.path}/versions": 1,
        "{0.path}/versions/1.0.0": 1, "/{0.owner}/{0.name}": 3, "/{0.owner}": 1,
        "/api/v1/users/{0.owner}": 1, "/api/v1/repos?sort=new&page=2": 1,
        "/api/v1/repos?sort=top": 1, "/api/v1/repos": 1, "/": 1,
    }  # fmt: skip
    chance = random.Random(seed)
    chosen = chance.choices(list(kinds), list(kinds.values()), k=5 * len(prompts))
    return [kind.format(chance.choice(prompts)) for kind in chosen]


def _measure_phase(
    bench: Bench, name: str, front: Server, reader: ProcessPoolExecutor, paths: list[str],
    publications: Iterator[Prompt],
) -> Phase:  # fmt: skip
    options = bench.options
    is_over = threading.Event()
    with ThreadPoolExecutor(2) as pool, _set_at_the_end(is_over):
        reads = reader.submit(read_steadily, front.url, paths, options.rate, options.phase)
        publishing = builds = None
        if name != QUIET:
            publishing = pool.submit(_publish_steadily, bench, front, publications, is_over)
        if name == BUILDING:
            builds = pool.submit(_build_again_and_again, bench, is_over)
        found = reads.result()
        is_over.set()
        published, postponed = publishing.result() if publishing else ([], 0)
        builds_count = builds.result() if builds else 0
    if not found.answered:
        raise SystemExit(f"no read was answered: {found.errors[:1]}")
    stale, proved = _find_stale(found.answered, published)
    return Phase(
        [read.milliseconds for read in found.answered], found.errors, stale, proved,
        percentile(found.late_milliseconds, 99), found.busy, published, postponed, builds_count,
    )  # fmt: skip


@contextmanager
def _on_core(core: int | None) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _set_at_the_end(is_over: threading.Event) -> Iterator[None]:
    """Sets ``is_over`` at the end, also after an error, so that waiting threads continue."""
    try:
        yield
    finally:
        is_over.set()


def _publish_steadily(
    bench: Bench, front: Server, publications: Iterator[Prompt], is_over: threading.Event
) -> tuple[list[Published], int]:
    """Publish through nginx at a steady rate. Returns the publications, and the number that took
    longer than the service waits: the answer says so, and they become visible later.
    """
    every_seconds = 60 / bench.options.publications
    waiting: list[Future[Published | None]] = []
    free = [
        # Different addresses, or one limit would apply to all of them together.
        HubClient(front, bench.tokens, {"X-Forwarded-For": f"192.0.2.{number + 1}"})
        for number in range(PUBLISHERS)
    ]

    def publish(prompt: Prompt, scheduled: float) -> Published | None:
        client = free.pop()
        try:
            _, answer = client.publish_visibly(prompt)
        except UnexpectedAnswer as error:
            if error.status != 503:
                raise
            return None
        finally:
            free.append(client)
        now = time.monotonic()
        return Published(prompt.path, answer["version"], now, (now - scheduled) * 1000)

    with ExitStack() as stack:
        for client in free:
            stack.enter_context(closing(client))
        with ThreadPoolExecutor(PUBLISHERS) as pool:
            scheduled = time.monotonic()
            while not is_over.wait(max(0.0, scheduled - time.monotonic())):
                waiting.append(pool.submit(publish, next(publications), scheduled))
                scheduled += every_seconds
    outcomes = [one.result() for one in waiting]
    published = [one for one in outcomes if one]
    return published, len(outcomes) - len(published)


def _build_again_and_again(bench: Bench, is_over: threading.Event) -> int:
    """Run full builds as the service itself does; returns the number that ended."""
    folder = f"{bench.folder}/hub"
    command = [
        *HUBCTL, "build", "--full", "--queries", "--content", f"{folder}/content",
        "--out", f"{folder}/site", "--state", f"{folder}/state", "--base-url", BASE_URL,
    ]  # fmt: skip
    count = 0
    while not is_over.is_set():
        run(pinned(command, bench.service_core))
        count += 1
    return count


def _find_stale(reads: Sequence[Read], published: Sequence[Published]) -> tuple[list[str], int]:
    """Reads of a repo that got another version than the one that every reader had to have."""
    by_path: dict[str, list[Published]] = defaultdict(list)
    for one in published:
        by_path[one.path].append(one)
    stale, proved = [], 0
    for read in reads:
        earlier = [one for one in by_path.get(read.path, ()) if one.at < read.sent]
        if read.version and earlier:
            proved += 1
            newest = max((one.version for one in earlier), key=_numbers)
            if _numbers(read.version) < _numbers(newest):
                stale.append(f"{read.path}: {read.version} after {newest}")
    return stale, proved


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _described(phase: Phase) -> str:
    p50, p99, slowest = (percentile(phase.milliseconds, percent) for percent in (50, 99, 100))
    wrong = [*phase.errors, *phase.stale]
    return (
        f"p50 {p50:.2f} ms, p99 {p99:.2f}, slowest {slowest:.0f}; "
        f"{len(phase.published)} published, {phase.builds} builds; "
        f"{len(wrong)} wrong {wrong[:3] or ''}"
    )


def _show_phases(bench: Bench, phases: Mapping[str, list[Phase]]) -> None:
    rows = []
    base = [percentile(one.milliseconds, 99) for one in phases[QUIET]]
    for name, them in phases.items():
        p99 = [percentile(one.milliseconds, 99) for one in them]
        publications = [publication.milliseconds for one in them for publication in one.published]
        rows.append([
            name, sum(len(one.milliseconds) for one in them),
            median([percentile(one.milliseconds, 50) for one in them]), median(p99),
            *(ratio_of(p99, base) if name != QUIET else (None, None)),
            median([percentile(one.milliseconds, 99.9) for one in them]),
            max(max(one.milliseconds) for one in them),
            sum(len(one.errors) for one in them),
            f"{sum(len(one.stale) for one in them)} of {sum(one.proved for one in them):,}",
            len(publications) or None,
            *(percentile(publications, percent) if publications else None
              for percent in (50, 99)),
            sum(one.postponed for one in them), sum(one.builds for one in them),
        ])  # fmt: skip
    options = bench.options
    print_table(
        f"{options.rate:g} reads a second through nginx, {options.repos:,} repos × "
        f"{options.versions}, with {options.publications:g} publications a minute; ms from when a "
        f"read was scheduled; medians of {options.phase_rounds} phases of {options.phase:g} s",
        (
            "while", "reads", "p50", "p99", "ratio", "", "p99.9", "slowest", "errors", "stale",
            "published", "p50", "p99", "503", "builds",
        ),
        rows,
    )  # fmt: skip
    late = max(one.late for them in phases.values() for one in them)
    busy = max(one.busy for them in phases.values() for one in them)
    print(
        f"the client sent 99 % of its reads less than {late:.2f} ms late, in any phase, and used "
        f"at most {busy:.0%} of its core.\nratio: of p99 over that of the quiet phase of the same "
        "round; stale: of the reads of a repo that were sent after\nits publication had its 201; "
        "published: until a reader had it, from when it was scheduled; 503: \"unavailable\" in time"
    )  # fmt: skip
