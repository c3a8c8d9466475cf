"""The cases that all clients share, in every runtime."""

import json
from typing import Any

import pytest

from tests.clients.typescript.conftest import CLIENT, HERE, RUNTIMES, Run
from tests.clients.vectors import FILL, MESSAGES, VECTORS


def check_vectors(found: dict[str, list[Any]]) -> None:
    """That these outcomes of ``vectors.mjs`` are those that the cases name."""
    for case, outcome in zip(FILL, found["fill"], strict=True):
        assert outcome.items() <= case.items(), case["name"]
    for case, messages in zip(MESSAGES, found["messages"], strict=True):
        assert messages == case["messages"], case["name"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_vectors(run: Run, runtime: str):
    printed = run(*RUNTIMES[runtime], HERE / "print_vectors.mjs", CLIENT / "hub.js", VECTORS)
    check_vectors(json.loads(printed))
