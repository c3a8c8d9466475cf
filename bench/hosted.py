"""A hub with a catalogue, servers before its site, and measurements of these in turns."""

import argparse
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from publishers import HubClient, Prompt
from report import median, say, spread
from servers import Load, Server, fetch, load

from builder.hosts.configuration import HostedSite

MANY = 1_000
# The servers. Those whose names begin with "bare" serve files by their paths.
GENERATED, BARE, BARE_LOGGING = "generated", "bare", "bare, log"
OTHER, CADDY = "other", "Caddy"


class Case(NamedTuple):
    """A kind of read: by URL, and by file for servers that know only files. ``gzip``: True if the
    bare nginx must compress.
    """

    name: str
    urls: list[str]
    files: list[str]
    headers: dict[str, str]
    status: int = 200
    gzip: bool = False


class Bench(NamedTuple):
    """Settings of all measurements. ``server_core``: of a server alone. ``service_core``: of all
    processes of a hub. None: any.
    """

    options: argparse.Namespace
    folder: str
    site: HostedSite
    hub: Server
    prompts: list[Prompt]
    tokens: Mapping[str, str]
    server_core: int | None
    service_core: int | None
    client_core: int | None


def make_cases(prompts: Sequence[Prompt]) -> list[Case]:
    """The kinds of reads for the comparison of servers."""
    repos = [prompt.path for prompt in prompts[:MANY]]
    one = repos[0]
    lists = "/api/v1/repos"
    return [
        Case("repo JSON, one repo", [one], [f"{one}.json"], {}),
        Case(f"repo JSON, {len(repos):,} repos", repos, [f"{repo}.json" for repo in repos], {}),
        Case("raw text", [f"{one}/raw"], [f"{one}/raw.txt"], {}),
        Case("list by query", [f"{lists}?sort=new&page=2"], [f"{lists}/_/new/2.json"], {}),
        Case("repo JSON, 304", [one], [f"{one}.json"], {"If-None-Match": ""}, 304),
        Case("repo JSON, gzip", [one], [f"{one}.json"], {"Accept-Encoding": "gzip"}, gzip=True),
    ]


def take_turns(bench: Bench, case: Case, servers: Mapping[str, Server]) -> dict[str, list[Load]]:
    """One measurement of each server a round, in the opposite order every other round."""
    prepared = {name: _prepare(case, name, server) for name, server in servers.items()}
    if len(sizes := {size for _, _, size in prepared.values()}) > 1 and not case.gzip:
        raise SystemExit(f"{case.name}: the servers' answers are not the same: {sizes} bytes")
    found: dict[str, list[Load]] = defaultdict(list)
    for number in range(bench.options.rounds):
        for name in list(servers)[:: -1 if number % 2 else 1]:
            paths, headers, _ = prepared[name]
            one = load(servers[name], paths, headers, bench.options.seconds, bench.client_core)
            found[name].append(one)
            _empty_logs(bench.folder)
        rates = ", ".join(
            f"{name} {loads[-1].reads_per_second:,.0f}" for name, loads in found.items()
        )
        say(f"  {case.name}: {rates}")
    return {name: found[name] for name in servers}


def ratio_of(over: Sequence[float], under: Sequence[float]) -> tuple[str, str]:
    """The median of the ratios of neighbours, and their spread."""
    ratios = [a / b for a, b in zip(over, under, strict=True)]
    return f"{median(ratios):.2f}", spread(ratios)


def settle(bench: Bench) -> None:
    """Wait until the site is complete."""
    with closing(HubClient(bench.hub, bench.tokens)) as client:
        client.settle()


def _prepare(case: Case, name: str, server: Server) -> tuple[list[str], dict[str, str], int]:
    """Paths and headers for a server whose answer was checked; and its bytes."""
    paths = case.files if name.startswith(BARE) else case.urls
    headers = dict(case.headers)
    if "If-None-Match" in headers:
        # Each server has ETags of its own.
        headers["If-None-Match"] = fetch(server, paths[0], {})[1]["etag"]
    status, answered, size = fetch(server, paths[0], headers)
    encoding = answered.get("content-encoding", "identity")
    if status != case.status or encoding != headers.get("Accept-Encoding", "identity"):
        raise SystemExit(f"{name}: {paths[0]}: {status} {encoding}, expected {case.status}")
    return paths, headers, size


def _empty_logs(folder: str) -> None:
    """Empties the logs, which would fill the memory with some hundred bytes for each read."""
    for parent, _, names in os.walk(folder):
        if "access.log" in names:
            os.truncate(f"{parent}/access.log", 0)
