"""The conformance suite of the MCP project: against the hub, and against its transport.

The suite's own baselines list what is not passed; it fails when one of these is passed after all.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.mcp.conftest import Run
from tests.support.servers import PROJECT, Process, clean_environment

HUB = Path(__file__).with_name("conformance.yml")
FIXTURE = Path(__file__).with_name("conformance-fixture.yml")
SCENARIOS = 32

# What a catalogue of prompts has to pass; a baseline must not grow into these.
NEEDED = {
    "server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
    "dns-rebinding-protection",
}  # fmt: skip

_PASSED = re.compile(r"^✓ (\S+): [1-9]\d* passed, 0 failed$", re.MULTILINE)
_EXPECTED = re.compile(r"^  ~ (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def fixture_url() -> Iterator[str]:
    environment = clean_environment(PYTHONPATH=str(PROJECT))
    process = Process(sys.executable, "-m", "tests.mcp.fixture_server", env=environment)
    try:
        yield process.wait_for_line("Serving at").split()[-1]
    finally:
        process.stop()


def failures(baseline: Path) -> list[str]:
    return yaml.safe_load(baseline.read_text())["server"]


def try_suite(run: Run, url: str, baseline: Path) -> subprocess.CompletedProcess[str]:
    return run(
        "conformance", "server", "--url", url, "--suite", "all",
        "--expected-failures", str(baseline),
    )  # fmt: skip


def check(run: Run, url: str, baseline: Path) -> set[str]:
    """Run the suite; returns the scenarios that it passed."""
    done = try_suite(run, url, baseline)
    assert done.returncode == 0, done.stdout + done.stderr
    # A name in the baseline that the suite does not have would never be noticed.
    assert sorted(_EXPECTED.findall(done.stdout)) == sorted(failures(baseline))
    passed = set(_PASSED.findall(done.stdout)) - set(failures(baseline))
    # A scenario without a check is not passed.
    assert len(passed) + len(failures(baseline)) == SCENARIOS, done.stdout
    return passed


def test_the_hub(run: Run, mcp_url: str):
    assert check(run, mcp_url, HUB) >= NEEDED


def test_the_transport(run: Run, fixture_url: str):
    passed = check(run, fixture_url, FIXTURE)
    assert passed >= NEEDED
    # Here is what the hub lacks only for want of tools and prompts of the suite's names.
    assert set(failures(FIXTURE)) < set(failures(HUB))


def test_a_stale_baseline_fails(run: Run, mcp_url: str, tmp_path: Path):
    stale = tmp_path / "stale.yml"
    stale.write_text(f"{HUB.read_text()}  - ping\n")
    done = try_suite(run, mcp_url, stale)
    assert done.returncode == 1
    assert "Stale baseline entries" in done.stdout
    assert "Unexpected failures" not in done.stdout


def test_a_failure_that_is_not_in_the_baseline_fails(run: Run, mcp_url: str, tmp_path: Path):
    first, *others = failures(HUB)
    short = tmp_path / "short.yml"
    short.write_text(yaml.safe_dump({"server": others}))
    done = try_suite(run, mcp_url, short)
    assert done.returncode == 1
    unexpected = done.stdout.partition("Unexpected failures")[2]
    assert f"✗ {first}" in unexpected
    assert not any(f"✗ {other}" in unexpected for other in others)
