"""Nodes of one hub as they run in life: `hubctl serve --database` over PostgreSQL, each
node with a proxy before it, and a clock of its own.
"""

import contextlib
import functools
import itertools
import json
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import requests

from builder.model.settings import Settings
from builder.store.site import read_hub
from publisher.accounts.database import Database
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from tests.support.catalogues import settings_in
from tests.support.fault_proxy import FaultProxy, Rule
from tests.support.postgres_pair import Pair, running_pair
from tests.support.servers import (
    Process,
    clean_environment,
    free_port,
    serve_command,
    wait_until,
)

# The same for all nodes: their sites must not differ.
BASE_URL = "http://127.0.0.1:8000"
SERVING = "(stop with Ctrl-C)"
NO_LIMIT = "1000000"
AGENT = "Mozilla/5.0 (X11; Linux x86_64) Firefox/146.0"


class Node:
    """A node; its folders outlive its process. ``skew_seconds``: the error of its clock."""

    def __init__(
        self, number: int, folder: Path, pair: Pair, proxy: FaultProxy, skew_seconds: int
    ) -> None:
        self.number = number
        self.proxy = proxy
        self.settings: Settings = settings_in(folder, BASE_URL)
        self.url = f"http://127.0.0.1:{free_port()}"
        # Each start is another one: what a process has promised ends with it.
        self.starts = 0
        self._skew = skew_seconds
        self._pair = pair
        self._process: Process | None = None
        self._past: list[str] = []

    def start(self) -> None:
        """Start it; does not wait."""
        command = serve_command(
            self.settings, "--port", str(urlsplit(self.url).port), "--base-url", BASE_URL,
            "--database", self._proxied(),
            "--rate-limit", NO_LIMIT, "--publish-limit", NO_LIMIT,
        )  # fmt: skip
        skewed = _skewed(self._skew) if self._skew else {}
        environment = clean_environment(**skewed)
        # A new process, as a fork of a running one would share its clock.
        self._process = Process(sys.executable, *command, env=environment)
        self.starts += 1

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        """Kill the node, as a power cut does."""
        self._end(signal.SIGKILL)

    def _end(self, how: int) -> None:
        process, self._process = self._process, None
        process.stop(how)
        self._past.append(process.text)

    def pause(self) -> None:
        """It does nothing, and does not know that time passes."""
        self._process.send(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send(signal.SIGCONT)

    def wipe(self) -> None:
        """Remove all of its folders."""
        for folder in (self.settings.content, self.settings.out, self.settings.state):
            shutil.rmtree(folder, ignore_errors=True)

    def ask(self, path: str) -> dict:
        """The JSON at a path; empty without an answer."""
        with contextlib.suppress(requests.RequestException, ValueError):
            return requests.get(self.url + path, timeout=20).json()
        return {}

    def check_clock(self, since: datetime) -> None:
        """Fails where its clock is not off as it is to be; it has built since a moment."""
        ended_at = datetime.fromisoformat(self.ask("/healthz")["last_build"]["ended_at"])
        right = ended_at - timedelta(seconds=self._skew)
        assert since.replace(microsecond=0) <= right <= datetime.now(UTC), f"{self.url}: {ended_at}"

    @property
    def serial(self) -> int:
        """The serial up to which its lists are complete; read from its folder, as waiting clients
        ask often.
        """
        hub = read_hub(self.settings.out)
        return hub.serial if hub else -1

    def wait_ready(self) -> None:
        """Until it publishes, too. It is started again if it had no database to begin with."""
        try:
            wait_until(self._is_ready, f"node {self.number}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.ask('/readyz')}\n{self.output}") from None

    def _is_ready(self) -> bool:
        if self._process.is_alive:
            return self.ask("/readyz").get("status") == "ready"
        assert SERVING not in self._process.text, "it has ended"
        self._end(signal.SIGKILL)
        self.start()
        return False

    @property
    def output(self) -> str:
        """Output of all its processes."""
        runs = [*self._past, *([self._process.text] if self._process else [])]
        return "\n".join(f"--- node {self.number}\n{text[-20_000:]}" for text in runs)

    def _proxied(self) -> str:
        """The URL of the database, with the address of the proxy before it."""
        url = database_of(self._pair)
        return f"{url.replace(_address(url), self.proxy.address)}?sslmode=disable"


@functools.cache
def _skewed(seconds: int) -> dict[str, str]:
    """Variables for a process with a skewed clock.

    The command `faketime` itself would stay between the process and signals for it. Without the
    last variable, waits that are timed by the monotonic clock end at once. Python's threads then
    spin for the lock that they share.
    """
    command = ["faketime", "-f", f"{seconds:+}s", "printenv", "LD_PRELOAD"]
    library = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return {
        "LD_PRELOAD": library, "FAKETIME": f"{seconds:+}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }  # fmt: skip


class Cluster:
    """Some nodes, and what their owners sign in with."""

    def __init__(self, nodes: list[Node], pair: Pair, owners: tuple[str, ...]) -> None:
        self.nodes = nodes
        self.tokens: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.pair = pair
        self._add_owners(*owners)

    def _add_owners(self, *owners: str) -> None:
        """Owners, each with a token, and with a secret for a cookie with which they are signed in.
        Changes on the pages of accounts are limited for each.
        """
        with Database(database_of(self.pair)) as database:
            for owner in owners:
                Accounts(database).add_owner(owner)
                self.tokens[owner], _ = Accounts(database).create_token(owner, "test")
                self.secrets[owner] = secrets.token_urlsafe(32)
                Sessions(database).begin(
                    owner, self.secrets[owner], address="127.0.0.1", agent=AGENT
                )

    @property
    def output(self) -> str:
        return "\n".join(node.output for node in self.nodes)

    def fail_over(self) -> None:
        """The primary crashes when its standby has all that can be seen, and that takes over."""
        self.pair.standby.start()
        self.pair.wait_confirmed()
        self.pair.fail_over()
        for node in self.nodes:
            node.proxy.set_upstream(_address(database_of(self.pair)))

    def heal(self) -> None:
        """Start the standby and all nodes."""
        self.pair.standby.start()
        for node in self.nodes:
            node.proxy.set_rules()
            if node.is_running:
                node.resume()
            else:
                node.start()
        for node in self.nodes:
            node.wait_ready()

    def wait_same(self) -> dict[str, bytes]:
        """Wait until all nodes have the same site; gives it."""
        first, *others = self.nodes

        def differing() -> list[str]:
            trees = [tree(node.settings.out) for node in self.nodes]
            names = set().union(*trees)
            return [one for one in names if len({found.get(one) for found in trees}) > 1]

        try:
            wait_until(lambda: len({node.serial for node in self.nodes}) == 1, "one serial")
            wait_until(lambda: not differing(), "one site")
        except AssertionError as error:
            serials = {node.number: node.serial for node in self.nodes}
            message = f"{error}: {serials} {json.dumps(sorted(differing())[:40], indent=1)}"
            raise AssertionError(f"{message}\n{self.output}") from None
        for node in others:
            assert tree(node.settings.content) == tree(first.settings.content)
        return tree(first.settings.out)


def tree(folder: str) -> dict[str, bytes]:
    """The files of a folder that changes meanwhile, without those that are a node's own."""
    found = {}
    for path in Path(folder).rglob("*"):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            if not path.name.startswith("."):
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def database_of(pair: Pair) -> str:
    """The URL of the database that all nodes share, now."""
    return pair.primary.url("hub")


@contextlib.contextmanager
def running_cluster(
    folder: Path, owners: tuple[str, ...], skews: tuple[int, ...]
) -> Iterator[Cluster]:
    """A node for each of these skews of clocks, in seconds, over a PostgreSQL with a standby."""
    with contextlib.ExitStack() as stack:
        pair = stack.enter_context(running_pair())
        pair.primary.execute("postgres", "CREATE DATABASE hub")
        nodes = []
        for number, skew in enumerate(skews):
            proxy = stack.enter_context(FaultProxy(_address(database_of(pair))))
            nodes.append(Node(number, folder / f"node-{number}", pair, proxy, skew))
            stack.callback(_end, nodes[-1])
        cluster = Cluster(nodes, pair, owners)
        began = datetime.now(UTC)
        cluster.heal()
        for node in nodes:
            node.check_clock(began)
        yield cluster


def _end(node: Node) -> None:
    if node.is_running:
        node.resume()
        node.kill()


def _address(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


numbers = itertools.count(1)
"""Each text and note is another one, so that what is found at rest tells where it came from."""


def drop_requests(*faults: str, chance: float, seed: int) -> list[Rule]:
    """Each of these faults for a share of all requests."""
    return [
        Rule(fault, chance=chance, seed=seed + at, seconds=0.7) for at, fault in enumerate(faults)
    ]
