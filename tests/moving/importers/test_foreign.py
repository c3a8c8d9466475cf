"""The metadata of other conventions; what each becomes is tested with the files that have it."""

import pytest

from moving.importers.foreign import translate
from publisher.write.fields import parse_loosely
from tests.moving.vendors.mutations import mutate

DOTPROMPT = {
    "model": "m", "config": {"topK": 1}, "metadata": {"tags": ["a"], "authors": ["ada"]},
    "input": {"schema": {"a?": "string, about", "b(enum, about)": ["x"], "c(object)": {"d": "e"}},
              "default": {"a": "x"}},
}  # fmt: skip
JSON_SCHEMA = {
    "input": {"schema": {"properties": {"a": {"type": "string", "examples": ["x"]}},
                         "required": ["a"]}},
    "responseFormat": "json_schema", "jsonSchema": "{}", "modelParameters": {"maxTokens": 1},
}  # fmt: skip
PROMPTY = {
    "name": "A", "authors": ["ada"], "inputs": {"a": {"kind": "str", "sample": "x"}, "b": "y"},
    "model": {"configuration": {"name": "m"}, "options": {"additionalProperties": {"a": 1}}},
    "sample": {"a": "x"},
}  # fmt: skip


@pytest.mark.parametrize("front", [DOTPROMPT, JSON_SCHEMA, PROMPTY])
def test_a_wrong_type_anywhere_stops_no_import(front):
    for broken in mutate(front):
        parse_loosely(translate(broken)[0])


@pytest.mark.parametrize("key", ["schema", "default"])
def test_keys_that_are_no_text(key):
    ours, _ = translate({"input": {key: {1: "string"}}})
    assert parse_loosely(ours)[0] == {}
