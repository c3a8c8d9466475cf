"""Prompts as files of other formats. The importers' tests bring these files back."""

from builder.text.formats import write_as
from tests.clients.exports import read_cases


def test_the_cases_that_all_implementations_pass():
    cases = read_cases()
    assert len({case["name"] for case in cases}) == len(cases) > 50
    for case in cases:
        written = write_as(case["record"], case["format"])
        assert written == (case["text"], case["losses"]), case["name"]
