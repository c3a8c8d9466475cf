"""Keys that JSON has twice."""

import json

import pytest

from builder.text.json_keys import load_pairs, only_once, repeated_keys


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ('{"a": 1, "b": {"a": 2}, "c": [{"a": 3}]}', []),
        ('{"a": 1, "a": 1}', ["a"]),
        ('{"x": {"a": 1, "a": 2, "b": 0, "b": 0}}', ["a", "b"]),
        ('[[{"\\u0061": 1, "a": 2}], {}]', ["a"]),
        ('{"a": {"b": 1, "b": 2}, "a": 3}', ["a"]),  # what is lost is not looked into
        ("[1, null]", []),
    ],
)
def test_repeated_keys(text: str, repeated: list[str]):
    value = load_pairs(text)
    assert [*repeated_keys(value)] == repeated and value == json.loads(text)
    if repeated:
        with pytest.raises(ValueError, match="is given twice"):
            json.loads(text, object_pairs_hook=only_once)
    else:
        assert json.loads(text, object_pairs_hook=only_once) == value
