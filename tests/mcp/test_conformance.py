"""The conformance suite of the MCP project.

The baseline lists what is not passed; the suite fails when one of these is passed after all.
"""

import re
from pathlib import Path

import yaml

from tests.mcp.conftest import Run

BASELINE = Path(__file__).with_name("conformance.yml")
SCENARIOS = 32

# Scenarios that a catalogue of prompts must pass, so they may not enter the baseline.
NEEDED = {
    "server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
    "dns-rebinding-protection",
}  # fmt: skip

_PASSED = re.compile(r"^✓ (\S+): [1-9]\d* passed, 0 failed$", re.MULTILINE)
_EXPECTED = re.compile(r"^  ~ (\S+)$", re.MULTILINE)


def test_the_hub(run: Run, mcp_url: str):
    done = run(
        "conformance", "server", "--url", mcp_url, "--suite", "all",
        "--expected-failures", str(BASELINE),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    failures = yaml.safe_load(BASELINE.read_text())["server"]
    # A name in the baseline that the suite does not have would never be noticed.
    assert sorted(_EXPECTED.findall(done.stdout)) == sorted(failures)
    passed = set(_PASSED.findall(done.stdout)) - set(failures)
    # A scenario without a check is not passed.
    assert len(passed) + len(failures) == SCENARIOS, done.stdout
    assert passed >= NEEDED
