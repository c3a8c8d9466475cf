"""The servers that the hub writes configurations for: their cost, and reads during publications.

First nginx as ``hubctl hosts nginx`` writes it, with all features on, beside a bare nginx that
serves the same files by their paths, without a log and with its default log; and Caddy as ``hubctl
hosts caddy`` writes it, if it is installed; with ``--other``, also nginx with a configuration of
your own or of an earlier release. Each has one core, and wrk the other; they take turns,
in the opposite order every other round.

Then reads at a steady rate through that nginx, before a live ``hubctl serve``: alone, during
publications, and during publications and full builds. Servers and builds share one core, which is
the worst case; the reader has the other.
"""

import argparse
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from hosted import (
    BARE,
    BARE_LOGGING,
    CADDY,
    GENERATED,
    OTHER,
    Bench,
    make_cases,
    ratio_of,
    settle,
    take_turns,
)
from publishers import make_catalogue
from report import median, print_machine, print_table, say, scratch_folder
from servers import (
    BASE_URL,
    Load,
    bare_nginx,
    generated_caddy,
    generated_nginx,
    hub,
    missing_programs,
    other_nginx,
)
from under_publishing import read_under_publishing

from builder.hosts.configuration import HostedSite, configuration

AIM = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repos", type=int, default=2_000, metavar="N")
    parser.add_argument("--versions", type=int, default=3, metavar="M", help="of each repo")
    parser.add_argument("--rounds", type=int, default=5, metavar="K")
    parser.add_argument("--seconds", type=int, default=2, metavar="S", help="of each wrk run")
    parser.add_argument("--other", metavar="CONF", help="whole: see `servers.other_nginx`")
    parser.add_argument("--no-compare", action="store_true", help="only reads under publishing")
    parser.add_argument("--no-publishing", action="store_true", help="no reads under publishing")
    parser.add_argument("--rate", type=float, default=700, metavar="N", help="steady reads/s")
    parser.add_argument("--publications", type=float, default=100, metavar="N", help="a minute")
    parser.add_argument("--phase", type=float, default=30, metavar="S", help="seconds of each")
    parser.add_argument("--phase-rounds", type=int, default=3, metavar="K")
    parser.add_argument(
        "--all-cores", action="store_true",
        help="there, servers and builds use all cores, with the reader",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if missing := missing_programs():
        parser.exit(1, f"Install first: apt-get install {' '.join(missing)}\n")
    if not shutil.which("caddy"):
        say("There is no Caddy: it is left out. For its column: apt-get install caddy")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        say("One core for servers and load: the figures are low, the ratios hold.")
    server_core, client_core = (cores[0], cores[1]) if len(cores) > 1 else (None, None)
    # As Ctrl-C: ends the started processes.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    load_average = os.getloadavg()[0]
    with scratch_folder(options.scratch) as folder:
        say(f"writing and building {options.repos:,} repos")
        prompts, tokens = make_catalogue(
            options.repos, options.seed, f"{folder}/hub", options.versions
        )
        service_core = None if options.all_cores else server_core
        with hub(f"{folder}/hub", service_core, 0, ("--publish-limit", "0")) as upstream:
            # All of wrk's clients have one address.
            site = HostedSite(
                f"{folder}/hub/site", BASE_URL, upstream=upstream.url.removeprefix("http://"),
                reads_per_minute=0,
            )  # fmt: skip
            bench = Bench(
                options, folder, site, upstream, prompts, tokens,
                server_core, service_core, client_core,
            )  # fmt: skip
            settle(bench)
            if not options.no_compare:
                compare(bench)
            if not options.no_publishing:
                read_under_publishing(bench)
        print_machine(folder)
        print(f"load average before it began: {load_average:.2f}")


def compare(bench: Bench) -> None:
    """Measure the same files through all servers, in turns."""
    with ExitStack() as running:
        start = running.enter_context
        core, folder, out = bench.server_core, bench.folder, bench.site.out
        servers = {
            GENERATED: start(generated_nginx(bench.site, folder, core)),
            BARE: start(bare_nginx(out, folder, core)),
            BARE_LOGGING: start(bare_nginx(out, folder, core, log=True)),
        }
        if bench.options.other:
            servers[OTHER] = start(other_nginx(bench.options.other, bench.site, folder, core))
        if shutil.which("caddy"):
            servers[CADDY] = start(generated_caddy(bench.site, folder, core))
        conf = configuration("nginx", bench.site)
        # The directives of all locations: they are indented once.
        gzip = " ".join(re.findall(r'^ {4}gzip(?:"[^"]*"|[^";])*;', conf, re.M))
        compressing = start(bare_nginx(out, folder, core, more=gzip))
        found: dict[str, dict[str, list[Load]]] = {}
        for case in make_cases(bench.prompts):
            rivals = servers
            if case.gzip:
                rivals = {**servers, BARE: compressing}
                del rivals[BARE_LOGGING]
            found[case.name] = take_turns(bench, case, rivals)
    for title, figure in (
        ("Requests a second", lambda one: one.reads_per_second),
        ("Requests by second of the server's own processor time",
         lambda one: one.reads_per_cpu_second),
    ):  # fmt: skip
        print_table(
            f"{title}; medians of {bench.options.rounds} rounds (lowest–highest)",
            (
                "", GENERATED, BARE, "ratio", "", BARE_LOGGING, "ratio", "", OTHER, "ratio", "",
                CADDY, "of bare", "",
            ),
            [_compared(name, loads, figure) for name, loads in found.items()],
        )  # fmt: skip
    print_table(
        "Milliseconds, of 32 connections as fast as they are answered: p50 / p99",
        ("", GENERATED, BARE, BARE_LOGGING, OTHER, CADDY, "refused"),
        [_latencies(name, loads) for name, loads in found.items()],
    )
    print(
        f"ratio: generated over the other, within a round; the aim is {AIM}. gzip: the bare one "
        "compresses, too."
    )


def _compared(
    name: str, loads: Mapping[str, list[Load]], figure: Callable[[Load], float]
) -> list[object]:
    values = {server: [figure(one) for one in them] for server, them in loads.items()}
    row: list[object] = [name, median(values[GENERATED])]
    for rival in (BARE, BARE_LOGGING, OTHER):
        row += [None, None, None]
        if rival in values:
            row[-3:] = [median(values[rival]), *ratio_of(values[GENERATED], values[rival])]
    if CADDY in values:
        return [*row, median(values[CADDY]), *ratio_of(values[CADDY], values[BARE])]
    return [*row, None, None, None]


def _latencies(name: str, loads: Mapping[str, list[Load]]) -> list[object]:
    row: list[object] = [name]
    for server in (GENERATED, BARE, BARE_LOGGING, OTHER, CADDY):
        them = loads.get(server)
        row.append(them and " / ".join(
            f"{median([getattr(one, field) for one in them]):.2f}"
            for field in ("p50_milliseconds", "p99_milliseconds")
        ))  # fmt: skip
    return [*row, sum(one.refused + one.broken for them in loads.values() for one in them)]


if __name__ == "__main__":
    main()
