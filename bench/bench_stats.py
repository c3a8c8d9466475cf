"""Counting pulls: lines a second of `hubctl stats ingest`, for a made-up log of a busy week.

The log resembles that of a public hub: some three quarters are API reads, the rest are pages,
scripts, probes of scanners and lines that are no HTTP. Readers and repos follow Zipf's law. A fifth
of the readers use IPv6, a sixth of the lines are from bots, and there are two thousand user agents.
Each log is counted into an empty database, then again into the same database.
"""

import argparse
import bisect
import gzip
import itertools
import random
import time
from collections.abc import Iterator, Sequence

from processes import HUBCTL, run
from report import print_machine, print_table, scratch_folder

WEEK_SECONDS = 7 * 86_400
AGENTS = 2_000
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()

PROGRAMS = (
    "hub/1.0.0 (+https://prompts.example.org)", "curl/8.{n}.0", "python-requests/2.{n}.0",
    "python-httpx/0.{n}", "Go-http-client/{n}.1", "axios/1.{n}.2", "okhttp/4.{n}.0", "-",
)  # fmt: skip
BROWSERS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/{n}.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_{n} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/17.{n} Mobile/15E148 Safari/604.1",
)
BOTS = (
    "Mozilla/5.0 (compatible; Googlebot/2.{n}; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.{n}; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.{n}; "
    "+https://openai.com/gptbot)",
)
# The kinds of requests, and how many of a hundred are of each.
READS = (
    ("/api/v1/repos/{repo}", 30), ("/api/v1/repos/{repo}/raw", 22),
    ("/api/v1/repos/{repo}/raw?version=1.0.0", 8), ("/api/v1/repos/{repo}/versions/1.0.0", 5),
    ("/api/v1/repos/{repo}/versions", 4), ("/api/v1/repos?sort=new&page={n}", 6),
    ("/api/v1/hub.json", 2), ("/{repo}", 12), ("/", 4), ("/assets/style.css", 4),
    ("/wp-login.php?n={n}", 2), ("", 1),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--clients", type=int, default=50_000, metavar="N")
    parser.add_argument("--repos", type=int, default=10_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="K")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    with scratch_folder(options.scratch) as folder:
        logs = {}
        for name, form in (("nginx", combined), ("nginx, gzip", combined), ("Caddy", caddy)):
            logs[name] = f"{folder}/{len(logs)}.log"
            opener = gzip.open if "gzip" in name else open
            with opener(logs[name], "wb") as file:
                file.writelines(form(each) for each in requests(options))
        rows = []
        for name, log in logs.items():
            for turn in range(options.rounds):
                state = f"{folder}/state-{turn}-{len(rows)}"
                rows.append(_row(f"{name}, new", options.lines, log, state))
            rows.append(_row(f"{name}, known", options.lines, log, state))
        print_table(
            f"Counting {options.lines:,} lines of {options.clients:,} clients",
            ("", "seconds", "CPU seconds", "lines/s", "memory MB"),
            rows,
        )
        print_machine(folder)


def _row(name: str, lines: int, log: str, state: str) -> list[object]:
    done = run(
        [*HUBCTL, "stats", "ingest", "--state", state, "--base-url", "http://127.0.0.1:8000", log]
    )
    return [name, done.seconds, done.cpu_seconds, lines / done.seconds, done.single_bytes / 1e6]


def requests(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """The requests of a log in order of time, up to now; the same for a seed and a time."""
    draw = random.Random(options.seed)
    clients = [_address(draw) for _ in range(options.clients)]
    repos = [f"owner-{number // 8}/prompt-{number}" for number in range(options.repos)]
    agents = {
        kind: [draw.choice(texts).format(n=draw.randrange(150)) for _ in range(AGENTS)]
        for kind, texts in (("program", PROGRAMS), ("browser", BROWSERS), ("bot", BOTS))
    }
    client_weights, repo_weights = _zipf(len(clients)), _zipf(len(repos))
    paths = [path for path, _ in READS]
    path_weights = list(itertools.accumulate(weight for _, weight in READS))
    start = int(time.time()) - WEEK_SECONDS
    for number in range(options.lines):
        path = draw.choices(paths, cum_weights=path_weights)[0]
        kind = "bot" if draw.random() < 1 / 6 else "program" if "/api/" in path else "browser"
        client = _drawn(draw, client_weights)
        yield {
            "client": clients[client],
            "seconds": start + number * WEEK_SECONDS // options.lines,
            "target": path.format(repo=repos[_drawn(draw, repo_weights)], n=draw.randrange(40)),
            "status": draw.choices((200, 304, 404, 429), (70, 22, 6, 2))[0] if path else 400,
            "size": draw.randrange(200, 9000),
            "agent": agents[kind][client % AGENTS],
        }


def combined(request: dict[str, object]) -> bytes:
    """A request in the combined format."""
    moment = time.gmtime(request["seconds"])
    line = "GET {target} HTTP/1.1" if request["target"] else "\\x16\\x03\\x01\\x02\\x00\\x01"
    return (
        f"{request['client']} - - [{moment.tm_mday:02}/{MONTHS[moment.tm_mon - 1]}/"
        f"{moment.tm_year}:{moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02} +0000] "
        f'"{line.format_map(request)}" {request["status"]} {request["size"]} "-" '
        f'"{request["agent"]}"\n'
    ).encode()


def caddy(request: dict[str, object]) -> bytes:
    """A request as Caddy writes it."""
    client, agent = request["client"], request["agent"]
    return (
        f'{{"level":"info","ts":{request["seconds"]}.{request["size"]:06},'
        '"logger":"http.log.access.log0","msg":"handled request","request":{'
        f'"remote_ip":"{client}","remote_port":"41342","client_ip":"{client}",'
        '"proto":"HTTP/2.0","method":"GET","host":"prompts.example.org",'
        f'"uri":"{request["target"] or "/"}","headers":{{"User-Agent":["{agent}"],'
        '"Accept":["*/*"],"Accept-Encoding":["gzip"]},"tls":{"resumed":false,"version":772,'
        '"cipher_suite":4865,"proto":"h2","server_name":"prompts.example.org"}},"bytes_read":0,'
        f'"user_id":"","duration":0.000929675,"size":{request["size"]},'
        f'"status":{request["status"]},"resp_headers":{{"Server":["Caddy"],'
        '"Content-Type":["application/json"]}}\n'
    ).encode()


def _address(draw: random.Random) -> str:
    if draw.random() < 0.2:
        return "2001:db8:" + ":".join(f"{draw.getrandbits(16):x}" for _ in range(6))
    return ".".join(str(draw.randrange(1, 255)) for _ in range(4))


def _zipf(count: int) -> Sequence[float]:
    return list(itertools.accumulate(1 / (rank + 10) for rank in range(count)))


def _drawn(draw: random.Random, weights: Sequence[float]) -> int:
    return bisect.bisect(weights, draw.random() * weights[-1])


if __name__ == "__main__":
    main()
