"""Compares two versions of the project at the same work, in turns.

    python bench/bench_versions.py OLD NEW
    python bench/bench_versions.py OLD NEW --versions 1,500,2500,9900
    python bench/bench_versions.py OLD NEW --builds

OLD and NEW are checkouts; both run in this environment. The figures are processor time, which other
programs on the machine disturb least. A ratio above 1 means that NEW takes less. ``--versions``
measures publications to prompts with so many versions instead: one without a label, and one whose
label moved to each version. ``--builds`` measures cold builds alone, and counts their files.
``--files``: one prompt in three has files.
"""

import argparse
import contextlib
import glob
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

import msgspec
from catalogue import FIRST_DAY, TIME_FORMAT, Catalogue, publish
from processes import environment, run
from report import median, print_machine, print_table, scratch_folder, spread
from servers import free_port

from builder.model.records import StoredFile
from builder.model.version_files import content_sha256, media_type

COMMAND = "import sys; sys.path.insert(0, {!r}); from cli.hubctl import main; main()"
START_SECONDS_MAX = 600
LABEL = "production"
PUBLICATIONS = 30
SCRIPT = b"import json\n\nwith open('data.json') as file:\n    print(json.load(file))\n" * 10
WORDS = "summary email report value change error system model context prompt plan code".split()
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Version(NamedTuple):
    """A checkout, and the folders on which it works."""

    checkout: str
    folder: str

    def command(self, *arguments: str) -> list[str]:
        places = [f"--{what}={self.folder}/{what}" for what in ("content", "out", "state")]
        return [sys.executable, "-c", COMMAND.format(self.checkout), *arguments, *places]


class Server(NamedTuple):
    """A running `hubctl serve`: a connection to it, and its process."""

    connection: http.client.HTTPConnection
    pid: int
    token: str

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        found = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status}\n{found.decode()}")
        return found

    def cpu_seconds(self) -> float:
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--repos", type=int, default=2_000, metavar="N")
    parser.add_argument("--each", type=int, default=3, metavar="M", help="versions of each repo")
    parser.add_argument("--versions", metavar="N,…", help="only publish to prompts with so many")
    parser.add_argument("--builds", action="store_true", help="only measure cold builds")
    parser.add_argument("--files", action="store_true", help="one prompt in three has files")
    parser.add_argument("--rounds", type=int, default=5, metavar="K")
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    checkouts = [os.path.abspath(one) for one in (options.old, options.new)]
    found: dict[str, tuple[list[float], list[float]]] = {}
    sizes: dict[int, tuple[int, int, int]] = dict.fromkeys((0, 1), (0, 0, 0))
    counts = [int(one) for one in options.versions.split(",")] if options.versions else []
    with scratch_folder(options.scratch) as scratch:
        Catalogue(options.repos, options.each).write(f"{scratch}/content")
        if options.files:
            add_files(f"{scratch}/content")
        for count in counts:
            write_versions(f"{scratch}/content", count)
        for number in range(options.rounds):
            # The version that is first in one round is second in the next.
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                version = Version(checkouts[which], f"{scratch}/{number}-{which}")
                shutil.copytree(f"{scratch}/content", f"{version.folder}/content")
                found_now = measure_busy(version, counts) if counts else measure(version)
                # The first kind of work is the cold build.
                for name, seconds in islice(found_now, 1 if options.builds else None):
                    found.setdefault(name, ([], []))[which].append(seconds)
                if options.builds:
                    sizes[which] = sizes_of(f"{version.folder}/out")
                shutil.rmtree(version.folder)
        print_table(
            f"{options.repos:,} repos × {options.each} versions; processor seconds, medians of "
            f"{options.rounds} rounds",
            ("", "old", "new", "old ÷ new", ""),
            [
                [name, median(old), median(new), median(ratios(old, new)), spread(ratios(old, new))]
                for name, (old, new) in found.items()
            ],
        )
        for checkout, (files, inodes, folders) in zip(checkouts, sizes.values(), strict=True):
            print(f"{checkout}: {files:,} files ({inodes:,} without links), {folders:,} folders")
        print_machine(scratch)


def sizes_of(root: str) -> tuple[int, int, int]:
    """The files of a site, those that are no links to others, and the folders."""
    inodes, files, folders = set(), 0, 0
    for path, names, found in os.walk(root):
        folders += len(names)
        files += len(found)
        inodes.update(os.stat(f"{path}/{name}").st_ino for name in found)
    return files, len(inodes), folders


def ratios(old: list[float], new: list[float]) -> list[float]:
    return [one / other for one, other in zip(old, new, strict=True)]


def measure(version: Version) -> Iterator[tuple[str, float]]:
    """The seconds of each kind of work."""
    yield "cold build", run(version.command("build")).cpu_seconds
    yield "build with nothing to do", run(version.command("build")).cpu_seconds
    content = f"{version.folder}/content"
    owner = min(os.listdir(content))
    name = min(each for each in os.listdir(f"{content}/{owner}") if "." not in each)
    publish(content, owner, name, "One more line.")
    yield "build after one version", run(version.command("build")).cpu_seconds
    repo = f"/api/v1/repos/{owner}/{name}"
    with serving(version, owner) as server:
        yield "5,000 reads", timed(server, 5_000, lambda _: server.ask("GET", f"{repo}/raw"))
        yield (
            "5,000 reads of a list",
            timed(server, 5_000, lambda _: server.ask("GET", "/api/v1/repos?sort=top")),
        )
        yield "1,000 searches", timed(server, 1_000, lambda number: server.ask(
            "GET", f"/api/v1/repos?q=review+{WORDS[number % len(WORDS)]}&page=1"
        ))  # fmt: skip
        yield "50 publications", timed(server, 50, lambda number: server.ask(
            "POST", f"/api/v1/repos/{owner}/bench-{number % 5}/versions",
            {"content": f"Text {number}."},
            Authorization=f"Bearer {server.token}", **{"Content-Type": "application/json"},
        ))  # fmt: skip
        call = {"name": "get_prompt", "arguments": {"id": f"{owner}/{name}"}}
        yield "5,000 tool calls", timed(server, 5_000, lambda number: server.ask(
            "POST", "/mcp",
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call},
            Accept="application/json, text/event-stream", **{"Content-Type": "application/json"},
        ))  # fmt: skip


def add_files(content: str) -> None:
    """Give each third prompt a script, a reference, which is its own text, and data."""
    folders = sorted(glob.glob(f"{content}/*/*/"))
    for record_path in (path for one in folders[::3] for path in glob.glob(f"{one}*.json")):
        version = record_path.removesuffix(".json")
        with open(record_path) as file:
            record = json.load(file)
        with open(f"{version}.md", "rb") as file:
            files = {"data.json": b'{"a": 1}\n', "notes.md": file.read(), "run.py": SCRIPT}
        os.mkdir(f"{version}.files")
        for path, data in files.items():
            with open(f"{version}.files/{path}", "wb") as file:
                file.write(data)
        listed = [
            StoredFile(path, len(data), hashlib.sha256(data).hexdigest(), media_type(path), False)
            for path, data in files.items()
        ]
        record |= {"files": listed, "content_sha256": content_sha256(record["sha256"], listed)}
        with open(record_path, "wb") as file:
            file.write(msgspec.json.encode(record))


def write_versions(content: str, count: int) -> None:
    """Write two prompts of ``busy`` with so many versions; each version of one of them took the
    label.
    """
    for name, is_labelled in ((f"plain-{count}", False), (f"labelled-{count}", True)):
        folder = f"{content}/busy/{name}"
        os.makedirs(folder)
        for number in range(count):
            text = f"Version {number} of a prompt for {{{{topic}}}}.\n"
            at = FIRST_DAY + timedelta(minutes=number)
            record = {
                "publisher": "busy", "published_at": at.strftime(TIME_FORMAT), "title": name,
                "sha256": hashlib.sha256(text.encode()).hexdigest(), "ordinal": number + 1,
                "changelog": f"Change {number}.", "variables": [{"name": "topic"}],
            }  # fmt: skip
            record |= {"labels": [LABEL], "label_number": number + 1} if is_labelled else {}
            for kind, data in (("md", text), ("json", json.dumps(record))):
                with open(f"{folder}/1.0.{number}.{kind}", "w") as file:
                    file.write(data)


def measure_busy(version: Version, counts: list[int]) -> Iterator[tuple[str, float]]:
    """The seconds of a publication to each prompt of ``write_versions``."""
    with serving(version, "busy") as server:
        for count in counts:
            for kind, labels in (("plain", []), ("labelled", [LABEL])):
                seconds = timed(server, PUBLICATIONS, lambda number: server.ask(
                    "POST", f"/api/v1/repos/busy/{kind}-{count}/versions",  # noqa: B023
                    {"content": f"Text {number} about {{{{topic}}}}.\n", "labels": labels},  # noqa: B023
                    Authorization=f"Bearer {server.token}", **{"Content-Type": "application/json"},
                ))  # fmt: skip
                suffix = ", label moved" if labels else ""
                yield f"publication, {count:,} versions{suffix}", seconds / PUBLICATIONS


def timed(server: Server, count: int, work: Callable[[int], object]) -> float:
    work(0)  # one-time work is not counted
    started = server.cpu_seconds()
    for number in range(1, count + 1):
        work(number)
    return server.cpu_seconds() - started


@contextlib.contextmanager
def serving(version: Version, owner: str) -> Iterator[Server]:
    state = f"--state={version.folder}/state"
    hubctl = [sys.executable, "-c", COMMAND.format(version.checkout)]
    run([*hubctl, "owner", "add", owner, state])
    token = run([*hubctl, "token", "create", owner, "--name=bench", state]).output
    token = next(word for word in token.split() if word.startswith("hub_"))
    port = free_port()
    command = version.command("serve", f"--port={port}", "--rate-limit=0", "--publish-limit=0")
    with open(f"{version.folder}/log", "w+b") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
        try:
            yield Server(connect(process, port), process.pid, token)
        finally:
            process.terminate()
            process.wait()


def connect(process: subprocess.Popen, port: int) -> http.client.HTTPConnection:
    """A connection to a server that has built. Ends the benchmark if it never becomes ready."""
    end = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < end and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        with contextlib.suppress(OSError):
            connection.request("GET", "/healthz")
            if json.load(connection.getresponse())["status"] == "ok":
                return connection
        connection.close()
        time.sleep(0.1)
    raise SystemExit("The server did not start.")


if __name__ == "__main__":
    main()
