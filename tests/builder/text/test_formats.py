"""Prompts as files of other formats. The importers' tests bring these files back."""

import itertools

import pytest
from builder.text.formats import SUFFIXES, write_as

from builder.model.records import CONTENT_BYTES_MAX
from tests.clients.exports import read_cases


def test_the_cases_that_all_implementations_pass():
    cases = read_cases()
    assert len({case["name"] for case in cases}) == len(cases) >= 40
    for case in cases:
        written = write_as(case["record"], case["format"])
        assert written == (case["text"], case["losses"]), case["name"]


# Each would take minutes where a pattern tries all ways to read it.
LONG_RUNS = [
    "system{}x", "{}x", "user[{}", "tool {}[", "{{{{{}", "{}{{{{", "\\{}", "\\:{}", "${{{}",
]  # fmt: skip


@pytest.mark.parametrize("unit", [" ", "\\", "{", "]", "[ ", "}"])
def test_a_long_run_takes_no_longer_than_another_text(unit):
    record = read_cases()[0]["record"] | {"messages": None}
    run = unit * (CONTENT_BYTES_MAX // len(unit) - 10)
    for around, format in itertools.product(LONG_RUNS, SUFFIXES):
        record["body"] = around.format(run)
        text, _ = write_as(record, format)
        assert len(text) >= len(record["body"])
