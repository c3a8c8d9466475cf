"""The runtimes that the TypeScript client is for, from npm."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node import PACKAGES, PROGRAMS
from tests.support.servers import DEADLINE_SECONDS, PROJECT, clean_environment

HERE = Path(__file__).parent
CLIENT = PROJECT / "clients" / "typescript"
# Bun's own package links its program in a script, which npm may be configured not to run.
RUNTIMES = {
    "node": (PROGRAMS / "node",),
    "deno": (PROGRAMS / "deno", "run", "--allow-all", "--no-lock"),
    "bun": (next(iter(sorted(PACKAGES.glob("@oven/bun-linux-*/bin/bun"))), PROGRAMS / "bun"),),
}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory, installed_tools: None) -> dict[str, str]:
    """Environment of npm programs: they find Node, and store their files in a folder of the
    tests.
    """
    missing = [str(path) for path, *_ in RUNTIMES.values() if not path.exists()]
    assert not missing, f"{missing} are not there; install them with: sh tests/install-tools"
    return clean_environment(
        PATH=f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        HOME=str(tmp_path_factory.mktemp("home")),
        DENO_NO_UPDATE_CHECK="1",
        NO_COLOR="1",
    )


@pytest.fixture(scope="session")
def run(environment: dict[str, str]) -> Run:
    """Runs a command in a folder, and gives what it wrote; fails if the command does."""

    def run(*command: object, folder: Path = HERE) -> str:
        done = subprocess.run(
            [str(word) for word in command], cwd=folder, env=environment, text=True,
            capture_output=True, timeout=5 * DEADLINE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
