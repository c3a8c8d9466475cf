"""Tool calls a second over MCP, beside a bare ASGI application and the SDK's own transport.

Each server is one process on the first core, wrk with 8 connections on the second; they take turns.
The hub is all of ``hubctl serve`` without limits; the others are in ``mcp_floor``. Before a case is
measured, each of its calls is made once, and the hub and the SDK must give the same answers. So the
hub answers from memory if arguments repeat: the aim is five times the SDK's calls. The SDK's server
keeps nothing. If arguments are new each time, both do a tool's work, and the hub makes two to three
times as many calls. As with real clients, the number of a request and its progress token are always
new. Needs wrk.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from bench_build import build
from catalogue import Catalogue, publish
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from processes import TreeMemory
from publishers import HubClient, Prompt, make_catalogue
from report import median, print_machine, print_table, say, scratch_folder
from servers import Server, free_port, hub, missing_programs, run_wrk, started_server

from builder.text.prompts import variable_names
from mcp_app.calls import ENTRY_BYTES, KEPT_BYTES_MAX

FLOOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_floor.py")
MCP = "/mcp"
CLIENTS = 8
LEGACY, MODERN = "2025-11-25", "2026-07-28"
MANY = 1_000
QUERIES = 200
PROMPT_BYTES = 2_048
VERSIONS = 10
HUGE_LIMIT = 1_000_000_000
COMPARED = 20  # calls of a case for which answers are compared
PUBLISH_EVERY_SECONDS = 1.0
MEMORY_SECONDS = 0.3

BARE_AIM, SDK_AIM, P99_AIM = 0.25, 5, 5

# Placeholder in a call for the number of each request.
NUMBER = 987_654_321
NUMBERS = (100_000_000, 900_000_000)

WRK_LUA = """
local requests = {}
local turn, number = 0, %(start)d
function init(args)
  for body in io.lines("%(bodies)s") do
    local request = wrk.format("POST", "%(path)s", {%(headers)s}, body)
    local parts, from = {}, 1
    local at, last = string.find(request, "%(number)d", from, true)
    while at do
      parts[#parts + 1] = string.sub(request, from, at - 1)
      from = last + 1
      at, last = string.find(request, "%(number)d", from, true)
    end
    parts[#parts + 1] = string.sub(request, from)
    requests[#requests + 1] = parts
  end
end
function request()
  turn = turn %% #requests + 1
  number = number + 1
  return table.concat(requests[turn], number)
end
function done(summary, latency, requests)
  local e = summary.errors
  local figures = {
    requests = summary.requests, microseconds = summary.duration, bytes = summary.bytes,
    failed = e.status + e.connect + e.read + e.write + e.timeout,
    p50 = math.floor(latency:percentile(50)), p99 = math.floor(latency:percentile(99)),
    slowest = latency.max,
  }
  for key, value in pairs(figures) do
    io.write(string.format("\\n%%s=%%d", key, value))
  end
end
"""


class Case(NamedTuple):
    """Calls of one tool, made in turn."""

    name: str
    tool: str
    arguments: list[dict[str, Any]]


class Calls(NamedTuple):
    """The calls as requests of one revision of MCP. ``NUMBER`` is to be replaced."""

    headers: dict[str, str]
    bodies: list[str]


class Load(NamedTuple):
    """The answers of a server. ``p50``, ``p99`` and ``slowest`` are milliseconds.

    ``per_cpu_second`` is by the server's own processor time, even if other work delays it.
    """

    per_second: float
    per_cpu_second: float
    bytes_each: float
    p50: float
    p99: float
    slowest: float
    failed: int


class Servers(NamedTuple):
    """The servers that take turns."""

    bare: Server
    sdk: Server
    hub: Server


class Cores(NamedTuple):
    server: int | None
    wrk: int | None


class Site(NamedTuple):
    """A built catalogue: its folder, all ids, some prompts and their owners' tokens."""

    folder: str
    ids: list[str]
    words: list[str]
    prompts: list[Prompt]
    tokens: dict[str, str]
    typical: Prompt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repos", type=int, default=1_000, metavar="N")
    parser.add_argument(
        "--many-repos", type=int, default=10_000, metavar="N",
        help="of a second catalogue, for more answers than are kept",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, metavar="K")
    parser.add_argument("--seconds", type=int, default=3, metavar="S", help="of each measurement")
    parser.add_argument(
        "--publishing", type=int, default=10, metavar="S", help="of each beside publications"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if missing := [package for package in missing_programs() if package != "nginx-light"]:
        parser.exit(1, f"Install first: apt-get install {' '.join(missing)}\n")
    available = sorted(os.sched_getaffinity(0))
    cores = Cores(available[0], available[1]) if len(available) > 1 else Cores(None, None)
    with scratch_folder(options.scratch) as folder:
        few = make_site(options.repos, options.seed, f"{folder}/few")
        with (
            floors(few, cores.server) as (bare, sdk),
            hub(few.folder, cores.server, 0, ("--publish-limit", "0")) as ours,
            hub(few.folder, cores.server, HUGE_LIMIT) as limited,
        ):
            servers = Servers(bare, sdk, ours)
            cases = _cases(few)
            compare(options, f"{options.repos:,} repos", cases, servers, cores.wrk)
            show_limit(options, cases[0], ours, limited, cores.wrk)
        # Alone, since a second one on the same folders would build as well.
        with hub(few.folder, cores.server, 0, ("--publish-limit", "0")) as ours:
            published = [beside_publications(options, few, ours, cores.wrk)]
        many = make_site(options.many_repos, options.seed, f"{folder}/many")
        with (
            floors(many, cores.server) as (bare, sdk),
            hub(many.folder, cores.server, 0, ("--publish-limit", "0")) as ours,
        ):
            before = memory_bytes(ours)
            cases = [_more_than_kept(many)]
            servers = Servers(bare, sdk, ours)
            compare(options, f"{options.many_repos:,} repos", cases, servers, cores.wrk)
            print(
                f"\nMemory of the hub's process: {before / 1e6:.0f} MB after its build, "
                f"{memory_bytes(ours) / 1e6:.0f} MB with {KEPT_BYTES_MAX / 2**20:.0f} MiB of "
                "answers kept"
            )
            published.append(beside_publications(options, many, ours, cores.wrk))
        show_publishing(published)
        print_machine(folder)


# The calls


def make_site(repos: int, seed: int, folder: str) -> Site:
    """Write a catalogue with one version of each repo and ten of a typical one, and build it."""
    say(f"{repos:,} repos: writing and building")
    prompts, tokens = make_catalogue(repos, seed, folder)
    typical = min(
        (prompt for prompt in prompts if len(variable_names(prompt.text)) > 1),
        key=lambda prompt: abs(len(prompt.text.encode()) - PROMPT_BYTES),
    )
    for number in range(VERSIONS - 1):
        publish(f"{folder}/content", typical.owner, typical.name, f"Point {number} is new.")
    build(folder)
    catalogue = Catalogue(repos, 1, seed)
    ids = [f"{plan.owner}/{plan.name}" for plan in catalogue.plans()]
    return Site(folder, ids, catalogue.words, prompts, tokens, typical)


def _cases(site: Site) -> list[Case]:
    typical = f"{site.typical.owner}/{site.typical.name}"
    names = variable_names(site.typical.text)
    words = [word for word in site.words[:QUERIES] if len(word) > 2]
    return [
        Case("get_prompt, one of 2 KB", "get_prompt", [{"id": typical}]),
        Case(
            "get_prompt, the same arguments", "get_prompt",
            [{"id": typical, "arguments": dict.fromkeys(names, "a sample value")}],
        ),
        Case(
            "get_prompt, other arguments each", "get_prompt",
            [{"id": typical, "arguments": dict.fromkeys(names, f"value {NUMBER}")}],
        ),
        Case(
            f"get_prompt, {len(site.ids[:MANY]):,} in turn", "get_prompt",
            [{"id": one} for one in site.ids[:MANY]],
        ),
        Case("list_tags", "list_tags", [{}]),
        Case(f"list_versions, {VERSIONS}", "list_versions", [{"id": typical}]),
        Case(
            f"search_prompts, {len(words)} words", "search_prompts",
            [{"query": word} for word in words],
        ),
    ]  # fmt: skip


def _more_than_kept(site: Site) -> Case:
    """Every prompt in turn, in two ways: more than the hub keeps, so no answer comes from
    memory.
    """
    arguments: list[dict[str, Any]] = [{"id": one} for one in site.ids]
    arguments += [dict(zip(("owner", "name"), one.split("/"), strict=True)) for one in site.ids]
    average_bytes = sum(len(prompt.text) for prompt in site.prompts) // len(site.prompts)
    # An answer contains the text twice.
    if len(arguments) * (2 * average_bytes + ENTRY_BYTES) < KEPT_BYTES_MAX:
        raise SystemExit("All of these answers could be kept: give a larger --many-repos.")
    return Case(f"get_prompt, {len(arguments):,} in turn", "get_prompt", arguments)


def _calls(case: Case, version: str) -> Calls:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Accept-Language": "*",
        "Sec-Fetch-Mode": "cors",
        "User-Agent": "node",
        "Accept-Encoding": "gzip, deflate",
    }
    meta: dict[str, Any] = {"progressToken": NUMBER}
    if version in MODERN_PROTOCOL_VERSIONS:
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": case.tool}
        meta |= {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: {"name": "bench", "version": "1.0.0"},
            CLIENT_CAPABILITIES_META_KEY: {},
        }
    bodies = []
    for arguments in case.arguments:
        params = {"name": case.tool, "arguments": arguments, "_meta": meta}
        message = {"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": NUMBER}
        bodies.append(json.dumps(message, separators=(",", ":")))
    return Calls(headers, bodies)


# The servers


@contextlib.contextmanager
def floors(site: Site, core: int | None) -> Iterator[tuple[Server, Server]]:
    """The bare application, and the SDK's transport."""
    folders = ["--out", f"{site.folder}/site", "--state", f"{site.folder}/state"]
    with contextlib.ExitStack() as running:
        started = []
        for kind in ("bare", "sdk"):
            port = free_port()
            command = [sys.executable, FLOOR, kind, "--port", str(port), *folders]
            started.append(running.enter_context(started_server(command, port, core)))
        yield started[0], started[1]


def ask(server: Server, calls: Calls) -> list[bytes]:
    """The answers to each call, made once. Ends the benchmark if one is invalid."""
    answers = []
    address = urllib.parse.urlsplit(server.url).netloc
    with contextlib.closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        for body in calls.bodies:
            connection.request("POST", MCP, body, calls.headers)
            answer = connection.getresponse()
            data = answer.read()
            if answer.status != 200 or json.loads(data).get("result", {}).get("isError", True):
                raise SystemExit(f"{body}: {answer.status}\n{data.decode(errors='replace')}")
            answers.append(data)
    return answers


def _prepare(servers: Servers, calls: Calls) -> None:
    """Let the hub answer each call once, compare some with the SDK's answers, and give the bare
    application one of the average size.
    """
    ours = ask(servers.hub, calls)
    theirs = ask(servers.sdk, calls._replace(bodies=calls.bodies[:COMPARED]))
    for body, one, other in zip(calls.bodies, ours, theirs, strict=False):
        if json.loads(one) != json.loads(other):
            raise SystemExit(f"{body}: the hub and the SDK differ:\n{one!r}\n{other!r}")
    average = sum(map(len, ours)) / len(ours)
    typical = min(ours, key=lambda answer: abs(len(answer) - average))
    address = urllib.parse.urlsplit(servers.bare.url).netloc
    with contextlib.closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        connection.request("PUT", MCP, typical)
        connection.getresponse().read()


def load(server: Server, calls: Calls, seconds: int, core: int | None) -> Load:
    """Make the calls in turn for some seconds, as fast as the server answers."""
    with tempfile.NamedTemporaryFile("w") as bodies:
        bodies.writelines(f"{body}\n" for body in calls.bodies)
        bodies.flush()
        headers = (f"[{json.dumps(name)}] = {json.dumps(v)}" for name, v in calls.headers.items())
        script = WRK_LUA % {
            "start": random.randrange(*NUMBERS), "number": NUMBER, "bodies": bodies.name,
            "path": MCP, "headers": ", ".join(headers),
        }  # fmt: skip
        found, used_seconds = run_wrk(server, script, CLIENTS, seconds, core)
    return Load(
        per_second=found["requests"] / (found["microseconds"] / 1e6),
        per_cpu_second=found["requests"] / max(0.01, used_seconds),
        bytes_each=found["bytes"] / max(1, found["requests"]),
        p50=found["p50"] / 1000,
        p99=found["p99"] / 1000,
        slowest=found["slowest"] / 1000,
        failed=found["failed"],
    )


def memory_bytes(server: Server) -> int:
    """The present memory of a server's processes."""
    memory = TreeMemory()
    memory.watch(server.pid)
    time.sleep(MEMORY_SECONDS)
    memory.stop()
    return memory.peak_bytes


# The measurements


def compare(
    options: argparse.Namespace, what: str, cases: Sequence[Case], servers: Servers,
    core: int | None,
) -> None:  # fmt: skip
    rows = []
    for case, version in itertools.product(cases, (LEGACY, MODERN)):
        calls = _calls(case, version)
        _prepare(servers, calls)
        loads: dict[str, list[Load]] = {name: [] for name in Servers._fields}
        for _ in range(options.rounds):
            for name, server in zip(Servers._fields, servers, strict=True):
                loads[name].append(load(server, calls, options.seconds, core))
        rows.append([case.name, version, *_figures(loads)])
        say(f"  {rows[-1]}")
    print_table(
        f"Tool calls a second, {what}, {CLIENTS} clients; medians of {options.rounds}",
        (
            "", "revision", "bytes", "hub", "bare", "SDK", "of bare", "of SDK", "CPU: of bare",
            "of SDK", "p50 ms", "p99", "slowest", "bare p99", "SDK p99", "failed",
        ),
        rows,
    )  # fmt: skip
    print(
        "of bare, of SDK: how many times as many calls as these, by the clock, then by the "
        f"server's own\nprocessor time; aims: {BARE_AIM}, {SDK_AIM}, and a p99 below {P99_AIM} ms"
    )


def _figures(loads: Mapping[str, Sequence[Load]]) -> list[object]:
    ours, bare, sdk = loads["hub"], loads["bare"], loads["sdk"]
    return [
        round(_median(ours, "bytes_each")),
        *(_median(side, "per_second") for side in (ours, bare, sdk)),
        *(_ratio(ours, side, "per_second") for side in (bare, sdk)),
        *(_ratio(ours, side, "per_cpu_second") for side in (bare, sdk)),
        *(_median(ours, figure) for figure in ("p50", "p99", "slowest")),
        *(_median(side, "p99") for side in (bare, sdk)),
        sum(one.failed for side in loads.values() for one in side),
    ]


def show_limit(
    options: argparse.Namespace, case: Case, ours: Server, limited: Server, core: int | None
) -> None:
    """Measure the cost of counting a client's requests."""
    calls = _calls(case, MODERN)
    ask(limited, calls)
    with_limit, without = [], []
    for _ in range(options.rounds):
        with_limit.append(load(limited, calls, options.seconds, core))
        without.append(load(ours, calls, options.seconds, core))
    print(
        "\nA limit on reads, too high to refuse any: "
        f"{_median(with_limit, 'per_second'):,.0f} calls a second with it, "
        f"{_median(without, 'per_second'):,.0f} without; "
        f"{_ratio(with_limit, without, 'per_second')} of it by the clock, "
        f"{_ratio(with_limit, without, 'per_cpu_second')} by processor time; "
        f"failed: {sum(one.failed for one in with_limit)}"
    )


def beside_publications(
    options: argparse.Namespace, site: Site, ours: Server, core: int | None
) -> list[list[object]]:
    """Rows: calls for prompts in turn, without publications and during them."""
    calls = _calls(Case("", "get_prompt", [{"id": one} for one in site.ids[:MANY]]), MODERN)
    ask(ours, calls)
    quiet, busy = [], []
    for _ in range(options.rounds):
        quiet.append(load(ours, calls, options.publishing, core))
        with publishing(ours, site):
            busy.append(load(ours, calls, options.publishing, core))
    figures = ("per_second", "p50", "p99", "slowest")
    return [
        [name, len(site.ids), *(_median(loads, figure) for figure in figures),
         sum(one.failed for one in loads)]
        for name, loads in (("quiet", quiet), ("a publication a second", busy))
    ]  # fmt: skip


@contextlib.contextmanager
def publishing(server: Server, site: Site) -> Iterator[None]:
    """A publication a second to random repos while this is entered."""
    is_over = threading.Event()

    def work() -> None:
        with contextlib.closing(HubClient(server, site.tokens)) as client:
            while not is_over.wait(PUBLISH_EVERY_SECONDS):
                client.publish(random.choice(site.prompts))

    with ThreadPoolExecutor(1) as pool:
        publisher = pool.submit(work)
        try:
            yield
        finally:
            is_over.set()
        publisher.result()


def show_publishing(found: Sequence[list[list[object]]]) -> None:
    print_table(
        f"get_prompt, {MANY:,} in turn, {MODERN}, beside builds in the same process; medians",
        ("", "repos", "a second", "p50 ms", "p99", "slowest", "failed"),
        [row for rows in found for row in rows],
    )


def _median(loads: Sequence[Load], figure: str) -> float:
    return median([getattr(one, figure) for one in loads])


def _ratio(over: Sequence[Load], under: Sequence[Load], figure: str) -> str:
    pairs = zip(over, under, strict=True)
    return f"{median([getattr(a, figure) / getattr(b, figure) for a, b in pairs]):.2f}"


if __name__ == "__main__":
    main()
