"""Many publishing nodes over one object store: publications, requests and their cost, new nodes.

Each node is `hubctl serve --store` without limits, with folders of its own; accounts are in a
PostgreSQL that this starts, or at ``--accounts``. The store is Moto's S3 server, which one core
serves from memory, behind a proxy that counts requests and can add a latency; or at ``--store``,
with nothing between. Clients are threads of this process, each with a connection to one of the
nodes; a publication is a text of 2 kB, which is in its entry. Beside each load, the same store gets
creations of one object after another by one client, as a hub without batches would send them.

Needs what the tests need (`make .venv/.test`, and PostgreSQL).
"""

import argparse
import contextlib
import itertools
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple

from catalogue import Catalogue
from processes import HUBCTL, ROOT, environment, run
from publishers import HubClient, Load, Prompt, publish_at_once
from report import median, percentile, print_machine, print_table, say, scratch_folder
from servers import BASE_URL, START_SECONDS_MAX, Server, free_port, started_server

sys.path.append(ROOT)

from tests.support.fault_proxy import FaultProxy, Rule, Seen
from tests.support.postgres import running_postgres

OWNERS = 8
BUCKET = "bench"
TEXT = "Write down what this text has to say, point by point, and leave nothing out.\n" * 26
KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
# AWS S3 Standard in us-east-1, list prices of November 2026.
DOLLARS = {"PUT": 0.005 / 1000, "LIST": 0.005 / 1000, "GET": 0.0004 / 1000, "DELETE": 0.0}
DOLLARS_GB_MONTH = 0.023
MONTH_SECONDS = 30 * 86400
IDLE_SECONDS = 20
AIM_RATIO, AIM_ANSWER_MILLISECONDS, AIM_ELSEWHERE_MILLISECONDS = 10, 20, 1500


class Store(NamedTuple):
    """An object store: ``variables`` reach it, ``proxy`` counts, where there is one."""

    url: str
    variables: dict[str, str]
    proxy: FaultProxy | None

    def take_counts(self) -> Counter[str] | None:
        """Requests since the last call, by kind and first folder."""
        if not self.proxy:
            return None
        return Counter(_kind(seen) for seen in self.proxy.take_seen())


def _kind(seen: Seen) -> str:
    path, _, query = seen.target.partition("?")
    key = path.removeprefix(f"/{BUCKET}/hub").strip("/")
    if "list-type" in query:
        return "LIST"
    method = "DELETE" if "delete" in query or seen.method == "DELETE" else seen.method
    return f"{method} {key.partition('/')[0]}".strip()


class Loaded(NamedTuple):
    """A load on some nodes; requests to the store by kind; what creations one by one reached."""

    load: Load
    requests: Counter[str] | None
    unbatched_per_second: float


class Waits(NamedTuple):
    """Milliseconds of publications one after another: of the store's own creation, until the
    answer, until the version is at the same node, and at another one.
    """

    put: list[float]
    answered: list[float]
    here: list[float]
    elsewhere: list[float]


# The store and the nodes


@contextlib.contextmanager
def opened_store(options: argparse.Namespace) -> Iterator[Store]:
    if options.store:
        yield Store(f"{options.store.rstrip('/')}/bench-{secrets.token_hex(4)}", {}, None)
        return
    port = free_port()
    command = [sys.executable, "-m", "tests.support.s3_server", str(port)]
    with started_server(command, port, None) as server:
        request = urllib.request.Request(f"{server.url}/{BUCKET}", method="PUT")
        request.add_header("Host", "s3.amazonaws.com")
        urllib.request.urlopen(request, timeout=30).close()
        with FaultProxy(f"127.0.0.1:{port}") as proxy:
            if options.latency:
                proxy.set_rules(Rule("delay", seconds=options.latency / 1000))
            endpoint = {"AWS_ENDPOINT_URL": f"http://{proxy.address}"}
            yield Store(f"s3://{BUCKET}/hub", KEYS | endpoint, proxy)


@contextlib.contextmanager
def opened_accounts(options: argparse.Namespace) -> Iterator[str]:
    if options.accounts:
        yield options.accounts
        return
    with running_postgres(fsync="on") as server:
        yield server.new_database()


def create_tokens(accounts: str, folder: str, owners: Sequence[str]) -> dict[str, str]:
    """Add owners; a token of each."""
    tokens = {}
    for owner in owners:
        place = ["--accounts", accounts, "--state", folder]
        run([*HUBCTL, "owner", "add", owner, *place])
        command = [*HUBCTL, "token", "create", owner, "--name", "bench", *place]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        tokens[owner] = done.stdout.strip()
    return tokens


@contextlib.contextmanager
def node(folder: str, store: Store, accounts: str) -> Iterator[Server]:
    """A node with folders below this one, once it is ready."""
    port = free_port()
    os.mkdir(folder)
    command = [
        *HUBCTL, "serve", "--store", store.url, "--accounts", accounts,
        "--content", f"{folder}/content", "--out", f"{folder}/site", "--state", f"{folder}/state",
        "--port", str(port), "--base-url", BASE_URL, "--rate-limit", "0", "--publish-limit", "0",
    ]  # fmt: skip
    with started_server(command, port, None, store.variables) as server:
        wait_until_ready(server)
        yield server


def wait_until_ready(server: Server) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while ask(server, "/readyz")[0] != 200 or ask(server, "/healthz")[1].get("status") != "ok":
        if time.monotonic() > deadline:
            raise SystemExit(f"The node is not ready: {ask(server, '/readyz')}")
        time.sleep(0.02)


def ask(server: Server, path: str) -> tuple[int, dict]:
    """Status and body of an answer in JSON."""
    try:
        with urllib.request.urlopen(server.url + path, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


# What is measured


def create_one_by_one(store: Store, seconds: float) -> list[float]:
    """Milliseconds of creations, one after another, until the time is over."""
    script = (
        "import json, os, sys, time\n"
        "from publisher.nodes.objects import Objects\n"
        "store, seconds, found = Objects(sys.argv[1]), float(sys.argv[2]), []\n"
        "end = time.monotonic() + seconds\n"
        "while time.monotonic() < end:\n"
        "    started = time.perf_counter()\n"
        "    assert store.create(f'unbatched/{len(found):012}.json', b'x' * 2500)\n"
        "    found.append((time.perf_counter() - started) * 1000)\n"
        "print(json.dumps(found))\n"
    )
    variables = environment() | store.variables
    command = [sys.executable, "-c", script, f"{store.url}-{secrets.token_hex(4)}", str(seconds)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def measure_load(
    store: Store, nodes: Sequence[Server], tokens: Mapping[str, str], clients: int, seconds: float
) -> Loaded:
    turns = itertools.cycle(nodes)
    prompts = [Prompt(owner, f"load-{at}", TEXT) for at in range(8) for owner in tokens]
    shares = [prompts[at::clients] for at in range(clients)]
    unbatched = create_one_by_one(store, 3)
    store.take_counts()
    load = publish_at_once(lambda: HubClient(next(turns), tokens), shares, seconds)
    requests = store.take_counts()
    return Loaded(load, requests, 1000 * len(unbatched) / sum(unbatched))


def measure_waits(
    store: Store, nodes: Sequence[Server], tokens: Mapping[str, str], count: int
) -> Waits:
    waits = Waits(create_one_by_one(store, 3), [], [], [])
    owner = next(iter(tokens))
    prompt = Prompt(owner, "waits", TEXT)
    with closing(HubClient(nodes[0], tokens)) as client:
        for _ in range(count):
            started = time.perf_counter()
            published = client.publish(prompt)
            waits.answered.append((time.perf_counter() - started) * 1000)
            path = f"{prompt.path}/versions/{published['version']}"
            status, _ = ask(nodes[0], path)
            if status != 200:
                raise SystemExit(f"{path}: {status} right after its 201")
            waits.here.append((time.perf_counter() - started) * 1000)
            if len(nodes) > 1:
                while ask(nodes[1], f"{path}?min_serial={published['serial']}")[0] != 200:
                    time.sleep(0.005)
                waits.elsewhere.append((time.perf_counter() - started) * 1000)
    return waits


def measure_idle(store: Store, nodes: Sequence[Server]) -> Counter[str] | None:
    """Requests of a node and month that has nothing to do."""
    store.take_counts()
    time.sleep(IDLE_SECONDS)
    counts = store.take_counts()
    share = MONTH_SECONDS / IDLE_SECONDS / len(nodes)
    return counts and Counter({kind: count * share for kind, count in counts.items()})


def stored_bytes(store: Store) -> int:
    """Bytes of all objects of the hub."""
    script = (
        "import sys\nimport obstore\nfrom obstore.store import from_url\n"
        "store = from_url(sys.argv[1], client_options={'allow_http': True})\n"
        "print(sum(one['size'] for page in obstore.list(store) for one in page))\n"
    )
    variables = environment() | store.variables
    command = [sys.executable, "-c", script, store.url]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return int(done.stdout)


def measure_new_node(size: int, folder: str, accounts: str) -> tuple[float, float]:
    """Seconds of a copy of so many repos into a store, and of a new node until it has them all. The
    store is a folder: what is measured is the node's part.
    """
    os.mkdir(folder)
    Catalogue(size, 1).write(f"{folder}/content")
    store = Store(f"file://{folder}/store", {}, None)
    copied = run([*HUBCTL, "store", "copy", f"{folder}/content", store.url]).seconds
    started = time.perf_counter()
    with node(f"{folder}/node", store, accounts) as server:
        seconds = time.perf_counter() - started
        repos = ask(server, "/api/v1/hub.json")[1]["data"]["repos_count"]
        if repos != size:
            raise SystemExit(f"The new node has {repos:,} repos of {size:,}.")
    return copied, seconds


# What is shown


def show_loads(loads: Mapping[tuple[int, int], Sequence[Loaded]]) -> None:
    rows = []
    for (nodes, clients), rounds in loads.items():
        rates = [one.load.per_second for one in rounds]
        ratios = [one.load.per_second / one.unbatched_per_second for one in rounds]
        each = [_per_publication(one) for one in rounds]
        rows.append([
            f"{nodes} node{'s' * (nodes > 1)}", clients, median(rates),
            median([one.unbatched_per_second for one in rounds]), f"{median(ratios):.1f}",
            median([one.load.p50 for one in rounds]), median([one.load.p99 for one in rounds]),
            *(median([one[kind] for one in each]) if each[0] else None
              for kind in ("PUT log", "PUT blobs", "GET log", "GET blobs", "LIST")),
        ])  # fmt: skip
    print_table(
        f"Publications a second, beside creations one by one (aim at 64 clients: {AIM_RATIO} ×)",
        (
            "", "clients", "a second", "one by one", "ratio", "p50 ms", "p99", "PUT log", "blobs",
            "GET log", "blobs", "LIST",
        ),
        rows,
    )  # fmt: skip
    print("PUT, GET, LIST: requests to the store for each publication, of all nodes together")


def _per_publication(one: Loaded) -> Counter[str] | None:
    if one.requests is None:
        return None
    return Counter({kind: count / one.load.count for kind, count in one.requests.items()})


def show_waits(waits: Waits) -> None:
    put = percentile(waits.put, 50)
    aims = {
        "the store's creation": None, "answered": put + AIM_ANSWER_MILLISECONDS,
        "read at the same node": None, "read at another node": AIM_ELSEWHERE_MILLISECONDS,
    }  # fmt: skip
    rows = [
        [what, *(percentile(found, percent) for percent in (50, 99, 100)), aim]
        for (what, aim), found in zip(aims.items(), waits, strict=True)
        if found
    ]
    print_table(
        "One client, one publication after another; ms since it was sent",
        ("", "p50", "p99", "slowest", "aim p50"), rows,
    )  # fmt: skip


def show_costs(
    loads: Mapping[tuple[int, int], Sequence[Loaded]], idle: Counter[str] | None, each_bytes: float
) -> None:
    rows = []
    for (nodes, clients), rounds in loads.items():
        each = _per_publication(rounds[-1])
        if each:
            rows.append([f"requests, {nodes} nodes, {clients} clients", 1e6 * dollars(each)])
    rows.append(["storage of a month", each_bytes * 1e6 / 1e9 * DOLLARS_GB_MONTH])
    print_table(
        f"A million publications of {len(TEXT):,} bytes; AWS S3 Standard, us-east-1",
        ("", "dollars"), rows,
    )  # fmt: skip
    if idle:
        print(f"a node that waits: {sum(idle.values()):,.0f} requests and ${dollars(idle):.2f} "
              "a month")  # fmt: skip
    print(f"{each_bytes:,.0f} bytes in the store for each publication")


def dollars(requests: Mapping[str, float]) -> float:
    return sum(count * DOLLARS[kind.split(" ")[0]] for kind, count in requests.items())


# The program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", metavar="URL", help="a store of yours [Moto's server]")
    parser.add_argument("--accounts", metavar="URL", help="a PostgreSQL of yours [a new one]")
    parser.add_argument(
        "--latency", type=float, default=0, metavar="MS", help="added to each request [0]"
    )
    parser.add_argument("--nodes", type=_numbers, default=[1, 2, 4], metavar="N,…")
    parser.add_argument("--clients", type=_numbers, default=[1, 8, 64], metavar="N,…")
    parser.add_argument("--rounds", type=int, default=3, metavar="K")
    parser.add_argument("--seconds", type=float, default=8, metavar="S", help="of each load")
    parser.add_argument("--publications", type=int, default=100, metavar="N", help="one by one")
    parser.add_argument(
        "--sizes", type=_numbers, default=[10_000, 100_000], metavar="N,…",
        help="repos that a new node begins with; 0 leaves it out [10000,100000]",
    )  # fmt: skip
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    with scratch_folder(options.scratch) as folder, opened_accounts(options) as accounts:
        measure_nodes(options, folder, accounts)
        rows = []
        for size in filter(None, options.sizes):
            say(f"a new node of {size:,} repos")
            rows.append([size, *measure_new_node(size, f"{folder}/{size}", accounts)])
        if rows:
            print_table(
                "A new node from nothing, over a folder as store; seconds",
                ("repos", "store copy", "until it is ready"), rows,
            )  # fmt: skip
        print_machine(folder)


def measure_nodes(options: argparse.Namespace, folder: str, accounts: str) -> None:
    loads: dict[tuple[int, int], list[Loaded]] = {}
    owners = [f"owner-{number}" for number in range(OWNERS)]
    tokens = create_tokens(accounts, tempfile.mkdtemp(dir=folder), owners)
    with ExitStack() as running:
        store = running.enter_context(opened_store(options))
        nodes: list[Server] = []
        for count in sorted(options.nodes):
            while len(nodes) < count:
                place = f"{folder}/node-{len(nodes)}"
                nodes.append(running.enter_context(node(place, store, accounts)))
            for _ in range(options.rounds):
                for clients in options.clients:
                    found = measure_load(store, nodes, tokens, clients, options.seconds)
                    loads.setdefault((count, clients), []).append(found)
                    say(f"  {count} nodes, {clients} clients: {found.load.per_second:.1f}/s")
        waits = measure_waits(store, nodes, tokens, options.publications)
        idle = measure_idle(store, nodes)
        published = sum(one.load.count for rounds in loads.values() for one in rounds)
        each_bytes = stored_bytes(store) / (published + options.publications)
    show_loads(loads)
    show_waits(waits)
    show_costs(loads, idle, each_bytes)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
