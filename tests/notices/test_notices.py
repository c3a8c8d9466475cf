"""The conformance suite notices faults: hosts that do one thing wrong each, and what it says.

All of them are one server with the real application, and a fault for each port.
"""

import asyncio
import contextlib
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import uvicorn

from builder.model.routes import API
from builder.pipeline.build import build
from server.app import Receive, Scope, Send
from server.mount import App, Hub
from tests.conformance import hosts
from tests.conformance.deployment import CAPABILITIES, Deployment
from tests.conformance.hosts import Host
from tests.conformance.sample import CANARY
from tests.notices.faults import FAULTS, SERVICE, Fault, Reply
from tests.server.running import reads_of
from tests.support.catalogues import write_small_catalogue
from tests.support.depth import some
from tests.support.hubs import Hub as PublishHub
from tests.support.servers import (
    DEADLINE_SECONDS,
    PROJECT,
    clean_environment,
    free_port,
    wait_until,
)

SUITE = str(PROJECT / "tests" / "conformance")
SOUND = "sound"
QUIET = ["-p", "no:cacheprovider", "-q"]


class FaultyServer:
    """The real application on many ports, each with its fault; ASGI."""

    def __init__(self, app: App, faults: dict[int, Fault]) -> None:
        self._app = app
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        fault = self._faults.get(scope["server"][1])
        sent: list[dict[str, Any]] = []

        async def keep(event: dict[str, Any]) -> None:
            sent.append(event)

        await self._app(fault.request(scope) if fault else scope, receive, keep)
        start, *parts = sent
        headers = {key.decode().lower(): value.decode() for key, value in start["headers"]}
        body = b"".join(part.get("body", b"") for part in parts)
        reply = Reply(start["status"], headers, body)
        if fault and fault.when(scope, reply):
            reply = fault.change(scope, reply)
        pairs = [(key.encode(), value.encode()) for key, value in reply.headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": pairs})
        # A length that is wrong goes out as it is.
        data = b"" if scope["method"] == "HEAD" else reply.body
        await send({"type": "http.response.body", "body": data})


TRIED = dict(some(FAULTS.items()))


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of each faulty host, and of one without a fault."""
    folder = tmp_path_factory.mktemp("faulty")
    write_small_catalogue(folder / "content")
    listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in (SOUND, *FAULTS)}
    for listener in listeners.values():
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
    # All hosts are one address.
    publisher = PublishHub(folder, wrong_tokens=0)
    settings = publisher.settings._replace(queries=True, langfuse=True)
    build(settings)
    with contextlib.closing(publisher):
        app = Hub(reads_of(settings), publisher.app)
        faulty = FaultyServer(app, {ports[name]: fault for name, fault in FAULTS.items()})
        config = uvicorn.Config(
            faulty, http="httptools", lifespan="off", log_config=None, access_log=False
        )
        server = uvicorn.Server(config)
        sockets = list(listeners.values())
        thread = threading.Thread(target=partial(asyncio.run, server.serve(sockets=sockets)))
        thread.start()
        try:
            wait_until(lambda: server.started, "the faulty server")
            yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        finally:
            server.should_exit = True
            thread.join()


class Report:
    """A plugin that keeps what a run of the suite says, by host."""

    def __init__(self) -> None:
        self.failures: dict[str, list[str]] = {}
        self.passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            host = report.nodeid.rpartition("[")[2].rstrip("]")
            # After the name of what is tested, in which there may be hyphens, too.
            names = [name for name in (SOUND, *FAULTS) if f"-{host}".endswith(f"-{name}")]
            name = max(names, key=len)
            self.failures.setdefault(name, []).append(str(report.longrepr))
        elif report.when == "call":
            self.passed += 1


@pytest.fixture(scope="module")
def report(urls: dict[str, str]) -> Report:
    """Reports of the suite for every host, from one run inside this process."""
    lacks = dict.fromkeys(("mcp", "token", "rate limit"), "they have tests of their own")
    rows = {SOUND: Host("full", partial(at, urls[SOUND]), lacks)}
    for name, fault in TRIED.items():
        level = "full" if name in SERVICE else "queries"
        rows[name] = Host(level, partial(at, urls[name]), areas={fault.area})
    found = Report()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hosts, "HOSTS", rows)
        options = [*QUIET, "--tb=no", "-r", "N"]
        assert pytest.main([SUITE, *options], plugins=[found]) == pytest.ExitCode.TESTS_FAILED
    return found


def at(url: str, workshop: object) -> contextlib.AbstractContextManager[Deployment]:
    """A host that runs already."""
    return contextlib.nullcontext(Deployment(url, may_lack_data=True))


def test_a_sound_host_passes(report: Report) -> None:
    assert report.failures.get(SOUND, []) == []
    assert report.passed > 500


@pytest.mark.parametrize("name", TRIED)
def test_a_fault_is_noticed_and_named(report: Report, name: str) -> None:
    failures = report.failures.get(name, [])
    text = "\n".join(failures)
    assert FAULTS[name].message in text, text[:3000] or "nothing was noticed"
    assert "did not expect this" not in text, text
    # The report has a command that repeats the request.
    assert "curl -sgi --path-as-is" in text


# As a user runs it


def test_the_report(urls: dict[str, str]) -> None:
    url = urls["wrong-count"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", SUITE, "-p", "no:cacheprovider", "--base-url", url,
         "--level", "files", "-k", "not hostile"],
        capture_output=True, text=True, cwd=PROJECT, timeout=DEADLINE_SECONDS,
        env=clean_environment(),
    )  # fmt: skip
    text = done.stdout
    assert done.returncode == 1 and not done.stderr
    assert f"{url}: level files" in text
    assert "not tested: rate limit (no --rate-limit)" in text
    assert (
        f"tags, {url.partition('://')[2]}:\n"
        f"GET {API}/tags.json\n"
        "    expected the tags of catalogue.jsonl, most used first, then by name\n"
        "    came     ('code', 3) and not ('code', 2)\n"
        f"    curl -sgi --path-as-is {url}{API}/tags.json\n"
    ) in text
    assert re.search(r"^=* ?1 failed, \d+ passed", text, re.MULTILINE)
    assert "Traceback" not in text and "assert " not in text


def test_an_address_without_a_hub_is_one_error(capfd: pytest.CaptureFixture[str]) -> None:
    for address, said in (
        (f"http://127.0.0.1:{free_port()}", "Connection refused"),
        ("prompts", "Invalid base URL"),
    ):
        status = pytest.main([SUITE, *QUIET, "--base-url", address])
        text = "".join(capfd.readouterr())
        assert status == pytest.ExitCode.USAGE_ERROR
        assert f"ERROR: Cannot test {address}. " in text and said in text
        assert len(text.strip().splitlines()) == 1


class OtherPlugin:
    """Stands in for pytest-base-url, which has the same option."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        parser.addoption("--base-url", metavar="url", help="the application under test")


def test_beside_a_plugin_with_the_same_option(
    urls: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    options = [*QUIET, "--base-url", urls[SOUND], "-k", "hub_json"]
    assert pytest.main([SUITE, *options], plugins=[OtherPlugin()]) == 0
    assert "passed" in capfd.readouterr().out


def test_every_option_is_in_the_guide() -> None:
    source = (PROJECT / "tests/conformance/conftest.py").read_text()
    guide = (PROJECT / "docs/develop/conformance.md").read_text()
    options = set(re.findall(r'addoption\(\s*"(--[a-z-]+)"', source))
    assert len(options) >= 7
    assert [option for option in options if f"`{option}" not in guide] == []
    assert [name for name in CAPABILITIES if f"`{name}`" not in guide] == []
    assert CANARY in guide
