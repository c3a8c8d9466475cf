"""Starts the real commands as processes, for tests over real HTTP.

The fixtures are known everywhere through ``conftest``.
"""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from builder.model.settings import Settings
from builder.pipeline.build import build
from publisher.accounts.database import Database
from publisher.accounts.teams import Teams
from publisher.accounts.token import Grant
from publisher.accounts.tokens import Accounts
from tests.support.catalogues import write_files, write_json
from tests.support.forks import Fork

PROJECT = Path(__file__).parents[2]
SAMPLE = PROJECT / "content"
HUBCTL = str(Path(sys.executable).with_name("hubctl"))
# No passing test waits this long, so it can be long enough for a busy machine.
DEADLINE_SECONDS = 300


def wait_until(
    condition: Callable[[], object], what: str, state: Callable[[], str] = str
) -> object:
    """Poll until ``condition`` returns a true value, and return it.

    At the deadline, ``state`` describes in the error what is found instead.
    """
    end = time.monotonic() + DEADLINE_SECONDS
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"waited in vain for {what}{state()}"
        time.sleep(0.01)


def clean_environment(**changes: str) -> dict[str, str]:
    """The environment for a command: this process's, without variables that would change the
    command.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HUB_")}
    return kept | changes


class Process:
    """A server process, and the lines that it has written."""

    def __init__(
        self, *command: str, env: dict[str, str] | None = None, stdin: int | None = None,
        start: Callable[..., subprocess.Popen | Fork] = subprocess.Popen,
    ) -> None:  # fmt: skip
        self.lines: list[str] = []
        self._process = start(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=env or clean_environment(), stdin=stdin,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for_line(self, part: str) -> str:
        """The first line with ``part`` in it; fails if the process ends without one."""

        def find() -> str | None:
            found = next((line for line in self.lines if part in line), None)
            assert found or self._process.poll() is None or self._reader.is_alive(), self.text
            return found

        return wait_until(find, f"a line with {part!r} in:\n", lambda: self.text)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit status."""
        try:
            return self._process.wait(DEADLINE_SECONDS)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._reader.join()
            self._process.stdout.close()
            if self._process.stdin:
                self._process.stdin.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self._process.poll() is None:
            self.send(number)
        return self.wait()


class RawAnswer(NamedTuple):
    """An answer as it came over the wire. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Server:
    """A live `hubctl serve`. ``url`` is its base URL; ``origin`` the same without a path."""

    def __init__(self, process: Process, settings: Settings) -> None:
        self.process = process
        self.settings = settings
        line = process.wait_for_line("(stop with Ctrl-C)")
        self.url = line.partition(" at ")[2].split()[0].rstrip("/")
        scheme, _, rest = self.url.partition("://")
        self.origin = f"{scheme}://{rest.partition('/')[0]}"
        self.host, _, port = rest.partition("/")[0].rpartition(":")
        self.port = int(port)
        self.session = new_session()
        self.session.headers["Accept-Encoding"] = "identity"

    def get(self, path: str, **options) -> requests.Response:
        return self.request("GET", path, **options)

    def request(self, method: str, path: str, **options) -> requests.Response:
        options = {"timeout": DEADLINE_SECONDS, "allow_redirects": False} | options
        return self.session.request(method, self.url + path, **options)

    def raw(self, target: bytes, *headers: bytes, method: bytes = b"GET") -> RawAnswer:
        """Request exactly this target, which a client library would refuse or normalize."""
        lines = [method + b" " + target + b" HTTP/1.1", b"Host: x", b"Connection: close", *headers]
        with self.connect() as connection:
            connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
            return read_answer(connection, method.decode())

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), DEADLINE_SECONDS)

    def close(self) -> int:
        """Stop the server; returns its exit status."""
        self.session.close()
        return self.process.stop()


def new_session() -> requests.Session:
    """A session that uses each connection once. The server closes idle connections, and a test that
    used one at that moment would fail.
    """
    session = requests.Session()
    session.headers["Connection"] = "close"
    return session


def read_answer(connection: socket.socket, method: str = "GET") -> RawAnswer:
    response = http.client.HTTPResponse(connection, method=method)
    try:
        response.begin()
        headers = {key.lower(): value for key, value in response.getheaders()}
        return RawAnswer(response.status, headers, response.read())
    finally:
        response.close()


def serve_command(settings: Settings, *options: str) -> list[str]:
    return [
        HUBCTL, "serve", "--content", settings.content, "--out", settings.out,
        "--state", settings.state, "--port", "0", *options,
    ]  # fmt: skip


@contextlib.contextmanager
def serving(settings: Settings, *options: str, rate_limit: int = 0) -> Iterator["Server"]:
    """A live server over these folders, stopped with SIGTERM at the end."""
    with running(
        serve_command(settings, "--rate-limit", str(rate_limit), *options), settings
    ) as server:
        yield server


@contextlib.contextmanager
def running(command: list[str], settings: Settings) -> Iterator["Server"]:
    """The live server that a command starts, stopped with SIGTERM at the end."""
    process = Process(*command, start=Fork if command[0] == HUBCTL else subprocess.Popen)
    try:
        server = Server(process, settings)
    except BaseException:
        process.stop(signal.SIGKILL)
        raise
    try:
        yield server
    finally:
        status = server.close()
    assert status == 0, f"exit status {status}\n{process.text}"


NGINX = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    types {{
        text/html html; text/css css; text/javascript js; image/svg+xml svg; image/png png;
        application/json json; application/xml xml; text/plain txt;
    }}
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path, *rules: str) -> Iterator[list[str]]:
    """nginx with a server for each of these rules; gives their URLs."""
    assert shutil.which("nginx"), "nginx is not there; install it with: sh tests/install-tools"
    ports = [free_port() for _ in rules]
    servers = "\n".join(
        f"server {{ listen 127.0.0.1:{port}; {rule} }}"
        for port, rule in zip(ports, rules, strict=True)
    )
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, servers=servers))
    process = Process("nginx", "-p", str(folder), "-c", str(config), "-e", "stderr")
    try:
        wait_until((folder / "pid").exists, "nginx")
        yield [f"http://127.0.0.1:{port}" for port in ports]
    finally:
        process.stop()


def run_schemathesis(url: str, folder: Path, config: str, examples: int, *methods: str) -> str:
    """Try the operations of an API document with some HTTP methods. Fails if the service differs
    from the document. Returns the output.

    ``config`` is Schemathesis's own, as TOML; ``examples``: how many for each operation.
    """
    (folder / "schemathesis.toml").write_text(config, encoding="utf-8")
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("st")), "--config-file", "schemathesis.toml",
            "run", url, *(f"--include-method={method}" for method in methods),
            "--phases", "examples,coverage,fuzzing",
            "--max-examples", str(examples), "--generation-deterministic", "--no-color",
        ],
        cwd=folder, env=clean_environment(PYTHONPATH=str(PROJECT)), capture_output=True, text=True,
        timeout=3 * DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def add_publisher(settings: Settings, owner: str) -> str:
    """Add an owner; returns a token for all of the owner's repos."""
    with Database(settings.state) as database:
        accounts = Accounts(database)
        accounts.add_owner(owner)
        return accounts.create_token(owner, "test")[0]


def add_team(settings: Settings, team: str) -> str:
    """Add a team with a maintainer and a writer; returns a token of the writer for the team."""
    with Database(settings.state) as database:
        accounts = Accounts(database)
        for person in ("ines", "walter"):
            accounts.add_owner(person)
        Teams(database).create(team, "ines")
        Teams(database).put(team, "walter", "writer", by="ines")
        return accounts.create_token("walter", "test", Grant([f"{team}/*"]))[0]


def sample_settings(folder: Path, base_url: str = "https://hub.example") -> Settings:
    """Folders with a copy of the sample catalogue; nothing is built."""
    shutil.copytree(SAMPLE, folder / "content")
    return Settings(
        f"{folder}/content", f"{folder}/site", f"{folder}/state", base_url, queries=True
    )


@contextlib.contextmanager
def file_host(folder: str, *options: str) -> Iterator[str]:
    """The URL of Python's file server, which compares modification times by whole seconds."""
    process = Process(
        sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1",
        "--directory", folder, *options,
    )  # fmt: skip
    try:
        line = process.wait_for_line("Serving HTTP on")
        yield line[line.index("(") + 1 : line.rindex(")")].rstrip("/")
    finally:
        process.stop()


@contextlib.contextmanager
def in_thread(server: socketserver.BaseServer) -> Iterator[None]:
    """Let a server of the standard library answer, in a thread of this process."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


_given_ports: set[int] = set()


def free_port() -> int:
    """A port that nothing listens on, and another one each time: a host must not be its own
    upstream. It is below those that a system gives to outgoing connections, so no connection takes
    it before a server does, or while that server starts again.
    """
    while True:
        port = random.choice([*set(range(15_000, 32_000)) - _given_ports])
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            _given_ports.add(port)
            return port


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The sample catalogue, served without a rate limit, with files in one old version. Tests must
    not change its content.
    """
    settings = sample_settings(tmp_path_factory.mktemp("live"))
    folder = Path(settings.content, "sam-ferreira/diff-review")
    record = folder / "1.1.0.json"
    files = write_files(folder, "1.1.0", {"scripts/run.py": b"print(1)\n", "image.png": b"\x89"})
    write_json(record, json.loads(record.read_text()) | files)
    with serving(settings) as server:
        yield server


@pytest.fixture(scope="session")
def built_sample(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The sample catalogue, built with its search index. Tests must not change it."""
    settings = sample_settings(tmp_path_factory.mktemp("built"))
    build(settings)
    return settings


@pytest.fixture(scope="session")
def static_url(live: Server) -> Iterator[str]:
    """The live server's site on a host that has only files: Python's own file server."""
    with file_host(live.settings.out) as url:
        yield url
