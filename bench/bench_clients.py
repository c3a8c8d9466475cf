"""The Python and TypeScript clients beside Langfuse's SDKs, with one server that answers all after
the same delay.

Each turn starts a process for each client, one after the other. It takes the time of the first
``get``, whose requests the server counts, then that of ``get`` from memory and of filling in a text
with two variables. For Langfuse's SDKs, name an interpreter that has the one for Python, and a
folder whose ``node_modules`` has the one for JavaScript.
"""

import argparse
import hashlib
import http.server
import json
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from report import median, print_machine, print_table

TEXT = (
    "Review this {{language}} change.\n" + "Look at every line of it, twice. " * 50 + "\n{{diff}}\n"
)
CACHED_AIM_US = 5
CLIENTS = pathlib.Path(__file__).parents[1] / "clients"
NODE = CLIENTS.parent / "tests/node/node_modules/.bin/node"
RECORD = {
    "owner": "ada", "name": "code-review", "label": "production", "version": "1.0.0",
    "content": TEXT, "body": TEXT, "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
    "variables": [{"name": name, "type": "string"} for name in ("language", "diff")],
    "parameters": {"temperature": 0.2},
}  # fmt: skip
LANGFUSE = {
    "name": "code-review", "version": 1, "type": "text", "prompt": TEXT, "labels": ["production"],
    "tags": [], "config": {"temperature": 0.2}, "commitMessage": None, "resolutionGraph": None,
}  # fmt: skip

# The program of each client's process. It prints the seconds of the import, of the first get, of a
# get from memory, and of filling in.
MEASURE = """
import sys, time
url, count = sys.argv[1], int(sys.argv[2])
started = time.perf_counter()
{setup}
imported = time.perf_counter()
prompt = {get}
first = time.perf_counter()
for _ in range(count):
    {get}
cached = time.perf_counter()
for _ in range(count):
    prompt.{fill}(language="Python", diff="+ 1")
filled = time.perf_counter()
print(imported - started, first - imported, (cached - first) / count, (filled - cached) / count)
"""
HUB = MEASURE.format(
    setup="from hub_prompts import Hub\nhub = Hub(url, disk=False)",
    get='hub.get("ada/code-review@production")', fill="fill",
)  # fmt: skip
SDK = MEASURE.format(
    setup="from langfuse import Langfuse\n"
    'hub = Langfuse(public_key="p", secret_key="s", base_url=url, tracing_enabled=False)',
    get='hub.get_prompt("code-review", label="production")', fill="compile",
)  # fmt: skip

# The same in JavaScript. The measured code is part of the program, so an import needs no name.
MEASURE_JS = """
const [url, count] = [process.argv[1], Number(process.argv[2])];
const started = performance.now();
{setup}
const imported = performance.now();
const prompt = {get};
const first = performance.now();
for (let at = 0; at < count; at++) {get};
const cached = performance.now();
for (let at = 0; at < count; at++) prompt.{fill}({{ language: "Python", diff: "+ 1" }});
const filled = performance.now();
const times = [imported - started, first - imported];
times.push((cached - first) / count, (filled - cached) / count);
console.log(times.map((one) => one / 1000).join(" "));
"""
HUB_JS = MEASURE_JS.format(
    setup=f"const {{ Hub }} = await import('{(CLIENTS / 'typescript/hub.js').as_uri()}');\n"
    "const hub = new Hub(url, { store: false });",
    get='await hub.get("ada/code-review@production")', fill="fill",
)  # fmt: skip
SDK_JS = MEASURE_JS.format(
    setup='const { LangfuseClient } = await import("@langfuse/client");\n'
    'const hub = new LangfuseClient({ publicKey: "p", secretKey: "s", baseUrl: url });',
    get='await hub.prompt.get("code-review", { label: "production" })', fill="compile",
)  # fmt: skip


@contextmanager
def server(delay_seconds: float) -> Iterator[tuple[str, list[str]]]:
    """The URL of a server that answers both clients, and the paths of the requests to it."""
    requested_paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested_paths.append(self.path)
            time.sleep(delay_seconds)
            is_hub = self.path.startswith("/api/v1/")
            body = json.dumps({"data": RECORD} if is_hub else LANGFUSE).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Cache-Control", "public, max-age=3600")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listener.server_address[1]}", requested_paths
        listener.shutdown()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--langfuse", metavar="PYTHON", help="an interpreter that has langfuse")
    parser.add_argument(
        "--langfuse-js", metavar="FOLDER", help="a folder with @langfuse/client in node_modules"
    )
    parser.add_argument("--delay", type=float, default=25, help="of each answer, in milliseconds")
    parser.add_argument("--gets", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    python = options.langfuse or sys.executable
    script = [NODE, "--input-type=module", "--eval"]
    clients = {"hub_prompts": ([python, "-c", HUB], "."), "hub.js": ([*script, HUB_JS], ".")}
    if options.langfuse:
        clients["langfuse"] = ([python, "-c", SDK], ".")
    if options.langfuse_js:
        clients["@langfuse/client"] = ([*script, SDK_JS], options.langfuse_js)
    found: dict[str, list[list[float]]] = {name: [] for name in clients}
    requests = {}
    for _ in range(options.turns):
        for name, (command, folder) in clients.items():
            with server(options.delay / 1000) as (url, requested_paths):
                done = subprocess.run(
                    [*command, url, str(options.gets)], check=True, text=True, cwd=folder,
                    stdout=subprocess.PIPE, env={"PYTHONPATH": str(CLIENTS / "python")},
                )  # fmt: skip
            found[name].append([float(one) for one in done.stdout.split()])
            requests[name] = len(requested_paths)
    rows = []
    for name, turns in found.items():
        imported, first, cached, filled = (median(one) for one in zip(*turns, strict=True))
        rows.append(
            [name, f"{imported * 1e3:.0f}", requests[name], f"{first * 1e3:.1f}",
             f"{cached * 1e6:.2f}", f"{filled * 1e6:.1f}"]
        )  # fmt: skip
    print_table(
        f"Reading a prompt, each answer after {options.delay:g} ms, median of {options.turns}",
        ["", "import ms", "requests", "first get ms", "cached get µs", "fill µs"],
        rows,
    )
    print(f"Aim of ours: one request, and {CACHED_AIM_US} µs for a cached get.")
    print_machine(".")


if __name__ == "__main__":
    main()
