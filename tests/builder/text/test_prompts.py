"""Front matter, variables and first sentences."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from builder.model.records import CONTENT_BYTES_MAX, FRONT_MATTER_BYTES_MAX
from builder.text import prompts
from builder.text.core_yaml import VALUES_MAX
from builder.text.prompts import Document, body_of, parse_document, variable_names
from builder.text.summary import first_sentence, title_of
from tests.support.calls import few_steps

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
    assert parse_document(text) == Document({"a": "1"}, "", [])


@pytest.mark.parametrize(
    "text",
    [
        "", "Body", "---", "---\n", "----\na: 1\n---\n", "--- a: 1\n---\n", " ---\na: 1\n---\n",
        "\n---\na: b: c\n---\n", f"{BOM}---\ntext\n---\n", "---\rtext\r---\r", "---\nA rule.\n",
    ],
)  # fmt: skip
def test_what_is_no_block_is_prompt_text_without_a_warning(text):
    assert parse_document(text) == Document(None, text, [])


@pytest.mark.parametrize("text", ["---\na: 1\n", "---\na: 1\n----\n", "---\r\na:\r\n ---\r\n"])
def test_a_block_without_an_end_is_prompt_text_with_a_warning(text):
    document = parse_document(text)
    assert document[:2] == (None, text) and not document.fault
    assert "no second line of ---" in document.warnings[0]


@pytest.mark.parametrize(
    "block",
    [
        "", "\n", "- a\n", "text\n", "3\n", "# only a comment\n", "{\n", "[a: b: c\n", "'x\n",
        "? {a: 1}\n: 2\n", "Two rules, and between them: a text: with colons.\n", "# a\nb: c: d\n",
        "\na: b: c\n", "- a: b: c\n", "Dear Ann: hello: \n", "https://example.org: [\n", "*a*: [\n",
    ],
)  # fmt: skip
def test_a_block_that_is_no_mapping_is_prompt_text_with_a_warning(block):
    text = f"---\n{block}---\nBody."
    front, body, warnings, fault = parse_document(text)
    assert (front, body, fault) == (None, text, "")
    assert len(warnings) == 1
    assert "kept as text" in warnings[0]
    assert "\n" not in warnings[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\ntitle: a: b\n---\nBody.", "line 2, column 9: a second colon; put a text"),
        ("---\n\tname: x\n---\n", "line 2, column 1: a tab; indent"),
        ('---\n{\n  "name": x,\n  y\n---\n', "line 2, column 1: nothing closes this bracket"),
        ("---\ntitle: é\x1b[31m\n---\n", "line 2, column 9: the character U+001B is not allowed"),
        ("---\nタイトル: a: b\n---\n", "line 2, column 8: a second colon"),
        ("---\ra: 1\r---\rBody.", "line 1, column 4 is a CR alone"),
        ("---\na: 1\r---\rBody.", "line 2, column 5 is a CR alone"),
        (f"{BOM}---\na: 1\n---\nBody.", "line 1, column 1 is a byte order mark"),
        (f"---\na: [{'b,' * VALUES_MAX}]\n---\n", "it has more than 2,000 values"),
    ],
)
def test_a_block_that_begins_with_a_key_and_cannot_be_read_is_a_fault(text, reason):
    front, body, warnings, fault = parse_document(text)
    assert (front, body) == (None, text)
    assert reason in fault and fault in warnings[0] and "\n" not in fault
    # An empty line before it makes it a text.
    assert parse_document(f"\n{text}") == Document(None, f"\n{text}", [])


def front_matter_of(size: int) -> str:
    """A mapping between its two lines, of so many bytes, most of them in two-byte characters."""
    frame = "---\na: \n---\n"
    filling = "é" * ((size - len(frame)) // 2)
    return frame.replace(" ", " " + filling + "x" * (size - len(frame) - 2 * len(filling)))


def test_front_matter_may_have_16_kib(yaml_work):
    largest = front_matter_of(FRONT_MATTER_BYTES_MAX)
    assert parse_document(largest + "Body.").body == "Body."
    assert len(yaml_work.loaded) == 1
    text = front_matter_of(FRONT_MATTER_BYTES_MAX + 1) + "Body."
    events = yaml_work.events
    document = parse_document(text)
    assert (document.front, document.body) == (None, text)
    assert document.fault == "it has 16,385 bytes; the limit is 16,384"
    assert document.fault in document.warnings[0]
    assert (len(yaml_work.loaded), yaml_work.events) == (1, events)


@given(st.text(alphabet="-: \r\na[]é\ufeff🙂") | st.text(), st.text())
def test_the_body_is_found_again_by_the_bytes_of_the_front_matter(front, rest):
    for text in (front + rest, f"---\na: {front!r}\n---\n{rest}"):
        body = parse_document(text).body
        front_matter_bytes = len(text.encode()) - len(body.encode())
        assert body_of(text, front_matter_bytes) == body_of(text, UNSET) == body


@given(st.text(alphabet="-: \r\na[]{}&*!|>'\"#,%@`?~0.é\ufeff\x85\u2028") | st.text())
@example("a: !!bool maybe")
@example("\n0\x85\x850:\n")
def test_front_matter_never_raises_and_gives_what_json_holds(text):
    for whole in (text, f"---\n{text}\n---\n{text}"):
        front, body, warnings, _ = parse_document(whole)
        assert whole.endswith(body)
        if front is None:
            assert body == whole
        else:
            assert json.loads(json.dumps(front, allow_nan=False)) == front
        assert len(warnings) <= 1


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
    with few_steps(20 * len(text)):
        document = parse_document(text)
        variable_names(text)
        first_sentence(document.body)
        title_of(document.body)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{{a}} {{ b }} {{\tc\t}}", ["a", "b", "c"]), ("{{b}} {{a}} {{b}}", ["b", "a"]),
        (r"\{{a}} {{b}}", ["b"]), ("{a} {{1a}} {{a-b}} {{a b}} {{}} {{ }} {{a}", []),
        ("{{a\n}} {{\na}}", []), ("{{_}} {{_1}} {{A9}}", ["_", "_1", "A9"]),
        ("{{" + "a" * 64 + "}}", ["a" * 64]), ("{{" + "a" * 65 + "}}", []), ("{{é}} {{а}}", []),
        ("{{{a}}}", ["a"]), ("{{a}}{{b}}", ["a", "b"]), ("", []),
    ],
)  # fmt: skip
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
