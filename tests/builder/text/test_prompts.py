"""Front matter, variables and first sentences."""

import json
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from builder.model.records import CONTENT_BYTES_MAX, FRONT_MATTER_BYTES_MAX
from builder.text import prompts
from builder.text.prompts import (
    YAML_TOKENS_MAX,
    Document,
    body_of,
    load_yaml,
    parse_document,
    variable_names,
)
from builder.text.summary import first_sentence, title_of
from tests.conftest import YamlWork

BOM = "\ufeff"


def test_front_matter_is_taken_off():
    document = parse_document("---\ntitle: A title\ntags: [a, b]\n---\nBody.\n")
    assert document == Document({"title": "A title", "tags": ["a", "b"]}, "Body.\n", [])


@pytest.mark.parametrize(
    "text",
    [
        "---\r\ntitle: A\r\n---\r\nBody\r\n",
        "--- \t\ntitle: A\n--- \nBody\r\n",
        "---\ntitle: A\r\n---\nBody\r\n",
    ],
)
def test_line_endings_and_final_blanks_do_not_matter(text):
    assert parse_document(text) == Document({"title": "A"}, "Body\r\n", [])


@pytest.mark.parametrize("text", ["---\na: 1\n---", "---\na: 1\n---\n"])
def test_the_body_may_be_empty(text):
    assert parse_document(text) == Document({"a": 1}, "", [])


@pytest.mark.parametrize(
    "text",
    [
        "", "Body", "---", "---\n", "----\na: 1\n---\n", "---\na: 1\n", "---\na: 1\n----\n",
        "---\na: 1\n ---\n", "--- a: 1\n---\n", " ---\na: 1\n---\n", "\n---\na: 1\n---\n",
        f"{BOM}---\na: 1\n---\n", "---\ra: 1\r---\r",
    ],
)  # fmt: skip
def test_what_is_no_block_is_prompt_text_without_a_warning(text):
    assert parse_document(text) == Document(None, text, [])


@pytest.mark.parametrize(
    "block",
    [
        "", "\n", "- a\n", "text\n", "3\n", "a: [\n", "a: b: c\n", "\ta: 1\n", "{\n", "a: 'x\n",
        "# only a comment\n", "a: !!python/object/apply:os.system [id]\n", "a: .inf\n", "a: .nan\n",
        "a: &x [1]\nb: *x\n", "a: !!set {x}\n", "a: !!binary aGk=\n", "? {a: 1}\n: 2\n",
        "a: !!bool maybe\n", "a: !!timestamp soon\n", "a: !!int ''\n", "a: !!float ''\n",
        "a: !!int x\n", "a: \x01\n", f"a: {'9' * 5000}\n", "a: 1\n--- b\n", "a: *nowhere\n",
        f"a: 0x{'f' * 5000}\n", f"0x{'f' * 5000}: a\n", f"a: 0b{'1' * 1024}\n",
    ],
)  # fmt: skip
def test_a_block_that_is_no_mapping_is_prompt_text_with_a_warning(block):
    text = f"---\n{block}---\nBody."
    front, body, warnings, over_limit = parse_document(text)
    assert (front, body, over_limit) == (None, text, "")
    assert len(warnings) == 1
    assert "kept as text" in warnings[0]
    assert "\n" not in warnings[0]


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
    assert parse_document(f"---\n{block}---\n").front is None


def test_a_star_that_is_no_alias_is_read():
    assert load_yaml("a: '*x'\nb: 2 *x\nc: |\n  *x\n  - *x\n") == {
        "a": "*x", "b": "2 *x", "c": "*x\n- *x\n",
    }  # fmt: skip


def test_a_date_stays_the_text_that_it_is():
    assert load_yaml("a: 2025-01-31\nb: 2025-01-31T09:30:00Z\n2025-02-01: c\n") == {
        "a": "2025-01-31", "b": "2025-01-31T09:30:00Z", "2025-02-01": "c",
    }  # fmt: skip


@pytest.mark.parametrize("tag", ["", "!!int ", "!!float "])
@pytest.mark.parametrize(
    "value", ["1:30", "-1:30:59", "190:20:30.15", "1" + ":1" * 400, "1" + ":1" * 400 + ".5"]
)
def test_digits_between_colons_stay_text(tag, value):
    assert load_yaml(f"a: {tag}{value}\n") == {"a": value}


def test_numbers_are_read():
    assert load_yaml("a: 12\nb: -0x1F\nc: 1_000\nd: 0.5\ne: 010\nf: !!float 2\n") == {
        "a": 12, "b": -31, "c": 1000, "d": 0.5, "e": 8, "f": 2.0,
    }  # fmt: skip


def front_matter_of(size: int) -> str:
    """A mapping between its two lines, of so many bytes, most of them in two-byte characters."""
    frame = "---\na: \n---\n"
    filling = "é" * ((size - len(frame)) // 2)
    return frame.replace(" ", " " + filling + "x" * (size - len(frame) - 2 * len(filling)))


def test_front_matter_may_have_16_kib(yaml_work: YamlWork):
    largest = front_matter_of(FRONT_MATTER_BYTES_MAX)
    assert parse_document(largest + "Body.").body == "Body."
    assert len(yaml_work.loaded) == 1
    text = front_matter_of(FRONT_MATTER_BYTES_MAX + 1) + "Body."
    tokens = yaml_work.tokens
    document = parse_document(text)
    assert (document.front, document.body) == (None, text)
    assert document.over_limit == "it has 16,385 bytes; the limit is 16,384"
    assert document.over_limit in document.warnings[0]
    assert (len(yaml_work.loaded), yaml_work.tokens) == (1, tokens)


@pytest.mark.parametrize(
    ("begin", "item", "end", "around", "each"),
    [
        ("k: [", "a,", "]\n", 10, 2),  # around the items: stream, mapping, key, value, brackets
        ("", "- a\n", "", 4, 2),
        ("k: [", "[],", "]\n", 10, 3),
    ],
)
def test_yaml_may_have_2000_tokens(yaml_work: YamlWork, begin, item, end, around, each):
    most = (YAML_TOKENS_MAX - around) // each
    load_yaml(begin + item * most + end)
    assert yaml_work.tokens <= YAML_TOKENS_MAX and len(yaml_work.loaded) == 1
    for count in (most + 1, FRONT_MATTER_BYTES_MAX // 3 - 10, CONTENT_BYTES_MAX // 3):
        yaml_work.tokens = 0
        with pytest.raises(ValueError, match="2,000 YAML tokens"):
            load_yaml(begin + item * count + end)
        assert yaml_work.tokens == YAML_TOKENS_MAX + 1
    assert len(yaml_work.loaded) == 1


def test_front_matter_of_too_many_tokens_is_text(yaml_work: YamlWork):
    text = "---\nk: [" + "a," * YAML_TOKENS_MAX + "]\n---\nBody."
    document = parse_document(text)
    assert document.body == text and "2,000" in document.over_limit
    assert yaml_work.loaded == []


@given(st.text(alphabet="-: \r\na[]é\ufeff🙂") | st.text(), st.text())
def test_the_body_is_found_again_by_the_bytes_of_the_front_matter(front, rest):
    for text in (front + rest, f"---\na: {front!r}\n---\n{rest}"):
        body = parse_document(text).body
        front_matter_bytes = len(text.encode()) - len(body.encode())
        assert body_of(text, front_matter_bytes) == body_of(text, UNSET) == body


def test_keys_become_text():
    assert parse_document("---\n7: a\ntrue: b\nnull: c\n---\n").front == {
        "7": "a", "True": "b", "None": "c",
    }  # fmt: skip


def test_warnings_name_the_line():
    with pytest.raises(ValueError, match="line 2"):
        load_yaml("a: 1\nb: c: d\n")


@given(st.text(alphabet="-: \r\na[]{}&*!|>'\"#,%@`?~0.é\ufeff\x85\u2028") | st.text())
@example("a: !!bool maybe")
def test_front_matter_never_raises_and_gives_what_json_holds(text):
    for whole in (text, f"---\n{text}\n---\n{text}"):
        front, body, warnings, _ = parse_document(whole)
        assert whole.endswith(body)
        if front is None:
            assert body == whole
        else:
            assert json.loads(json.dumps(front, allow_nan=False)) == front
        assert len(warnings) <= 1


YAML_TAGS = "bool int float null str timestamp binary seq map set omap pairs merge value x".split()


@given(st.sampled_from(YAML_TAGS), st.text(max_size=8))
def test_no_tag_makes_yaml_raise_anything_else(tag, value):
    try:
        json.dumps(load_yaml(f"a: !!{tag} {json.dumps(value)}"), allow_nan=False)
        json.dumps(load_yaml(f"a: !!{tag} {value}"), allow_nan=False)
    except ValueError as error:
        assert "\n" not in str(error)


FULL = CONTENT_BYTES_MAX - 20
HOSTILE_TEXTS = {
    "unterminated": "---\n" + "a: 1\n" * (FULL // 5),
    "unterminated crlf": "---\n" + "a\r\n" * (FULL // 3),
    "carriage returns": "---\n" + "\r" * FULL,
    "almost closed": "---\n" + "--- x\n" * (FULL // 6),
    "blanks after hyphens": "---" + " " * FULL,
    "blank lines": "---\n" + "\n" * FULL,
    "blanks after many hyphens": "---\n" + ("---" + " " * 100 + "x\n") * (FULL // 104),
    "blanks after the last hyphens": "---\n---" + " " * FULL + "x",
    "only hyphens": "---\n" + "-" * FULL,
    "openings": "---\n" * (FULL // 4),
    "base 60": "---\nk: 1" + ":1" * (FULL // 2 - 10) + "\n---\n",
    "base 60, tagged": "---\nk: !!int 1" + ":1" * (FULL // 2 - 10) + "\n---\n",
    "flow list": "---\nk: [" + "1," * (FULL // 2 - 10) + "]\n---\n",
    "flow list within the limit of bytes": "---\nk: [" + "1," * 8_000 + "]\n---\n" + "x" * 9_000,
    "brackets": "---\na: " + "[" * FULL + "\n---\n",
    "balanced brackets": "---\na: " + "[" * (FULL // 2) + "]" * (FULL // 2) + "\n---\n",
    "braces": "---\na: " + "{" * FULL + "\n---\n",
    "list in list": "---\n" + "- " * (FULL // 2) + "\n---\n",
    "key in key": "---\n" + "? " * (FULL // 2) + "\n---\n",
    "many keys": "---\n" + "".join(f"k{n}: 1\n" for n in range(FULL // 10)) + "---\n",
    "opening braces": "{{" * (FULL // 2),
    "open variables": "{{a" * (FULL // 3),
    "blanks in a variable": ("{{" + " " * 1000) * (FULL // 1002),
    "one long name": "{{" + "a" * FULL + "}}",
    "backslashes": "\\" * FULL + "{{a}}",
    "hashes": "#" * FULL,
    "blanks": " " * FULL,
    "line feeds": "a" + "\n" * FULL,
    "numbers": "1" * FULL,
    "one word": "x" * FULL,
}


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_hostile_texts_of_full_size_take_few_steps(text):
    # A step is a call or a return. What takes the regular expressions too long never ends here.
    steps = 0

    def count(frame, event, arg):
        nonlocal steps
        steps += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        document = parse_document(text)
        variable_names(text)
        first_sentence(document.body)
        title_of(document.body)
    finally:
        sys.setprofile(before)
    assert steps < 20 * len(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{{a}} {{ b }} {{\tc\t}}", ["a", "b", "c"]),
        ("{{b}} {{a}} {{b}}", ["b", "a"]),
        (r"\{{a}} {{b}}", ["b"]),
        ("{a} {{1a}} {{a-b}} {{a b}} {{}} {{ }} {{a}", []),
        ("{{a\n}} {{\na}}", []),
        ("{{_}} {{_1}} {{A9}}", ["_", "_1", "A9"]),
        ("{{" + "a" * 64 + "}}", ["a" * 64]),
        ("{{" + "a" * 65 + "}}", []),
        ("{{é}} {{а}}", []),
        ("{{{a}}}", ["a"]),
        ("{{a}}{{b}}", ["a", "b"]),
        ("", []),
    ],
)
def test_variables(text, names):
    assert variable_names(text) == names


@given(st.from_regex(prompts.VARIABLE_NAME, fullmatch=True), st.text(" \t", max_size=3))
def test_every_variable_is_found_with_its_blanks_and_not_behind_a_backslash(name, blanks):
    variable = "{{" + blanks + name + blanks + "}}"
    assert variable_names(f"x{variable}x") == [name]
    assert variable_names(rf"x\{variable}x") == []


@given(st.text(alphabet="{}\\ \tab_1\n"))
def test_variables_never_raise_and_are_names(text):
    names = variable_names(text)
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and "{{" in text for name in names)
