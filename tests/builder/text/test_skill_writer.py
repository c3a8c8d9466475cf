"""SKILL.md of prompts. The importers' tests bring these files back."""

import pytest

from builder.model.records import CONTENT_BYTES_MAX
from builder.text.skill_writer import write_skill
from tests.clients.exports import read_cases


def test_the_cases_that_all_implementations_pass():
    cases = read_cases()
    assert len({case["name"] for case in cases}) == len(cases) >= 10
    for case in cases:
        assert write_skill(case["record"]) == (case["text"], case["losses"]), case["name"]


# It would take minutes where a pattern tries all ways to read it.
@pytest.mark.parametrize("unit", [" ", "\\", "{", "- ", "\n---"])
def test_a_long_run_takes_no_longer_than_another_text(unit):
    record = read_cases()[0]["record"] | {"messages": None}
    record["body"] = unit * (CONTENT_BYTES_MAX // len(unit))
    text, _ = write_skill(record)
    assert len(text) >= len(record["body"])
