"""Fields of front matter and of forms, and the messages about unknown ones."""

from typing import Any

import pytest

from publisher.write.fields import parse_field, parse_loosely
from tests.publisher.write.acts import refusal

GRAMMAR = "a tag has only a-z, 0-9 and single hyphens, at most 48 characters"


@pytest.mark.parametrize(
    ("written", "tags", "ignored"),
    [
        ("SQL, Code Review; sql,, ,", ["sql", "code-review"], []),
        ("two words", ["two", "words"], []), (["a", "", " ", 3], ["a", "3"], []),
        (["a", True, None], ["a"], ["True", "None"]), (["No!"], None, ["'No!'"]), ([], [], []),
        ("", None, []),
    ],
)  # fmt: skip
def test_tags_as_people_write_them(written: Any, tags: list[str] | None, ignored: list[str]):
    fields, warnings = parse_loosely({"tags": written})
    assert fields.get("tags") == tags
    assert warnings == [f"Ignored tag {one}: {GRAMMAR}." for one in ignored]


def test_tags_beyond_the_limit_are_named():
    fields, warnings = parse_loosely({"tags": [*"abcdefghijkl"]})
    assert fields == {"tags": [*"abcdefghij"]}
    assert warnings == [f"Ignored tag {one!r}: a prompt has at most 10 tags." for one in "kl"]


ODD = "has the control character U+"


@pytest.mark.parametrize(
    ("field", "value", "place", "message"),
    [
        ("tags", ["A b"], "tags[0]", GRAMMAR),
        ("tags", "sql", "tags", "Expected `array`, got `str`"),
        ("variables", [{"name": "1a"}], "variables[0].name", "a variable name has letters"),
        ("variables", [{"name": "a", "type": 1}], "variables[0].type", "Expected `str`, got `int`"),
        ("license", "", "license", "is empty"),
        ("license", "MIT\n", "license", f"{ODD}000A in 'MIT\\n'"),
        ("description", "a\x08b", "description", f"{ODD}0008 in"),
        ("variables", [{"name": "a", "example": ["\x1b"]}], "variables[0].example[0]", ODD),
        ("variables", [{"name": "a", "default": "\x85"}], "variables[0].default", ODD),
        ("parameters", {"stop": ["\uffff"]}, "parameters.stop[0]", f"{ODD}FFFF"),
        ("parameters", {"a": {"\U0010fffe": 1}}, "parameters.a", f"{ODD}10FFFE"),
        ("parameters", {"n": [10**309]}, "parameters", "has a number that is too large"),
        ("variables", [{"name": "a", "enum": [-(2**1024)]}], "variables", "has a number that is"),
    ],
)
def test_what_is_wrong_is_said_of_its_place(field: str, value: Any, place: str, message: str):
    (detail,) = refusal(parse_field, field, value).details
    assert detail.field == place and detail.message.startswith(message)
