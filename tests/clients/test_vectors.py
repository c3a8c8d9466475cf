"""The shared cases, and the server's own filling in."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from builder.model.errors import RequestError
from builder.model.records import Variable
from mcp_app.prompt_text import fill_in
from tests.clients.vectors import FILL, MESSAGES, name_of


def test_each_case_has_a_name_of_its_own_and_one_outcome():
    for cases in (FILL, MESSAGES):
        assert len({case["name"] for case in cases}) == len(cases) > 40
    assert all(("text" in case) != ("error" in case) for case in FILL)
    outcomes = {case.get("error") for case in FILL}
    assert outcomes == {None, "unknown_variable", "invalid_value", "missing_variable"}


@pytest.mark.parametrize("case", FILL, ids=name_of)
def test_mcp_fills_in_as_all_others(case: dict[str, Any]):
    variables = msgspec.convert(case["variables"], list[Variable])
    record = SimpleNamespace(body=case["body"], messages=None, variables=variables)
    error = case.get("error")
    if error in ("unknown_variable", "invalid_value"):
        message = {"unknown_variable": "Unknown argument", "invalid_value": "must be"}[error]
        with pytest.raises(RequestError, match=message):
            fill_in(record, case["values"])
        return
    filled = fill_in(record, case["values"])
    assert bool(filled.missing) == (error == "missing_variable")
    assert error or filled.text == case["text"]
