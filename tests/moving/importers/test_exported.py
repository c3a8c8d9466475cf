"""An import reads an export of a skill back, as far as a skill can hold it."""

from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from builder.text.messages import parse_messages
from builder.text.prompts import mark_variables, parse_document
from builder.text.skill_writer import write_skill
from builder.text.summary import clean_title
from moving.importers.files import read_files
from moving.importers.items import Item
from moving.importers.placeholding import turn_prompt
from tests.support.depth import searching

# Pieces of text that have a meaning of their own in some format.
PIECES = [
    "{", "}", "{{", "}}", "{{{", "\\", "\\{{", "{%", "%}", "{#", "{{x}}", "{{ y }}", "{{role}}",
    "{{!}}", "{{~!}}", "{{this.[x]}}", '{{ "{{" }}', "user", ":", "user:", "\nsystem:\n",
    "  # Tool :", "u\u017fer:", '{{role "user"}}', '\n{{role "user"}}\n',
    '\n{{role "assistant"}}\n', '\n{{role "system"}}\n', '\n{{role "model"}}\n', "\n", "\n\n",
    "\r\n", " ", "\t", "\u2028", "\ufeff", "---\n", "---", "+++", "a", "é", "\U0001f600", "${x}",
    "#", "'", '"', "\x85", "x",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)
# Metadata has no other control characters.
CHARS = st.characters(exclude_categories=["Cc", "Cn", "Cs"])
STRINGS = st.text(CHARS, max_size=20) | st.sampled_from(
    ["yes", "1e3", "2026-01-31", "null", "a: b", "- a", "--- a", "# a", "a\nb\n", "\u2029", "<<"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False,
    allow_infinity=False) | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
VALUES = JSON.filter(lambda value: value is not None)
TITLES = STRINGS.map(clean_title).filter(bool)
TYPES = st.sampled_from(["integer", "number", "boolean", "array", "object"])


def variables(types: st.SearchStrategy, values: st.SearchStrategy) -> st.SearchStrategy:
    maybe = st.none() | values
    return st.fixed_dictionaries(
        {
            "name": st.sampled_from(["x", "y", "role", "other"]), "description": STRINGS,
            "type": types, "required": st.booleans(), "default": maybe, "example": maybe,
            "enum": st.none() | st.lists(values, max_size=2),
        }
    )  # fmt: skip


# A text is read as it is spelled: a number as the default of one comes back as a text.
VARIABLES = st.lists(
    variables(TYPES, JSON) | variables(st.just("string"), STRINGS),
    max_size=3,
    unique_by=lambda one: one["name"],
)
SETTINGS = st.fixed_dictionaries(
    {
        "model": STRINGS.filter(bool), "max_tokens": st.integers(1, 9), "top_p": st.just(0.5),
        "response_format": st.sampled_from(
            [
                {"type": "json_object"},
                {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}},
            ]
        ),
    }
)  # fmt: skip
KEYS = st.sampled_from(["seed", "top_p", "stop", "tools", "response_format"]) | STRINGS.filter(
    lambda key: key != "model"
)
PARAMETERS = st.dictionaries(KEYS, VALUES, max_size=3) | SETTINGS
RECORDS = st.fixed_dictionaries(
    {
        "owner": st.just("ada"), "name": st.just("readme"), "version": st.just("1.2.0"),
        "title": TITLES, "description": STRINGS.map(str.strip),
        "tags": st.lists(st.sampled_from(["a", "yes", "1", "1e3"]), unique=True, max_size=2),
        "license": st.none() | STRINGS.map(lambda text: " ".join(text.split())).filter(bool),
        "variables": VARIABLES, "parameters": PARAMETERS,
        # An import passes over a file that has nothing but white space or a byte order mark.
        "body": TEXTS.filter(lambda text: text.replace("\ufeff", "").strip()),
    }
)  # fmt: skip

# Fields that a skill has.
HELD = ("title", "description", "tags", "license")
LOST_ANYWAY = {"the model and parameters"}


def bring(folder: Path, record: dict[str, Any]) -> Item:
    """A record that was written as a file, and read again; losses that show are assumed away."""
    text, losses = write_skill(record)
    lost = {loss for loss in losses if not loss.endswith(("of variables", "are optional"))}
    assume(lost <= LOST_ANYWAY)
    path = f"{record['owner']}/{record['name']}/SKILL.md"
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode())
    (item,) = read_files(str(folder))
    assert isinstance(item, Item), item
    return item


def spoken(text: str) -> Any:
    """The messages of a body, with variables marked; a text is one message of the user."""
    body = text.removeprefix("\ufeff")
    messages = parse_messages(body)
    found = [("user", text)] if messages is None else [(one.role, one.content) for one in messages]
    return [(role, mark_variables(one, lambda name, _: f"\0{name}\0")) for role, one in found]


@searching(
    60,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
    ],
    deadline=None,
)
@given(record=RECORDS)
def test_what_is_brought_back(tmp_path, record):
    messages = parse_messages(record["body"])
    record |= {"messages": msgspec.to_builtins(messages)}
    assume(messages is None or messages)
    assume(record["description"])
    item = bring(tmp_path, record)
    placed = turn_prompt(item.text, item.fields, "none")
    body = parse_document(placed.text).body
    assert spoken(body) == spoken(record["body"])
    assert body == record["body"]
    for field in HELD:
        assert placed.fields.get(field, type(record[field])()) == record[field], field
    assert item.name == "readme"
    assert not item.warnings
