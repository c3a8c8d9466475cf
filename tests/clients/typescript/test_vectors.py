"""The cases that all clients share, in every runtime."""

import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import hub_prompts
import pytest

from builder.text.values import as_text
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


def test_python_writes_numbers_as_javascript_does(run: Run, tmp_path: Path):
    chance = random.Random(8785)
    doubles = struct.unpack("<20000d", chance.randbytes(160_000))
    numbers: list[int | float] = [one for one in doubles if math.isfinite(one)]
    numbers += [chance.uniform(-1, 1) * 10 ** chance.randrange(-9, 23) for _ in range(5_000)]
    numbers += [chance.randrange(-(10**23), 10**23) // 10 ** chance.randrange(23) for _ in numbers]
    file = tmp_path / "numbers.json"
    file.write_text(json.dumps(numbers))
    script = "console.log(JSON.stringify(JSON.parse(fs.readFileSync(process.argv[1]))))"
    printed = run(*RUNTIMES["node"], "-e", script, file)
    assert as_text(numbers) == hub_prompts._text("n", numbers) == printed.strip()
