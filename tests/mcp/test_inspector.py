"""The Inspector's command line, which knows both eras and checks schemas for portability."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.mcp.catalogue import TAKES
from tests.mcp.conftest import Run

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=["legacy", "modern"])
def ask(request: pytest.FixtureRequest, run: Run, mcp_url: str) -> Ask:
    """Asks the hub with one method, in one era; gives the result."""

    def ask(method: str, *options: str) -> dict[str, Any]:
        done = run(
            "mcp-inspector", "--cli", mcp_url, "--transport", "http",
            "--protocol-era", request.param, "--format", "json", "--method", method, *options,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)["result"]

    return ask


def test_the_schemas_are_portable(ask: Ask):
    # Faults and bad practice are reported on stderr.
    assert {tool["name"] for tool in ask("tools/list", "--strict")["tools"]} == {*TAKES}
