"""Starts the servers that are compared, each on one core, and puts load on them with wrk.

Every server is a context manager that ends its own processes. All load goes to 127.0.0.1. To keep
each client under the limit of reads, requests come from many addresses in turn, by
``X-Forwarded-For``.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from processes import HUBCTL, environment, process_tree

from builder.hosts.configuration import HostedSite, configuration

CLIENTS = 20_000
CONNECTIONS = 32
BASE_URL = "http://127.0.0.1:8000"  # the site's address, to which no request goes
START_SECONDS_MAX = 600  # the server builds before it answers
PACKAGES = {"nginx": "nginx-light", "wrk": "wrk", "taskset": "util-linux"}

NGINX_CONF = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; etag on;
  open_file_cache max=20000 inactive=60s; open_file_cache_valid 60s;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  types {{ application/json json; text/plain txt; text/html html; text/css css; }}
  gzip on; gzip_types application/json text/plain; gzip_min_length 1024; gzip_comp_level 6;
  set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;
  limit_req_zone $binary_remote_addr zone=reads:32m rate={rate}r/m; limit_req_status 429;
  server {{
    listen 127.0.0.1:{port};
    root {site};
    {limit}
    add_header Cache-Control "public, max-age=15";
    add_header X-Content-Type-Options nosniff;
    add_header Access-Control-Allow-Origin *;
  }}
}}
"""

# The directives about connections are those of the generated configuration, since these are not
# compared.
BARE_NGINX_CONF = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  access_log {log}; sendfile on; tcp_nopush on; keepalive_requests 100000; {more}
  client_body_temp_path {folder}/temp; proxy_temp_path {folder}/temp;
  fastcgi_temp_path {folder}/temp; uwsgi_temp_path {folder}/temp; scgi_temp_path {folder}/temp;
  types {{ application/json json; text/plain txt; text/html html; }}
  server {{ listen 127.0.0.1:{port}; root {site}; }}
}}
"""

WRK_LUA = """
local requests = {{}}
local paths = {{{paths}}}
local turn = 0
function init(args)
  for i = 1, {clients} do
    wrk.headers["X-Forwarded-For"] =
      string.format("10.%d.%d.%d", math.floor(i / 65536), math.floor(i / 256) % 256, i % 256)
    requests[i] = wrk.format("GET", paths[(i - 1) % #paths + 1])
  end
end
{headers}
function request()
  turn = turn % #requests + 1
  return requests[turn]
end
function done(summary, latency, requests)
  local e = summary.errors
  local broken = e.connect + e.read + e.write + e.timeout
  local figures = {{
    requests = summary.requests, microseconds = summary.duration, bytes = summary.bytes,
    refused = e.status, broken = broken,
    p50 = math.floor(latency:percentile(50)), p99 = math.floor(latency:percentile(99)),
  }}
  for key, value in pairs(figures) do
    io.write(string.format("\\n%s=%d", key, value))
  end
end
"""


class Server(NamedTuple):
    """A server that answers at ``url``."""

    url: str
    pid: int


class Load(NamedTuple):
    """The answers of a server. ``refused``: other than 2xx and 3xx.

    ``reads_per_cpu_second`` is by the server's own processor time: its rate with a core of its own,
    even if the load or other work on the machine delays it.
    """

    reads_per_second: float
    reads_per_cpu_second: float
    bytes_per_read: float
    p50_milliseconds: float
    p99_milliseconds: float
    refused: int
    broken: int


def missing_programs() -> list[str]:
    """The Debian packages that must be installed first."""
    return [package for program, package in PACKAGES.items() if not shutil.which(program)]


@contextlib.contextmanager
def nginx(site: str, folder: str, core: int | None, rate_limit: int) -> Iterator[Server]:
    """nginx with one worker. ``rate_limit``: reads a minute for each client, 0 for none."""
    port = free_port()
    limit = f"limit_req zone=reads burst={rate_limit} nodelay;" if rate_limit else ""
    conf = NGINX_CONF.format(
        folder=folder, site=site, port=port, limit=limit, rate=rate_limit or 120
    )
    with started_nginx(conf, folder, port, core) as server:
        yield server


@contextlib.contextmanager
def bare_nginx(
    site: str, folder: str, core: int | None, log: bool = False, more: str = ""
) -> Iterator[Server]:
    """nginx with one worker that only serves the files of a folder by their paths.

    ``log``: with nginx's default log. ``more``: additional directives.
    """
    port = free_port()
    own = f"{folder}/bare-{port}"
    os.mkdir(own)
    conf = BARE_NGINX_CONF.format(
        folder=own, site=site, port=port, more=more, log=f"{own}/access.log" if log else "off"
    )
    with started_nginx(conf, own, port, core) as server:
        yield server


@contextlib.contextmanager
def generated_nginx(site: HostedSite, folder: str, core: int | None) -> Iterator[Server]:
    """nginx as ``hubctl hosts nginx`` prints it, with one worker, on a free port."""
    site, port, own = _placed(site, folder, "nginx")
    conf = configuration("nginx", site._replace(log=f"{own}/access.log"))
    main = f"worker_processes 1; daemon off; pid {own}/pid; pcre_jit on; events {{}}"
    conf = f"{main}\nhttp {{\n{conf}}}\n"
    with started_nginx(conf, own, port, core) as server:
        yield server


@contextlib.contextmanager
def other_nginx(path: str, site: HostedSite, folder: str, core: int | None) -> Iterator[Server]:
    """nginx with another whole configuration for the same site, in which ``@out@``, ``@listen@``,
    ``@upstream@`` and ``@folder@`` (for its logs) stand for their values.
    """
    site, port, own = _placed(site, folder, "other")
    with open(path) as file:
        conf = file.read()
    for name in ("out", "listen", "upstream"):
        conf = conf.replace(f"@{name}@", getattr(site, name))
    with started_nginx(conf.replace("@folder@", own), own, port, core) as server:
        yield server


@contextlib.contextmanager
def generated_caddy(site: HostedSite, folder: str, core: int | None) -> Iterator[Server]:
    """Caddy as ``hubctl hosts caddy`` prints it, on a free port."""
    site, port, own = _placed(site, folder, "caddy")
    text = "{\n\tadmin off\n}\n" + configuration("caddy", site)
    path = f"{own}/Caddyfile"
    with open(path, "w") as file:
        file.write(text)
    command = ["caddy", "run", "--config", path, "--adapter", "caddyfile"]
    with started_server(command, port, core, {"HOME": own}) as server:
        yield server


def _placed(site: HostedSite, folder: str, program: str) -> tuple[HostedSite, int, str]:
    """The site at a port of its own, that port, and a folder."""
    port = free_port()
    own = f"{folder}/{program}-{port}"
    os.mkdir(own)
    return site._replace(listen=f"127.0.0.1:{port}"), port, own


@contextlib.contextmanager
def started_nginx(conf: str, folder: str, port: int, core: int | None) -> Iterator[Server]:
    path = f"{folder}/nginx-{port}.conf"
    with open(path, "w") as file:
        file.write(conf)
    command = ["nginx", "-p", folder, "-c", path, "-e", f"{folder}/nginx.log"]
    if os.geteuid() == 0:
        # As root, nginx would change to another user, who cannot read the folder.
        command += ["-g", "user root;"]
    with started_server(command, port, core) as server:
        yield server


@contextlib.contextmanager
def hub(
    folder: str, core: int | None, rate_limit: int, options: Sequence[str] = ()
) -> Iterator[Server]:
    """The embedded server on ``content``, ``site`` and ``state`` below ``folder``.

    ``options``: more options of ``hubctl serve``.
    """
    port = free_port()
    command = [
        *HUBCTL, "serve", "--content", f"{folder}/content", "--out", f"{folder}/site",
        "--state", f"{folder}/state", "--host", "127.0.0.1", "--port", str(port),
        "--rate-limit", str(rate_limit), "--trusted-proxy", "127.0.0.1",
        "--base-url", BASE_URL, *options,
    ]  # fmt: skip
    with started_server(command, port, core) as server:
        yield server


@contextlib.contextmanager
def mlflow(folder: str, python: str) -> Iterator[Server]:
    """MLflow's server with one worker and SQLite below ``folder``, run by ``python``.

    Without its telemetry and without its job runner, seven processes that no prompt needs.
    """
    port = free_port()
    command = [
        python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
        "--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
        "--default-artifact-root", f"{folder}/mlflow-artifacts",
    ]  # fmt: skip
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with started_server(command, port, None, quiet) as server:
        yield server


@contextlib.contextmanager
def started_server(
    command: list[str], port: int, core: int | None, variables: Mapping[str, str] | None = None
) -> Iterator[Server]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            pinned(command, core), stdout=log, stderr=subprocess.STDOUT,
            env={**environment(), **(variables or {})},
            # A process group of its own: the server's children end with it.
            start_new_session=True,
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + START_SECONDS_MAX
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise SystemExit(f"{command[0]} did not start:\n{log.read().decode()}")
                time.sleep(0.1)
            yield Server(url, process.pid)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def fetch(server: Server, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], int]:
    """Status, headers (names in lower case) and bytes of the body of one answer."""
    request = urllib.request.Request(
        server.url + path, headers={"X-Forwarded-For": "192.0.2.1", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            found = {key.lower(): value for key, value in response.headers.items()}
            return response.status, found, len(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {key.lower(): value for key, value in error.headers.items()}, 0


def load(
    server: Server,
    paths: list[str],
    headers: dict[str, str],
    seconds: int,
    core: int | None,
    connections: int = CONNECTIONS,
) -> Load:
    """Read ``paths`` in turn for some seconds, as fast as the server answers."""
    fixed = "\n".join(
        f"wrk.headers[{json.dumps(key)}] = {_lua(value)}" for key, value in headers.items()
    )
    script = WRK_LUA.format(
        paths=", ".join(map(_lua, paths)), clients=max(CLIENTS, len(paths)), headers=fixed
    )
    found, used_seconds = run_wrk(server, script, connections, seconds, core)
    return Load(
        reads_per_second=found["requests"] / (found["microseconds"] / 1e6),
        reads_per_cpu_second=found["requests"] / max(0.01, used_seconds),
        bytes_per_read=found["bytes"] / max(1, found["requests"]),
        p50_milliseconds=found["p50"] / 1000,
        p99_milliseconds=found["p99"] / 1000,
        refused=found["refused"],
        broken=found["broken"],
    )


def run_wrk(
    server: Server, script: str, connections: int, seconds: int, core: int | None
) -> tuple[dict[str, int], float]:
    """The figures that wrk prints as ``name=number`` lines at the end of a script, and the server's
    processor seconds meanwhile.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = [
            "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s",
            "-s", file.name, server.url,
        ]  # fmt: skip
        before = cpu_seconds(server)
        done = subprocess.run(
            pinned(command, core), capture_output=True, text=True, timeout=seconds + 60
        )
        used_seconds = cpu_seconds(server) - before
    if done.returncode:
        raise SystemExit(f"wrk failed:\n{done.stdout}{done.stderr}")
    found = re.findall(r"^(\w+)=(\d+)$", done.stdout, re.M)
    return {key: int(value) for key, value in found}, used_seconds


def _lua(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pinned(command: list[str], core: int | None) -> list[str]:
    return command if core is None else ["taskset", "-c", str(core), *command]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def cpu_seconds(server: Server) -> float:
    """Processor time of a server so far, with all its threads and running processes."""
    seconds = 0.0
    for pid in process_tree(server.pid):
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds
