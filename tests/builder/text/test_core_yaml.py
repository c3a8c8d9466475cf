"""YAML by the core schema of YAML 1.2, within bounds."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.records import CONTENT_BYTES_MAX, FRONT_MATTER_BYTES_MAX
from builder.text.core_yaml import VALUES_MAX, Plain, core_values, load_yaml, spellings


def values(text: str) -> Any:
    return core_values(load_yaml(text)[0])


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("true", True), ("FALSE", False), ("null", None), ("~", None), ("12", 12), ("-3", -3),
        ("0123", 123), ("0o17", 15), ("0x1F", 31), ("1.50", 1.5), (".5", 0.5), ("5.", 5.0),
        ("1e3", 1000.0), ("+1", 1), ("-0", 0), ("!!float 2", 2), ("!!int 07", 7),
    ],
)  # fmt: skip
def test_scalars_of_the_core_schema(spelled, value):
    found, _ = load_yaml(f"[{spelled}]")
    assert core_values(found) == [value] and type(core_values(found)[0]) is type(value)
    assert spellings(found) == [spelled.rpartition(" ")[2]]


@pytest.mark.parametrize(
    "text",
    [
        "no", "Yes", "on", "OFF", "y", "tRUE", "nULL", "1_000", "0b1", "-0x1F", "0o8", "1:30", "1e",
        "190:20:30", "2025-01-31", "2025-01-31T09:30:00Z", "<<", "=", "v1", ".", "+", "inf", "0X1F",
        "'12'", '"true"', "!!str 12", "! 12", "|-\n  12",
    ],
)  # fmt: skip
def test_other_scalars_are_texts(text):
    found, _ = load_yaml(f"a: {text}\n")
    assert type(found["a"]) is str and found["a"] == text.split()[-1].strip("'\"")


def test_keys_are_as_they_are_spelled():
    assert values("7: a\ntrue: b\nnull: c\n010: d\n<<: {e: 1}\n") == {
        "7": "a", "true": "b", "null": "c", "010": "d", "<<": {"e": 1},
    }  # fmt: skip


def test_a_null_says_nothing_but_in_a_list_it_may_be_a_text():
    found, _ = load_yaml("a: null\nb:\nc: [null, ~]\n")
    assert found == {"a": None, "b": None, "c": [Plain("null"), Plain("~")]}
    assert core_values(found)["c"] == [None, None] and spellings(found)["c"] == ["null", "~"]


def test_of_a_repeated_key_the_last_counts_with_a_warning():
    found, warnings = load_yaml('a: 1\nb: {x: 1, "x": 2}\na: 3\n')
    assert core_values(found) == {"a": 3, "b": {"x": 2}}
    assert warnings == ["Repeated keys; the last one counts: 'x' in line 2, 'a' in line 3."]
    assert load_yaml("a: 1\na: 2\n")[1] == ["Repeated keys; the last one counts: 'a' in line 2."]
    _, warnings = load_yaml("a: 1\n" * 100)
    assert len(warnings) == 1 and warnings[0].endswith(" and 79 more.")


@pytest.mark.parametrize("text", ["😀", 'é 👩‍💻 \\ud83d " x', "a\n\U0010ffff"])
def test_what_json_dumps_writes_is_read(text):
    written = json.dumps({"a": text, "b": "12"})
    assert values(written) == json.loads(written)


def test_an_escape_of_half_a_pair():
    assert values("a: '\\ud83d'\nb: \\ude00\nc: \"\\\\ud83d\"\n") == {
        "a": "\\ud83d", "b": "\\ude00", "c": "\\ud83d",
    }  # fmt: skip
    with pytest.raises(ValueError, match="line 2, column 4: it has half of a surrogate pair"):
        load_yaml('a: 1\nb: "x\\ud83d"\n')


@pytest.mark.parametrize(
    "number", [".inf", "-.INF", ".nan", "1e999", "9" * 5_000, "0x" + "f" * 5_000]
)
def test_a_number_that_json_lacks_may_be_a_text(number):
    found, _ = load_yaml(f"[{number}]")
    assert spellings(found) == [number]
    with pytest.raises(ValueError, match="JSON has no number"):
        core_values(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c", "line 1, column 5: a second colon; put a text that has one in quotes"),
        ("x: 1\na:\xa0b\nc: d", "line 2, column 3: U+00A0 instead of space after the colon"),
        ("x: 1\na:b\nc: d", "line 2, column 3: no space after the colon; put a plain one there"),
        ("a: b\nhttp://x: c: d", "line 2, column 12: a second colon"),
        ("a:b\nc: d\ne: f: g", "line 1, column 3: no space after the colon"),
        ("c: d\ne: f\ng: h: i", "line 3, column 5: a second colon"),
        ("c: d\n\nbare\ne: f", "line 3, column 1: no colon; begin a line with a key"),
        ("a: b\nc: [x, y\nd: e", "line 2, column 4: nothing closes this bracket"),
        ("a: {x: y", "line 1, column 4: nothing closes this bracket"),
        ("a: [\nx,\n'y' 'z'\n]", "line 3, column 5: a comma or a bracket is missing"),
        ("a: b\nc: 'd\ne: f", "line 2, column 4: nothing closes this quote"),
        ('a: "b\nc: "d"\ne: f', "line 1, column 4: nothing closes this quote"),
        ("a:\n\tb: c", "line 2, column 1: a tab; indent with spaces"),
        ("a: b\n\tc: d\ne: '\\ud83d'", "line 2, column 1: a tab; indent with spaces"),
        ("a:\n  b: 1\n c: 2", "line 3, column 2: this line fits neither"),
        ("a: b\nc: *.ts", "line 2, column 5: YAML cannot read this value; put it in quotes"),
        ("a: b\nc: [X] [Y]", "line 2, column 8: YAML cannot read this value; put it in quotes"),
        ("c: @scope", "line 1, column 4: YAML cannot read this value; put it in quotes"),
        ("a: b:\xa0c: d", "line 1, column 8: a second colon"),
        ("a: 1\nb: \x7f", "line 2, column 4: the character U+007F is not allowed"),
        ("a: *nowhere", "line 1, column 4: aliases"),
        ("a: !!python/object/apply:os.system [id]", "line 1, column 4: the tag !!python"),
        ("a: !!binary aGk=", "the tag !!binary is not supported"),
        ("a: !x y", "the tag !x is not supported"),
        ("? [a]\n: 2", "line 1, column 3: a key is a list"),
        ("a: !!int x", "'x' does not match its tag !!int"),
        ("a: !!bool yes", "'yes' does not match its tag !!bool"),
        ("a: 1\n--- b", "line 2, column 1: a second document begins"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_place(text, message):
    with pytest.raises(ValueError, match="invalid YAML in line ") as caught:
        load_yaml(text)
    assert message in str(caught.value)


ALIAS_BOMBS = {
    "plain": "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "hyphen": "a: &-a [x, x]\nb: &-b [*-a, *-a]\nc: [*-b, *-b]\n",
    "byte order mark": "a: &a [x, x]\nb: [1,\n\ufeff*a,\n\ufeff*a]\n",
    "merge": "a: &a {x: 1}\nb:\n  <<: *a\n",
    "scalar": f"a: &a {'x' * 100}\nb: [*a, *a]\n",
    "flow": '{"a": &a [x], "b":*a }\n',
    "itself": "a: &a [*a]\n",
    "key": "a: &a x\n*a : y\n",
}


@pytest.mark.parametrize("block", ALIAS_BOMBS.values(), ids=ALIAS_BOMBS)
def test_aliases_are_not_read(block):
    with pytest.raises(ValueError):
        load_yaml(block)


def test_a_star_that_is_no_alias_is_read():
    assert values("a: '*x'\nb: 2 *x\nc: |\n  *x\n  - *x\n") == {
        "a": "*x", "b": "2 *x", "c": "*x\n- *x\n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "item", "end", "around"),
    [
        ("k: [", "a,", "]\n", 3), ("", "- a\n", "", 1), ("k: [", "[],", "]\n", 3),
        ("", "k: 1\n", "", 1),
    ],
)  # fmt: skip
def test_yaml_may_have_2000_values(yaml_work, begin, item, end, around):
    each = 2 if item == "k: 1\n" else 1
    most = (VALUES_MAX - around) // each
    load_yaml(begin + item * most + end)
    for count in (most + 1, FRONT_MATTER_BYTES_MAX // 3 - 10, CONTENT_BYTES_MAX // 5):
        yaml_work.events = 0
        with pytest.raises(ValueError, match="2,000 values"):
            load_yaml(begin + item * count + end)
        # No more is parsed than is needed; a list has two events.
        assert yaml_work.events <= 2 * VALUES_MAX


@pytest.mark.parametrize(
    "text", ["[" * 52, "- " * 52, "{a: " * 52, "? " * 52, "[" * CONTENT_BYTES_MAX]
)
def test_yaml_may_have_50_levels(text):
    assert len(json.dumps(values("[" * 51 + "]" * 51))) == 102
    with pytest.raises(ValueError, match="deeper than 50 levels"):
        load_yaml(text)


YAML_TAGS = "bool int float null str timestamp binary seq map set omap pairs merge value x".split()


@given(st.sampled_from(YAML_TAGS), st.text(max_size=8))
def test_no_tag_makes_yaml_raise_anything_else(tag, value):
    try:
        json.dumps(values(f"a: !!{tag} {json.dumps(value)}"), allow_nan=False)
        json.dumps(values(f"a: !!{tag} {value}"), allow_nan=False)
    except ValueError as error:
        assert "\n" not in str(error)
