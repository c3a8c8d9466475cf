"""MCP clients that others wrote, run with Node as they come from npm, and what they try."""

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from builder.model.settings import Settings
from tests.mcp.catalogue import hostile, hostile_site, sample
from tests.mcp.wire import OTHER_ORIGIN, Wire, built_catalogue
from tests.node import PROGRAMS
from tests.support.servers import Server, clean_environment, sample_settings, serving

__all__ = ["hostile", "hostile_site", "sample"]

PROGRAM_SECONDS_MAX = 60
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory, installed_tools: None) -> Run:
    """Runs a program of the Node packages with these arguments, and gives what it wrote."""
    home = tmp_path_factory.mktemp("home")
    # The programs want a newer Node than many machines have, and it comes with them.
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    environment = clean_environment(PATH=path, HOME=str(home))

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        for needed in ("node", program):
            assert (PROGRAMS / needed).exists(), (
                f"{needed} is not there; install it with: sh tests/install-tools"
            )
        return subprocess.run(
            [PROGRAMS / program, *arguments], cwd=home, env=environment, capture_output=True,
            text=True, timeout=PROGRAM_SECONDS_MAX,
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def mcp_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """That of the sample catalogue, served without a rate limit."""
    with serving(sample_settings(tmp_path_factory.mktemp("hub"))) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return built_catalogue(tmp_path_factory.mktemp("catalogue"))


@pytest.fixture(scope="module")
def server(catalogue: Settings) -> Iterator[Server]:
    with serving(catalogue, "--mcp-origin", OTHER_ORIGIN) as server:
        yield server
        assert "failed" not in server.process.text
        assert "Traceback" not in server.process.text


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    with Wire(server) as wire:
        yield wire
