"""The cost of parts of nginx's generated configuration: it runs without one of them at a time."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce

from hosted import BARE, GENERATED, Bench, Case, make_cases, ratio_of, take_turns
from report import median, print_table
from servers import bare_nginx, generated_nginx, substituted

CASES = ("repo JSON, one repo", "list by query")

Change = Callable[[str], str]


def ablate(bench: Bench) -> None:
    """Measure one file through the generated configuration without one part at a time."""
    for case in make_cases(bench.prompts):
        if case.name in CASES:
            _ablate(bench, case)


def _ablate(bench: Bench, case: Case) -> None:
    changes = _ablations(case)
    with ExitStack() as running:
        servers = {
            name: running.enter_context(
                generated_nginx(bench.site, bench.folder, bench.server_core, change)
            )
            for name, change in changes.items()
        }
        servers[BARE] = running.enter_context(
            bare_nginx(bench.site.out, bench.folder, bench.server_core)
        )
        found = take_turns(bench, case, servers)
    whole = found[GENERATED]
    print_table(
        f"{case.name}: the generated configuration without …; over all of it, within a round",
        ("", "a second", "ratio", "", "by CPU second", "ratio", "", "µs of CPU each"),
        [
            [
                name, median([one.reads_per_second for one in them]),
                *ratio_of([one.reads_per_second for one in them],
                          [one.reads_per_second for one in whole]),
                median([one.reads_per_cpu_second for one in them]),
                *ratio_of([one.reads_per_cpu_second for one in them],
                          [one.reads_per_cpu_second for one in whole]),
                round(1e6 / median([one.reads_per_cpu_second for one in them]), 1),
            ]
            for name, them in found.items()
        ],
    )  # fmt: skip


def _ablations(case: Case) -> dict[str, Change]:
    """For each part, the change that takes it away."""

    def without(pattern: str, replacement: str = "") -> Change:
        return lambda conf: substituted(pattern, replacement, conf)

    def without_real_ip(conf: str) -> str:
        # The limit must still distinguish wrk's clients.
        conf = substituted(r"^ *(?:set_)?real_ip_.*;\n", "", conf)
        return substituted(r"limit_req_zone \S+", "limit_req_zone $http_x_forwarded_for", conf)

    without_limit = without(r"^ *limit_req.*;\n")
    without_log = without(r"^( *access_log) .*;", r"\1 off;")
    without_headers = without(r"^ *add_header .*;\n")
    without_if = without(r"^ *if \(.*\) \{\n.*\n *\}\n")
    found = {
        GENERATED: str,
        "limit": without_limit,
        "log": without_log,
        "real IP": without_real_ip,
        "headers": without_headers,
        "gzip": without(r"^( *gzip) on;", r"\1 off;"),
        "JIT": without(r"^pcre_jit on;\n"),
        "one write for header and file": without(r"^( *sendfile) off;", r"\1 on; tcp_nopush on;"),
    }
    if "?" not in case.urls[0]:
        without_patterns = _exact_location(case.urls[0])
        found["if"] = without_if
        found["regular expressions"] = without_patterns
        steps = (
            without_real_ip, without_limit, without_log, without_headers, without_if,
            without_patterns,
        )  # fmt: skip
        found["all of these"] = lambda conf: reduce(lambda now, step: step(now), steps, conf)
    return found


def _exact_location(url: str) -> Change:
    """Adds a location for exactly this URL before the one with a regular expression."""

    def change(conf: str) -> str:
        for block in re.finditer(r'^ *location ~ "\^(.*)\\z" \{\n((?:.*\n)*?) *\}\n', conf, re.M):
            if found := re.fullmatch(block[1].replace("(?<", "(?P<"), url):
                body = block[2]
                for name, value in found.groupdict().items():
                    body = body.replace(f"${name}", value)
                return conf.replace(block[0], f"location = {url} {{\n{body}}}\n{block[0]}", 1)
        raise SystemExit(f"The generated configuration has no regular expression for {url}.")

    return change
