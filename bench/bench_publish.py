"""Publishing: the time until readers have it, publications a second, and MLflow's prompt registry
beside it.

The hub is ``hubctl serve`` without limits, after a cold build of one version of each repo. It gets
publications to random repos by their owners. A publication is visible once the 201 has come, and a
conditional request for the repo's JSON with its previous ETag returns the new version. A label move
is visible once the 200 has come, and the label's text is the other version's.

MLflow is ``mlflow server`` with SQLite and one worker, without telemetry and job runner. It gets
the fewest requests that register a prompt: ``model-versions/create``, and before it
``registered-models/create`` for a new prompt. ``mlflow.genai.register_prompt`` also reads the
prompt three times and notes the experiment; "library" is that call. For both, a publication is the
repo's first text with one more line. Clients keep their connections and are threads of this
process; the library is a process. Servers and clients share all cores.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple

from processes import run
from publishers import (
    SAMPLED,
    Client,
    HubClient,
    Latency,
    Load,
    MlflowClient,
    Prompt,
    make_catalogue,
    milliseconds_of,
    publish_at_once,
)
from report import median, percentile, print_machine, print_table, say, scratch_folder
from servers import Server, cpu_seconds, hub, mlflow

WARM_UPS = 5  # publications that are not counted
NEW_VERSION, NEW_REPO, LABEL_MOVE = "new version", "new repo", "label move"
OWN_REPOS, ONE_REPO = "different repos", "one repo"
AIM_MILLISECONDS = {NEW_VERSION: 50, NEW_REPO: 150, LABEL_MOVE: 10}
GROWTH_AIM = {NEW_VERSION: 1.5, LABEL_MOVE: 1.3}

# Prints the milliseconds of each call.
MLFLOW_LIBRARY = """
import json, logging, os, sys, time
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import mlflow

logging.disable(logging.INFO)
mlflow.set_tracking_uri(sys.argv[1])
milliseconds = []
for name, text in json.load(open(sys.argv[2])):
    started = time.perf_counter()
    mlflow.genai.register_prompt(name, text, commit_message="Revised.")
    milliseconds.append((time.perf_counter() - started) * 1000)
print(json.dumps(milliseconds))
"""


class Burst(NamedTuple):
    """Publications one after another. ``lag``: the number of them missing in the lists when the
    last was answered. ``settle_seconds``: until the lists had all. ``cpu_milliseconds``: of the
    server for each, with its work until then.
    """

    latencies: list[Latency]
    lag: int
    settle_seconds: float
    cpu_milliseconds: float


class Figures(NamedTuple):
    """All measurements of one catalogue, a value for each round.

    ``bursts`` by kind and pause, ``loads`` by server, kind and clients, ``rivals`` (milliseconds of
    each registration) by "MLflow" or "library" and kind.
    """

    bursts: dict[tuple[str, float], list[Burst]]
    loads: dict[tuple[str, str, int], list[Load]]
    rivals: dict[tuple[str, str], list[list[float]]]


class Bench:
    """A hub with a catalogue, and an MLflow with the same prompts if it is compared."""

    def __init__(
        self, options: argparse.Namespace, folder: str, ours: Server, theirs: Server | None,
        prompts: list[Prompt], tokens: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.figures = Figures(defaultdict(list), defaultdict(list), defaultdict(list))
        self._options = options
        self._folder = folder
        self._ours, self._theirs = ours, theirs
        self._prompts = prompts
        self._tokens = tokens
        self._random = random.Random(options.seed)

    def prepare(self) -> None:
        """Wait until the site is complete, and give MLflow its prompts."""
        self._settle(0)
        if self._theirs:
            say(f"  registering {len(self._prompts):,} prompts with MLflow")
            with closing(MlflowClient(self._theirs)) as client:
                for prompt in self._prompts:
                    client.create(prompt)

    def measure_round(self) -> None:
        """Measure one value of everything."""
        options = self._options
        self._measure_moves(options.publications)
        if options.labels:
            return
        for kind in (NEW_VERSION, NEW_REPO):
            self._measure_burst(kind, options.publications, 0.0)
            if self._theirs:
                self._measure_rival(kind)
        for kind in (NEW_VERSION, NEW_REPO):
            self._measure_burst(kind, options.thoughtful, options.think)
        for clients in options.clients:
            for kind in (OWN_REPOS, ONE_REPO):
                self._measure_loads(kind, clients)

    # One client

    def _draw(self, kind: str, count: int) -> list[Prompt]:
        prompts = self._random.choices(self._prompts, k=WARM_UPS + count)
        return prompts if kind == NEW_VERSION else [prompt.renamed() for prompt in prompts]

    def _measure_burst(self, kind: str, count: int, think_seconds: float) -> None:
        latencies, serial = [], 0
        before = cpu_seconds(self._ours)
        with closing(self._hub_client()) as client:
            for prompt in self._draw(kind, count):
                time.sleep(think_seconds)
                latency, published = client.publish_visibly(prompt)
                serial = published["serial"]
                latencies.append(latency)
            lag = serial - client.health()["serial"]
        self._note_burst(kind, think_seconds, latencies, max(0, lag), self._settle(serial), before)

    def _measure_moves(self, count: int) -> None:
        # Each repo at most once, so that each move starts from the prepared state.
        prompts = self._random.sample(self._prompts, k=min(len(self._prompts), WARM_UPS + count))
        with closing(self._hub_client()) as client:
            planned = [(prompt, *client.prepare_move(prompt)) for prompt in prompts]
        self._settle(0)
        before = cpu_seconds(self._ours)
        # A new connection: the server may have closed one that was idle while the lists settled.
        with closing(self._hub_client()) as client:
            latencies = [client.move_visibly(*move) for move in planned]
        self._note_burst(LABEL_MOVE, 0.0, latencies, 0, self._settle(0), before)

    def _note_burst(
        self, kind: str, think_seconds: float, latencies: Sequence[Latency], lag: int,
        settle_seconds: float, cpu_seconds_before: float,
    ) -> None:  # fmt: skip
        cpu = (cpu_seconds(self._ours) - cpu_seconds_before) * 1000 / len(latencies)
        burst = Burst([*latencies[WARM_UPS:]], lag, settle_seconds, cpu)
        self.figures.bursts[kind, think_seconds].append(burst)
        visible = [latency.visible for latency in burst.latencies]
        say(
            f"  {kind}, {think_seconds:g} s between: p50 {median(visible):.1f} ms, "
            f"p99 {percentile(visible, 99):.1f}, slowest {max(visible):.0f}; "
            f"lists {burst.lag:,} behind, settled after {burst.settle_seconds:.2f} s, "
            f"CPU {burst.cpu_milliseconds:.1f} ms"
        )

    def _measure_rival(self, kind: str) -> None:
        figures = {"MLflow": [], "library": []}
        prompts = self._draw(kind, self._options.publications)
        with closing(MlflowClient(self._theirs)) as client:
            register = client.publish if kind == NEW_VERSION else client.create
            for prompt in prompts:
                figures["MLflow"].append(milliseconds_of(register, prompt))
        prompts_file = f"{self._folder}/prompts.json"
        with open(prompts_file, "w") as file:
            prompts = self._draw(kind, self._options.publications)
            json.dump([(prompt.mlflow_name, prompt.revised()) for prompt in prompts], file)
        command = [self._options.mlflow, "-c", MLFLOW_LIBRARY, self._theirs.url, prompts_file]
        figures["library"] = json.loads(run(command).output.splitlines()[-1])
        for who, milliseconds in figures.items():
            self.figures.rivals[who, kind].append(milliseconds[WARM_UPS:])
            say(f"  {who}, {kind}: p50 {median(milliseconds[WARM_UPS:]):.1f} ms")

    # Several clients

    def _measure_loads(self, kind: str, count: int) -> None:
        sides: dict[str, tuple[Server, Callable[[], Client]]] = {
            "hub": (self._ours, self._hub_client)
        }
        if self._theirs:
            sides["MLflow"] = (self._theirs, lambda: MlflowClient(self._theirs))
        one = self._random.choice(self._prompts).renamed()
        for who, (server, connect) in sides.items():
            if kind == OWN_REPOS:
                shares = [self._prompts[at::count] for at in range(count)]
            else:
                shares = [[one]] * count
                with closing(connect()) as client:
                    client.create(one)
            before = cpu_seconds(server)
            load = publish_at_once(connect, shares, self._options.seconds)
            if who == "hub":
                load = load._replace(settle_seconds=self._settle(0))
            cpu_milliseconds = (cpu_seconds(server) - before) * 1000 / load.count
            load = load._replace(cpu_milliseconds=cpu_milliseconds)
            self.figures.loads[who, kind, count].append(load)
            say(
                f"  {who}, {kind}, {count} at once: {load.per_second:.1f}/s, "
                f"p50 {load.p50:.1f} ms, p99 {load.p99:.1f}, "
                f"slowest {load.slowest:.0f}, CPU {load.cpu_milliseconds:.1f} ms"
            )

    def _hub_client(self) -> HubClient:
        return HubClient(self._ours, self._tokens)

    def _settle(self, serial: int) -> float:
        """Wait until lists have everything, including the publication ``serial``; returns the
        seconds.
        """
        started = time.perf_counter()
        with closing(self._hub_client()) as client:
            health = client.settle()
        if health["serial"] < serial:
            raise SystemExit(f"the lists are settled, but have not {serial}: {health}")
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", type=_numbers, default=[1_000, 10_000, 100_000], metavar="N,…",
        help="repos of the catalogues; MLflow stands beside the first [1000,10000,100000]",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, metavar="K")
    parser.add_argument(
        "--publications", type=int, default=200, metavar="N", help="of a kind and round"
    )
    parser.add_argument(
        "--thoughtful", type=int, default=20, metavar="N", help="with a pause before each"
    )
    parser.add_argument("--think", type=float, default=0.5, metavar="S", help="that pause")
    parser.add_argument("--clients", type=_numbers, default=[1, 8, 32], metavar="N,…")
    parser.add_argument("--seconds", type=float, default=10, metavar="S", help="of each load")
    parser.add_argument(
        "--mlflow", default=sys.executable, metavar="PYTHON", help="an interpreter that has MLflow"
    )
    parser.add_argument("--labels", action="store_true", help="measure moves of labels alone")
    parser.add_argument("--no-mlflow", action="store_true", help="measure the hub alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    options.no_mlflow |= options.labels
    if not options.no_mlflow and not has_mlflow(options.mlflow):
        parser.exit(
            1, "Install it first: pip install mlflow. Or say with --mlflow which Python has it, or "
            "leave it out with --no-mlflow.\n",
        )  # fmt: skip
    # As Ctrl-C: ends the started processes.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    load_average = os.getloadavg()[0]
    figures: dict[int, Figures] = {}
    with scratch_folder(options.scratch) as folder:
        try:
            for size in options.sizes:
                is_compared = not figures and not options.no_mlflow
                figures[size] = measure(options, size, f"{folder}/{size}", is_compared)
        finally:
            # A failure at one size does not lose the results of smaller ones.
            if figures:
                show(figures, is_compared=not options.no_mlflow)
                print_machine(folder)
                print(f"load average before it began: {load_average:.2f}")


def has_mlflow(python: str) -> bool:
    """True if this interpreter can import MLflow."""
    look = "import sys, importlib.util; sys.exit(not importlib.util.find_spec('mlflow'))"
    return subprocess.run([python, "-c", look]).returncode == 0


def measure(options: argparse.Namespace, size: int, folder: str, is_compared: bool) -> Figures:
    """Everything, with a catalogue of one size."""
    say(f"{size:,} repos: writing them")
    prompts, tokens = make_catalogue(size, options.seed, folder)
    with ExitStack() as running:
        theirs = running.enter_context(mlflow(folder, options.mlflow)) if is_compared else None
        say("  building the site")
        ours = running.enter_context(hub(folder, None, 0, ("--publish-limit", "0")))
        bench = Bench(options, folder, ours, theirs, prompts, tokens)
        bench.prepare()
        for number in range(options.rounds):
            say(f"  round {number + 1} of {options.rounds}")
            bench.measure_round()
    return bench.figures


def show(figures: Mapping[int, Figures], is_compared: bool) -> None:
    show_latencies(figures)
    if any(found.loads for found in figures.values()):
        show_loads(figures)
    if is_compared:
        compare(*next(iter(figures.items())))


def show_latencies(figures: Mapping[int, Figures]) -> None:
    rows = []
    smallest = next(iter(figures.values()))
    for kind, think_seconds in smallest.bursts:
        base = _of_rounds(smallest.bursts[kind, think_seconds], "visible", 50)
        for size, found in figures.items():
            bursts = found.bursts[kind, think_seconds]
            p50 = _of_rounds(bursts, "visible", 50)
            growth = None if found is smallest else f"{p50 / base:.2f}"
            rows.append([
                f"{kind}, {think_seconds:g} s between" if think_seconds else kind, size,
                *(_of_rounds(bursts, "answered", percent) for percent in (50, 99)),
                *(_of_rounds(bursts, "visible", percent) for percent in (50, 99, 100)),
                f"≤ {AIM_MILLISECONDS[kind]}", growth,
                f"≤ {GROWTH_AIM[kind]}" if kind in GROWTH_AIM and growth else None,
                median([burst.lag for burst in bursts]),
                round(median([burst.settle_seconds for burst in bursts]), 2),
                median([burst.cpu_milliseconds for burst in bursts]),
            ])  # fmt: skip
    print_table(
        "One client, one publication after another; ms, medians of rounds",
        (
            "", "repos", "answer p50", "p99", "visible p50", "p99", "slowest", "aim p50", "growth",
            "aim", "lag", "settled s", "CPU ms",
        ),
        rows,
    )  # fmt: skip
    print(
        "growth: of the p50 over the smallest catalogue's; lag: publications that the lists had "
        "not\nwhen the last was answered; settled: seconds from then until they had all"
    )


def _of_rounds(bursts: Sequence[Burst], moment: str, percent: int) -> float:
    return median([
        percentile([getattr(latency, moment) for latency in burst.latencies], percent)
        for burst in bursts
    ])  # fmt: skip


def show_loads(figures: Mapping[int, Figures]) -> None:
    rows = []
    for size, found in figures.items():
        for (who, kind, clients), loads in found.loads.items():
            if who == "hub":
                _, *medians = (median(column) for column in zip(*loads, strict=True))
                rows.append([kind, size, clients, *medians])
    print_table(
        "Publications a second; ms, medians of rounds",
        ("", "repos", "clients", "a second", "p50", "p99", "slowest", "settled s", "CPU ms"),
        sorted(rows, key=lambda row: (row[0], row[1])),
    )


def compare(size: int, figures: Figures) -> None:
    rows = []
    for kind in (NEW_VERSION, NEW_REPO):
        ours = [
            [latency.answered for latency in burst.latencies]
            for burst in figures.bursts[kind, 0.0]
        ]  # fmt: skip
        for percent in (50, 99):
            row: list[object] = [f"{kind}, p{percent} ms"]
            our_values = [percentile(one, percent) for one in ours]
            row.append(median(our_values))
            for who in ("MLflow", "library"):
                theirs = [percentile(one, percent) for one in figures.rivals[who, kind]]
                row += [median(theirs), _ratio(theirs, our_values)]
            rows.append(row)
    for who, kind, clients in figures.loads:
        if who == "hub":
            ours, theirs = (figures.loads[side, kind, clients] for side in ("hub", "MLflow"))
            suffix = f"{kind}, {clients} client{'s' * (clients > 1)}"
            our_rates = [load.per_second for load in ours]
            their_rates = [load.per_second for load in theirs]
            rows.append([
                f"{suffix}, a second", median(our_rates), median(their_rates),
                _ratio(our_rates, their_rates), None, None,
            ])  # fmt: skip
            our_costs = [load.cpu_milliseconds for load in ours]
            their_costs = [load.cpu_milliseconds for load in theirs]
            rows.append([
                f"{suffix}, CPU ms each", median(our_costs), median(their_costs),
                _ratio(their_costs, our_costs), None, None,
            ])  # fmt: skip
    print_table(
        f"Beside MLflow's prompt registry, {size:,} repos; medians of rounds",
        ("", "hub", "MLflow", "ratio", "library", "ratio"),
        rows,
    )
    print(
        f"ratio: how many times better the hub is; MLflow began with {min(size, SAMPLED):,} prompts"
    )


def _ratio(over: Sequence[float], under: Sequence[float]) -> str:
    return f"{median([a / b for a, b in zip(over, under, strict=True)]):.2f}"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
