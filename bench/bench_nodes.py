"""Nodes that publish over one PostgreSQL; each figure compares two measurements of the same run.

Starts a PostgreSQL with ``fsync``. A proxy (delay_proxy.py) adds the time to reach it and counts
round trips. The hub for comparison has its content in a folder. Processes of node_writers.py
measure the write path without HTTP and without a build. Compared programs take turns.

Needs the test environment (`make .venv/.test`, and PostgreSQL).
"""

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import psycopg
from delay_proxy import Delayed, delay_proxy
from node_writers import TEXT
from processes import HUBCTL, ROOT, environment
from publishers import HubClient, Prompt, publish_at_once
from report import median, print_machine, print_table, say, scratch_folder, spread
from servers import BASE_URL, Server, free_port, started_server

sys.path.append(ROOT)

from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.nodes import rows
from publisher.nodes.rows import VERSION, File, Mark
from tests.support.postgres import Postgres, running_postgres

OWNERS = 8
CLIENTS = 64
DELAYS = (0.0, 5.0, 50.0)
GROUPS, GROUP_CHANGES = 20, 50
SEEN_EVERY_SECONDS = 0.005
_FILL = """INSERT INTO change SELECT n, gen_random_uuid(), 'o-' || n %% 1000,
    'o-' || n %% 1000 || '/p-' || n / 10 , 'version', '1.0.' || n %% 10, %s, %s
FROM generate_series(1, %s) AS n"""


class Bench:
    """A PostgreSQL server, proxies before it, and the results: rows of the table."""

    def __init__(self, options: argparse.Namespace, postgres: Postgres, folder: str) -> None:
        self._options = options
        self._postgres = postgres
        self._folder = folder
        self._proxies: dict[float, Delayed] = {}
        self._names = itertools.count()
        self.rows: list[tuple[str, str, str, str]] = []

    def note(self, what: str, figures: str, found: str, aim: str) -> None:
        self.rows.append((what, figures, found, aim))
        say(f"  {what}: {figures}; {found} (aim: {aim})")

    @contextlib.contextmanager
    def proxies(self) -> Iterator[None]:
        with ExitStack() as stack:
            for delay in DELAYS:
                self._proxies[delay] = stack.enter_context(delay_proxy(self._postgres.port, delay))
            yield

    def url(self, delay: float, url: str) -> str:
        """The URL of a database behind a delay (milliseconds for both ways together)."""
        if not delay:
            return url
        return url.replace(f":{self._postgres.port}/", f":{self._proxies[delay].port}/")

    def new_folder(self) -> str:
        path = f"{self._folder}/{next(self._names)}"
        os.mkdir(path)
        return path

    # The endpoint

    def measure_endpoint(self) -> None:
        """One node beside a hub with a folder, 64 clients, with keys and without."""
        url, folders = self._postgres.new_database(), [self.new_folder(), self.new_folder()]
        places = (f"{folders[0]}/state", url)
        tokens = [create_tokens(place) for place in places]
        with serving(folders[0]) as folder_hub, serving(folders[1], url) as node:
            sides = [*zip((folder_hub, node), tokens, strict=True)]
            for side in sides:
                self._load(*side)  # the first load also creates the prompts
            for has_keys in (False, True):
                ratios, rates = [], []
                for turn in range(self._options.rounds):
                    order = (0, 1) if turn % 2 else (1, 0)
                    found = {at: self._load(*sides[at], has_keys) for at in order}
                    rates.append((found[1], found[0]))
                    ratios.append(found[1] / found[0])
                self.note(
                    f"one node at the endpoint, {CLIENTS} clients, "
                    f"{'with' if has_keys else 'without'} keys",
                    f"{median([one for one, _ in rates]):.0f}/s, folder "
                    f"{median([one for _, one in rates]):.0f}/s",
                    f"{median(ratios):.2f} ({spread(ratios)})", "0.9 of the folder",
                )  # fmt: skip

    def _load(self, server: Server, tokens: Mapping[str, str], has_keys: bool = False) -> float:
        prompts = [Prompt(owner, f"load-{at}", TEXT) for at in range(32) for owner in tokens]
        shares = [prompts[at::CLIENTS] for at in range(CLIENTS)]
        kind = KeyedClient if has_keys else HubClient
        return publish_at_once(lambda: kind(server, tokens), shares, self._seconds).per_second

    @property
    def _seconds(self) -> float:
        return self._options.seconds

    # The write path

    def write(self, what: str, url: str, delay: float = 0, clients: int = 1) -> dict[str, Any]:
        """The figures of a process that writes; see node_writers.py."""
        return write_at_once([self._writer(what, url, delay, clients)])[0]

    def _writer(self, what: str, url: str, delay: float, clients: int) -> list[str]:
        return [
            sys.executable, f"{ROOT}/bench/node_writers.py", what, self.url(delay, url),
            self.new_folder(), str(clients), str(self._seconds),
        ]  # fmt: skip

    def measure_groups(self) -> None:
        """Commits of 64 waiting clients, beside one transaction after another."""
        for delay, aim in ((0.0, "5 ×"), (5.0, "40 ×")):
            ratios, rates = [], []
            for _ in range(self._options.rounds):
                url = self._postgres.new_database()
                Database(url).close()
                single = self.write("steps", url, delay)["per_second"]
                url = self._postgres.new_database()
                grouped = self.write("commit", url, delay, CLIENTS)["per_second"]
                ratios.append(grouped / single)
                rates.append((grouped, single))
            self.note(
                f"commits, {CLIENTS} waiting, {delay_text(delay)}",
                f"{median([one for one, _ in rates]):,.0f}/s, one by one "
                f"{median([one for _, one in rates]):,.0f}/s",
                f"{median(ratios):.1f} × ({spread(ratios, 1)})", aim,
            )  # fmt: skip

    def measure_trips(self) -> None:
        """Round trips of a group, counted on the wire."""
        url = self._postgres.new_database()
        Database(url).close()
        proxy = self._proxies[5.0]
        with psycopg.connect(
            self.url(5.0, url), autocommit=True, prepare_threshold=None
        ) as connection:
            before = proxy.trips.value
            for number in range(GROUPS):
                group = [
                    rows.make_change(
                        "ann", f"ann/p-{at}",
                        [File(f"ann/p-{at}", VERSION, f"1.0.{number}", b"{}", TEXT.encode())],
                        number * GROUP_CHANGES, by_owner=False,
                    )
                    for at in range(GROUP_CHANGES)
                ]  # fmt: skip
                serials, _ = rows.commit(connection, group, Mark(number * GROUP_CHANGES, None))
                if len(serials) != GROUP_CHANGES:
                    raise SystemExit(f"committed {len(serials)} of {GROUP_CHANGES} changes")
            each = (proxy.trips.value - before) / GROUPS
        self.note("round trips a group", f"{GROUPS} groups of {GROUP_CHANGES}", f"{each:g}", "1")

    def measure_single(self) -> None:
        """One publisher beside one statement that commits."""
        for delay in DELAYS:
            pairs = []
            for _ in range(self._options.rounds):
                url = self._postgres.new_database()
                bare = median(self.write("bare", url, delay)["milliseconds"])
                url = self._postgres.new_database()
                pairs.append((median(self.write("publish", url, delay)["milliseconds"]), bare))
            more = median([ours - bare for ours, bare in pairs])
            times = median([ours / bare for ours, bare in pairs])
            self.note(
                f"a single publisher, {delay_text(delay)}",
                f"{median([ours for ours, _ in pairs]):.1f} ms, bare commit "
                f"{median([bare for _, bare in pairs]):.1f} ms",
                f"{times:.2f} ×" if delay else f"{more:+.1f} ms",
                "≤ 1.3 ×" if delay else "≤ 2 ms more",
            )  # fmt: skip

    def measure_four(self) -> None:
        """Four nodes far from the database beside one, with as many clients together."""
        ratios, rates = [], []
        for _ in range(self._options.rounds):
            found = []
            for nodes in (1, 4):
                url = self._postgres.new_database()
                Database(url).close()
                share = CLIENTS // nodes
                writers = [self._writer("commit", url, 50.0, share) for _ in range(nodes)]
                found.append(sum(one["per_second"] for one in write_at_once(writers)))
            rates.append(found)
            ratios.append(found[1] / found[0])
        self.note(
            "commits of four nodes at 50 ms",
            f"{median([four for _, four in rates]):,.0f}/s, one node "
            f"{median([one for one, _ in rates]):,.0f}/s",
            f"{median(ratios):.2f} ({spread(ratios)})", "0.9 of one",
        )  # fmt: skip

    # Other nodes

    def measure_elsewhere(self) -> None:
        """The time from the answer to a publication until it is on another node."""
        url = self._postgres.new_database()
        tokens = create_tokens(url)
        prompt = Prompt(next(iter(tokens)), "seen", TEXT)
        late, answered = [], []
        with (
            serving(self.new_folder(), url) as one,
            serving(self.new_folder(), url) as two,
            closing(HubClient(one, tokens)) as client,
            closing(HubClient(two, tokens)) as far,
        ):
            for _ in range(self._options.publications):
                began = time.perf_counter()
                done = client.publish(prompt)
                ended = time.perf_counter()
                while not far.has(prompt, done["version"]):
                    time.sleep(SEEN_EVERY_SECONDS)
                late.append((time.perf_counter() - ended) * 1000)
                answered.append((ended - began) * 1000)
        self.note(
            "another node has it, after the answer",
            f"median {median(late):.0f} ms, slowest {max(late):.0f} ms",
            f"{max(late) - median(answered):.0f} ms beyond a build", "≤ 500 ms",
        )  # fmt: skip

    def measure_new_node(self) -> None:
        """The time and memory that a new node needs until its folder has everything."""
        found = []
        for size in (1_000, self._options.changes):
            url = self._postgres.new_database()
            Database(url).close()
            with psycopg.connect(url) as connection:
                connection.execute(_FILL, (b"{}" * 150, TEXT.encode(), size))
                connection.execute("UPDATE hub SET serial = %s", (size,))
            found.append(self.write("read", url))
        more = (found[1]["kilobytes"] - found[0]["kilobytes"]) / 1024
        self.note(
            f"a new node, {self._options.changes:,} changes into its folder",
            f"{found[1]['seconds']:.1f} s, {found[1]['kilobytes'] / 1024:.0f} MB",
            f"{more:+.0f} MB beside 1,000 changes", "≤ 15 s for 100,000; ≤ 100 MB more",
        )  # fmt: skip


class KeyedClient(HubClient):
    """Sends a new Idempotency-Key with each publication."""

    def publish(self, prompt: Prompt, **headers: str) -> dict[str, Any]:
        return super().publish(prompt, **{"Idempotency-Key": uuid.uuid4().hex})


def delay_text(delay: float) -> str:
    return f"at {delay:g} ms" if delay else "direct"


def create_tokens(place: str) -> dict[str, str]:
    """Add owners to a database of accounts; returns a token of each."""
    with Database(place) as database:
        accounts = Accounts(database)
        tokens = {}
        for owner in (f"owner-{number}" for number in range(OWNERS)):
            accounts.add_owner(owner)
            tokens[owner], _ = accounts.create_token(owner, "bench")
    return tokens


@contextlib.contextmanager
def serving(folder: str, database: str = "") -> Iterator[Server]:
    """A hub with its folders below ``folder``, once it is ready."""
    port = free_port()
    os.makedirs(f"{folder}/content", exist_ok=True)
    command = [
        *HUBCTL, "serve", "--content", f"{folder}/content", "--out", f"{folder}/site",
        "--state", f"{folder}/state", "--port", str(port), "--base-url", BASE_URL,
        "--rate-limit", "0", "--publish-limit", "0",
    ]  # fmt: skip
    variables = {"HUB_DATABASE": database} if database else {}
    with started_server(command, port, None, variables) as server:
        with closing(HubClient(server, {})) as client:
            client.settle()
        yield server


def write_at_once(commands: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The output of processes that run at the same time."""
    running = [
        subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    found = []
    for process in running:
        out, error = process.communicate()
        if process.returncode:
            raise SystemExit(error)
        found.append(json.loads(out))
    return found


class Given(NamedTuple):
    """The measurements, by the name of their option."""

    endpoint: str = "measure_endpoint"
    groups: str = "measure_groups"
    trips: str = "measure_trips"
    single: str = "measure_single"
    four: str = "measure_four"
    elsewhere: str = "measure_elsewhere"
    new_node: str = "measure_new_node"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="K")
    parser.add_argument("--seconds", type=float, default=5, metavar="S", help="of each load [5]")
    parser.add_argument("--publications", type=int, default=50, metavar="N", help="one by one")
    parser.add_argument(
        "--changes", type=int, default=100_000, metavar="N", help="of a new node [100000]"
    )
    parser.add_argument(
        "--only", choices=Given._fields, action="append", help="measure this alone; can be repeated"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round of a second, 10,000 changes"
    )
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.changes = 1, 1.0, 10_000
    load_average = os.getloadavg()[0]
    with scratch_folder(options.scratch) as folder, running_postgres(fsync="on") as postgres:
        bench = Bench(options, postgres, folder)
        try:
            with bench.proxies():
                for name in options.only or Given._fields:
                    say(name)
                    getattr(bench, getattr(Given(), name))()
        finally:
            print_table("Nodes over PostgreSQL", ("", "figures", "found", "aim"), bench.rows)
            print_machine(folder)
            print(f"load average before it began: {load_average:.2f}")


if __name__ == "__main__":
    main()
