"""A hub with a month of history gets a new release during reads: how many reads fail?

    python bench/upgrade.py [OLD]

OLD is the commit of the previous release, by default the commit before this one. It creates a month
of publications, labels and pulls, and serves them behind nginx, as in docs/operate/hosting.md. Then
it is stopped. This checkout starts on the same folders, writes nginx's configuration again and
reloads it. Meanwhile clients read texts, records, pages and lists through nginx without a pause. A
read fails without an answer, with another status than 200, or with another text of a pinned
version. Both releases run in this environment. Needs nginx and git.
"""

import argparse
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from processes import HUBCTL, ROOT, environment
from report import print_machine, print_table, scratch_folder

from builder.hosts.configuration import HostedSite, configuration, whole

READERS = 4
WAIT_SECONDS_MAX = 300
HEALTHY = {"ok"}
OWNERS = 20
LABELLED = 20


class Release:
    """A checkout, whose commands run on one hub's folders."""

    def __init__(self, root: str, folder: str, base_url: str) -> None:
        self._folder = folder
        self._env = environment() | {
            "PYTHONPATH": root, "HUB_CONTENT": f"{folder}/content", "HUB_OUT": f"{folder}/site",
            "HUB_STATE": f"{folder}/var", "HUB_BASE_URL": base_url,
        }  # fmt: skip

    def run(self, *arguments: str, may_fail: bool = False) -> str:
        """The output of a command. A failure ends the script unless it ``may_fail``."""
        done = subprocess.run(
            [*HUBCTL, *arguments], env=self._env, cwd=self._folder, capture_output=True, text=True
        )
        if done.returncode and not may_fail:
            raise SystemExit(f"hubctl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    @contextmanager
    def serving(self, port: int) -> Iterator[subprocess.Popen]:
        """`hubctl serve`, stopped with SIGTERM at the end; returns when its builds have ended."""
        with open(f"{self._folder}/serve.log", "ab") as log:
            process = subprocess.Popen(
                [*HUBCTL, "serve", "--port", str(port), "--trusted-proxy", "127.0.0.1",
                 "--publish-limit", "0"],
                env=self._env, cwd=self._folder, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            wait(lambda: is_healthy(port), f"hubctl serve; see {log.name}")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_SECONDS_MAX)


class Readers:
    """Threads that read without a pause, and their results."""

    def __init__(self, port: int, paths: Sequence[str], pinned: dict[str, str]) -> None:
        self.reads = 0
        self.failures: Counter[str] = Counter()
        self._port, self._paths, self._pinned = port, paths, pinned
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._read, args=(seed,)) for seed in range(READERS)
        ]

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _read(self, seed: int) -> None:
        chance = random.Random(seed)
        # Each read has its own address, so none reaches the limit.
        while not self._is_over.is_set():
            path = chance.choice(self._paths)
            address = ".".join(str(chance.randrange(1, 255)) for _ in range(3))
            fault = self._fault(path, f"10.{address}")
            with self._lock:
                self.reads += 1
                if fault:
                    self.failures[fault] += 1

    def _fault(self, path: str, address: str) -> str | None:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self._port, 30)) as connection:
                connection.request("GET", path, headers={"X-Forwarded-For": address})
                answer = connection.getresponse()
                body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}"
        if answer.status != 200:
            return f"HTTP {answer.status} at {path}"
        if hashlib.sha256(body).hexdigest() != self._pinned.get(
            path, hashlib.sha256(body).hexdigest()
        ):
            return f"another text at {path}"
        return None


def is_healthy(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, 30)) as connection:
            connection.request("GET", "/healthz")
            return json.loads(connection.getresponse().read())["status"] in HEALTHY
    except (OSError, http.client.HTTPException, ValueError):
        return False


def wait(condition, what: str) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"Waited in vain for {what}")
        time.sleep(0.05)


def make_month(release: Release, folder: str, prompts: int, days: int) -> None:
    """Publications of each day, by import; labels; pulls of each day, from a log of nginx."""
    chance = random.Random(30)
    texts = {
        f"p{number}": f"Prompt {number} for {{{{topic}}}}.\n" * chance.randrange(1, 40)
        for number in range(prompts)
    }
    changed = list(texts)
    lines = []
    for day in range(days):
        with open(f"{folder}/day.jsonl", "w") as file:
            for name in changed:
                owner = f"owner-{int(name[1:]) % OWNERS}"
                texts[name] += f"Of day {day}.\n"
                file.write(
                    json.dumps({"title": name, "prompt": texts[name], "contributor": owner,
                                "tags": [f"tag-{day % 7}"]}) + "\n"
                )  # fmt: skip
                path = f"/api/v1/repos/{owner}/{name}/raw"
                when = time.strftime(
                    "%d/%b/%Y:12:00:00 +0000", time.gmtime(time.time() - 86400 * (days - day))
                )
                lines += [
                    f'192.0.2.{client} - - [{when}] "GET {path} HTTP/1.1" 200 99 "-" "hub/1.0.0"'
                    for client in range(chance.randrange(1, 9))
                ]
        release.run(
            "import", f"{folder}/day.jsonl", "--contributor-column", "contributor",
            *(word for owner in range(OWNERS) for word in ("--allow-owner", f"owner-{owner}")),
        )  # fmt: skip
        changed = chance.sample(list(texts), prompts // 5)
    for name in chance.sample(list(texts), LABELLED):
        repo = f"owner-{int(name[1:]) % OWNERS}/{name}"
        release.run("label", "set", repo, "production", "1.0.0")
    Path(f"{folder}/access.log").write_text("\n".join(lines) + "\n")
    release.run("stats", "ingest", f"{folder}/access.log")


def paths_of(folder: str) -> tuple[list[str], dict[str, str]]:
    """The paths that readers request; and the hashes of texts that never change."""
    paths = ["/", "/top", "/new", "/tags", "/api/v1/repos", "/api/v1/repos?sort=new&page=2",
             "/api/v1/hub.json", "/api/v1/catalogue.jsonl", "/docs"]  # fmt: skip
    pinned = {}
    for record in Path(folder, "content").glob("*/*/*.json"):
        owner, name, version = *record.parts[-3:-1], record.stem
        sha256 = json.loads(record.read_text())["sha256"]
        repo = f"/api/v1/repos/{owner}/{name}"
        pinned[f"{repo}/versions/{version}.txt"] = sha256
        pinned[f"{repo}/raw?version={version}"] = sha256
        if version == "1.0.0":
            paths += [repo, f"{repo}/raw", f"{repo}/versions", f"/{owner}/{name}",
                      f"/{owner}/{name}/{version}", f"/{owner}"]  # fmt: skip
    return paths + list(pinned), pinned


def write_nginx(release: Release, port: int, upstream: int, folder: str) -> list[str]:
    """nginx as this release configures it: the former one wrote another file."""
    site = HostedSite(
        f"{folder}/site", listen=f"127.0.0.1:{port}", upstream=f"127.0.0.1:{upstream}",
        log=f"{folder}/access.log", reads_per_minute=0,
    )  # fmt: skip
    os.makedirs(f"{folder}/conf", exist_ok=True)
    with open(f"{folder}/conf/nginx.conf", "w") as file:
        file.write(whole(configuration("nginx", site)))
    as_root = "user root; " if os.geteuid() == 0 else ""
    directives = f"{as_root}pid {folder}/nginx.pid;"
    return ["nginx", "-c", f"{folder}/conf/nginx.conf", "-e", "stderr", "-g", directives]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", nargs="?", default="HEAD~1", metavar="OLD")
    parser.add_argument("--prompts", type=int, default=400)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--folder", help="where to put the hub; default: a temporary folder")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(options.folder or tempfile.gettempdir()))
        git = ["git", "-C", ROOT, "worktree"]
        checkout = f"{folder}/old"
        subprocess.run([*git, "add", "--quiet", "--detach", checkout, options.old], check=True)
        stack.callback(subprocess.run, [*git, "remove", "--force", checkout], check=True)
        os.mkdir(f"{folder}/content")
        port, upstream = free_port(), free_port()
        old, new = (Release(one, folder, f"http://127.0.0.1:{port}") for one in (checkout, ROOT))
        make_month(old, folder, options.prompts, options.days)
        run_upgrade(old, new, folder, port, upstream)
        print_machine(folder)


def run_upgrade(old: Release, new: Release, folder: str, port: int, upstream: int) -> None:
    paths, pinned = paths_of(folder)
    with ExitStack() as stack:
        with old.serving(upstream):
            nginx = write_nginx(old, port, upstream, folder)
            subprocess.run(nginx, check=True)
            stack.callback(subprocess.run, [*nginx, "-s", "quit"], check=True)
            readers = stack.enter_context(Readers(port, paths, pinned))
            time.sleep(3)
            before = readers.reads
            began = time.monotonic()
        stopped = time.monotonic()
        with new.serving(upstream):
            healthy = time.monotonic()
            write_nginx(new, port, upstream, folder)
            subprocess.run([*nginx, "-s", "reload"], check=True)
            time.sleep(3)
            meanwhile = readers.reads - before
            readers.__exit__()
            found = new.run("doctor", "--offline", may_fail=True)
    problems = [line for line in found.splitlines() if line.startswith("problem")]
    rows = [
        ("versions, each requested by its hash", len(pinned) // 2),
        ("seconds until the old release had stopped", stopped - began),
        ("seconds until the new one was healthy, its site built", healthy - stopped),
        ("reads meanwhile", meanwhile),
        ("failed reads", sum(readers.failures.values())),
        ("problems that hubctl doctor finds", len(problems)),
    ]
    print_table("Upgrade behind nginx", ("", ""), rows)
    for what in [*readers.failures.most_common(5), *problems]:
        print(what)


if __name__ == "__main__":
    main()
