"""Publishing: how soon readers have it, how many a second, and MLflow's prompt registry beside it.

The hub is ``hubctl serve`` without limits, after a cold build of one version of each repo. It gets
publications to random repos, in the name of their owners. Visible is one once the 201 has come and
the repo's JSON, asked for with the ETag that it had before, is the new version's. A move of a label
is visible once the 200 has come and the label's text is the other version's.

MLflow is ``mlflow server`` with SQLite and one worker, without telemetry and job runner. It gets
the least that registers a prompt: ``model-versions/create``, and ``registered-models/create``
before it where the prompt is new. ``mlflow.genai.register_prompt`` also reads the prompt three
times and notes the experiment: "library" is that call. A publication is the text that the repo
started with and one more line, for both. Clients keep their connections and are threads of this
process; the library is a process. Servers and clients share all cores.
"""

import argparse
import http.client
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

from catalogue import Catalogue
from processes import run
from report import median, print_machine, print_table, scratch_folder
from servers import Server, cpu_seconds, hub, mlflow

from publisher.accounts.accounts import Accounts
from publisher.accounts.database import Database

SAMPLED = 1_000
WARM_UPS = 5  # publications that are not counted
ANSWER_SECONDS_MAX = 60
SETTLE_SECONDS_MAX = 600
SETTLE_EVERY_SECONDS = 0.01
NEW_VERSION, NEW_REPO, LABEL_MOVE = "new version", "new repo", "label move"
LABEL = "production"
OWN_REPOS, ONE_REPO = "different repos", "one repo"
AIM_MILLISECONDS = {NEW_VERSION: 50, NEW_REPO: 150, LABEL_MOVE: 10}
GROWTH_AIM = {NEW_VERSION: 1.5, LABEL_MOVE: 1.3}

MLFLOW_API = "/api/2.0/mlflow"
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

_line_numbers = itertools.count(1)
_name_numbers = itertools.count(1)


class Prompt(NamedTuple):
    """A repo, and the text that it started with."""

    owner: str
    name: str
    text: str

    @property
    def path(self) -> str:
        return f"/api/v1/repos/{self.owner}/{self.name}"

    @property
    def mlflow_name(self) -> str:
        return f"{self.owner}.{self.name}"

    def revised(self) -> str:
        """Its text with one more line, another each time."""
        return f"{self.text}\nPoint {next(_line_numbers)} of this list is new.\n"

    def renamed(self) -> "Prompt":
        """The same in a repo of the same owner that is not there yet."""
        return self._replace(name=f"published-{next(_name_numbers)}")


class Latency(NamedTuple):
    """Milliseconds of one publication: until its answer, until a reader has it."""

    answered: float
    visible: float


class Burst(NamedTuple):
    """Publications one after another. ``lag``: how many of them the lists had not when the last
    was answered, and ``settle_seconds``, until they had all. ``cpu_milliseconds`` of the server for
    each, with what it does until then.
    """

    latencies: list[Latency]
    lag: int
    settle_seconds: float
    cpu_milliseconds: float


class Load(NamedTuple):
    """What clients got done at once; milliseconds of a publication, the server's processor time
    with what it does until lists are settled.
    """

    count: int
    per_second: float
    p50: float
    p99: float
    slowest: float
    settle_seconds: float = 0.0
    cpu_milliseconds: float = 0.0


class Figures(NamedTuple):
    """All that was measured with one catalogue, a value for each round.

    ``bursts`` by kind and pause, ``loads`` by server, kind and clients, ``rivals`` (milliseconds
    of each registration) by "MLflow" or "library" and kind.
    """

    bursts: dict[tuple[str, float], list[Burst]]
    loads: dict[tuple[str, str, int], list[Load]]
    rivals: dict[tuple[str, str], list[list[float]]]


class UnexpectedAnswer(SystemExit):
    """A status that was not expected; ends the benchmark where nobody cares."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Connection:
    """One client's connection to a server; ``headers`` are sent with every request.

    Any status but the expected is an UnexpectedAnswer.
    """

    def __init__(self, server: Server, headers: Mapping[str, str] | None = None) -> None:
        address = urllib.parse.urlsplit(server.url).netloc
        self._http = http.client.HTTPConnection(address, timeout=ANSWER_SECONDS_MAX)
        self._headers = headers or {}

    def get(
        self, path: str, expected: Sequence[int] = (200,), headers: Mapping[str, str] | None = None
    ) -> tuple[Any, str | None]:
        """The body, and the ETag where it has one."""
        return self._send("GET", path, None, headers or {}, expected)

    def post(
        self, path: str, body: Mapping[str, Any], expected: int,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # fmt: skip
        """The body of the answer."""
        return self._send_json("POST", path, body, expected, headers)

    def put(
        self, path: str, body: Mapping[str, Any], expected: int,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # fmt: skip
        """The body of the answer."""
        return self._send_json("PUT", path, body, expected, headers)

    def _send_json(
        self, method: str, path: str, body: Mapping[str, Any], expected: int,
        headers: Mapping[str, str] | None,
    ) -> Any:  # fmt: skip
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self._send(method, path, json.dumps(body), headers, (expected,))[0]

    def close(self) -> None:
        self._http.close()

    def _send(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str],
        expected: Sequence[int],
    ) -> tuple[Any, str | None]:  # fmt: skip
        self._http.request(method, path, body, {**self._headers, **headers})
        answer = self._http.getresponse()
        raw = answer.read()
        if answer.status not in expected:
            told = raw.decode(errors="replace")
            told = f"{method} {path}: {answer.status} instead of {expected}\n{told}"
            raise UnexpectedAnswer(answer.status, told)
        return (json.loads(raw) if raw else None), answer.headers["ETag"]


class HubClient:
    """Publishes to a hub with the token of each repo's owner."""

    def __init__(
        self, server: Server, tokens: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> None:
        self._connection = Connection(server, headers)
        self._tokens = tokens

    def publish(self, prompt: Prompt) -> dict[str, Any]:
        """The next version of a repo, or its first; what the hub says of it."""
        body = {"content": prompt.revised(), "changelog": "Revised."}
        headers = {"Authorization": f"Bearer {self._tokens[prompt.owner]}"}
        return self._connection.post(f"{prompt.path}/versions", body, 201, headers)["data"]

    create = publish

    def publish_visibly(self, prompt: Prompt) -> tuple[Latency, dict[str, Any]]:
        """How long it takes, and what the hub says of it. Ends the benchmark if the next reader
        does not get it.
        """
        _, tag = self._connection.get(prompt.path, (200, 404))
        headers = {"If-None-Match": tag} if tag else {}
        started = time.perf_counter()
        published = self.publish(prompt)
        answered = time.perf_counter()
        body, _ = self._connection.get(prompt.path, (200,), headers)
        ended = time.perf_counter()
        seen = body["data"]["latest_version"]
        if seen != published["version"]:
            raise SystemExit(f"{prompt.path}: {published['version']} is published, {seen} is seen")
        latency = Latency((answered - started) * 1000, (ended - started) * 1000)
        return latency, published

    def prepare_move(self, prompt: Prompt) -> tuple[str, str]:
        """Give a repo two versions and a label; returns the version that it names, and another."""
        latest = self._connection.get(prompt.path)[0]["data"]
        if latest["versions_count"] == 1:
            latest["latest_version"] = self.publish(prompt)["version"]
        named = latest.get("labels", {}).get(LABEL)
        if not named:
            named = "1.0.0"
            self._move(prompt, named, 201)
        return named, latest["latest_version"] if named == "1.0.0" else "1.0.0"

    def move_visibly(self, prompt: Prompt, before: str, after: str) -> Latency:
        """How long a move takes from one version to another. Ends the benchmark if the next reader
        does not get it.
        """
        path = f"{prompt.path}/labels/{LABEL}"
        _, tag = self._connection.get(path)
        started = time.perf_counter()
        self._move(prompt, after, 200, expected=before)
        answered = time.perf_counter()
        body, _ = self._connection.get(path, (200,), {"If-None-Match": tag})
        ended = time.perf_counter()
        if body["data"]["version"] != after:
            raise SystemExit(f"{path}: moved to {after}, {body['data']['version']} is seen")
        return Latency((answered - started) * 1000, (ended - started) * 1000)

    def _move(self, prompt: Prompt, version: str, status: int, **fields: str) -> None:
        headers = {"Authorization": f"Bearer {self._tokens[prompt.owner]}"}
        body = {"version": version, **fields}
        self._connection.put(f"{prompt.path}/labels/{LABEL}", body, status, headers)

    def health(self) -> dict[str, Any]:
        # 503 until there is a site.
        return self._connection.get("/healthz", (200, 503))[0]

    def close(self) -> None:
        self._connection.close()


class MlflowClient:
    """Registers prompts with MLflow."""

    def __init__(self, server: Server) -> None:
        self._connection = Connection(server)

    def create(self, prompt: Prompt) -> None:
        """A new prompt and its first version."""
        self._post("registered-models/create", prompt, {"mlflow.prompt.is_prompt": "true"})
        self.publish(prompt)

    def publish(self, prompt: Prompt) -> None:
        """The next version of a prompt."""
        tags = {
            "mlflow.prompt.is_prompt": "true",
            "mlflow.prompt.text": prompt.revised(),
            "_mlflow_prompt_type": "text",
        }
        # The source is what the library sends: the server asks for one.
        self._post("model-versions/create", prompt, tags, source="dummy-source")

    def close(self) -> None:
        self._connection.close()

    def _post(self, method: str, prompt: Prompt, tags: Mapping[str, str], **fields: str) -> None:
        body = {
            "name": prompt.mlflow_name,
            "description": "Revised.",
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
            **fields,
        }
        self._connection.post(f"{MLFLOW_API}/{method}", body, 200)


Client = HubClient | MlflowClient


class Bench:
    """A hub with a catalogue, and MLflow with the same prompts where it is compared."""

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
        """One value of everything."""
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
        # A repo once, so that each move is from what was prepared.
        prompts = self._random.sample(self._prompts, k=min(len(self._prompts), WARM_UPS + count))
        with closing(self._hub_client()) as client:
            planned = [(prompt, *client.prepare_move(prompt)) for prompt in prompts]
        self._settle(0)
        before = cpu_seconds(self._ours)
        # A connection that was idle until the lists had settled may be closed by now.
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
                figures["MLflow"].append(_milliseconds(register, prompt))
        asked = f"{self._folder}/prompts.json"
        with open(asked, "w") as file:
            prompts = self._draw(kind, self._options.publications)
            json.dump([(prompt.mlflow_name, prompt.revised()) for prompt in prompts], file)
        command = [self._options.mlflow, "-c", MLFLOW_LIBRARY, self._theirs.url, asked]
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
        """Wait until lists have everything, also the publication ``serial``; how long it took."""
        started = time.perf_counter()
        with closing(self._hub_client()) as client:
            while (health := client.health())["status"] != "ok":
                if time.perf_counter() - started > SETTLE_SECONDS_MAX:
                    raise SystemExit(f"the lists do not settle: {health}")
                time.sleep(SETTLE_EVERY_SECONDS)
        if health["serial"] < serial:
            raise SystemExit(f"the lists are settled, but have not {serial}: {health}")
        return time.perf_counter() - started


def publish_at_once(
    connect: Callable[[], Client], shares: Sequence[Sequence[Prompt]], seconds: float
) -> Load:
    """Clients publish, each to the prompts of its share in turn, until the time is over."""
    is_over = threading.Event()
    gate = threading.Barrier(len(shares) + 1)

    def work(share: Sequence[Prompt]) -> list[float]:
        milliseconds = []
        with closing(connect()) as client:
            gate.wait()
            try:
                for prompt in itertools.cycle(share):
                    milliseconds.append(_milliseconds(client.publish, prompt))
                    if is_over.is_set():
                        break
            except BaseException:
                is_over.set()  # nobody needs the others' figures any more
                raise
        return milliseconds

    with ThreadPoolExecutor(len(shares)) as pool:
        try:
            clients = [pool.submit(work, share) for share in shares]
            gate.wait()
            started = time.perf_counter()
            is_over.wait(seconds)
        finally:
            is_over.set()
        milliseconds = [one for client in clients for one in client.result()]
        elapsed = time.perf_counter() - started
    count = len(milliseconds)
    p50, p99, slowest = (percentile(milliseconds, percent) for percent in (50, 99, 100))
    return Load(count, count / elapsed, p50, p99, slowest)


def _milliseconds(call: Callable[[Prompt], object], prompt: Prompt) -> float:
    started = time.perf_counter()
    call(prompt)
    return (time.perf_counter() - started) * 1000


def percentile(values: Iterable[float], percent: float) -> float:
    """The lowest value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


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
    # Like Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    load_average = os.getloadavg()[0]
    figures: dict[int, Figures] = {}
    with scratch_folder(options.scratch) as folder:
        try:
            for size in options.sizes:
                is_compared = not figures and not options.no_mlflow
                figures[size] = measure(options, size, f"{folder}/{size}", is_compared)
        finally:
            # A failure with one size takes nothing from the smaller ones.
            if figures:
                show(figures, is_compared=not options.no_mlflow)
                print_machine(folder)
                print(f"load average before it began: {load_average:.2f}")


def has_mlflow(python: str) -> bool:
    """Whether this interpreter could import it."""
    look = "import sys, importlib.util; sys.exit(not importlib.util.find_spec('mlflow'))"
    return subprocess.run([python, "-c", look]).returncode == 0


def measure(options: argparse.Namespace, size: int, folder: str, is_compared: bool) -> Figures:
    """Everything with a catalogue of one size."""
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


def make_catalogue(
    size: int, seed: int, folder: str, versions: int = 1
) -> tuple[list[Prompt], dict[str, str]]:
    """Write it; some random repos of it, and tokens of all owners that these have."""
    os.mkdir(folder)
    catalogue = Catalogue(size, versions, seed)
    catalogue.write(f"{folder}/content")
    prompts = []
    for plan in random.Random(seed).sample(list(catalogue.plans()), min(SAMPLED, size)):
        with open(f"{folder}/content/{plan.owner}/{plan.name}/1.0.0.md") as file:
            prompts.append(Prompt(plan.owner, plan.name, file.read()))
    tokens = {}
    with Database(f"{folder}/state") as database:
        accounts = Accounts(database)
        for owner in sorted({prompt.owner for prompt in prompts}):
            accounts.add_owner(owner)
            tokens[owner], _ = accounts.create_token(owner, "bench")
    return prompts, tokens


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


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
