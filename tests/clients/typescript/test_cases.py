"""The client with hosts that stall, cut off, lie, refuse and recover, and its number of requests:
cases.mjs, in every runtime.
"""

import json
import re
import subprocess

import pytest

from tests.clients.typescript.conftest import CLIENT, HERE, RUNTIMES
from tests.support.depth import rotating
from tests.support.servers import DEADLINE_SECONDS

CASES = re.findall(r'^test\("([^"]+)"', (HERE / "cases.mjs").read_text(encoding="utf-8"), re.M)


@pytest.fixture(scope="module")
def results(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, str | None]]:
    """By runtime and case, what went wrong. Most of a run is waiting, so all run at once."""
    started = {
        runtime: subprocess.Popen(
            [*command, HERE / "cases.mjs", CLIENT / "hub.js", tmp_path_factory.mktemp(runtime)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for runtime, command in RUNTIMES.items()
    }  # fmt: skip
    results = {}
    for runtime, process in started.items():
        try:
            output, errors = process.communicate(timeout=10 * DEADLINE_SECONDS)
        finally:
            process.kill()
        assert process.returncode == 0, f"{runtime}: {errors}"
        results[runtime] = json.loads(output)
    return results


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_case_was_tried(results: dict[str, dict[str, str | None]], runtime: str):
    assert list(results[runtime]) == CASES


@pytest.mark.parametrize("runtime", rotating(RUNTIMES))
@pytest.mark.parametrize("case", CASES)
def test_it(results: dict[str, dict[str, str | None]], runtime: str, case: str):
    assert results[runtime][case] is None, results[runtime][case]
