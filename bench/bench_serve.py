"""Reads a second of the embedded server on one core, beside nginx with one worker.

Both serve the same files of the same site, in turns, each on the first core, with wrk on the
second. The embedded server has its rate limit on, nginx has none; more rows show the cost of the
limit for each, and the cost of metrics. Answers other than 2xx and 3xx count as refused. Needs
nginx and wrk.
"""

import argparse
import os
import sys
from typing import NamedTuple

from bench_build import build
from catalogue import Catalogue
from report import median, print_machine, print_table, scratch_folder
from servers import Load, Server, fetch, hub, load, missing_programs, nginx

RATE_LIMIT = 120
MANY = 1_000
QUERIES = 200


class Case(NamedTuple):
    """A kind of read. ``files``: the same for nginx, which knows no queries; empty: only the
    embedded server.
    """

    name: str
    paths: list[str]
    files: list[str]
    headers: dict[str, str]
    status: int = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repos", type=int, default=2_000, metavar="N")
    parser.add_argument("--versions", type=int, default=3, metavar="M", help="of each repo")
    parser.add_argument("--rounds", type=int, default=3, metavar="K")
    parser.add_argument("--seconds", type=int, default=4, metavar="S", help="of each measurement")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if missing := missing_programs():
        parser.exit(1, f"Install first: apt-get install {' '.join(missing)}\n")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print(
            "One core for server and load: the figures are low, the ratio holds.", file=sys.stderr
        )
    server_core, wrk_core = (cores[0], cores[1]) if len(cores) > 1 else (None, None)
    with scratch_folder(options.scratch) as folder:
        catalogue = Catalogue(options.repos, options.versions, options.seed)
        catalogue.write(f"{folder}/content")
        build(folder)
        with (
            hub(folder, server_core, RATE_LIMIT) as ours,
            hub(folder, server_core, 0) as ours_unlimited,
            hub(folder, server_core, 0, ["--metrics", "127.0.0.1:0"]) as ours_counted,
            nginx(f"{folder}/site", folder, server_core, 0) as theirs,
            nginx(f"{folder}/site", folder, server_core, RATE_LIMIT) as theirs_limited,
        ):
            compare(options, _cases(catalogue, ours), ours, theirs, wrk_core)
            costs(
                options, _cases(catalogue, ours)[0], wrk_core,
                {
                    "limit, hub": (ours, ours_unlimited),
                    "limit, nginx": (theirs_limited, theirs),
                    "metrics, hub": (ours_counted, ours_unlimited),
                },
            )  # fmt: skip
        print_machine(folder)


def _cases(catalogue: Catalogue, ours: Server) -> list[Case]:
    plans = list(catalogue.plans())[:MANY]
    repos = [f"/api/v1/repos/{plan.owner}/{plan.name}" for plan in plans]
    one = repos[len(repos) // 2]
    _, headers, _ = fetch(ours, one, {})
    known = {"If-None-Match": headers["etag"]}
    words = [word for word in catalogue.words[:QUERIES] if len(word) > 2]
    return [
        Case("repo JSON, one repo", [one], [f"{one}.json"], {}),
        Case(f"repo JSON, {len(repos):,} repos", repos, [f"{repo}.json" for repo in repos], {}),
        Case("raw text", [f"{one}/raw"], [f"{one}/raw.txt"], {}),
        Case(
            "list page, 50 repos", ["/api/v1/repos?sort=new&page=2"],
            ["/api/v1/repos/_/new/2.json"], {},
        ),
        Case("repo JSON, 304", [one], [f"{one}.json"], known, 304),
        Case("repo JSON, gzip", [one], [f"{one}.json"], {"Accept-Encoding": "gzip"}),
        Case("page for people", [f"/{plans[0].owner}/{plans[0].name}"],
             [f"/{plans[0].owner}/{plans[0].name}.html"], {}),
        Case(f"search, {len(words)} words in turn",
             [f"/api/v1/repos?q={word}" for word in words], [], {}),
    ]  # fmt: skip


def compare(
    options: argparse.Namespace, cases: list[Case], ours: Server, theirs: Server, core: int | None
) -> None:
    rows = []
    for case in cases:
        # nginx has ETags of its own.
        their_headers = dict(case.headers)
        if "If-None-Match" in their_headers:
            their_headers["If-None-Match"] = fetch(theirs, case.files[0], {})[1]["etag"]
        _expect(ours, case.paths[0], case.headers, case.status)
        our_loads, their_loads = [], []
        for _ in range(options.rounds):
            our_loads.append(load(ours, case.paths, case.headers, options.seconds, core))
            if case.files:
                _expect(theirs, case.files[0], their_headers, case.status)
                their_loads.append(load(theirs, case.files, their_headers, options.seconds, core))
        rows.append(_row(case.name, our_loads, their_loads))
    print_table(
        f"Reads a second, {options.repos:,} repos; hub with its limit on, nginx with none; medians",
        (
            "",
            "bytes",
            "hub",
            "nginx",
            "ratio",
            "hub/CPU s",
            "nginx/CPU s",
            "ratio",
            "p99 ms",
            "refused",
        ),
        rows,
    )
    print(
        "bytes: of an answer with its headers; reads a CPU second: by the server's own processor "
        "time,\nwhere wrk or the machine could not keep it busy; p99: hub's, of 32 connections"
    )


def _row(name: str, ours: list[Load], theirs: list[Load]) -> list[object]:
    return [
        name,
        round(median([one.bytes_per_read for one in ours])),
        *_compared(
            [one.reads_per_second for one in ours], [one.reads_per_second for one in theirs]
        ),
        *_compared(
            [one.reads_per_cpu_second for one in ours], [one.reads_per_cpu_second for one in theirs]
        ),
        median([one.p99_milliseconds for one in ours]),
        sum(one.refused + one.broken for one in ours + theirs),
    ]


def _compared(ours: list[float], theirs: list[float]) -> list[object]:
    if not theirs:
        return [median(ours), None, None]
    ratio = median([a / b for a, b in zip(ours, theirs, strict=True)])
    return [median(ours), median(theirs), f"{ratio:.2f}"]


def costs(
    options: argparse.Namespace,
    case: Case,
    core: int | None,
    servers: dict[str, tuple[Server, Server]],
) -> None:
    """The cost of a part: each server with it and without."""
    rows = []
    for name, (limited, free) in servers.items():
        paths = case.files if name.endswith("nginx") else case.paths
        with_it, without = [], []
        for _ in range(options.rounds):
            with_it.append(load(limited, paths, {}, options.seconds, core))
            without.append(load(free, paths, {}, options.seconds, core))
        kept = median([
            a.reads_per_cpu_second / b.reads_per_cpu_second
            for a, b in zip(with_it, without, strict=True)
        ])  # fmt: skip
        rows.append([
            name, median([one.reads_per_second for one in with_it]),
            median([one.reads_per_second for one in without]), f"{1 - kept:.0%}",
            sum(one.refused + one.broken for one in with_it + without),
        ])  # fmt: skip
    print_table(
        f"What a limit of {RATE_LIMIT} reads a minute and client costs, and metrics: {case.name}",
        ("", "with", "without", "cost in CPU", "refused"),
        rows,
    )


def _expect(server: Server, path: str, headers: dict[str, str], status: int) -> None:
    found, answer_headers, _ = fetch(server, path, headers)
    encoding = answer_headers.get("content-encoding", "identity")
    if found != status or encoding != headers.get("Accept-Encoding", "identity"):
        raise SystemExit(f"{path}: {found} {encoding}, expected {status}")


if __name__ == "__main__":
    main()
