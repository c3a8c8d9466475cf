"""Fields win over front matter, front matter over what was before; nothing is lost silently."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.records import FRONT_MATTER_BYTES_MAX, Variable, VersionFile
from builder.text.core_yaml import VALUES_MAX
from publisher.write.drafts import make_draft
from publisher.write.resolve import Metadata, resolve
from tests.builder.text.test_summary import CASES
from tests.conftest import YamlWork
from tests.publisher.write.acts import refusal


def resolved(
    text: str, previous: tuple[VersionFile, str] | None = None, **fields: Any
) -> tuple[Metadata, list[str]]:
    return resolve(make_draft({"content": text} | fields), "the-name", previous)


def record_of(text: str, **fields: Any) -> tuple[VersionFile, str]:
    """A previous version."""
    metadata, _ = resolved(text, **fields)
    return VersionFile("ann", "2025-01-01T00:00:00Z", "0" * 64, **metadata._asdict()), text


def front(block: str, body: str = "Body.") -> tuple[Metadata, list[str]]:
    return resolved(f"---\n{block}\n---\n{body}")


def test_defaults():
    metadata, warnings = resolved("# Plan a trip\nTo {{place}}, {{ place }}, \\{{not}}.")
    variables = [Variable("place", required=True)]
    description = "To {{place}}, {{ place }}, \\{{not}}."
    assert metadata == Metadata("Plan a trip", description, [], None, variables, {}, 0)
    assert warnings == []


def test_order_of_precedence():
    previous = record_of("Old.", title="Old", tags=["old"], license="MIT", description="Written.")
    text = "---\ntitle: Front\ntags: front\n---\n"
    metadata, warnings = resolved(f"{text}New.", previous, title="F")
    assert metadata == Metadata("F", "Written.", ["front"], "MIT", [], {}, len(text))
    assert warnings == []


@pytest.mark.parametrize(("body", "title", "description"), CASES)
def test_a_title_and_a_description_are_made_of_the_text(body: str, title: str, description: str):
    if body.strip() and "\0" not in body:
        draft = make_draft({"content": body})
        metadata, _ = resolve(draft, "the-name", None, front_matter=False)
        assert (metadata.title, metadata.description) == (title or "the-name", description)


def test_a_title_that_nobody_wrote_follows_the_text():
    previous = record_of("# Old\nText.")
    assert resolved("# New\nText.", previous)[0].title == "New"
    assert resolved("No heading.", previous)[0].title == "the-name"
    assert resolved("# New\nText.", record_of("# Old\nText.", title="Mine"))[0].title == "Mine"
    # A record of an earlier release has the name; the same text is no new version.
    text = "# Old\nText."
    named = record_of(text, title="the-name")
    assert resolved(text, named)[0].title == "the-name"
    assert resolved(f"{text}!", named)[0].title == "Old"


def test_what_nobody_wrote_follows_the_text_and_the_rest_stays():
    previous = record_of("Old.", license="MIT")
    assert resolved("New.", previous)[0][1:4] == ("New.", [], "MIT")
    assert resolved("New.", previous, license=None)[0].license is None
    assert resolved("New.", record_of("Old.", description=""))[0].description == ""


def test_a_variable_of_the_front_matter_alone_is_none():
    metadata, warnings = front('description: "Fills {{name}} in."', "Hello {{you}}.")
    assert metadata.variables == [Variable("you", required=True)]
    assert warnings == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parameters": {"seed": 2**53 + 1}}, "Parameter 'seed' has the number 9007199254740993,"),
        ({"parameters": {"a": [{"b": -(2**63) - 1}]}}, "clients write -9223372036854776000."),
        ({"variables": [{"name": "x", "default": 2**64 - 1}]}, "The default of variable 'x' has"),
        ({"variables": [{"name": "x", "example": [2**60 + 1]}]}, "The example of variable 'x' has"),
        ({"variables": [{"name": "x", "enum": [1, 10**30]}]}, "clients write 1e+30."),
    ],
)
def test_a_number_that_a_double_rounds_is_a_warning(fields: dict[str, Any], message: str):
    _, warnings = resolved("{{x}}", **fields)
    assert [message in warning for warning in warnings] == [True]


def test_numbers_that_a_double_holds_are_no_warning():
    numbers = [2**53, -(2**62), 10**22, 0.1, 1e300, True, "9007199254740993"]
    assert resolved("Text.", parameters={"all": numbers})[1] == []


def test_variables_as_list():
    metadata, warnings = front(
        "variables: [tone, {name: count, default: 3}, {name: x, enum: [a, b]}]",
        "{{x}} {{count}} {{tone}} {{more}}",
    )
    assert metadata.variables == [
        Variable("tone"), Variable("count", default="3"),
        Variable("x", enum=["a", "b"]), Variable("more"),
    ]  # fmt: skip
    assert warnings == []


def test_variables_as_mapping():
    metadata, warnings = front(
        "variables:\n  a: {type: boolean, description: Is it?}\n  b: 1.50\n  c:\n  d: [1]",
        "{{a}}{{b}}{{c}}{{d}}",
    )
    assert metadata.variables == [
        Variable("a", "Is it?", "boolean"), Variable("b", default="1.50"),
        Variable("c"), Variable("d", type="array", default=[1]),
    ]  # fmt: skip
    assert [variable.required for variable in metadata.variables] == [True, False, True, False]
    assert warnings == []


def test_declared_and_not_in_the_text_is_kept_and_told():
    metadata, warnings = resolved("{{a}}", variables=[{"name": "b"}, {"name": "a"}])
    assert [variable.name for variable in metadata.variables] == ["b", "a"]
    assert warnings == ["Declared variables that are not in the text: b."]


def test_what_is_no_variable_here_is_reported_once():
    _, warnings = resolved("---\ntitle: ${t} {{#no}}\n---\n{{#if x}}{{a.b}}{{/if}} ${Some name:x}")
    assert warnings == [
        "These stay text, because prompts have no logic: {{#if x}}, {{a.b}}, {{/if}}. Write "
        "{{name}} for a variable.",
        "Write {{name}} for what is to be filled in: ${Some name:x}. `hubctl import --placeholders "
        "dollar` does so.",
    ]


def test_inherited_and_not_in_the_text_is_dropped():
    previous = record_of("{{a}} {{b}}", variables=[{"name": "a", "type": "integer"}])
    metadata, warnings = resolved("{{c}} {{a}}", previous)
    assert metadata.variables == [Variable("a", type="integer"), Variable("c")]
    assert warnings == []


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ("titel: Hello", "'titel' (did you mean 'title'?)"),
        ("param: {}", "'param' (did you mean 'parameters'?)"),
        ("args: x", "Ignored unknown front-matter keys: 'args'."),
        ("title: [a]", "'title'"),
        ("title: ''", "'title'"),
        (f"description: {'x' * 2001}", "'description'"),
        ("tags: {a: b}", "'tags'"),
        ("tags: [C++]", "'C++'"),
        ("tags: [nul]", "tag 'nul': Windows has no files of that name."),
        ("license: [5]", "'license'"),
        ("parameters: {a: .inf}", "'parameters': JSON has no number .inf"),
        ("variables: {a: {type: number, default: .nan}}", "'a': JSON has no number .nan"),
        ("variables: {a: {required: yes}}", "'a'"),
        ("title: A\ntitle: the-name", "Repeated keys; the last one counts: 'title' in line 3"),
        ("variables: 5", "'variables'"),
        ("variables: [{name: a}, {name: a}]", "'variables'"),
        ("variables: {a b: 1}", "'a b'"),
        ("variables: [5]", "variable '5'"),
        ("parameters: [a]", "'parameters'"),
    ],
)
def test_a_mistake_in_front_matter_is_a_warning(block: str, key: str):
    metadata, warnings = front(block)
    size = len(f"---\n{block}\n---\n")
    assert metadata == Metadata("the-name", "Body.", [], None, [], {}, size)
    assert len(warnings) == 1 and key in warnings[0] and warnings[0].startswith("Front matter: ")


def test_an_empty_key_is_not_said():
    metadata, warnings = front("title:\ntags:")
    assert (metadata.title, metadata.tags, warnings) == ("the-name", [], [])


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("[Code Review, SQL, sql]", ["code-review", "sql"]), ("010", ["010"]),
        ("Code Review, snake_case", ["code-review", "snake-case"]),
        ("[2024, no, true, null, 1e3]", ["2024", "no", "true", "null", "1e3"]),
    ],
)  # fmt: skip
def test_tags_in_front_matter_are_tidied(value: str, tags: list[str]):
    metadata, warnings = front(f"tags: {value}")
    assert (metadata.tags, warnings) == (tags, [])


def test_tags_of_which_none_is_right_replace_none():
    text = "---\ntags: [C++]\n---\nNew."
    assert resolved(text, record_of("Old.", tags=["old"]))[0].tags == ["old"]


def test_too_many_variables():
    text = " ".join(f"{{{{v{number}}}}}" for number in range(200))
    declared = "---\nvariables: [spare]\n---\n"
    metadata, warnings = resolved(declared + text)
    assert len(metadata.variables) == 200
    assert warnings == ["Ignored declared variables that are not in the text: spare."]
    assert refusal(resolved, text + "{{one_more}}").details[0].field == "content"


def test_front_matter_that_the_caller_has_read():
    draft = make_draft({"content": "---\ntitle: Front\nodd: 1\n---\nBody."})
    metadata, warnings = resolve(draft, "n", None, front_matter=False)
    size = len("---\ntitle: Front\nodd: 1\n---\n")
    assert metadata == Metadata("n", "Body.", [], None, [], {}, size) and warnings == []


def test_texts_of_front_matter_are_as_they_are_spelled():
    metadata, warnings = front(
        "title: 1.10\ndescription: 0x1F\nlicense: no\nparameters: {n: 010, b: no}"
    )
    assert metadata[:4] == ("1.10", "0x1F", [], "no")
    assert (metadata.parameters, warnings) == ({"n": 10, "b": "no"}, [])


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("no", Variable("v", default="no")),
        ("{default: 01234, example: 1.0, enum: [no, 1e3, null]}",
         Variable("v", default="01234", example="1.0", enum=["no", "1e3", "null"])),
        ("{type: string, default: true}", Variable("v", default="true")),
        ("{type: integer, default: 010, example: 0x1F, enum: [10, 1e1]}",
         Variable("v", type="integer", default=10, example=31, enum=[10, 10.0])),
        ("{type: boolean, default: false, required: true}",
         Variable("v", type="boolean", default=False, required=True)),
        ("{type: object, default: {a: 1, b: [null]}}",
         Variable("v", type="object", default={"a": 1, "b": [None]})),
        ("{description: 5, default: null}", Variable("v", "5")),
    ],
)  # fmt: skip
def test_values_of_variables_are_texts_unless_they_have_another_type(spec: str, variable: Variable):
    metadata, warnings = front(f"variables: {{v: {spec}}}", "{{v}}")
    assert (metadata.variables, warnings) == ([variable], [])


UNREADABLE = {
    "bytes": "---\ntitle: " + "x" * FRONT_MATTER_BYTES_MAX + "\n---\nBody.",
    "values": "---\ntags: [" + "a," * VALUES_MAX + "]\n---\nBody.",
    "broken": "---\ntags: [a\n---\nBody.",
    "line ends": "---\rtitle: x\r---\rBody.",
    "byte order mark": "\ufeff---\ntitle: x\n---\nBody.",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_front_matter_that_cannot_be_read(yaml_work: YamlWork, text: str):
    error = refusal(resolved, text)
    (detail,) = error.details
    assert (error.code, detail.field) == ("validation_failed", "content")
    assert "empty line" in detail.message
    # As the message says, it is text after an empty line.
    metadata, warnings = resolved(f"\n{text}")
    assert (metadata.front_matter_bytes, warnings) == (0, [])
    # Importers keep it, and do not describe the prompt by it.
    metadata, _ = resolve(make_draft({"content": text}), "n", None, front_matter=False)
    assert (metadata.front_matter_bytes, metadata.title, metadata.description) == (0, "n", "Body.")
    assert yaml_work.events <= 4 * VALUES_MAX


def test_a_publication_parses_its_text_once_and_that_before_not_at_all(yaml_work: YamlWork):
    previous = record_of("---\ntitle: Old\n---\nOld body.")
    assert len(yaml_work.loaded) == 1
    metadata, _ = resolved("---\ntitle: Né\n---\nNew body.", previous)
    assert len(yaml_work.loaded) == 2
    assert metadata.description == "New body."
    assert metadata.front_matter_bytes == len("---\ntitle: Né\n---\n".encode())


yaml_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
keys = st.sampled_from(["title", "description", "tags", "license", "variables", "parameters", "x"])


@given(st.dictionaries(keys, yaml_like))
def test_no_front_matter_fails_a_publication(values: dict[str, Any]):
    # JSON is YAML.
    resolved(f"---\n{json.dumps(values)}\n---\nBody {{{{a}}}}.")
